/** Tests of code that takes locks: two processes in one test, time that the test advances, messages that are lost on request. */
import { describe, expect, it } from "vitest";
import { createLockClient, key, LockLostError, LockTimeoutError } from "../../lib/testing.js";
import { type Orders, accept } from "./orders.js";

const HOUR_MS = 3_600_000;

/** Two processes that use one service, and the clock that they share. */
function twoProcesses() {
  const here = createLockClient({ owner: "here" });
  const there = createLockClient({ owner: "there", store: here.store, clock: here.clock });
  return { here, there, clock: here.clock };
}

/** Orders, as a table with a condition on the token would store them, and a kitchen that counts. */
function shop() {
  let [status, largest, told, writes] = ["NEW", 0, 0, 0];
  const orders: Orders = {
    statusOf: async () => status,
    async setStatus(_id, next, fencingToken) {
      writes++;
      if (fencingToken < largest) throw new Error("a later holder wrote already");
      [status, largest] = [next, fencingToken];
    },
  };
  const tellKitchen = async (): Promise<void> => void told++;
  return { orders, tellKitchen, told: () => told, writes: () => writes };
}

describe("accepting an order", () => {
  it("is done by one of two", async () => {
    const { here, there, clock } = twoProcesses();
    const { orders, tellKitchen, told } = shop();
    const both = Promise.all([accept(here, orders, tellKitchen, 1231), accept(there, orders, tellKitchen, 1231)]);
    expect((await clock.settle(both)).toSorted()).toEqual(["accepted", "too late"]);
    expect(told()).toBe(1);
  });

  it("has the order for as long as the kitchen takes: heartbeats, without a second of waiting", async () => {
    const { here, there, clock } = twoProcesses();
    const { orders, tellKitchen } = shop();
    const anHour = (): Promise<void> => new Promise((resolve) => void clock.after(HOUR_MS, resolve));
    const first = accept(here, orders, anHour, 1231);
    await clock.advance(1000);
    await expect(clock.settle(accept(there, orders, tellKitchen, 1231))).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await clock.settle(first, 2 * HOUR_MS)).toBe("accepted");
  });

  it("survives a lost answer: the acquire is sent again, and is the same lease", async () => {
    const { here, clock } = twoProcesses();
    const { orders, tellKitchen, told } = shop();
    here.faults.loseNextResponse("acquire");
    here.faults.loseNextResponse("release");
    expect(await clock.settle(accept(here, orders, tellKitchen, 1231))).toBe("accepted");
    expect(told()).toBe(1);
    expect((await here.inspect(key("ORDER", 1231))).holders).toEqual([]);
  });

  it("is taken over from a process that died", async () => {
    const { here, there, clock } = twoProcesses();
    const { orders, tellKitchen } = shop();
    await here.acquire(key("ORDER", 1231), { heartbeat: false }); // and crashes
    await clock.advance(10_000);
    expect(await clock.settle(accept(there, orders, tellKitchen, 1231))).toBe("accepted");
  });

  it("stops when it was frozen for longer than its lease, and somebody else did it", async () => {
    const { here, there, clock } = twoProcesses();
    const { orders, tellKitchen, writes } = shop();
    const freezes = async (): Promise<void> => {
      await clock.freeze(40_000);
      expect(await accept(there, orders, tellKitchen, 1231)).toBe("accepted");
    };
    await expect(accept(here, orders, freezes, 1231)).rejects.toBeInstanceOf(LockLostError);
    expect(writes()).toBe(1); // the other's; this process did not even try
  });

  it("is refused by the orders when it was frozen after its last look at the lease", async () => {
    const { here, there, clock } = twoProcesses();
    const { orders, tellKitchen } = shop();
    const slowOrders: Orders = {
      ...orders,
      async setStatus(...write) {
        await clock.freeze(40_000);
        await accept(there, orders, tellKitchen, 1231);
        await orders.setStatus(...write);
      },
    };
    await expect(accept(here, slowOrders, tellKitchen, 1231)).rejects.toMatchObject({
      name: "LockLostError",
      cause: { message: "a later holder wrote already" },
    });
  });
});
