/** Lost, late and repeated messages of an outcome or a checkpoint: it is recorded once, and no caller gets a false answer. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { type Run, FinalError, LockUnavailableError } from "../../../lib/testing.js";
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

  it("sends no heartbeat after the outcome is recorded", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("complete", { lost: "request" }, { lost: "reply" });
    await clock.settle(locks.runOnce(KEY, { leaseMs: LEASE_MS }, () => "done"));
    const sent = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(sent);
  });
});

describe("an outcome in an outage that is shorter than the lease", () => {
  const OUTAGE_MS = 12_000;
  const AWAY = ["complete", "renew"] as const;

  /** Work that ends as the service goes away, and a caller that comes when the lease, unless it was kept, is over. */
  async function awayAtTheEnd({ work = (): unknown => "done", leaseMs = 30_000, outageMs = OUTAGE_MS, heartbeat = true } = {}) {
    const { clock, locks, rival, wire, events } = createHarness();
    let calls = 0;
    const away = (lost?: "request") => AWAY.forEach((operation) => wire.always(operation, lost && { lost }));
    const running = thrownBy(
      locks.runOnce(KEY, { leaseMs, heartbeat }, async () => {
        calls++;
        away("request");
        return work();
      }),
    );
    await clock.advance(outageMs);
    away();
    const told = await clock.settle(running);
    await clock.advance(2 * leaseMs);
    const next = await clock.settle(
      thrownBy(
        rival.runOnce(KEY, () => {
          calls++;
          return "again";
        }),
      ),
    );
    return { clock, locks, wire, events, told, next, calls };
  }

  it("is recorded when the service is back, though its caller was told before: the work does not run twice", async () => {
    const { told, next, calls } = await awayAtTheEnd();
    expect(told).toMatchObject({ name: "LockUnavailableError", definite: false });
    expect([next, calls]).toEqual([{ value: "done", replayed: true, attempt: 1 }, 1]);
  });

  it("control: in an outage that is longer than the lease, the next caller takes over", async () => {
    const { next, calls } = await awayAtTheEnd({ outageMs: 40_000 });
    expect([next, calls]).toEqual([{ value: "again", replayed: false, attempt: 2 }, 2]);
  });

  it("is recorded too if it is a final error", async () => {
    const error = new FinalError("card refused");
    const { told, next, calls } = await awayAtTheEnd({ work: () => Promise.reject(error) });
    expect([told, calls]).toEqual([error, 1]);
    expect(next).toMatchObject({ code: "run-failed" });
  });

  it("is recorded under a lease without heartbeats", async () => {
    const { next, wire } = await awayAtTheEnd({ heartbeat: false });
    expect(next).toMatchObject({ value: "done", replayed: true });
    expect(wire.of("renew")).toEqual([]);
  });

  it("sends less often the longer the outage lasts, and nothing once the lease is over", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    await clock.settle(thrownBy(locks.runOnce(KEY, { leaseMs: 3_600_000, heartbeat: false }, () => "done")));
    const sent = () => wire.of("complete").length;
    const perMinute: number[] = [];
    for (let minute = 0; minute < 61; minute++) {
      const before = sent();
      await clock.advance(60_000);
      perMinute.push(sent() - before);
    }
    expect(perMinute[0]).toBeLessThan(75);
    expect(Math.max(...perMinute.slice(1))).toBeLessThan(45);
    expect(perMinute[58]).toBeGreaterThan(0);
    expect(perMinute[60]).toBe(0);
  });

  it("keeps the lease by heartbeats where these get through, for one more lease, and then lets it go", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    await clock.settle(thrownBy(locks.runOnce(KEY, { leaseMs: LEASE_MS }, () => "done")));
    expect(wire.of("renew").length).toBeGreaterThanOrEqual(2);
    await clock.advance(60_000);
    const sent = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(sent);
    expect(await rival.runs.get(KEY)).toMatchObject({ state: "interrupted" });
  });

  it("lasts for its caller's answer in an invocation, after which nothing goes on", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    const endsMs = clock.monotonicMs() + 60_000;
    const view = locks.forInvocation({ getRemainingTimeInMillis: () => endsMs - clock.monotonicMs() });
    const running = view.runOnce(KEY, () => "done");
    await clock.advance(OUTAGE_MS);
    wire.always("complete", undefined);
    expect(await clock.settle(running)).toEqual({ value: "done", replayed: false, attempt: 1 });
  });

  it("keeps no process alive once its caller was told: it sets no timer but in the background", async () => {
    let timers = 0;
    const { clock, locks, wire } = createHarness({
      clientClock: (real) => ({
        ...{ wallMs: () => real.wallMs(), monotonicMs: () => real.monotonicMs() },
        after: (delayMs, task) => (timers++, real.after(delayMs, task)),
        inBackground: (delayMs, task) => real.inBackground(delayMs, task),
      }),
    });
    wire.always("complete", { lost: "request" });
    await clock.settle(thrownBy(locks.runOnce(KEY, () => "done")));
    const [sent, before] = [wire.of("complete").length, timers];
    await clock.advance(OUTAGE_MS);
    expect(wire.of("complete").length).toBeGreaterThan(sent);
    expect([before > 0, timers - before]).toEqual([true, 0]);
  });

  it("ends with its client: close sends nothing afterwards, and doesn't wait for the lease", async () => {
    const { clock, locks, wire } = createHarness();
    for (const operation of AWAY) wire.always(operation, { lost: "request", silently: true });
    await clock.settle(thrownBy(locks.runOnce(KEY, () => "done")));
    await clock.advance(1500);
    const began = clock.monotonicMs();
    await clock.settle(locks.close());
    expect(clock.monotonicMs() - began).toBe(0);
    const sent = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(sent);
  });

  it("is not begun by a client that was closed while the work ran: one that is told has 10 s", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    const gate = createGate();
    const running = thrownBy(locks.runOnce(KEY, () => gate.pass()));
    await gate.reached;
    const closing = locks.close();
    gate.open();
    await clock.settle(running);
    await clock.settle(closing);
    const sent = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(sent);
  });

  it("shows the work no lease any more", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("complete", { lost: "request" });
    let run: Run | undefined;
    await clock.settle(thrownBy(locks.runOnce(KEY, (mine) => void (run = mine))));
    expect([run!.isHeld(), run!.signal.reason]).toMatchObject([false, { reason: "released" }]);
    await expect(run!.saveCheckpoint("far")).rejects.toMatchObject({ reason: "released" });
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
