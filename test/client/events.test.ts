/** onEvent: every lease has one event at its beginning and one at its end, and no event contains a leaseId. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../lib/core/errors.js";
import { createLockClient, LockLostError } from "../../lib/testing.js";
import { createHarness } from "./harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 9000;

describe("onEvent", () => {
  it("tells of a lease that was acquired and released", async () => {
    const { locks, events } = createHarness({ prefix: "shop:" });
    const lease = await locks.acquire(KEY);
    const { fencingToken } = lease;
    expect(events).toEqual([{ type: "acquired", key: `shop:${KEY}`, fencingToken }]);
    await lease.release();
    await lease.release();
    expect(events.slice(1)).toEqual([{ type: "released", key: `shop:${KEY}`, fencingToken }]);
  });

  it("tells of a lease that was lost, and why, once", async () => {
    const { clock, locks, events } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS, heartbeat: false });
    await clock.advance(2 * LEASE_MS);
    await clock.settle(lease.release());
    expect(events.map(({ type }) => type)).toEqual(["acquired", "lost"]);
    expect(events[1]).toMatchObject({ key: KEY, fencingToken: lease.fencingToken });
    expect(events[1]?.error).toBe(lease.signal.reason);
    expect(events[1]?.error).toBeInstanceOf(LockLostError);
  });

  it("tells of a lease that was handed over as released, and of the one that it became", async () => {
    const { clock, locks, events } = createHarness();
    const handle = await (await locks.acquire(KEY)).detach();
    const attached = await clock.settle(locks.attach(handle));
    expect(events.map(({ type, fencingToken }) => [type, fencingToken === attached.fencingToken])).toEqual([
      ["acquired", false],
      ["released", false],
      ["acquired", true],
    ]);
  });

  it.each<[how: string, fail: () => unknown]>([
    [
      "throw",
      () => {
        throw new Error("the metrics are down");
      },
    ],
    ["reject", () => Promise.reject(new Error("the metrics are down"))],
    ["give what is no promise but rejects", () => ({ then: (_: unknown, reject: (error: Error) => void) => reject(new Error("down")) })],
  ])("may %s: no key stays held, no release fails and no process ends because a listener did", async (_how, fail) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", note);
    const locks = createLockClient({ onEvent: fail });
    const lease = await locks.acquire(KEY);
    expect(await lease.release()).toBe("released");
    expect(await locks.withLock(KEY, () => "done")).toBe("done");
    expect((await locks.inspect(KEY)).holders).toEqual([]);
    const lost = await locks.acquire(KEY, { leaseMs: 1000, heartbeat: false });
    await locks.clock.advance(1000);
    expect(lost.signal.reason).toMatchObject({ reason: "deadline" });
    await new Promise((resolve) => setImmediate(resolve));
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("tells of nothing that nobody got", async () => {
    const { clock, locks, rival, events } = createHarness();
    await rival.acquire(KEY);
    expect(await locks.tryAcquire(KEY)).toBeNull();
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 500 }))).rejects.toThrow();
    expect(events).toEqual([]);
  });

  it("never carries a leaseId, nor does any error", async () => {
    const { clock, locks, wire, events } = createHarness();
    const lost = await locks.acquire("lost", { leaseMs: LEASE_MS });
    const released = await locks.acquire("released");
    wire.always("renew", { lost: "reply" });
    wire.always("release", { instead: refuse("forbidden") });
    await clock.advance(3 * LEASE_MS);
    const error: unknown = await clock.settle(released.release().catch((reason: unknown) => reason));
    await clock.settle(locks.close());
    const told = [...events, error].map((one) => JSON.stringify(one, stringOf));
    for (const { leaseId } of [lost, released]) expect(told.join("\n")).not.toContain(leaseId);
    expect(told.length).toBeGreaterThan(4);
  });
});

/** A replacer that makes errors visible to JSON, with their stack. */
function stringOf(_name: string, value: unknown): unknown {
  return value instanceof Error ? { ...(value as object), message: value.message, stack: value.stack, cause: value.cause } : value;
}
