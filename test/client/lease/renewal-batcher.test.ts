/** Heartbeats that are due at about the same time go in one request; each lease has its own answer and its own deadline. */
import { describe, expect, it } from "vitest";
import { clientMarginMs } from "../../../lib/core/renewal.js";
import { refuse } from "../../../lib/core/errors.js";
import type { Lease, LockClient } from "../../../lib/index.js";
import type { Harness } from "../harness.js";
import { Alarms } from "../../../lib/client/hold/alarms.js";
import { RenewalBatcher } from "../../../lib/client/hold/renewal-batcher.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { VirtualClock } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";
import type { Sent } from "../wire.js";

const LEASE_MS = 9000;
const EVERY_MS = LEASE_MS / 3;
const OPTIONS = { leaseMs: LEASE_MS } as const;

async function hold(locks: LockClient, count: number, options: { readonly leaseMs: number } = OPTIONS): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let index = 0; index < count; index++) leases.push(await locks.acquire(`k${index}`, options));
  return leases;
}

/** The number of leases in each batch, in the order in which the batches were sent. */
const sizes = ({ wire }: Harness): number[] => wire.of("renewMany").map(({ request }) => leasesIn(request).length);
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
    const clock = new VirtualClock();
    const heartbeats = new RenewalBatcher({ renewMany } as ServiceApi, clock, new Alarms(clock));
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
    const harness = createHarness();
    const leases = await hold(harness.locks, count);
    await harness.clock.advance(EVERY_MS);
    expect(sizes(harness)).toEqual([count]);
    expect(harness.wire.of("renew")).toEqual([]);
    const [request] = harness.wire.of("renewMany");
    expect(new Set(leasesIn(request!.request).map(({ leaseId }) => leaseId))).toEqual(new Set(leases.map(({ leaseId }) => leaseId)));
    await harness.clock.advance(9 * EVERY_MS);
    expect(sizes(harness)).toEqual(Array.from({ length: 10 }, () => count));
    expect(harness.wire.of("renew")).toEqual([]);
    expect(states(leases)).toEqual(["held"]);
  });

  it.each<[count: number, groups: number[], alone: number]>([
    [26, [25], 1],
    [27, [25, 2], 0],
    [60, [25, 25, 10], 0],
  ])("%d go in as few requests as hold them", async (count, groups, alone) => {
    const harness = createHarness();
    const leases = await hold(harness.locks, count);
    await harness.clock.advance(EVERY_MS);
    expect([sizes(harness), harness.wire.of("renew").length]).toEqual([groups, alone]);
    await harness.clock.advance(3 * LEASE_MS);
    expect(states(leases)).toEqual(["held"]);
  });

  it("that begin at other times and have jitter still go in far fewer requests than leases, and none too late", async () => {
    let seed = 7;
    const random = (): number => (seed = (seed * 16_807) % 2_147_483_647) / 2_147_483_647;
    const harness = createHarness({ random });
    const leases: Lease[] = [];
    for (let index = 0; index < 20; index++) {
      leases.push(await harness.locks.acquire(`k${index}`, OPTIONS));
      await harness.clock.advance(150);
    }
    const [began, sentBefore] = [harness.clock.monotonicMs(), harness.wire.sent.length];
    await harness.clock.advance(20 * EVERY_MS);
    const sent = harness.wire.sent.slice(sentBefore);
    // Twenty leases over twenty intervals would be four hundred.
    expect(sent.length).toBeLessThan(200);
    expect(states(leases)).toEqual(["held"]);
    for (const { key } of leases) {
      const beats = sent.filter(({ request }) => request.key === key || leasesIn(request).some((one) => one.key === key));
      const timesMs = [began, ...beats.map(({ atMs }) => atMs), harness.clock.monotonicMs()];
      for (const [index, atMs] of timesMs.slice(1).entries()) expect(atMs - timesMs[index]!).toBeLessThanOrEqual(EVERY_MS * 1.1 + 1);
      expect(beats.length).toBeGreaterThanOrEqual(18);
    }
  });

  it("of other lengths go together where their windows meet, and by their own times elsewhere", async () => {
    const harness = createHarness();
    await harness.locks.acquire("short", OPTIONS);
    await harness.locks.acquire("long", { leaseMs: 30_000 });
    await harness.clock.advance(9000);
    expect(harness.wire.of("renew").map(({ request, atMs }) => [request.key, atMs])).toHaveLength(2);
    expect(harness.wire.of("renew").every(({ request }) => request.key === "short")).toBe(true);
    expect(sizes(harness)).toEqual([2]);
  });

  it("of its views are its own: of a scope and of an invocation; those of another client are not", async () => {
    const harness = createHarness();
    await harness.locks.acquire("plain", OPTIONS);
    await harness.locks.scope("request-0123456789").acquire("scoped", OPTIONS);
    await harness.locks.forInvocation({ getRemainingTimeInMillis: () => 600_000 }).acquire("invoked", OPTIONS);
    await harness.rival.acquire("theirs", OPTIONS);
    await harness.clock.advance(EVERY_MS);
    const [together] = harness.wire.of("renewMany");
    expect(new Set(leasesIn(together!.request).map(({ key }) => key))).toEqual(new Set(["plain", "scoped", "invoked"]));
  });
});

