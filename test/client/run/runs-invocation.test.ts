/** Runs within a Lambda invocation: the remaining time bounds leases and waits, and the work is aborted before it ends. */
import { describe, expect, it } from "vitest";
import type { BatchRecord, VirtualClock } from "../../../lib/testing.js";
import { LockTimeoutError, runBatch } from "../../../lib/testing.js";
import { invocation } from "../../support/invocation.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";

/** Resolves after `ms`. */
function passed(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

describe("a run in an invocation", () => {
  it.each([
    [60_000, undefined, 30_000],
    [10_000, undefined, 12_000],
    [10_000, 5000, 5000],
    [10_000, 3_600_000, 12_000],
    [900.7, undefined, 2900],
  ])("with %d ms left and leaseMs %s has a lease of %d ms", async (leftMs, leaseMs, expectedMs) => {
    const { clock, locks, wire } = createHarness();
    const view = locks.forInvocation(invocation(clock, leftMs));
    await view.runOnce(KEY, leaseMs === undefined ? {} : { leaseMs }, () => "done");
    expect(wire.of("start")[0]?.request.leaseMs).toBe(expectedMs);
  });

  it.each([0, 400, -5000])("with %d ms left is not begun, and nobody else is kept from it", async (leftMs) => {
    const { clock, locks, rival } = createHarness();
    const view = locks.forInvocation(invocation(clock, leftMs));
    const error = await clock.settle(thrownBy(view.runOnce(KEY, () => expect.unreachable("the invocation ends"))));
    expect(error).toMatchObject({ name: "LockError", code: "invocation-ends" });
    expect(await rival.runs.get(KEY)).toBeNull();
    expect(await rival.runOnce(KEY, { waitMs: 0 }, ({ attempt, takeover }) => ({ attempt, takeover }))).toMatchObject({
      value: { attempt: 1, takeover: false },
    });
  });

  it.each([
    [10_000, undefined, 9000],
    [60_000, undefined, 45_000],
    [10_000, 4000, 4000],
    [800, 5000, 0],
    [0, undefined, 0],
  ])("with %d ms left and waitMs %s waits for another's result for %d ms", async (leftMs, waitMs, expectedMs) => {
    const { clock, locks, rival } = createHarness();
    void rival.runOnce(KEY, () => new Promise(() => undefined));
    await clock.advance(0);
    const began = clock.monotonicMs();
    const view = locks.forInvocation(invocation(clock, leftMs));
    const waiting = thrownBy(view.runOnce(KEY, waitMs === undefined ? {} : { waitMs }, () => expect.unreachable("another runs it")));
    expect(await clock.settle(waiting)).toBeInstanceOf(LockTimeoutError);
    expect(clock.monotonicMs() - began).toBe(expectedMs);
  });

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

  it("that is cut off is taken over soon, however long a lease it asked for", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const view = locks.forInvocation(invocation(clock, 10_000));
    void thrownBy(view.runOnce(KEY, { leaseMs: 3_600_000 }, () => new Promise(() => undefined)));
    await clock.advance(10_000);
    for (const { atMs, request } of wire.of("renew")) expect(request.leaseMs! + atMs).toBeLessThanOrEqual(clock.monotonicMs() + 2000);
    const next = rival.runOnce(KEY, { waitMs: 60_000 }, ({ attempt, takeover }) => ({ attempt, takeover }));
    const began = clock.monotonicMs();
    expect(await clock.settle(next)).toMatchObject({ value: { attempt: 2, takeover: true } });
    expect(clock.monotonicMs() - began).toBeLessThan(6000);
  });

  it("control: outside of one, the same lease keeps everybody waiting for an hour", async () => {
    const { clock, locks, rival } = createHarness();
    void thrownBy(locks.runOnce(KEY, { leaseMs: 3_600_000, heartbeat: false }, () => new Promise(() => undefined)));
    await clock.advance(10_000);
    const next = thrownBy(rival.runOnce(KEY, { waitMs: 60_000 }, () => "again"));
    expect(await clock.settle(next)).toBeInstanceOf(LockTimeoutError);
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

  it("in order ends in the midst when its time does", async () => {
    const { clock, locks } = createHarness();
    const seen: string[] = [];
    const work = async ({ body }: BatchRecord): Promise<void> => {
      await passed(clock, 2000);
      seen.push(body);
    };
    const answer = await clock.settle(runBatch(locks, { Records: RECORDS }, invocation(clock, 4500), { inOrder: true }, work));
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
    expect(await deliver({})).toEqual({ batchItemFailures: [{ itemIdentifier: "a" }] });
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
