/** The parts of a refusal beside its code: its sentence, when to ask again, who holds the key, and which new ids are taken. */
import { describe, expect, it } from "vitest";
import { ERRORS, refuse } from "../../lib/core/errors.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { refuseNewLease } from "../../lib/core/lock/grant.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import { leaseId, LEASE_MS, MARGIN_MS, POLICY, START_MS } from "../store/fixture.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

const NOW = { earliestMs: START_MS, latestMs: START_MS };
const nth = (order: number): string => String.fromCharCode(64 + order);

/** A permit of a semaphore that has more of them than a key takes leases. */
const MANY = { limit: 2 * LIMITS.leasesMax };

describe("a refusal of a held key", () => {
  it("has each holder, oldest first, as others may see it, and the time until the first of them may be gone", () => {
    const key = new QueueKey();
    key.acquire("A", { ...READER, owner: "one" });
    key.at(1_000).acquire("B", { ...READER, owner: "two", leaseMs: 2 * LEASE_MS });
    expect(key.at(1_500, 200).acquire("C")).toEqual({
      ok: false,
      code: "locked",
      definite: true,
      retry: "later",
      detail: ERRORS.locked.title,
      retryAfterMs: LEASE_MS + MARGIN_MS - 1_500,
      holders: [
        { owner: "one", mode: "shared", permits: 1, fencingToken: START_MS, heldMs: 1_700, remainingMs: LEASE_MS - 1_700 },
        { owner: "two", mode: "shared", permits: 1, fencingToken: START_MS + 1, heldMs: 700, remainingMs: 2 * LEASE_MS - 700 },
      ],
    });
  });

  it("shows no time below zero, and no more time than the lease has", () => {
    const key = new QueueKey();
    key.acquire("A");
    expect(key.at(LEASE_MS + 5).acquire("B")).toMatchObject({ holders: [{ heldMs: LEASE_MS + 5, remainingMs: 0 }] });
    expect(key.at(-5_000).acquire("B")).toMatchObject({ holders: [{ heldMs: 0, remainingMs: LEASE_MS }] });
  });

  it("has as many holders as fit, and says how many are left out", () => {
    const owner = "o".repeat(LIMITS.ownerChars);
    const key = new QueueKey();
    for (let order = 1; order <= 60; order++) key.acquire(nth(order), { ...permits(1, 60), owner });
    const refused = key.acquire(nth(61), permits(1, 60));
    if (refused.ok) throw new Error("granted");
    const { holders = [], holdersOmitted } = refused;
    expect(holders.length + (holdersOmitted ?? 0)).toBe(60);
    const bytes = (count: number): number => count * JSON.stringify(holders[0]).length;
    expect(bytes(holders.length)).toBeLessThanOrEqual(LIMITS.holdersBytes);
    expect(bytes(holders.length + 1)).toBeGreaterThan(LIMITS.holdersBytes);
  });

  it("says why, where others of the same scope or an operator are in the way", () => {
    const key = new QueueKey();
    key.acquire("A", { ...IN_S, ...permits(1) });
    const details = (letter: string, options: object): unknown => {
      const answer = key.acquire(letter, { ...IN_S, ...permits(1), ...options });
      expect(key.decision?.events).toEqual([]);
      return answer.ok || answer.detail;
    };
    expect(details("B", permits(2))).toBe("Its scope has fewer permits");
    key.break("A");
    expect(details("B", permits(1))).toBe("An operator is ending the hold of its scope");
    const readers = new QueueKey();
    readers.acquire("A", { ...IN_S, ...READER });
    expect(readers.acquire("B", IN_S)).toMatchObject({ code: "locked", detail: expect.stringContaining("change of mode") as string });
    readers.acquire("B", { ...IN_S, ...READER });
    expect(readers.transfer("A", "C")).toMatchObject({ code: "locked", detail: "Another reentrant hold of the same scope remains" });
    expect(readers.change("A", "exclusive")).toMatchObject({ code: "locked", detail: "Other readers hold the key" });
  });

  it("comes to a scope too, when the key has all the leases that it takes", () => {
    const key = new QueueKey();
    for (let order = 1; order <= LIMITS.leasesMax; order++) expect(key.acquire(nth(order), IN_S)).toMatchObject({ how: "granted" });
    const { record } = key;
    expect(key.acquire(nth(LIMITS.leasesMax + 1), IN_S)).toMatchObject({ code: "key-full" });
    expect([key.record, key.decision?.events]).toEqual([record, []]);
  });

  it.each([
    ["a reader", READER, {}],
    ["a permit", MANY, { ...MANY, permits: MANY.limit }],
  ])(
    "says key-full to %s that only the number of leases keeps out, and locked to whom a holder excludes",
    (_what, parameters, excluded) => {
      const key = new QueueKey();
      for (let order = 1; order <= LIMITS.leasesMax; order++) key.acquire(nth(order), parameters);
      const { record } = key;
      const late = (): string => nth(LIMITS.leasesMax + 1);
      expect(key.acquire(late(), parameters)).toMatchObject({
        ...{ code: "key-full", retryAfterMs: LIMITS.pollMaxMs },
        detail: expect.stringContaining(`${LIMITS.leasesMax} leases`) as string,
      });
      expect(key.acquire(late(), excluded)).toMatchObject({ code: "locked" });
      expect([key.record, key.decision?.events]).toEqual([record, []]);
    },
  );
});

