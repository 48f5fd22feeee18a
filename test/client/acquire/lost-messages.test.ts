/** Lost, late and repeated messages: an acquire gives one lease, and leaves no id behind that may hold. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { leaseIdTimeMs } from "../../../lib/core/lease-id.js";
import type { LockApi } from "../../../lib/core/api/locks.js";
import type { Clock } from "../../../lib/core/time.js";
import {
  type Lease,
  type LockClient,
  type Operation,
  type VirtualClock,
  LockLostError,
  LockUnavailableError,
} from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";
const LEASE_MS = 3000;

describe("an answer that was lost", () => {
  it.each(["request", "reply"] as const)("to an acquire (%s): the same lease, the same token, one grant", async (lost) => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquire", { lost }, { lost, silently: true });
    const lease = await clock.settle(locks.acquire(KEY, { leaseMs: LEASE_MS }));
    expect(lease.isHeld()).toBe(true);
    expect(new Set(wire.of("acquire").map(({ request }) => request.leaseId))).toEqual(new Set([lease.leaseId]));
    expect((await locks.inspect(KEY)).fencingToken).toBe(lease.fencingToken);
    expect(await clock.settle(lease.release())).toBe("released");
  });

  it.each(["request", "reply"] as const)("to a renewal (%s): still held, for the whole length", async (lost) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS, heartbeat: false });
    await clock.advance(1000);
    wire.next("renew", { lost }, { lost, silently: true });
    await clock.settle(lease.renew());
    expect(lease.state).toBe("held");
    expect(lease.remainingMs()).toBeGreaterThan(LEASE_MS - 100);
  });

  it.each(["request", "reply"] as const)("to a release (%s): still the truth about how it ended", async (lost) => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.next("release", { lost }, { lost, silently: true });
    expect(await clock.settle(lease.release())).toBe("released");
    expect(wire.of("release")).toHaveLength(3);
  });

  it("to every attempt of a release: an error, and asked again it is sent again", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.always("release", { lost: "reply" });
    await expect(clock.settle(lease.release())).rejects.toBeInstanceOf(LockUnavailableError);
    wire.always("release", undefined);
    expect(await clock.settle(lease.release())).toBe("released");
  });

  /** Ends work whose release is repeated when this has happened. */
  async function endOfWork(meanwhile: (rival: LockClient, fencingToken: number) => Promise<unknown>): Promise<unknown> {
    const { clock, locks, rival, wire } = createHarness();
    let fencingToken = 0;
    wire.next("release", { requestMs: 10, lost: "reply", silently: true });
    const worked = locks.withLock(KEY, { leaseMs: LEASE_MS }, (lease) => ((fencingToken = lease.fencingToken), "done"));
    const ended = worked.catch((error: unknown) => error);
    await clock.advance(1);
    await meanwhile(rival, fencingToken);
    return clock.settle(ended);
  }

  it("to a release, until the key has forgotten the id: the work was not lost", async () => {
    const crowd = async (rival: LockClient): Promise<void> => {
      // The first of them waits for the request that was carried out.
      for (let holds = 0; holds < 9; holds++) await (await rival.acquire(KEY)).release();
    };
    const forgotten = await endOfWork(async (rival) => void setImmediate(() => void crowd(rival)));
    expect(forgotten).toBe("done");
  });

  it("control: to a release of a hold that an operator had ended: the work was lost", async () => {
    const broken = await endOfWork((rival, fencingToken) => rival.forceRelease(KEY, { reason: "test", fencingToken, drainMs: 0 }));
    expect(broken).toBeInstanceOf(LockLostError);
  });

  const ASKED: readonly (readonly [Operation, (locks: LockClient, fencingToken: number) => Promise<unknown>])[] = [
    ["inspect", (locks) => locks.inspect(KEY)],
    ["list", (locks) => locks.list()],
    ["health", (locks) => locks.health()],
    ["breakHold", (locks, fencingToken) => locks.forceRelease(KEY, { reason: "test", fencingToken, drainMs: 0 })],
  ];

  it.each(ASKED)("to %s: asked again", async (operation, ask) => {
    const { clock, locks, rival, wire } = createHarness();
    const { fencingToken } = await rival.acquire(KEY);
    wire.next(operation, { lost: "reply" }, { lost: "request" });
    await expect(clock.settle(ask(locks, fencingToken))).resolves.toBeDefined();
    expect(wire.of(operation)).toHaveLength(3);
  });

  const READS: readonly (readonly [Operation, (locks: LockClient) => Promise<unknown>])[] = [
    ["inspect", (locks) => locks.inspect(KEY)],
    ["inspect", (locks) => locks.watch(KEY)[Symbol.asyncIterator]().next()],
    ["list", (locks) => locks.list()],
    ["health", (locks) => locks.health()],
    ["run", (locks) => locks.runs.get(KEY)],
    ["runs", (locks) => locks.runs.list()],
    ["limit", (locks) => locks.limiter(KEY, { rates: [{ count: 1, perMs: 1000 }] }).remaining()],
    ["limits", (locks) => locks.limits.list()],
  ];

  it.each(READS)("to each %s that was sent: definite, since a read changes nothing", async (operation, read) => {
    const { clock, locks, wire } = createHarness();
    wire.always(operation, { lost: "reply" });
    const error: unknown = await clock.settle(read(locks).catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ code: "unavailable", definite: true });
  });

  it("to everything: LockUnavailableError, which doesn't claim that nothing happened", async () => {
    const { clock, locks, wire } = createHarness();
    for (const operation of ["acquire", "release"] as const) wire.always(operation, { lost: "reply" });
    const error: unknown = await clock.settle(locks.acquire(KEY, { waitMs: 3000 }).catch((reason: unknown) => reason));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ code: "unavailable", definite: false });
  });

  it("before a refusal that is definite by itself: the whole is not", async () => {
    const { clock, locks, wire } = createHarness();
    const lease = await locks.acquire(KEY, { leaseMs: LEASE_MS });
    wire.next("release", { lost: "reply" });
    wire.always("release", { instead: refuse("throttled", { retryAfterMs: 400 }) });
    const error: unknown = await clock.settle(lease.release().catch((reason: unknown) => reason));
    expect(error).toMatchObject({ code: "throttled", definite: false });
  });
});

