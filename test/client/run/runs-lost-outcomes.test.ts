/** Lost, late and repeated messages of an outcome or a checkpoint: it is recorded once, and no caller gets a false answer. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { FinalError, LockUnavailableError } from "../../../lib/testing.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";
const LEASE_MS = 3000;

describe("an answer that was lost to an outcome", () => {
  it.each([
    ["request", "small", "done"],
    ["reply", "small", "done"],
    ["request", "large", "x".repeat(5000)],
    ["reply", "large", "x".repeat(5000)],
  ] as const)("(%s, %s): recorded once, and replayed as it is", async (lost, _size, result) => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("complete", { lost }, { lost, silently: true });
    const versionNow = async () => (await rival.runs.get(KEY))!.version;
    let before = 0;
    const running = locks.runOnce(KEY, async () => {
      before = await versionNow();
      return result;
    });
    expect(await clock.settle(running)).toEqual({ value: result, replayed: false, attempt: 1 });
    expect(wire.of("complete")).toHaveLength(3);
    expect(await versionNow()).toBe(before + 1);
    expect(await rival.runOnce(KEY, () => "again")).toEqual({ value: result, replayed: true, attempt: 1 });
  });

  it.each(["request", "reply"] as const)("that was a failure (%s): its own error, and the next may start", async (lost) => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("complete", { lost }, { lost, silently: true });
    const error = new Error("no stock");
    const running = locks.runOnce(KEY, () => Promise.reject(error));
    await expect(clock.settle(running)).rejects.toBe(error);
    expect(await rival.runOnce(KEY, { waitMs: 0 }, ({ attempt }) => attempt)).toMatchObject({ value: 2 });
  });

  it("that was a failure, and another attempt began meanwhile: its own error, for that is what was recorded", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("complete", { lost: "reply", silently: true });
    const error = new Error("no stock");
    const running = thrownBy(locks.runOnce(KEY, () => Promise.reject(error)));
    await clock.advance(100);
    const gate = createGate();
    const second = rival.runOnce(KEY, ({ takeover }) => gate.pass().then(() => takeover));
    await gate.reached;
    expect(await clock.settle(running)).toBe(error);
    gate.open();
    expect(await second).toMatchObject({ value: false, attempt: 2 });
  });

  it("that was final (reply): recorded once, and replayed", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("complete", { lost: "reply" });
    const error = new FinalError("card refused");
    await expect(clock.settle(locks.runOnce(KEY, () => Promise.reject(error)))).rejects.toBe(error);
    expect(wire.of("complete")).toHaveLength(2);
    await expect(rival.runOnce(KEY, () => "again")).rejects.toMatchObject({ code: "run-failed" });
  });

  it("that nobody ever answers: LockUnavailableError, which says that the work is done and perhaps not recorded", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("complete", { lost: "reply" });
    const error = await clock.settle(thrownBy(locks.runOnce(KEY, () => "done")));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ code: "unavailable", definite: false });
    expect((error as Error).message).toContain(`run ${KEY}: the work is done, and perhaps not recorded`);
    expect(await rival.runOnce(KEY, () => "again")).toMatchObject({ value: "done", replayed: true });
  });

  it("that nobody ever got: the same error, and the next caller takes over after the lease", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    const running = thrownBy(locks.runOnce(KEY, { leaseMs: LEASE_MS }, () => "done"));
    expect(await clock.settle(running)).toMatchObject({ name: "LockUnavailableError", definite: false });
    const next = rival.runOnce(KEY, ({ attempt, takeover }) => ({ attempt, takeover }));
    expect(await clock.settle(next)).toMatchObject({ value: { attempt: 2, takeover: true } });
  });

  it("that was refused for good each time: the same error, which says that it is certainly not recorded", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { instead: refuse("throttled", { retryAfterMs: 400 }) });
    const error = await clock.settle(thrownBy(locks.runOnce(KEY, () => "done")));
    expect(error).toMatchObject({ name: "LockUnavailableError", code: "throttled", definite: true });
    expect((error as Error).message).toContain("the work is done, and not recorded");
  });

  it("that was a failure and nobody ever answers: its own error, and the listener is told", async () => {
    const { clock, locks, events, wire } = createHarness();
    wire.always("complete", { lost: "reply" });
    const error = new Error("no stock");
    await expect(clock.settle(locks.runOnce(KEY, () => Promise.reject(error)))).rejects.toBe(error);
    expect(events.map(({ type }) => type)).toEqual(["acquired", "released", "release-failed"]);
    expect(events.at(-1)?.error).toBeInstanceOf(LockUnavailableError);
  });

  it("sends no heartbeat after the work is done, whatever becomes of its outcome", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    await clock.settle(thrownBy(locks.runOnce(KEY, { leaseMs: LEASE_MS }, () => "done")));
    await clock.advance(60_000);
    expect(wire.of("renew")).toEqual([]);
  });
});

describe("an answer that was lost to a checkpoint", () => {
  it.each(["request", "reply"] as const)("(%s): saved, and the run still held", async (lost) => {
    const { clock, locks, rival, wire } = createHarness();
    wire.next("renew", { lost }, { lost });
    const running = locks.runOnce(KEY, async (run) => {
      await run.saveCheckpoint({ text: "x".repeat(3000) });
      expect(run.isHeld()).toBe(true);
      throw new Error("no stock");
    });
    await clock.settle(thrownBy(running));
    expect((await rival.runOnce(KEY, ({ checkpoint }) => checkpoint)).value).toEqual({ text: "x".repeat(3000) });
  });

  it("that nobody ever answers: the run is lost at its deadline, and not before", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("renew", { lost: "request" });
    const began = clock.monotonicMs();
    const running = thrownBy(locks.runOnce(KEY, { leaseMs: LEASE_MS }, (run) => run.saveCheckpoint("far")));
    const error = await clock.settle(running);
    expect(error).toMatchObject({ name: "LockUnavailableError" });
    expect(clock.monotonicMs() - began).toBeGreaterThan(LEASE_MS / 2);
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(LEASE_MS);
  });
});
