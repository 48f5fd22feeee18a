/**
 * Many leases of one client while the service fails. Regression: each lease retried by itself. 500 leases, which
 * normally sent 4 requests a second, sent about 1,000 when the service answered 429 or 503, and that keeps a service
 * down.
 */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import type { Lease } from "../../../lib/testing.js";
import { Random } from "../../simulation/random.js";
import type { Harness } from "../harness.js";
import { sized } from "../../support/tier.js";
import { createHarness } from "../harness.js";
import type { Fate } from "../wire.js";

const LEASES = sized({ quick: 50, slow: 500 });
const LEASE_MS = 30_000;
const EVERY_MS = LEASE_MS / 3;
const OUTAGE_MS = 15_000;

const OUTAGES: readonly (readonly [what: string, fate: Fate])[] = [
  ["429", { instead: refuse("throttled") }],
  ["429 with Retry-After", { instead: refuse("throttled", { retryAfterMs: 1000 }) }],
  ["a broken connection", { lost: "request" }],
  ["silence", { lost: "reply", silently: true }],
];

const BEATS = ["renewMany", "renew", "renewSet"] as const;

/** A harness with jitter and `count` leases, acquired over one interval. */
async function holding(count: number, hold: (harness: Harness, index: number) => Promise<Lease>) {
  const random = new Random(count);
  const harness = createHarness({ random: () => random.unit() });
  const leases: Lease[] = [];
  for (let index = 0; index < count; index++) {
    leases.push(await hold(harness, index));
    if (index % 25 === 24) await harness.clock.advance((EVERY_MS * 25) / count);
  }
  await harness.clock.advance(LEASE_MS);
  return { ...harness, leases };
}

/** Returns the heartbeat requests sent during `ms`. */
async function sentIn({ clock, wire }: Harness, ms: number): Promise<number> {
  const before = BEATS.reduce((sum, operation) => sum + wire.of(operation).length, 0);
  await clock.advance(ms);
  return BEATS.reduce((sum, operation) => sum + wire.of(operation).length, 0) - before;
}

function fail({ wire }: Harness, fate: Fate | undefined): void {
  for (const operation of BEATS) wire.always(operation, fate);
}

const lock = ({ locks }: Harness, index: number): Promise<Lease> => locks.acquire(`k${index}`, { leaseMs: LEASE_MS });

describe.each(OUTAGES)("many leases of one client, while the service answers with %s", (_what, fate) => {
  it("send at most twice the requests of a service that is well, and none is lost that outlives the outage", async () => {
    const harness = await holding(LEASES, lock);
    const healthy = await sentIn(harness, OUTAGE_MS);
    fail(harness, fate);
    const failing = await sentIn(harness, OUTAGE_MS);
    expect(failing).toBeLessThanOrEqual(2 * healthy);
    expect(failing).toBeGreaterThan(2);
    fail(harness, undefined);
    const after = await sentIn(harness, OUTAGE_MS);
    expect(after).toBeLessThanOrEqual(2 * healthy);
    expect(new Set(harness.leases.map(({ state }) => state))).toEqual(new Set(["held"]));
  });

  it("find out soon that it is over", async () => {
    const harness = await holding(LEASES, lock);
    fail(harness, fate);
    await harness.clock.advance(OUTAGE_MS);
    expect(harness.leases.some(({ state }) => state === "unknown")).toBe(true);
    fail(harness, undefined);
    await harness.clock.advance(4000);
    expect(harness.leases.filter(({ state }) => state === "unknown")).toEqual([]);
  });

  it("are lost each at its own deadline and not before, when it does not end", async () => {
    const harness = await holding(LEASES, lock);
    fail(harness, fate);
    const healthy = 2 * 20;
    const deadlines = harness.leases.map((lease) => harness.clock.monotonicMs() + lease.remainingMs());
    const lostAt = harness.leases.map(
      (lease) => new Promise((resolve) => lease.signal.addEventListener("abort", () => resolve(harness.clock.monotonicMs()))),
    );
    expect(await sentIn(harness, LEASE_MS)).toBeLessThanOrEqual(3 * 2 * healthy);
    for (const [index, atMs] of (await Promise.all(lostAt)).entries())
      expect(Math.abs((atMs as number) - deadlines[index]!)).toBeLessThanOrEqual(1);
    expect(await sentIn(harness, LEASE_MS)).toBe(0);
  });
});

describe("a few leases", () => {
  it.each([1, 25])("%d of one client: a few retries at once, and then no more often than every half interval", async (count) => {
    const harness = await holding(count, lock);
    fail(harness, { instead: refuse("unavailable") });
    expect(await sentIn(harness, EVERY_MS * 1.1)).toBeLessThanOrEqual(7);
    expect(await sentIn(harness, 0.7 * EVERY_MS)).toBeLessThanOrEqual(2);
    fail(harness, undefined);
    await harness.clock.advance(EVERY_MS);
    expect(new Set(harness.leases.map(({ state }) => state))).toEqual(new Set(["held"]));
  });

  it("have a last turn just before their deadline", async () => {
    // With the longest pauses, the last of them would end after the deadline.
    const harness = createHarness({ random: () => 1 });
    const leases = await Promise.all([0, 1, 2].map((index) => lock(harness, index)));
    fail(harness, { instead: refuse("unavailable") });
    const lastMs = Math.min(...leases.map((lease) => lease.remainingMs()));
    await harness.clock.advance(lastMs - EVERY_MS / 9);
    fail(harness, undefined);
    await harness.clock.advance(EVERY_MS);
    expect(new Set(leases.map(({ state }) => state))).toEqual(new Set(["held"]));
  });
});

describe("sets of keys, which are renewed one by one", () => {
  it("send at most twice as many requests too", async () => {
    const harness = await holding(
      sized({ quick: 50, slow: 200 }),
      ({ locks }, index) => locks.acquireAll([`a${index}`, `b${index}`], { leaseMs: LEASE_MS }) as unknown as Promise<Lease>,
    );
    const healthy = await sentIn(harness, OUTAGE_MS);
    fail(harness, { instead: refuse("throttled") });
    expect(await sentIn(harness, OUTAGE_MS)).toBeLessThanOrEqual(2 * healthy);
    fail(harness, undefined);
    await harness.clock.advance(OUTAGE_MS);
    expect(new Set(harness.leases.map(({ state }) => state))).toEqual(new Set(["held"]));
  });
});

describe("one lease that fails among many that don't", () => {
  it("keeps none of them from its heartbeat", async () => {
    const harness = await holding(100, lock);
    const { leases, clock, wire } = harness;
    // The first lease is alone in its requests, and all of them fail.
    await harness.locks.acquire("failing", { leaseMs: LEASE_MS });
    const sentBefore = wire.sent.length;
    wire.always("renew", { instead: refuse("throttled") });
    await clock.advance(3 * LEASE_MS);
    expect(new Set(leases.map(({ state }) => state))).toEqual(new Set(["held"]));
    expect(wire.sent.length - sentBefore).toBeLessThan(2 * 3 * 3 * 12);
  });
});
