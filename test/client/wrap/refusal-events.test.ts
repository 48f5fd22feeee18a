/** Each call of a wrapper that could not run its work is an event with its cause, and a loss has what led to it as its cause. */
import { describe, expect, it } from "vitest";
import { LockLostError, LockTimeoutError, LockUnavailableError } from "../../../lib/client/wire/errors.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { locked, runOnce } from "../../../lib/index.js";
import type { Operation } from "../../../lib/testing.js";
import { thrownBy } from "../../support/run-gate.js";
import { type Harness, createHarness } from "../harness.js";

interface Options {
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
}
type Wrapper = readonly [name: string, call: (locks: LockClient, options: Options) => Promise<unknown>, operation: Operation, key: string];

const work = (): number => 1;
const WRAPPERS: readonly Wrapper[] = [
  ["withLock", (locks, options) => locks.withLock("k", options, work), "acquire", "k"],
  ["withLocks", (locks, options) => locks.withLocks(["k", "l"], options, work), "acquireSet", "k l"],
  ["runOnce", (locks, options) => locks.runOnce("k", options, work), "start", "k"],
  ["locked", (locks, options) => locked({ ...options, locks, key: () => "k" }, async () => 1)(), "acquire", "k"],
  ["runOnce, wrapped", (locks, options) => runOnce({ ...options, locks, key: () => "k" }, async () => 1)(), "start", "k"],
];

const told = ({ events }: Harness): unknown => events.filter(({ type }) => type === "refused" || type === "unavailable");

describe.each(WRAPPERS)("%s", (_name, call, operation, key) => {
  async function held(): Promise<Harness> {
    const harness = createHarness();
    await harness.rival.acquire("k");
    void harness.rival.runOnce("k", () => new Promise(() => undefined));
    await harness.clock.advance(0);
    return harness;
  }

  it("tells of a refusal, with the error that the caller gets", async () => {
    const harness = await held();
    const error = await harness.clock.settle(thrownBy(call(harness.locks, { waitMs: 1000 })));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(told(harness)).toEqual([{ type: "refused", key, error }]);
  });

  it("tells of an outage, with the error that the caller gets", async () => {
    const harness = createHarness();
    harness.wire.always(operation, { lost: "request" });
    const error = await harness.clock.settle(thrownBy(call(harness.locks, { waitMs: 1000 })));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(told(harness)).toEqual([{ type: "unavailable", key, error }]);
  });

  it("tells nothing where the caller gave up, or the work ran", async () => {
    const harness = await held();
    const stop = new AbortController();
    const given = thrownBy(call(harness.locks, { signal: stop.signal }));
    await harness.clock.advance(500);
    stop.abort();
    expect(await harness.clock.settle(given)).toMatchObject({ name: "AbortError" });
    const free = createHarness();
    await free.clock.settle(call(free.locks, {}));
    expect([told(harness), told(free)]).toEqual([[], []]);
  });
});

describe("an election", () => {
  it("tells of an outage once, however often it asks", async () => {
    const harness = createHarness();
    harness.wire.always("acquire", { lost: "request" });
    const stop = new AbortController();
    const over = harness.locks.elect("k", { signal: stop.signal }, work as never);
    await harness.clock.advance(120_000);
    stop.abort();
    await harness.clock.settle(over);
    expect(told(harness)).toMatchObject([{ type: "unavailable", key: "k" }]);
  });
});

describe("a lease that is lost", () => {
  it("has the renewal that failed as its cause, in the error, the signal and the event", async () => {
    const harness = createHarness();
    const { locks, clock, wire, events } = harness;
    const lost = thrownBy(
      locks.withLock("k", { leaseMs: 6000 }, (lease) => new Promise<void>((end) => lease.signal.addEventListener("abort", () => end()))),
    );
    await clock.advance(100);
    wire.always("renew", { lost: "request" });
    const error = await clock.settle(lost);
    const cause = { name: "LockUnavailableError", message: "renew k: renew: the connection broke" };
    expect(error).toMatchObject({ name: "LockLostError", reason: "deadline", cause });
    expect(events.find(({ type }) => type === "lost")).toMatchObject({ error: { cause } });
  });

  it("has it too where the service says at last that the lease is lost", async () => {
    const { locks, clock, wire, rival } = createHarness();
    const lease = await locks.acquire("k", { leaseMs: 6000 });
    wire.next("renew", { lost: "request" });
    const { fencingToken } = lease;
    await clock.advance(100);
    await rival.forceRelease("k", { reason: "test", fencingToken, drainMs: 0 });
    await clock.advance(4000);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.signal.reason).toMatchObject({ reason: "broken", cause: { name: "LockUnavailableError" } });
  });

  it("has none where no renewal failed before, or the last one was answered", async () => {
    const { locks, clock, wire, rival } = createHarness();
    const lease = await locks.acquire("k", { leaseMs: 6000 });
    wire.next("renew", { lost: "request" });
    await clock.advance(3000);
    await rival.forceRelease("k", { reason: "test", fencingToken: lease.fencingToken, drainMs: 0 });
    await clock.advance(6000);
    expect(lease.signal.reason).toMatchObject({ reason: "broken" });
    expect((lease.signal.reason as LockLostError).cause).toBeUndefined();
  });
});
