/** Within a Lambda invocation, the remaining time bounds leases, waits and heartbeats, even if it is zero. */
import { describe, expect, it } from "vitest";
import { type LockClient, type Operation, LockTimeoutError } from "../../lib/testing.js";
import { invocation } from "../support/invocation.js";
import { createHarness } from "./harness.js";

const KEY = "ORDER_1231";
/** Nothing was ever held, so nothing was lost. */
const NO_TIME = { name: "LockError", code: "invocation-ends", definite: true, retry: "later" };

interface Options {
  readonly leaseMs?: number | undefined;
  readonly waitMs?: number | undefined;
}
const CALLS: readonly (readonly [what: string, operation: Operation, call: (locks: LockClient, options?: Options) => Promise<unknown>])[] =
  [
    ["an acquire", "acquire", (locks, options) => locks.acquire(KEY, options)],
    ["a run", "start", (locks, options = {}) => locks.runOnce(KEY, options, () => "done")],
  ];

describe.each(CALLS)("forInvocation bounds %s:", (_what, operation, call) => {
  it.each([
    [60_000, undefined, 30_000],
    [10_000, undefined, 12_000],
    [10_000, 5000, 5000],
    [10_000, 3_600_000, 12_000],
    [900.7, undefined, 2900],
  ])("with %d ms left a lease of %s ms becomes one of %d ms", async (leftMs, leaseMs, expectedMs) => {
    const { clock, locks, wire } = createHarness();
    await call(locks.forInvocation(invocation(clock, leftMs)), { leaseMs });
    expect(wire.of(operation)[0]?.request.leaseMs).toBe(expectedMs);
  });

  it.each([
    [10_000, undefined, 9000],
    [60_000, undefined, 45_000],
    [10_000, 4000, 4000],
    [800, 5000, 0],
    [800, undefined, 0],
  ])("with %d ms left a wait of %s ms ends after %d ms", async (leftMs, waitMs, expectedMs) => {
    const { clock, locks, rival } = createHarness();
    await rival.acquire(KEY);
    void rival.runOnce(KEY, () => new Promise(() => undefined));
    await clock.advance(0);
    const began = clock.monotonicMs();
    const waiting = call(locks.forInvocation(invocation(clock, leftMs)), { waitMs });
    await expect(clock.settle(waiting)).rejects.toBeInstanceOf(LockTimeoutError);
    expect(clock.monotonicMs() - began).toBe(expectedMs);
  });

  it.each([0, 400, -5000])("with %d ms left it is not begun, and keeps nobody out", async (leftMs) => {
    const { clock, locks, rival, events } = createHarness();
    await expect(clock.settle(call(locks.forInvocation(invocation(clock, leftMs))))).rejects.toMatchObject(NO_TIME);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    expect(await rival.runs.get(KEY)).toBeNull();
    expect(events.filter(({ type }) => type !== "refused")).toEqual([]);
  });
});

describe("a context that a test made up", () => {
  it.each([
    ["undefined", undefined],
    ["a Promise", Promise.resolve(3000)],
    ["a bigint", 3000n],
    ["text", "3000"],
    ["null", null],
    ["no number", Number.NaN],
  ])("whose remaining time is %s is refused by name, when the view is made", (_what, leftMs) => {
    const { locks } = createHarness();
    const context = { getRemainingTimeInMillis: () => leftMs as number };
    expect(() => locks.forInvocation(context)).toThrow(/^context: .*getRemainingTimeInMillis\(\) must return a number of ms/);
  });
});

describe("forInvocation", () => {
  it("ends its leases and their heartbeats while a release can still go out", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const lease = await locks.forInvocation(invocation(clock, 20_000)).acquire(KEY, { leaseMs: 6000 });
    await clock.advance(19_499);
    expect(lease.state).toBe("held");
    await clock.advance(1);
    expect(lease.state).toBe("lost");
    expect(lease.signal.reason).toMatchObject({ name: "LockLostError", reason: "invocation-ends" });
    expect(wire.of("release")).toHaveLength(1);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    const requests = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(requests);
  });

  it("renews for no longer than the invocation may need", async () => {
    const { clock, locks, wire } = createHarness();
    const endsAtMs = clock.monotonicMs() + 40_000;
    await locks.forInvocation(invocation(clock, 40_000)).acquire(KEY);
    await clock.advance(39_000);
    expect(wire.of("renew").length).toBeGreaterThanOrEqual(3);
    for (const { atMs, request } of wire.of("renew")) expect(atMs + request.leaseMs!).toBeLessThanOrEqual(endsAtMs + 2000);
  });

  it("holds nothing of an earlier invocation after a thaw, and sends nothing for it but the release", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.forInvocation(invocation(clock, 10_000)).acquire(KEY, { leaseMs: 60_000 });
    const requests = wire.sent.length;
    await clock.freeze(11_000);
    expect(lease.isHeld()).toBe(false);
    await clock.advance(60_000);
    expect(wire.sent.slice(requests).map(({ operation }) => operation)).toEqual(["release"]);
  });

  it("releases what is held when it is closed, and nothing of the client that it came from", async () => {
    const { clock, locks } = createHarness();
    const outer = await locks.acquire("outer");
    const view = locks.forInvocation(invocation(clock, 60_000));
    const inner = await view.acquire("inner");
    await view.close();
    expect(inner.state).toBe("released");
    expect(outer.state).toBe("held");
    await expect(view.acquire("inner")).rejects.toMatchObject({ code: "closed" });
    expect(await locks.tryAcquire("inner")).not.toBeNull();
  });

  it("ends with the client that it came from", async () => {
    const { clock, locks, rival } = createHarness();
    const view = locks.forInvocation(invocation(clock, 60_000));
    const lease = await view.acquire(KEY);
    const theirs = await rival.acquire("another");
    const waiting = expect(view.acquire("another")).rejects.toMatchObject({ code: "closed" });
    await clock.advance(100);
    await clock.settle(locks.close());
    await waiting;
    expect(lease.state).toBe("released");
    await expect(view.acquire("third")).rejects.toMatchObject({ code: "closed" });
    await theirs.release();
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("closes at the end of its block", async () => {
    const { clock, locks, rival } = createHarness();
    {
      await using view = locks.forInvocation(invocation(clock, 60_000));
      await view.acquire(KEY);
    }
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("keeps the client's prefix and owner", async () => {
    const { clock, locks } = createHarness({ prefix: "billing:", owner: "worker-7" });
    const lease = await locks.forInvocation(invocation(clock, 60_000)).acquire(KEY);
    expect(lease).toMatchObject({ key: `billing:${KEY}`, owner: "worker-7" });
  });
});
