/** Lost, late and repeated messages of a start: one attempt, and no run without a runner that knows of it. */
import { describe, expect, it } from "vitest";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { LockUnavailableError } from "../../../lib/testing.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";
const LEASE_MS = 3000;

describe("an answer that was lost to a start", () => {
  it.each(["request", "reply"] as const)("(%s): the same attempt, under the same id, and one call of the function", async (lost) => {
    const { clock, locks, wire } = createHarness();
    wire.next("start", { lost }, { lost, silently: true });
    let calls = 0;
    const running = locks.runOnce(KEY, ({ attempt, takeover }) => ({ calls: ++calls, attempt, takeover }));
    expect(await clock.settle(running)).toEqual({ value: { calls: 1, attempt: 1, takeover: false }, replayed: false, attempt: 1 });
    expect(wire.of("start")).toHaveLength(3);
    expect(new Set(wire.of("start").map(({ request }) => request.leaseId)).size).toBe(1);
    expect(wire.of("release")).toEqual([]);
  });

  it("control: under another id it is another's, and refused", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("start", { lost: "reply", silently: true });
    const running = locks.runOnce(KEY, () => "done");
    await clock.advance(10);
    await expect(rival.runOnce(KEY, { waitMs: 0 }, () => "again")).rejects.toMatchObject({ code: "wait-timeout" });
    expect(await clock.settle(running)).toMatchObject({ attempt: 1 });
  });

  it("that nobody ever answers: LockUnavailableError, no call of the function, and nothing started", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("start", { lost: "reply" });
    const running = thrownBy(locks.runOnce(KEY, { waitMs: 2000 }, () => expect.unreachable("nobody answered")));
    const error = await clock.settle(running);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ code: "unavailable", definite: false });
    expect(await rival.runOnce(KEY, { waitMs: 0 }, ({ attempt, takeover }) => ({ attempt, takeover }))).toMatchObject({
      value: { attempt: 1, takeover: false },
    });
  });

  it("that came so late that the lease was nearly over: renewed before the work begins", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("start", { lost: "reply" });
    const running = locks.runOnce(KEY, { leaseMs: LEASE_MS }, (run) => run.isHeld());
    await clock.advance(2300);
    wire.always("start", undefined);
    expect(await clock.settle(running)).toMatchObject({ value: true, attempt: 1 });
    expect(wire.of("renew")).toHaveLength(1);
  });

  it("that came so late that it could not be renewed: asked for again, and the work begins once, as the first attempt", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("start", { replyMs: 2900 });
    wire.next("renew", { lost: "request" }, { lost: "request" }, { lost: "request" }, { lost: "request" }, { lost: "request" });
    let calls = 0;
    const running = locks.runOnce(KEY, { leaseMs: LEASE_MS, waitMs: 20_000 }, (run) => [++calls, run.isHeld()]);
    expect(await clock.settle(running)).toMatchObject({ value: [1, true], attempt: 1 });
    expect(new Set(wire.of("start").map(({ request }) => request.leaseId)).size).toBe(2);
  });

  it("that came so late that it could not be renewed before the wait's end: given up as if it had never started", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("start", { lost: "reply" });
    wire.always("renew", { lost: "request" });
    const options = { leaseMs: LEASE_MS, waitMs: 2500 };
    const running = thrownBy(locks.runOnce(KEY, options, () => expect.unreachable("its lease was nearly over")));
    await clock.advance(2300);
    wire.always("start", undefined);
    expect(await clock.settle(running)).toBeInstanceOf(LockUnavailableError);
    expect(await rival.runOnce(KEY, { waitMs: 0 }, ({ attempt, takeover }) => ({ attempt, takeover }))).toMatchObject({
      value: { attempt: 1, takeover: false },
    });
  });
});

describe("a start whose signal aborts before it is answered", () => {
  it.each(["request", "reply"] as const)("leaves nothing started, not even by a late duplicate (%s lost)", async (lost) => {
    const { clock, locks, rival, wire } = createHarness();
    const giveUp = new AbortController();
    wire.next("start", { lost, silently: true });
    const running = thrownBy(locks.runOnce(KEY, { signal: giveUp.signal }, () => expect.unreachable("it was given up")));
    await clock.advance(10);
    giveUp.abort();
    expect(await clock.settle(running)).toMatchObject({ name: "AbortError" });
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["start", "release"]);
    const [asked] = wire.of("start");
    expect(wire.of("release")[0]?.request).toMatchObject({ kind: "runs", key: KEY, leaseId: asked!.request.leaseId });
    expect(await lateDuplicate(wire.api, asked!.request)).toMatchObject({ ok: false, code: "lease-over" });
    expect(await rival.runOnce(KEY, { waitMs: 0 }, ({ attempt, takeover }) => ({ attempt, takeover }))).toMatchObject({
      value: { attempt: 1, takeover: false },
    });
  });

  it("control: without the cancel, the late duplicate starts it with nobody there", async () => {
    const { clock, locks, wire } = createHarness();
    const giveUp = new AbortController();
    wire.next("start", { lost: "request", silently: true });
    wire.always("release", { lost: "request" });
    const running = thrownBy(locks.runOnce(KEY, { signal: giveUp.signal }, () => "done"));
    await clock.advance(10);
    giveUp.abort();
    await clock.settle(running);
    expect(await lateDuplicate(wire.api, wire.of("start")[0]!.request)).toMatchObject({ ok: true, state: "running" });
  });

  it("of a takeover leaves it the takeover that it is", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const dead = rival.runOnce(KEY, { leaseMs: 1000, heartbeat: false }, async (run) => {
      await run.saveCheckpoint("far");
      return new Promise(() => undefined);
    });
    await clock.advance(5000);
    const giveUp = new AbortController();
    wire.next("start", { lost: "reply", silently: true });
    const running = thrownBy(locks.runOnce(KEY, { signal: giveUp.signal }, () => "done"));
    await clock.advance(10);
    giveUp.abort();
    await clock.settle(running);
    expect(await rival.runs.get(KEY)).toMatchObject({ state: "interrupted", attempt: 1 });
    expect(await locks.runOnce(KEY, ({ attempt, takeover, checkpoint }) => ({ attempt, takeover, checkpoint }))).toMatchObject({
      value: { attempt: 2, takeover: true, checkpoint: "far" },
    });
    void dead;
  });

  it("does nothing to work that has begun", async () => {
    const { clock, locks } = createHarness();
    const giveUp = new AbortController();
    const gate = createGate();
    const running = locks.runOnce(KEY, { signal: giveUp.signal }, async (run) => {
      await gate.pass();
      return run.isHeld();
    });
    await gate.reached;
    giveUp.abort();
    gate.open();
    expect(await clock.settle(running)).toMatchObject({ value: true, replayed: false });
  });
});

/** Delivers an old start once more, as a network might. */
async function lateDuplicate(api: ServiceApi, request: object): Promise<unknown> {
  return api.start(request as Parameters<ServiceApi["start"]>[0]);
}
