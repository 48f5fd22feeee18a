/** The alarms of a client's leases: one timer for all of them, and deadlines that follow whichever clock is further. */
import { describe, expect, it } from "vitest";
import { Alarms } from "../../../lib/client/hold/alarms.js";
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { Clock, Timer } from "../../../lib/core/time.js";
import { VirtualClock } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

/** The timers of a client that are set, in the background or such that they keep the process alive, and how many of the latter ever were. */
const noTimers = () => ({ background: 0, waiting: 0, everWaiting: 0 });

function counting(clock: VirtualClock, pending: ReturnType<typeof noTimers>): Clock {
  const counted =
    (kind: "background" | "waiting"): Clock["after"] =>
    (delayMs, task) => {
      let isPending = true;
      const end = (): void => {
        if (isPending) pending[kind]--;
        isPending = false;
      };
      pending[kind]++;
      if (kind === "waiting") pending.everWaiting++;
      const timer: Timer = clock.after(delayMs, () => {
        end();
        task();
      });
      return {
        cancel() {
          end();
          timer.cancel();
        },
      };
    };
  return {
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    after: counted("waiting"),
    inBackground: counted("background"),
  };
}

describe("the leases of a client", () => {
  it("have one timer between them, in the background, and none when they have ended or the client is closed", async () => {
    const pending = noTimers();
    const { locks, clock } = createHarness({ clientClock: (own) => counting(own, pending) });
    const leases = [];
    for (let index = 0; index < 50; index++) leases.push(await locks.acquire(`k${index}`, { leaseMs: 9000, maxHoldMs: 60_000 }));
    leases.push(await locks.acquire("fixed", { leaseMs: 9000, heartbeat: false }));
    expect(pending).toMatchObject({ background: 1, waiting: 0 });
    await clock.advance(6500);
    expect(pending).toMatchObject({ background: 1, waiting: 0 });
    for (const lease of leases.slice(1)) await clock.settle(lease.release());
    expect(pending).toMatchObject({ background: 1, waiting: 0 });
    await clock.settle(locks.close());
    expect(pending).toMatchObject({ background: 0, waiting: 0 });
  });
});

describe("a process", () => {
  const BEATS = ["renew", "renewMany"] as const;

  it.each([1, 5])("is kept alive by no heartbeat of %d leases, however often it fails; control: by a caller", async (count) => {
    const pending = noTimers();
    const { locks, clock, wire } = createHarness({ clientClock: (own) => counting(own, pending) });
    const leases: Lease[] = [];
    for (let index = 0; index < count; index++) leases.push(await locks.acquire(`k${index}`, { leaseMs: 9000 }));
    const states = () => new Set(leases.map(({ state }) => state));
    const before = pending.everWaiting;
    await clock.advance(30_000);
    for (const operation of BEATS) wire.next(operation, { lost: "request" }, { lost: "reply", silently: true });
    await clock.advance(30_000);
    expect(states()).toEqual(new Set(["held"]));
    await clock.freeze(1000);
    for (const operation of BEATS) wire.always(operation, { lost: "reply", silently: true });
    await clock.advance(30_000);
    expect([before > 0, pending.everWaiting, states()]).toEqual([true, before, new Set(["lost"])]);
    await locks.inspect("k0");
    expect(pending.everWaiting).toBeGreaterThan(before);
  });

  it("is kept alive by a caller in a local queue, and no longer once the last of them was served", async () => {
    const pending = noTimers();
    const { locks, clock } = createHarness({ clientClock: (own) => counting(own, pending) });
    const first = await clock.settle(locks.acquire("k"));
    const second = locks.acquire("k", { waitMs: 600_000 });
    await clock.advance(1000);
    expect(pending.waiting).toBeGreaterThan(0);
    await clock.settle(first.release());
    await clock.settle((await clock.settle(second)).release());
    await clock.settle(locks.close());
    expect(pending).toMatchObject({ background: 0, waiting: 0 });
  });
});

describe("alarms", () => {
  it("ring in the order of their times", async () => {
    const clock = new VirtualClock();
    const alarms = new Alarms(clock);
    const rang: string[] = [];
    for (const [name, delayMs] of [
      ["c", 5000],
      ["a", 20],
      ["d", 5001],
      ["b", 21],
      ["never", 4000],
    ] as const) {
      const alarm = alarms.set(delayMs, (one) => rang.push(one), name);
      if (name === "never") alarm.cancel();
    }
    await clock.advance(21);
    expect(rang).toEqual(["a", "b"]);
    await clock.advance(4978);
    expect(rang).toEqual(["a", "b"]);
    await clock.advance(2);
    expect(rang).toEqual(["a", "b", "c", "d"]);
  });

  it.each([
    ["once", [3]],
    ["little by little", [1, 1, 1]],
    ["after a step back that was seen", [-5000, 4000]],
  ])("of deadlines are looked at again within a second when the wall clock gains: %s", async (_how, jumps) => {
    const clock = new VirtualClock();
    const alarms = new Alarms(clock);
    let [looks, rings] = [0, 0];
    alarms.setDeadline(3_600_000, () => looks++, undefined);
    alarms.set(3_600_000, () => rings++, undefined);
    await clock.advance(3000);
    expect([looks, rings]).toEqual([0, 0]);
    for (const ms of jumps) {
      clock.jumpWall(ms);
      await clock.advance(1000);
    }
    expect([looks, rings]).toEqual([1, 0]);
  });

  it("control: a wall clock that goes back, or gains no more than rounding does, makes nobody look", async () => {
    const clock = new VirtualClock();
    const alarms = new Alarms(clock);
    let looks = 0;
    alarms.setDeadline(3_600_000, () => looks++, undefined);
    clock.jumpWall(2);
    await clock.advance(1000);
    clock.jumpWall(-5000);
    await clock.advance(1000);
    expect(looks).toBe(0);
  });

  it("that throw leave the others set", async () => {
    const clock = new VirtualClock();
    const alarms = new Alarms(clock);
    let rings = 0;
    alarms.set(
      10,
      () => {
        throw new Error("an alarm failed");
      },
      undefined,
    );
    alarms.set(20, () => rings++, undefined);
    await expect(clock.advance(10)).rejects.toThrow("an alarm failed");
    await clock.advance(10);
    expect(rings).toBe(1);
  });
});

describe("a lease whose deadline an answer moved to an earlier time", () => {
  it("is lost at that time, and its signal aborts by itself", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire("k", { leaseMs: 60_000, heartbeat: false });
    const { key, leaseId, fencingToken } = lease;
    const view = {
      ...{ key, leaseId, owner: "", mode: "shared", permits: 1, holdCount: 1, fencingToken: fencingToken + 1, leaseMs: 60_000 },
      ...{ remainingMs: 5000, renewAfterMs: 20_000, version: Number.MAX_SAFE_INTEGER, serverTimeMs: clock.wallMs() },
    } as const;
    wire.next("changeMode", { instead: { ok: true, how: "changed", lease: view } as never });
    await lease.downgrade();
    const leftMs = lease.remainingMs();
    expect(leftMs).toBeLessThan(5000);
    const { signal } = lease;
    await clock.advance(leftMs - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
  });
});
