/** `likeDynamodb` of holdfast/testing: what an item takes in a second, by its size, in virtual time. */
import { describe, expect, it } from "vitest";
import { type TestClientOptions, createLockClient } from "../../lib/testing.js";

/** More than an item's thousand units of a second. */
const MANY = 1100;

/** Takes {@link MANY} at once of one limit. Returns how many were granted, and how many requests the table throttled meanwhile. */
async function takes(options: TestClientOptions) {
  let throttled = 0;
  const log = ({ reason = "" }: { readonly reason?: string }): void => void (throttled += reason.startsWith("throttled") ? 1 : 0);
  const { clock, ...locks } = createLockClient({ ...options, log });
  const limiter = locks.limiter("api", { rates: [{ count: 10_000, perMs: 1000, burst: 10_000 }] });
  const taken = await clock.settle(Promise.all(Array.from({ length: MANY }, () => limiter.take())));
  return { granted: taken.length, throttled };
}

describe("likeDynamodb", () => {
  it("throttles what is more than an item takes in a second, and all are served in the end", async () => {
    const { granted, throttled } = await takes({ likeDynamodb: true });
    expect(granted).toBe(MANY);
    expect(throttled).toBeGreaterThan(MANY - 1010);
  });

  it("control: nothing is throttled without it", async () => {
    expect(await takes({})).toEqual({ granted: MANY, throttled: 0 });
  });

  it.each([
    [29, "of 98 KB", 100_000],
    [0, "of a KB, as a control", 900],
  ])("throttles %i of 40 writes of an item %s", async (throttled, _what, bytes) => {
    const { clock, store } = createLockClient({ likeDynamodb: true });
    const address = { namespace: "test", kind: "runs", key: "k" } as const;
    const write = () => store.keepPayload(address, { digest: "d", ttlAtSec: 2_000_000_000 }, "x".repeat(bytes));
    const outcomes = await clock.settle(Promise.allSettled(Array.from({ length: 40 }, write)));
    expect(outcomes.filter((one) => one.status === "rejected" && one.reason.throttled === true)).toHaveLength(throttled);
  });

  it("lets a request wait for the clock", async () => {
    const { clock, ...locks } = createLockClient({ likeDynamodb: true });
    const asked = locks.tryAcquire("k");
    const before = new Promise((resolve) => void setImmediate(() => resolve("not yet")));
    expect(await Promise.race([asked, before])).toBe("not yet");
    expect(await clock.settle(asked)).not.toBeNull();
  });

  it("is refused beside a store, which has its table", () => {
    const { store } = createLockClient();
    expect(() => createLockClient({ store, likeDynamodb: true })).toThrow("likeDynamodb: not with store");
  });
});
