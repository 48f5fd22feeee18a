/** Heartbeats that are due at about the same time go as one request; each lease is answered and believed for itself. */
import { describe, expect, it } from "vitest";
import { clientMarginMs } from "../../lib/core/limits.js";
import { refuse } from "../../lib/core/errors.js";
import type { Lease, LockClient } from "../../lib/index.js";
import type { Rig } from "./rig.js";
import { Heartbeats } from "../../lib/client/heartbeats.js";
import type { ServiceApi } from "../../lib/core/run-api.js";
import { VirtualClock } from "../../lib/testing.js";
import { createRig } from "./rig.js";
import type { Sent } from "./wire.js";

const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;
const OPTIONS = { leaseMs: LEASE_MS } as const;

async function hold(locks: LockClient, count: number, options: { readonly leaseMs: number } = OPTIONS): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let index = 0; index < count; index++) leases.push(await locks.acquire(`k${index}`, options));
  return leases;
}

/** How many leases each group had, in the order in which they were sent. */
const sizes = ({ wire }: Rig): number[] => wire.of("renewMany").map(({ request }) => leasesIn(request).length);
const leasesIn = (request: Sent["request"]): readonly { readonly key: string; readonly leaseId: string }[] =>
  (request as { readonly leases?: readonly { key: string; leaseId: string }[] }).leases ?? [];
const states = (leases: readonly Lease[]): string[] => [...new Set(leases.map(({ state }) => state))];

describe("a request for several heartbeats", () => {
  it("is given up when nobody waits for it, also where somebody had given up before it was sent", async () => {
    const given: (AbortSignal | undefined)[] = [];
    const renewMany: ServiceApi["renewMany"] = (_request, options) => {
      given.push(options?.signal);
      return new Promise(() => undefined);
    };
    const heartbeats = new Heartbeats({ renewMany } as ServiceApi, new VirtualClock());
    const later = new AbortController();
    for (const signal of [AbortSignal.abort(), later.signal]) void heartbeats.renew({ key: "k", leaseId: "", leaseMs: 1000 }, { signal });
    await Promise.resolve();
    expect(given.map((signal) => signal?.aborted)).toEqual([false]);
    later.abort();
    expect(given.map((signal) => signal?.aborted)).toEqual([true]);
  });
});