describe("a lease beats alone, and on its own time", () => {
  it("when it is the only one", async () => {
    const harness = createHarness();
    const grantedAtMs = harness.clock.monotonicMs();
    await hold(harness.locks, 1);
    await harness.clock.advance(LEASE_MS);
    expect(harness.wire.of("renew").map(({ atMs }) => atMs - grantedAtMs)).toEqual([1, 2, 3].map((beat) => beat * EVERY_MS));
    expect(harness.wire.of("renewMany")).toEqual([]);
  });

  it("when the others are not due by a tenth of their interval", async () => {
    const harness = createHarness();
    await harness.locks.acquire("first", OPTIONS);
    await harness.clock.advance(EVERY_MS / 10 + 1);
    await harness.locks.acquire("second", OPTIONS);
    await harness.clock.advance(LEASE_MS);
    expect(harness.wire.of("renewMany")).toEqual([]);
    // Control: a lease within the tenth goes with the first.
    const other = createHarness();
    await other.locks.acquire("first", OPTIONS);
    await other.clock.advance(EVERY_MS / 10);
    await other.locks.acquire("second", OPTIONS);
    await other.clock.advance(EVERY_MS);
    expect(sizes(other)).toEqual([2]);
  });

  it("when the others were released, handed over, or never beat", async () => {
    const harness = createHarness();
    const [stays, released, handed] = [...(await hold(harness.locks, 3))];
    await harness.locks.acquire("fixed", { ...OPTIONS, heartbeat: false });
    await released!.release();
    await handed!.detach();
    await harness.clock.advance(EVERY_MS);
    expect(harness.wire.of("renew").map(({ request }) => request.leaseId)).toEqual([stays!.leaseId]);
    expect(harness.wire.of("renewMany")).toEqual([]);
  });

  it("those that were released take no place in the group of those that stay", async () => {
    const harness = createHarness();
    const leases = await hold(harness.locks, 30);
    for (const lease of leases.slice(0, 25)) await lease.release();
    await harness.clock.advance(EVERY_MS);
    expect([sizes(harness), harness.wire.of("renew").length]).toEqual([[5], 0]);
  });

  it("when it is a set or a run", async () => {
    const harness = createHarness();
    const sets = [await harness.locks.acquireAll(["a", "b"], OPTIONS), await harness.locks.acquireAll(["c", "d"], OPTIONS)];
    const run = harness.locks.runOnce(
      "job",
      OPTIONS,
      ({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())),
    );
    await harness.clock.advance(0);
    const leases = await hold(harness.locks, 2);
    await harness.clock.advance(EVERY_MS);
    expect(harness.wire.of("renewSet")).toHaveLength(2);
    expect(harness.wire.of("renew").map(({ request }) => [request.kind, request.key])).toEqual([["runs", "job"]]);
    expect(leasesIn(harness.wire.of("renewMany")[0]!.request).map(({ leaseId }) => leaseId)).toEqual(leases.map(({ leaseId }) => leaseId));
    expect(sizes(harness)).toEqual([2]);
    expect(sets.map(({ state }) => state)).toEqual(["held", "held"]);
    await harness.locks.close({ drainMs: 0 });
    await run;
  });
});

