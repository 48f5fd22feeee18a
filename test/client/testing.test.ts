/** holdfast/testing as users see it: simulated time, faults on request, several clients of one service. */
import { describe, expect, it } from "vitest";
import { FORMAT_VERSION } from "../../lib/store/dynamo/format.js";
import { createLockClient, Faults, VirtualClock } from "../../lib/testing.js";

const KEY = "ORDER_1231";

describe("holdfast/testing", () => {
  it("stands still until its clock is turned", async () => {
    const locks = createLockClient();
    const lease = await locks.acquire(KEY, { leaseMs: 5000, heartbeat: false });
    await new Promise((resolve) => setImmediate(resolve));
    expect(lease.remainingMs()).toBe(4950);
    await locks.clock.advance(5000);
    expect(lease.state).toBe("lost");
  });

  it("gives whole tokens at any time of its clock, whose time of day is in whole ms as a machine's is", async () => {
    const locks = createLockClient();
    await locks.clock.advance(0.4);
    const { fencingToken } = await locks.acquire(KEY);
    expect([fencingToken % 1, locks.clock.wallMs() % 1, locks.clock.monotonicMs() % 1 > 0]).toEqual([0, 0, true]);
    await locks.forceRelease(KEY, { reason: "stuck", fencingToken, drainMs: 0 });
  });

  it("lets clients of one store and clock contend", async () => {
    const locks = createLockClient();
    const rival = createLockClient({ store: locks.store, clock: locks.clock, owner: "rival" });
    const stranger = createLockClient();
    await rival.acquire(KEY);
    expect(await locks.tryAcquire(KEY)).toBeNull();
    expect((await locks.inspect(KEY)).holders).toMatchObject([{ owner: "rival" }]);
    expect(await stranger.tryAcquire(KEY)).not.toBeNull();
  });

  it("keeps its records in the deployed service's format, on a table that answers at once or like DynamoDB", () => {
    for (const likeDynamodb of [false, true]) {
      expect(createLockClient({ likeDynamodb }).store.parameters.format).toBe(FORMAT_VERSION);
    }
  });

  it("keeps principals apart", async () => {
    const lines: string[] = [];
    const locks = createLockClient({ principal: "shop/checkout", log: ({ principal }) => void lines.push(principal) });
    await locks.acquire(KEY);
    expect(lines).toEqual(["shop/checkout"]);
  });

  it("loses the messages that it is told to, once, in order, of the operation that is named", async () => {
    const { clock, faults, ...locks } = createLockClient();
    expect(faults).toBeInstanceOf(Faults);
    const lease = await locks.acquire(KEY, { leaseMs: 9000 });
    faults.loseNextResponse("renew");
    faults.loseNextRequest("release");
    await clock.advance(3001);
    expect(lease.state).toBe("unknown");
    await clock.advance(1000);
    expect(lease.state).toBe("held");
    expect(await clock.settle(lease.release())).toBe("released");
  });

  it("jumps the client's wall clock and not the service's", async () => {
    const locks = createLockClient();
    const rival = createLockClient({ store: locks.store, clock: locks.clock });
    const lease = await locks.acquire(KEY, { leaseMs: 5000 });
    locks.clock.jumpWall(60_000);
    expect(lease.isHeld()).toBe(false);
    expect(await rival.tryAcquire(KEY)).toBeNull();
    expect((await locks.health()).serverTimeMs).toBe(locks.clock.monotonicMs());
  });
});

describe("VirtualClock", () => {
  it("runs timers in the order in which they are due, each at its time, and what they set going", async () => {
    const clock = new VirtualClock(1000);
    const ran: [string, number][] = [];
    const run = (name: string) => () => void ran.push([name, clock.monotonicMs()]);
    clock.after(30, run("c"));
    clock.after(10, () => {
      run("a")();
      clock.inBackground(5, run("b"));
    });
    clock.after(40, run("never")).cancel();
    clock.after(100, run("later"));
    await clock.advance(50);
    expect(ran).toEqual([
      ["a", 1010],
      ["b", 1015],
      ["c", 1030],
    ]);
    expect([clock.wallMs(), clock.monotonicMs()]).toEqual([1050, 1050]);
  });

  it("frozen, runs what fell due only afterwards, late", async () => {
    const clock = new VirtualClock(0);
    const ran: number[] = [];
    clock.after(10, () => ran.push(clock.monotonicMs()));
    await clock.freeze(500);
    expect(ran).toEqual([500]);
  });

  it("settles a promise by letting as much time pass as it takes, and says so when none would do", async () => {
    const clock = new VirtualClock(0);
    const slept = (ms: number) => new Promise<number>((resolve) => clock.after(ms, () => resolve(clock.monotonicMs())));
    expect(await clock.settle(slept(70_000))).toBe(70_000);
    await expect(clock.settle(Promise.reject(new Error("no")))).rejects.toThrow("no");
    await expect(clock.settle(new Promise(() => undefined))).rejects.toThrow("nothing settles it");
    await expect(clock.settle(slept(500_000))).rejects.toThrow("within 120000 ms");
  });
});