describe("many leases of one client", () => {
  it.each([2, 10, 25])("%d that are due in the same window go in exactly one request, and none by itself", async (count) => {
    const rig = createRig();
    const leases = await hold(rig.locks, count);
    await rig.clock.advance(EVERY_MS);
    expect(sizes(rig)).toEqual([count]);
    expect(rig.wire.of("renew")).toEqual([]);
    const [request] = rig.wire.of("renewMany");
    expect(leasesIn(request!.request).map(({ leaseId }) => leaseId)).toEqual(leases.map(({ leaseId }) => leaseId));
    await rig.clock.advance(9 * EVERY_MS);
    expect(sizes(rig)).toEqual(Array.from({ length: 10 }, () => count));
    expect(rig.wire.of("renew")).toEqual([]);
    expect(states(leases)).toEqual(["held"]);
  });

  it.each<[count: number, groups: number[], alone: number]>([
    [26, [25], 1],
    [27, [25, 2], 0],
    [60, [25, 25, 10], 0],
  ])("%d go in as few requests as hold them", async (count, groups, alone) => {
    const rig = createRig();
    const leases = await hold(rig.locks, count);
    await rig.clock.advance(EVERY_MS);
    expect([sizes(rig), rig.wire.of("renew").length]).toEqual([groups, alone]);
    await rig.clock.advance(3 * LEASE_MS);
    expect(states(leases)).toEqual(["held"]);
  });

  it("that begin at other times and have jitter still go in far fewer requests than leases, and none too late", async () => {
    let seed = 7;
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
    const rig = createRig({ random });
    const leases: Lease[] = [];
    for (let index = 0; index < 20; index++) {
      leases.push(await rig.locks.acquire(`k${index}`, OPTIONS));
      await rig.clock.advance(150);
    }
    const [began, sentBefore] = [rig.clock.monotonicMs(), rig.wire.sent.length];
    await rig.clock.advance(20 * EVERY_MS);
    const sent = rig.wire.sent.slice(sentBefore);
    // Twenty leases over twenty intervals would be four hundred.
    expect(sent.length).toBeLessThan(200);
    expect(states(leases)).toEqual(["held"]);
    for (const { key } of leases) {
      const beats = sent.filter(({ request }) => request.key === key || leasesIn(request).some((one) => one.key === key));
      const timesMs = [began, ...beats.map(({ atMs }) => atMs), rig.clock.monotonicMs()];
      for (const [index, atMs] of timesMs.slice(1).entries()) expect(atMs - timesMs[index]!).toBeLessThanOrEqual(EVERY_MS * 1.1 + 1);
      expect(beats.length).toBeGreaterThanOrEqual(18);
    }
  });

  it("of other lengths go together where their windows meet, and by their own times elsewhere", async () => {
    const rig = createRig();
    await rig.locks.acquire("short", OPTIONS);
    await rig.locks.acquire("long", { leaseMs: 30_000 });
    await rig.clock.advance(9000);
    expect(rig.wire.of("renew").map(({ request, atMs }) => [request.key, atMs])).toHaveLength(2);
    expect(rig.wire.of("renew").every(({ request }) => request.key === "short")).toBe(true);
    expect(sizes(rig)).toEqual([2]);
  });

  it("of its views are its own: of a scope and of an invocation; those of another client are not", async () => {
    const rig = createRig();
    await rig.locks.acquire("plain", OPTIONS);
    await rig.locks.scope("request-0123456789").acquire("scoped", OPTIONS);
    await rig.locks.forInvocation({ getRemainingTimeInMillis: () => 600_000 }).acquire("invoked", OPTIONS);
    await rig.rival.acquire("theirs", OPTIONS);
    await rig.clock.advance(EVERY_MS);
    expect(leasesIn(rig.wire.of("renewMany")[0]!.request).map(({ key }) => key)).toEqual(["plain", "scoped", "invoked"]);
  });

  it("of every kind go together: readers, permits and levels of a scope, of one key too", async () => {
    const rig = createRig();
    const scoped = rig.locks.scope("request-0123456789");
    const leases = [
      await rig.locks.acquire("shelf", { ...OPTIONS, mode: "shared" }),
      await rig.locks.acquire("shelf", { ...OPTIONS, mode: "shared" }),
      await rig.locks.acquire("pool", { ...OPTIONS, limit: 2 }),
      await rig.locks.acquire("pool", { ...OPTIONS, limit: 2 }),
      await scoped.acquire("cart", OPTIONS),
      await scoped.acquire("cart", OPTIONS),
    ];
    await rig.clock.advance(10 * EVERY_MS);
    expect(new Set(sizes(rig))).toEqual(new Set([6]));
    expect(states(leases)).toEqual(["held"]);
  });
});