describe("a refusal that finds a waiter gone", () => {
  it("takes it out of the queue, and keeps the record for a retention after that", () => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 10 * LEASE_MS });
    key.ask("B");
    key.record = { ...key.record!, ttlAtSec: 1 };
    expect(key.at(DEFAULTS.waiterTtlMs).acquire("C")).toMatchObject({ code: "locked" });
    expect([key.all, key.events]).toEqual(["Ax", "B skipped"]);
    expect(key.record.ttlAtSec).toBe(Math.ceil((START_MS + DEFAULTS.waiterTtlMs + POLICY.retentionMs) / 1000));
  });
});

describe("a refusal of a break", () => {
  it("is for another hold if the key is held, and else for the token's age", () => {
    const key = new QueueKey();
    key.acquire("A", READER);
    key.acquire("B", READER);
    const latest = key.tokenOf("B");
    const breaks = (fencingToken: number) => key.send({ type: "break", key: "k", fencingToken });
    key.release("B");
    for (const token of [latest - 2, latest, latest + 1]) expect(breaks(token), String(token)).toMatchObject({ code: "other-hold" });
    key.release("A");
    expect(breaks(latest - 1)).toMatchObject({ code: "other-hold" });
    for (const token of [latest, latest + 1]) expect(breaks(token), String(token)).toMatchObject({ code: "not-found" });
  });
});

describe("a refusal of an id", () => {
  it.each(["lease-over", "lease-reused"] as const)("says what to send instead, with a detail of its own and without: %s", (code) => {
    const instead = "send the request under a new leaseId";
    expect(refuse(code).detail).toContain(`${ERRORS[code].title}: ${instead}`);
    expect(refuse(code, { detail: "This leaseId waits" }).detail).toContain(`This leaseId waits: ${instead}`);
  });

  it("that is over says above which time a new id is taken, once ids were forgotten", () => {
    const over = refuseNewLease({ ...EMPTY_RECORD, tombstones: [{ leaseId: ID("A"), ending: "released" }] }, ID("A"), NOW);
    expect(over).toMatchObject({ code: "lease-over" });
    expect(over).not.toHaveProperty("leaseIdAboveMs");
    expect(refuseNewLease({ ...EMPTY_RECORD, lowWatermark: leaseId(9, 77) }, ID("A"), NOW)).toMatchObject({
      leaseIdAboveMs: START_MS + 77,
    });
  });

  it.each([
    [LIMITS.leaseIdAheadMs + 1, "10 s ahead of the service's clock"],
    [7_199_999, "120 minutes ahead of the service's clock"],
    [7_200_000, "2 hours ahead of the service's clock"],
    [-LIMITS.leaseIdBehindMs - 1, "15 minutes ago"],
    [-949 * 86_400_000, "949 days ago"],
  ])("made %d ms from now says so, with the service's time", (ms, says) => {
    const refused = refuseNewLease(EMPTY_RECORD, leaseId(1, ms), NOW);
    expect(refused).toMatchObject({ code: "lease-id-time", serverTimeMs: START_MS, detail: expect.stringContaining(says) as string });
  });
});

describe("a key of another limit", () => {
  it("refuses while somebody only waits for it, whatever the priority", () => {
    const key = new QueueKey();
    key.acquire("A", permits(3));
    key.ask("B", permits(3));
    // Clocks that are far apart end the lease, and leave the queue to the next poll.
    key.at(0, 20_000).release("A");
    expect(key.all).toBe("B3/3…");
    // Control: with the same limit, it goes first.
    expect(
      key
        .at(1)
        .copy()
        .ask("E", { ...permits(3), priority: 9 }),
    ).toMatchObject({ how: "granted" });
    expect(key.ask("E", { priority: 9 })).toMatchObject({ code: "limit-mismatch" });
  });
});
