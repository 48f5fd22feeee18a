/** The defaults of a client: they fit each other, and a client can have its own. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { type ClientOptions, checkClient } from "../../lib/client/calls/client-options.js";
import { LockTimeoutError } from "../../lib/client/wire/errors.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { createHarness } from "./harness.js";

const WAITS: readonly (readonly [name: string, call: (locks: LockClient) => Promise<unknown>])[] = [
  ["acquire", (locks) => locks.acquire("k")],
  ["withLock", (locks) => locks.withLock("k", () => 1)],
  ["acquireAll", (locks) => locks.acquireAll(["k", "l"])],
  ["runOnce", (locks) => locks.runOnce("k", () => 1)],
];

/** Holds the key, or runs, in a process that crashes at once. */
async function crashed(options: ClientOptions) {
  const harness = createHarness(options);
  const { rival, clock } = harness;
  const { leaseMs = DEFAULTS.leaseMs } = options;
  await rival.acquire("k", { leaseMs, heartbeat: false });
  void rival.runOnce("k", { leaseMs, heartbeat: false }, () => new Promise(() => undefined)).catch(() => undefined);
  await clock.advance(0);
  return harness;
}

describe.each(WAITS)("%s", (_name, call) => {
  const OUTLASTING: readonly ClientOptions[] = [{}, { leaseMs: 1000 }, { leaseMs: 120_000 }];
  it.each(OUTLASTING)("of a client with %j outlasts a holder that crashed with the same lease", async (options) => {
    const { locks, clock } = await crashed(options);
    const { leaseMs = DEFAULTS.leaseMs } = options;
    const began = clock.monotonicMs();
    await clock.settle(call(locks), 2 * leaseMs + 60_000);
    const waitedMs = clock.monotonicMs() - began;
    expect(waitedMs).toBeGreaterThanOrEqual(leaseMs + takeoverMarginMs(leaseMs) - 1);
  });

  it.each([0, 2000, 100_000])("waits for the client's waitMs of %d, unless the call says another", async (waitMs) => {
    const { locks, clock, rival } = createHarness({ waitMs });
    await rival.acquire("k");
    void rival.runOnce("k", () => new Promise(() => undefined));
    await clock.advance(0);
    const began = clock.monotonicMs();
    const error = await clock.settle(
      call(locks).catch((thrown: unknown) => thrown),
      200_000,
    );
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(clock.monotonicMs() - began).toBeLessThanOrEqual(waitMs + 250);
    expect(clock.monotonicMs() - began).toBeGreaterThanOrEqual(waitMs);
  });
});

describe("the client's leaseMs", () => {
  it("is that of locks, sets, runs and elections, unless the call says another", async () => {
    const { locks, wire, clock } = createHarness({ leaseMs: 6000 });
    const lease = await locks.acquire("a");
    await locks.acquire("b", { leaseMs: 3000 });
    await locks.acquire("c", { leaseMs: undefined });
    await locks.acquireAll(["d"]);
    await locks.runOnce("e", () => 1);
    const end = new AbortController();
    await clock.settle(locks.elect("f", { signal: end.signal }, () => end.abort()));
    const asked = wire.sent.filter(({ operation }) => ["acquire", "acquireSet", "start"].includes(operation));
    expect(asked.map(({ request }) => request.leaseMs)).toEqual([6000, 3000, 6000, 6000, 6000, 6000]);
    expect(lease.remainingMs()).toBeLessThanOrEqual(6000);
  });

  it("doesn't shorten a lease that is attached: that has the length that it was detached with", async () => {
    const { locks, rival, clock } = createHarness({ leaseMs: 6000 });
    const handle = await clock.settle((await rival.acquire("k", { leaseMs: 20_000 })).detach());
    const lease = await clock.settle(locks.attach(handle, { leaseMs: undefined }));
    expect(lease.remainingMs()).toBeGreaterThan(19_000);
  });

  const REFUSED: readonly (readonly [options: object, message: string])[] = [
    [{ leaseMs: 999 }, "leaseMs: 999 given; it is a whole number of ms from 1000 to 86400000"],
    [{ leaseMs: "30s" }, 'leaseMs: "30s" given; it is a whole number of ms from 1000 to 86400000'],
    [{ waitMs: -1 }, "waitMs: -1 given; it is a whole number of ms of at least 0"],
  ];
  it.each(REFUSED)("is checked when the client is made: %j", (options, message) => {
    expect(() => checkClient(options, {})).toThrow(message);
  });
});