describe("an id with an attempt that was never answered", () => {
  it("is cancelled after a 423, and never holds after that", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const theirs = await rival.acquire(KEY);
    wire.next("acquire", { lost: "reply" });
    expect(await clock.settle(locks.tryAcquire(KEY))).toBeNull();
    const [asked] = wire.of("acquire");
    expect(wire.of("release").map(({ request }) => request.leaseId)).toEqual([asked!.request.leaseId]);

    await theirs.release();
    expect(await lateDuplicate(wire.api, asked!.request)).toMatchObject({ ok: false, code: "lease-over" });
  });

  it("is cancelled when the signal aborts, and never holds after that", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const giveUp = new AbortController();
    wire.next("acquire", { lost: "request", silently: true });
    const failed = expect(locks.acquire(KEY, { signal: giveUp.signal })).rejects.toMatchObject({ name: "AbortError" });
    await clock.advance(10);
    giveUp.abort();
    await failed;
    const [asked] = wire.of("acquire");
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["acquire", "release"]);
    expect(await lateDuplicate(wire.api, asked!.request)).toMatchObject({ ok: false, code: "lease-over" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("is cancelled when nobody answers at all: what the cancel reaches is free", async () => {
    const { clock, locks, rival, wire } = createHarness();
    wire.always("acquire", { lost: "reply" });
    await expect(clock.settle(locks.acquire(KEY, { waitMs: 2000 }))).rejects.toBeInstanceOf(LockUnavailableError);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("needs no cancel when every attempt was answered", async () => {
    const { clock, locks, rival, wire } = createHarness();
    await rival.acquire(KEY);
    wire.next("acquire", { instead: refuse("throttled", { retryAfterMs: 50 }) });
    expect(await clock.settle(locks.tryAcquire(KEY))).toBeNull();
    expect(wire.of("release")).toEqual([]);
  });
});

describe("an id that the service does not take as new", () => {
  const wrongBy =
    (offMs: number) =>
    (clock: VirtualClock): Clock => ({
      wallMs: () => clock.wallMs() + offMs,
      monotonicMs: () => clock.monotonicMs(),
      after: (delayMs, task) => clock.after(delayMs, task),
      inBackground: (delayMs, task) => clock.inBackground(delayMs, task),
    });

  it.each([
    ["an hour ahead", 3_600_000],
    ["a day behind", -86_400_000],
  ])("because this clock is %s: corrected by the service's time, with a new id, once and for all", async (_what, offMs) => {
    const { clock, locks, wire } = createHarness({ clientClock: wrongBy(offMs) });
    const lease = await clock.settle(locks.acquire(KEY, { leaseMs: LEASE_MS }));
    expect(lease.isHeld()).toBe(true);
    expect(wire.of("acquire")).toHaveLength(2);
    expect(Math.abs(leaseIdTimeMs(lease.leaseId) - clock.monotonicMs())).toBeLessThan(1000);
    await locks.acquire("another", { leaseMs: LEASE_MS });
    expect(wire.of("acquire")).toHaveLength(3);
  });

  it("when attaching: corrected, and the handle still serves", async () => {
    const { clock, locks, rival, wire } = createHarness({ clientClock: wrongBy(3_600_000) });
    const handle = await (await rival.acquire(KEY, { leaseMs: LEASE_MS })).detach();
    const lease = await clock.settle(locks.attach(handle));
    expect(lease.isHeld()).toBe(true);
    expect(wire.of("transfer")).toHaveLength(2);
  });

  it("because the key remembers newer ones: lease-over is corrected to above its floor", async () => {
    const { clock, locks, rival, wire } = createHarness({ clientClock: wrongBy(-60_000) });
    for (let round = 0; round < 10; round++) await (await rival.acquire(KEY)).release();
    const lease = await clock.settle(locks.acquire(KEY, { leaseMs: LEASE_MS }));
    expect(lease.isHeld()).toBe(true);
    expect(wire.of("acquire")).toHaveLength(2);
  });

  it("however often: an error after a few, not a loop", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("acquire", { instead: refuse("lease-id-time", { serverTimeMs: 0 }) });
    await expect(clock.settle(locks.acquire(KEY))).rejects.toMatchObject({ code: "lease-id-time" });
    expect(wire.of("acquire")).toHaveLength(5);
  });
});

describe("a lease with less than one renewal interval left", () => {
  it("is renewed before anyone gets it", async () => {
    const { clock, locks, wire } = createHarness();
    // Granted at once, but the responses arrive when most of the lease is over.
    wire.always("acquire", { lost: "reply" });
    const asked = locks.acquire(KEY, { leaseMs: LEASE_MS, waitMs: LEASE_MS });
    await clock.advance(2300);
    wire.always("acquire", undefined);
    const lease = await clock.settle(asked);
    expect(wire.of("renew")).toHaveLength(1);
    expect(lease.remainingMs()).toBeGreaterThan(LEASE_MS / 3);
  });

  it("that can't be renewed is cancelled, and asked for anew", async () => {
    const { clock, locks, wire } = createHarness();
    wire.always("acquire", { lost: "reply" });
    wire.always("renew", { lost: "request" });
    const asked = locks.acquire(KEY, { leaseMs: LEASE_MS, waitMs: 10_000 });
    await clock.advance(2300);
    wire.always("acquire", undefined);
    const lease: Lease = await clock.settle(asked);
    expect(lease.remainingMs()).toBeGreaterThan(LEASE_MS / 3);
    const ids = new Set(wire.of("acquire").map(({ request }) => request.leaseId));
    expect(ids.size).toBe(2);
    expect(wire.of("release").map(({ request }) => request.leaseId)).toContain([...ids][0]);
  });

  it("because the process was frozen before it could read the answer: asked for anew", async () => {
    const { clock, locks, wire } = createHarness();
    wire.next("acquire", { replyMs: 10 });
    const asked = locks.acquire(KEY, { leaseMs: LEASE_MS });
    await clock.advance(5);
    await clock.freeze(10 * LEASE_MS);
    const lease = await clock.settle(asked);
    expect(lease.isHeld()).toBe(true);
    expect(lease.remainingMs()).toBeGreaterThan(LEASE_MS / 3);
  });
});

/** Delivers an old acquire once more, as a network might. */
async function lateDuplicate(api: LockApi, request: object): Promise<unknown> {
  return api.acquire(request as Parameters<LockApi["acquire"]>[0]);
}

describe("a wait that loses its place in an outage of 40 s", () => {
  it.each([
    ["after a minute", 60_000, 1],
    ["after 16 minutes, when its id is too old for another place", 16 * 60_000, 2],
  ])("%s waits on for the rest of its time", async (_when, atMs, ids) => {
    const { clock, locks, rival, wire } = createHarness();
    const theirs = await rival.acquire(KEY, { leaseMs: LEASE_MS });
    let lease: Lease | undefined;
    const granted = locks.acquire(KEY, { waitMs: 20 * 60_000 }).then((one) => (lease = one));
    await clock.advance(atMs);
    for (const operation of ["acquire", "check"] as const) wire.always(operation, { lost: "request" });
    await clock.advance(40_000);
    for (const operation of ["acquire", "check"] as const) wire.always(operation, undefined);
    await clock.advance(10_000);
    expect(await locks.inspect(KEY)).toMatchObject({ waiters: [{}] });
    expect(lease).toBeUndefined();
    await theirs.release();
    await clock.settle(granted);
    expect(lease?.isHeld()).toBe(true);
    expect(new Set(wire.of("acquire").map(({ request }) => request.leaseId)).size).toBe(ids);
  });
});
