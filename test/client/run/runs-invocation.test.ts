/** Runs within a Lambda invocation: the remaining time bounds leases and waits, and the work is aborted before it ends. */
import { describe, expect, it } from "vitest";
import { type BatchRecord, runBatch } from "../../../lib/testing.js";
import { invocation, passed } from "../../support/invocation.js";
import { createGate } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";

describe("a run in an invocation", () => {
  it("is told half a second before the invocation ends; the outcome that it still gets out is recorded", async () => {
    const { clock, locks, rival } = createHarness();
    const began = clock.monotonicMs();
    let toldAtMs = 0;
    const view = locks.forInvocation(invocation(clock, 20_000));
    const working = view.runOnce(KEY, { leaseMs: 6000 }, async ({ signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      toldAtMs = clock.monotonicMs() - began;
      return String((signal.reason as { reason?: unknown }).reason);
    });
    expect(await clock.settle(working)).toEqual({ value: "invocation-ends", replayed: false, attempt: 1 });
    expect(toldAtMs).toBe(19_500);
    expect(await rival.runOnce(KEY, () => "again")).toMatchObject({ value: "invocation-ends", replayed: true });
  });

  it("sends nothing after the invocation but what its work still says", async () => {
    const { clock, locks, wire } = createHarness();
    const gate = createGate();
    const working = locks.forInvocation(invocation(clock, 10_000)).runOnce(KEY, () => gate.pass().then(() => "done"));
    await clock.advance(9500);
    const sent = wire.sent.length;
    await clock.advance(1500);
    expect(wire.sent).toHaveLength(sent);
    gate.open();
    await clock.settle(working);
    expect(wire.sent.slice(sent).map(({ operation }) => operation)).toEqual(["complete"]);
  });
});

describe("a batch in an invocation", () => {
  const RECORDS: readonly BatchRecord[] = ["a", "b", "c"].map((body) => ({ messageId: body, body }));

  it("begins nothing that could not end, and reports it", async () => {
    const { clock, locks, wire } = createHarness();
    const reasons: unknown[] = [];
    const onFailure = (_record: BatchRecord, error: unknown): void => void reasons.push((error as Error).message);
    const answer = await runBatch(locks, { Records: RECORDS }, invocation(clock, 999), { onFailure }, () => expect.unreachable("too late"));
    expect(answer.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier)).toEqual(["a", "b", "c"]);
    expect(reasons).toEqual(Array(3).fill("the invocation ends"));
    expect(wire.sent).toEqual([]);
  });

  it.each<[field: string, event: unknown, options: unknown, work: unknown]>([
    ["event", undefined, {}, async () => "done"],
    ["event", { Records: "a" }, {}, async () => "done"],
    ["options", { Records: RECORDS }, undefined, async () => "done"],
    ["keyFor", { Records: RECORDS }, { keyFor: "id" }, async () => "done"],
    ["payload", { Records: RECORDS }, { payload: 1 }, async () => "done"],
    ["work", { Records: RECORDS }, {}, undefined],
  ])("without a right %s is refused, and processes nothing: %j", async (field, event, options, work) => {
    const { clock, locks, wire } = createHarness();
    const [of, how, done] = [event as { Records: typeof RECORDS }, options as object, work as () => Promise<string>];
    await expect(runBatch(locks, of, invocation(clock, 60_000), how, done)).rejects.toMatchObject({ name: "InvalidRequestError", field });
    expect(wire.sent).toEqual([]);
  });

  it("in order ends in the midst when its time does", async () => {
    const { clock, locks } = createHarness();
    const seen: string[] = [];
    const work = async ({ body }: BatchRecord): Promise<void> => {
      await passed(clock, 2000);
      seen.push(body);
    };
    const answer = await clock.settle(
      runBatch(locks, { Records: RECORDS }, invocation(clock, 4500), { inOrder: true, onFailure: () => undefined }, work),
    );
    expect(seen).toEqual(["a", "b"]);
    expect(answer).toEqual({ batchItemFailures: [{ itemIdentifier: "c" }] });
  });

  it("waits for nobody, unless it is told to", async () => {
    const { clock, locks, rival } = createHarness();
    const gate = createGate();
    const working = rival.runOnce("message_a", () => gate.pass().then(() => "theirs"));
    await gate.reached;
    const began = clock.monotonicMs();
    const [record] = RECORDS;
    const deliver = (options: object) =>
      clock.settle(
        runBatch(locks, { Records: [record!] }, invocation(clock, 60_000), options, () => expect.unreachable("another runs it")),
      );
    expect(await deliver({ onFailure: () => undefined })).toEqual({ batchItemFailures: [{ itemIdentifier: "a" }] });
    expect(clock.monotonicMs()).toBe(began);
    clock.after(3000, gate.open);
    expect(await deliver({ waitMs: 10_000 })).toEqual({ batchItemFailures: [] });
    await working;
  });

  it("works on at most ten at once", async () => {
    const { clock, locks } = createHarness();
    const records = Array.from({ length: 25 }, (_, index) => ({ messageId: `m${index}`, body: "" }));
    let [now, most] = [0, 0];
    const work = async (): Promise<void> => {
      most = Math.max(most, ++now);
      await passed(clock, 100);
      now--;
    };
    expect(await clock.settle(runBatch(locks, { Records: records }, invocation(clock, 60_000), {}, work))).toEqual({
      batchItemFailures: [],
    });
    expect(most).toBe(10);
  });
});