describe("a lease beats alone, and on its own time", () => {
  it("when it is the only one", async () => {
    const rig = createRig();
    const grantedAtMs = rig.clock.monotonicMs();
    await hold(rig.locks, 1);
    await rig.clock.advance(LEASE_MS);
    expect(rig.wire.of("renew").map(({ atMs }) => atMs - grantedAtMs)).toEqual([1, 2, 3].map((beat) => beat * EVERY_MS));
    expect(rig.wire.of("renewMany")).toEqual([]);
  });

  it("when the others are not due by a tenth of their interval", async () => {
    const rig = createRig();
    await rig.locks.acquire("first", OPTIONS);
    await rig.clock.advance(EVERY_MS / 10 + 1);
    await rig.locks.acquire("second", OPTIONS);
    await rig.clock.advance(LEASE_MS);
    expect(rig.wire.of("renewMany")).toEqual([]);
    // Control: one within the tenth goes with the first.
    const other = createRig();
    await other.locks.acquire("first", OPTIONS);
    await other.clock.advance(EVERY_MS / 10);
    await other.locks.acquire("second", OPTIONS);
    await other.clock.advance(EVERY_MS);
    expect(sizes(other)).toEqual([2]);
  });

  it("when the others were released, handed over, or never beat", async () => {
    const rig = createRig();
    const [stays, released, handed] = [...(await hold(rig.locks, 3))];
    await rig.locks.acquire("fixed", { ...OPTIONS, heartbeat: false });
    await released!.release();
    await handed!.detach();
    await rig.clock.advance(EVERY_MS);
    expect(rig.wire.of("renew").map(({ request }) => request.leaseId)).toEqual([stays!.leaseId]);
    expect(rig.wire.of("renewMany")).toEqual([]);
  });

  it("those that were released take no place in the group of those that stay", async () => {
    const rig = createRig();
    const leases = await hold(rig.locks, 30);
    for (const lease of leases.slice(0, 25)) await lease.release();
    await rig.clock.advance(EVERY_MS);
    expect([sizes(rig), rig.wire.of("renew").length]).toEqual([[5], 0]);
  });

  it("when it is a set or a run", async () => {
    const rig = createRig();
    const sets = [await rig.locks.acquireAll(["a", "b"], OPTIONS), await rig.locks.acquireAll(["c", "d"], OPTIONS)];
    const run = rig.locks.runOnce(
      "job",
      OPTIONS,
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    await rig.clock.advance(0);
    const leases = await hold(rig.locks, 2);
    await rig.clock.advance(EVERY_MS);
    expect(rig.wire.of("renewSet")).toHaveLength(2);
    expect(rig.wire.of("renew").map(({ request }) => [request.kind, request.key])).toEqual([["runs", "job"]]);
    expect(leasesIn(rig.wire.of("renewMany")[0]!.request).map(({ leaseId }) => leaseId)).toEqual(leases.map(({ leaseId }) => leaseId));
    expect(sizes(rig)).toEqual([2]);
    expect(sets.map(({ state }) => state)).toEqual(["held", "held"]);
    await rig.locks.close();
    await run;
  });
});

describe("what a group is told", () => {
  it("is believed from its send, not from its receipt; the same as for one alone", async () => {
    const remaining: number[] = [];
    for (const count of [1, 3]) {
      const { clock, locks, wire } = createRig();
      const leases = await hold(locks, count);
      wire.next(count === 1 ? "renew" : "renewMany", { requestMs: 400, replyMs: 500 });
      await clock.advance(EVERY_MS + 900);
      remaining.push(...leases.map((lease) => lease.remainingMs()));
      expect(states(leases)).toEqual(["held"]);
    }
    // Believed from receipt it would be 900 ms more.
    expect(new Set(remaining)).toEqual(new Set([LEASE_MS - 900 - clientMarginMs(LEASE_MS)]));
  });

  it("is each one's own: one that was broken loses only itself, and isn't asked for again", async () => {
    const rig = createRig();
    const leases = await hold(rig.locks, 4);
    const [first, broken, ...rest] = leases;
    await rig.rival.forceRelease(broken!.key, { reason: "test", fencingToken: broken!.fencingToken });
    await rig.clock.advance(EVERY_MS);
    expect([broken!.state, broken!.signal.reason]).toMatchObject(["lost", { name: "LockLostError", reason: "broken" }]);
    expect(states([first!, ...rest])).toEqual(["held"]);
    await rig.clock.advance(10 * EVERY_MS);
    expect(sizes(rig)).toEqual([4, ...Array.from({ length: 10 }, () => 3)]);
    expect(rig.events.filter(({ type }) => type === "lost").map(({ key }) => key)).toEqual([broken!.key]);
  });

  it("nobody answered: it costs each lease one attempt, and each asks again by itself", async () => {
    for (const fate of [{ lost: "request" }, { lost: "reply" }, { lost: "request", silently: true }] as const) {
      const rig = createRig();
      const leases = await hold(rig.locks, 3);
      rig.wire.next("renewMany", fate);
      await rig.clock.advance(EVERY_MS + 1);
      expect(states(leases)).toEqual(["silently" in fate ? "held" : "unknown"]);
      await rig.clock.advance(EVERY_MS - 100);
      expect(states(leases)).toEqual(["held"]);
      const together = rig.wire.of("renewMany").slice(1);
      expect(rig.wire.of("renew").length + together.flatMap(({ request }) => leasesIn(request)).length).toBe(3);
      expect(rig.events.filter(({ type }) => type === "renew-failed")).toEqual([]);
    }
  });

  it("is refused as a whole: each asks again, and none is lost for it", async () => {
    const rig = createRig();
    const leases = await hold(rig.locks, 3);
    rig.wire.next("renewMany", { instead: refuse("unavailable") }, { instead: refuse("forbidden") });
    await rig.clock.advance(3 * LEASE_MS);
    expect(states(leases)).toEqual(["held"]);
  });

  it("nobody answers any more: each is lost at its own deadline and not before", async () => {
    const rig = createRig();
    const [early, late] = [await rig.locks.acquire("early", OPTIONS), await rig.locks.acquire("late", { leaseMs: 18_000 })];
    rig.wire.always("renewMany", { lost: "request", silently: true });
    rig.wire.always("renew", { lost: "request", silently: true });
    await rig.clock.advance(early.remainingMs() - 1);
    expect([early.isHeld(), late.isHeld()]).toEqual([true, true]);
    await rig.clock.advance(1);
    expect([early.isHeld(), early.signal.aborted, late.isHeld()]).toEqual([false, true, true]);
    await rig.clock.advance(late.remainingMs() - 1);
    expect(late.isHeld()).toBe(true);
    await rig.clock.advance(1);
    expect([late.isHeld(), late.signal.aborted]).toEqual([false, true]);
  });

  it("comes too late for a short lease: it has asked again by itself, and the long one waited", async () => {
    const rig = createRig();
    const long = await rig.locks.acquire("long", { leaseMs: 30_000 });
    await rig.clock.advance(9700);
    const short = await rig.locks.acquire("short", { leaseMs: 1000 });
    rig.wire.next("renewMany", { replyMs: 900 });
    await rig.clock.advance(333);
    expect(sizes(rig)).toEqual([2]);
    await rig.clock.advance(2000);
    expect([short.state, long.state]).toEqual(["held", "held"]);
    expect(rig.wire.of("renew").every(({ request }) => request.key === "short")).toBe(true);
  });
});

describe("a caller that may not send keys in a body", () => {
  it.each<[count: number]>([[2], [30]])(
    "learns it once of %d leases, sends each heartbeat by itself from then on, and loses none",
    async (count) => {
      const rig = createRig();
      const leases = await hold(rig.locks, count);
      rig.wire.always("renewMany", { instead: refuse("forbidden") });
      await rig.clock.advance(EVERY_MS);
      const refusedGroups = sizes(rig).length;
      expect(rig.wire.of("renew")).toHaveLength(count);
      await rig.clock.advance(3 * LEASE_MS);
      expect(sizes(rig)).toHaveLength(refusedGroups);
      expect(states(leases)).toEqual(["held"]);
    },
  );

  it("control: where not even one may be renewed, each is lost at its deadline", async () => {
    const rig = createRig();
    const leases = await hold(rig.locks, 2);
    rig.wire.always("renewMany", { instead: refuse("forbidden") });
    rig.wire.always("renew", { instead: refuse("forbidden") });
    await rig.clock.advance(LEASE_MS);
    expect(states(leases)).toEqual(["lost"]);
  });
});