describe("what a group is told", () => {
  it("is believed from its send, not from its receipt; the same as for one alone", async () => {
    const remaining: number[] = [];
    for (const count of [1, 3]) {
      const { clock, locks, wire } = createHarness();
      const leases = await hold(locks, count);
      wire.next(count === 1 ? "renew" : "renewMany", { requestMs: 400, replyMs: 500 });
      await clock.advance(EVERY_MS + 900);
      remaining.push(...leases.map((lease) => lease.remainingMs()));
      expect(states(leases)).toEqual(["held"]);
    }
    // Measured from the receipt, it would be 900 ms more.
    expect(new Set(remaining)).toEqual(new Set([LEASE_MS - 900 - clientMarginMs(LEASE_MS)]));
  });

  it("is each one's own: one that was broken loses only itself, and isn't asked for again", async () => {
    const harness = createHarness();
    const leases = await hold(harness.locks, 4);
    const [first, broken, ...rest] = leases;
    await harness.rival.forceRelease(broken!.key, { reason: "test", fencingToken: broken!.fencingToken });
    await harness.clock.advance(EVERY_MS);
    expect([broken!.state, broken!.signal.reason]).toMatchObject(["lost", { name: "LockLostError", reason: "broken" }]);
    expect(states([first!, ...rest])).toEqual(["held"]);
    await harness.clock.advance(10 * EVERY_MS);
    expect(sizes(harness)).toEqual([4, ...Array.from({ length: 10 }, () => 3)]);
    expect(harness.events.filter(({ type }) => type === "lost").map(({ key }) => key)).toEqual([broken!.key]);
  });

  it("nobody answered: it costs each lease one attempt, and each asks again by itself", async () => {
    for (const fate of [{ lost: "request" }, { lost: "reply" }, { lost: "request", silently: true }] as const) {
      const harness = createHarness();
      const leases = await hold(harness.locks, 3);
      harness.wire.next("renewMany", fate);
      await harness.clock.advance(EVERY_MS + 1);
      expect(states(leases)).toEqual(["silently" in fate ? "held" : "unknown"]);
      await harness.clock.advance(EVERY_MS - 100);
      expect(states(leases)).toEqual(["held"]);
      const together = harness.wire.of("renewMany").slice(1);
      expect(harness.wire.of("renew").length + together.flatMap(({ request }) => leasesIn(request)).length).toBe(3);
      expect(harness.events.filter(({ type }) => type === "renew-failed")).toEqual([]);
    }
  });

  it("is refused as a whole: each asks again, and none is lost for it", async () => {
    const harness = createHarness();
    const leases = await hold(harness.locks, 3);
    harness.wire.next("renewMany", { instead: refuse("unavailable") }, { instead: refuse("forbidden") });
    await harness.clock.advance(3 * LEASE_MS);
    expect(states(leases)).toEqual(["held"]);
  });

  it("nobody answers any more: each is lost at its own deadline and not before", async () => {
    const harness = createHarness();
    const [early, late] = [await harness.locks.acquire("early", OPTIONS), await harness.locks.acquire("late", { leaseMs: 18_000 })];
    harness.wire.always("renewMany", { lost: "request", silently: true });
    harness.wire.always("renew", { lost: "request", silently: true });
    await harness.clock.advance(early.remainingMs() - 1);
    expect([early.isHeld(), late.isHeld()]).toEqual([true, true]);
    await harness.clock.advance(1);
    expect([early.isHeld(), early.signal.aborted, late.isHeld()]).toEqual([false, true, true]);
    await harness.clock.advance(late.remainingMs() - 1);
    expect(late.isHeld()).toBe(true);
    await harness.clock.advance(1);
    expect([late.isHeld(), late.signal.aborted]).toEqual([false, true]);
  });

  it("comes too late for a short lease: it has asked again by itself, and the long one waited", async () => {
    const harness = createHarness();
    const long = await harness.locks.acquire("long", { leaseMs: 30_000 });
    await harness.clock.advance(9700);
    const short = await harness.locks.acquire("short", { leaseMs: 1000 });
    harness.wire.next("renewMany", { replyMs: 900 });
    await harness.clock.advance(333);
    expect(sizes(harness)).toEqual([2]);
    await harness.clock.advance(2000);
    expect([short.state, long.state]).toEqual(["held", "held"]);
    expect(harness.wire.of("renew").every(({ request }) => request.key === "short")).toBe(true);
  });
});

describe("a caller that may not send keys in a body", () => {
  it.each<[count: number]>([[2], [30]])(
    "learns it once of %d leases, sends each heartbeat by itself from then on, and loses none",
    async (count) => {
      const harness = createHarness();
      const leases = await hold(harness.locks, count);
      harness.wire.always("renewMany", { instead: refuse("forbidden") });
      await harness.clock.advance(EVERY_MS);
      const refusedGroups = sizes(harness).length;
      expect(harness.wire.of("renew")).toHaveLength(count);
      await harness.clock.advance(3 * LEASE_MS);
      expect(sizes(harness)).toHaveLength(refusedGroups);
      expect(states(leases)).toEqual(["held"]);
    },
  );

  it("control: where not even one may be renewed, each is lost at its deadline", async () => {
    const harness = createHarness();
    const leases = await hold(harness.locks, 2);
    harness.wire.always("renewMany", { instead: refuse("forbidden") });
    harness.wire.always("renew", { instead: refuse("forbidden") });
    await harness.clock.advance(LEASE_MS);
    expect(states(leases)).toEqual(["lost"]);
  });
});
