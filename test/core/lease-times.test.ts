/** The times of a lease through renewals, transfers and breaks, its other parts, and the reasons for which it is refused. */
import { describe, expect, it } from "vitest";
import type { Renew, Transfer } from "../../lib/core/commands.js";
import { LIMITS } from "../../lib/core/limits.js";
import { leaseId, LEASE_MS, MARGIN_MS, outcomeOf, POLICY, START_MS } from "../store/fixture.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

const SECOND_MS = 1000;
/** The distance of two clocks of which one is days off. */
const FAR_MS = 3 * 86_400_000;

/** A key that A holds. */
function held(options: Parameters<QueueKey["acquire"]>[1] = {}): QueueKey {
  const key = new QueueKey();
  key.acquire("A", options);
  return key;
}

const renew = (key: QueueKey, letter: string, parts: Partial<Renew> = {}) =>
  key.send<Renew>({ type: "renew", key: "k", leaseId: ID(letter), principal: "P", ...parts });
const transfer = (key: QueueKey, to: string, parts: Partial<Transfer> = {}) =>
  key.send<Transfer>({ type: "transfer", key: "k", leaseId: ID("A"), principal: "P", toLeaseId: ID(to), ...parts });
const holdOf = (key: QueueKey, letter: string) => key.record?.holds[ID(letter)];

describe("a grant", () => {
  it("lasts its length from the later clock, and a margin more for others", () => {
    const key = new QueueKey().at(0, 300);
    const answer = key.acquire("A", { owner: "checkout-7", meta: { order: 7 }, ...IN_S });
    expect(key.record?.holds).toEqual({
      [ID("A")]: {
        principal: "P",
        owner: "checkout-7",
        mode: "exclusive",
        permits: 1,
        scope: "scope S",
        fencingToken: START_MS + 300,
        leaseMs: LEASE_MS,
        grantedAtMs: START_MS + 300,
        expiresAtMs: START_MS + 300 + LEASE_MS,
        marginMs: MARGIN_MS,
        requestHash: "same",
        meta: { order: 7 },
      },
    });
    expect(answer).toEqual({
      ok: true,
      how: "granted",
      lease: {
        key: "k",
        leaseId: ID("A"),
        owner: "checkout-7",
        mode: "exclusive",
        permits: 1,
        holdCount: 1,
        fencingToken: START_MS + 300,
        leaseMs: LEASE_MS,
        remainingMs: LEASE_MS,
        renewAfterMs: Math.floor(LEASE_MS / 3),
        version: START_MS + 301,
        serverTimeMs: START_MS + 300,
        meta: { order: 7 },
      },
    });
    expect(key.record?.ttlAtSec).toBe(Math.ceil((START_MS + 300 + LEASE_MS + MARGIN_MS + POLICY.retentionMs) / SECOND_MS));
  });

  it("of a free key lets it be collected earlier, if the last lease was longer", () => {
    const key = held({ leaseMs: 100 * LEASE_MS });
    const { ttlAtSec = 0 } = key.record ?? {};
    key.release("A");
    expect(key.record?.ttlAtSec).toBe(ttlAtSec);
    key.acquire("B");
    expect(key.record?.ttlAtSec).toBe(Math.ceil((START_MS + LEASE_MS + MARGIN_MS + POLICY.retentionMs) / SECOND_MS));
  });

  it.each([
    ["a holder", (key: QueueKey) => key.acquire("B", READER)],
    ["a waiter", (key: QueueKey) => key.ask("B", READER)],
  ])("beside %s keeps the record for as long as before, if that is longer", (_, joins) => {
    const key = new QueueKey();
    key.acquire("F", { ...READER, leaseMs: 100 * LEASE_MS });
    joins(key);
    const { ttlAtSec } = key.record ?? {};
    key.acquire("C", READER);
    expect(key.record?.ttlAtSec).toBe(ttlAtSec);
  });

  it("shows the time left by the later clock: never less than nothing, nor more than the lease", () => {
    const key = held();
    const remaining = (ms: number, aheadMs: number): unknown => {
      const answer = key.at(ms, aheadMs).check("A");
      return answer.ok && "lease" in answer ? answer.lease.remainingMs : answer;
    };
    expect([remaining(0, 0), remaining(1, 0), remaining(LEASE_MS - 1, 0)]).toEqual([LEASE_MS, LEASE_MS - 1, 1]);
    expect(remaining(LEASE_MS - 1, 400)).toBe(0);
    expect(remaining(-5_000, 0)).toBe(LEASE_MS);
  });
});

describe("a release", () => {
  it("sent again is logged again, as long as the key remembers the lease by name", () => {
    const key = held();
    key.release("A");
    expect(key.release("A")).toEqual({ ok: true, state: "released" });
    expect(key.decision?.events).toEqual([
      { event: "ended", leaseId: ID("A"), owner: "", principal: "P", reason: "released", repeated: true },
    ]);
    for (const letter of "BCDEFGHI") {
      key.acquire(letter);
      key.release(letter);
    }
    expect(key.release("A")).toEqual({ ok: true, state: "unknown" });
    expect(key.decision?.events).toEqual([]);
  });

  it.each([
    ["released", "lives by both", LEASE_MS - 1],
    ["unknown", "ran out by the later clock alone", LEASE_MS],
    ["expired", "ran out by both", LEASE_MS + FAR_MS],
  ])("by clocks that are days apart is told as %s if the lease %s, and so is its repeat", (state, _when, laterMs) => {
    const key = held().at(laterMs - FAR_MS, FAR_MS);
    expect(key.release("A")).toMatchObject({ state });
    expect(key.at(3 * LEASE_MS).release("A")).toMatchObject({ state });
  });

  /** Regression: a release by a function whose clock was days off blocked the key for days. */
  it.each([
    ["ahead", 100, FAR_MS],
    ["behind", 100 - FAR_MS, FAR_MS],
  ])("by a clock that is days %s hands nothing on, and the next waiter is granted at its next poll", (_where, atMs, aheadMs) => {
    const key = new QueueKey();
    key.acquire("A");
    key.at(50).ask("B");
    key.at(atMs, aheadMs).release("A");
    expect(key.all).toBe("Bx…");
    expect(key.at(200).ask("B")).toMatchObject({ how: "granted" });
  });

  it("by clocks that are days apart leaves no time of its own on the record", () => {
    const key = new QueueKey();
    key.acquire("A");
    const ttlAtSec = key.record?.ttlAtSec ?? 0;
    key.at(100, FAR_MS).release("A");
    expect(key.record?.ttlAtSec).toBe(ttlAtSec);
    const fresh = new QueueKey();
    fresh.at(100, FAR_MS).release("A");
    expect(fresh.record?.version).toBeLessThan(START_MS + FAR_MS / 3);
    expect(fresh.record?.ttlAtSec).toBeLessThan((START_MS + (2 * FAR_MS) / 3) / 1000);
    fresh.at(100 - FAR_MS, FAR_MS).release("B");
    expect(fresh.record?.ttlAtSec).toBeGreaterThan((START_MS + FAR_MS / 6) / 1000);
  });

  it("by clocks that are days apart says `unknown` of an id that may have held and been collected, and keeps its late duplicate out", () => {
    const key = new QueueKey();
    key.at(-FAR_MS + 20 * 60_000, FAR_MS);
    expect(key.release("A")).toMatchObject({ state: "unknown" });
    expect(key.at(0).acquire("A")).toMatchObject({ code: "lease-over" });
    expect(key.release("A")).toMatchObject({ state: "unknown" });
  });

  it("leaves the queue to its next poll while others hold the key or are offered it", () => {
    const key = new QueueKey();
    for (const letter of "ABC") key.acquire(letter, permits(1));
    for (const letter of "DE") key.ask(letter, permits(1));
    const heldAfter = (change: () => unknown) => (change(), key.all);
    expect(heldAfter(() => key.release("C"))).toBe("A1/3 B1/3 D1/3… E1/3…");
    expect(heldAfter(() => key.ask("E", permits(1)))).toBe("A1/3 B1/3 D1/3… E1/3…");
    expect(heldAfter(() => key.at(LIMITS.keepAliveAfterMs).ask("E", permits(1)))).toBe("A1/3 B1/3 D1/3? E1/3…");
    expect(heldAfter(() => key.release("A"))).toBe("B1/3 D1/3? E1/3…");
    expect(heldAfter(() => key.ask("E", permits(1)))).toBe("B1/3 E1/3 D1/3?");
  });

  it("of a wait alone ends no hold, and changes nothing", () => {
    const key = held();
    const { record } = key;
    const onlyWaiting = { type: "release", key: "k", leaseId: ID("A"), principal: "P", onlyWaiting: true } as const;
    expect(key.send(onlyWaiting)).toEqual({ ok: true, state: "unknown" });
    expect(key.decision?.events).toEqual([]);
    expect(key.record).toBe(record);
  });
});

describe("a renewal", () => {
  it("lasts its length from the later clock, and the margin that goes with it", () => {
    const key = held().at(4_000, 300);
    expect(renew(key, "A", { leaseMs: 3 * LEASE_MS })).toMatchObject({
      how: "renewed",
      lease: { leaseMs: 3 * LEASE_MS, remainingMs: 3 * LEASE_MS, renewAfterMs: LEASE_MS },
    });
    expect(holdOf(key, "A")).toMatchObject({
      expiresAtMs: START_MS + 4_300 + 3 * LEASE_MS,
      leaseMs: 3 * LEASE_MS,
      marginMs: POLICY.marginMs(3 * LEASE_MS),
      grantedAtMs: START_MS,
      fencingToken: START_MS,
    });
  });

  it("without a length is for the lease's own", () => {
    const key = held().at(4_000);
    renew(key, "A");
    expect(holdOf(key, "A")).toMatchObject({ expiresAtMs: START_MS + 4_000 + LEASE_MS, leaseMs: LEASE_MS });
  });

  it("that would end earlier changes neither the lease's length nor its end", () => {
    const key = held();
    const before = holdOf(key, "A");
    renew(key, "A", { leaseMs: LEASE_MS - 1 });
    expect(holdOf(key, "A")).toEqual(before);
    // Control: one that ends at the same time is for its own length, with the margin of the longer one.
    renew(key.at(4_000), "A", { leaseMs: LEASE_MS - 4_000 });
    expect(holdOf(key, "A")).toEqual({ ...before, leaseMs: LEASE_MS - 4_000 });
  });

  it("replaces the meta if it has one, and keeps it otherwise", () => {
    const key = held({ meta: { step: 1 } });
    renew(key, "A");
    expect(holdOf(key, "A")?.meta).toEqual({ step: 1 });
    expect(renew(key, "A", { meta: { page: 2 } })).toMatchObject({ lease: { meta: { page: 2 } } });
    expect(holdOf(key, "A")?.meta).toEqual({ page: 2 });
  });

  it("never lets the record be collected earlier than another of its leases needs", () => {
    const key = held(READER);
    key.acquire("B", { ...READER, leaseMs: 100 * LEASE_MS });
    const { ttlAtSec } = key.record ?? {};
    renew(key.at(5_000), "A");
    expect(key.record?.ttlAtSec).toBe(ttlAtSec);
  });

  it("advances the queue if its first waiter was not seen in time, and leaves it alone otherwise", () => {
    const key = held({ leaseMs: 100 * LEASE_MS });
    key.ask("B");
    key.at(1_000).ask("C");
    renew(key.at(14_999), "A");
    expect([key.all, key.events]).toEqual(["Ax Bx… Cx…", ""]);
    renew(key.at(15_000), "A");
    expect([key.all, key.events]).toEqual(["Ax Cx…", "B skipped"]);
  });

  it("of a reader lets who waits behind a dead first one in", () => {
    const key = new QueueKey();
    key.acquire("A", { mode: "shared", leaseMs: 10 * LEASE_MS });
    key.ask("B");
    key.at(8000).ask("C", { mode: "shared" });
    key.at(15_000).renew("A", 10 * LEASE_MS);
    expect(key.all).toBe("As Cs?");
  });
});

describe("a transfer", () => {
  it("begins a new lease of the same kind, for whoever asks for it first", () => {
    const key = held({ owner: "one", requestHash: "of A", meta: { order: 7 } }).at(4_000, 300);
    const answer = transfer(key, "B");
    expect(key.record?.holds).toEqual({
      [ID("B")]: {
        principal: "",
        owner: "one",
        mode: "exclusive",
        permits: 1,
        fencingToken: START_MS + 4_300,
        leaseMs: LEASE_MS,
        grantedAtMs: START_MS + 4_300,
        expiresAtMs: START_MS + 4_300 + LEASE_MS,
        marginMs: MARGIN_MS,
        requestHash: "",
        meta: { order: 7 },
      },
    });
    expect(answer).toMatchObject({
      how: "transferred",
      lease: { leaseId: ID("B"), remainingMs: LEASE_MS, fencingToken: START_MS + 4_300 },
    });
    expect(key.record).toMatchObject({ fencingToken: START_MS + 4_300, fenceFloor: START_MS + 4_300 });
    expect(key.record?.tombstones).toEqual([{ leaseId: ID("A"), ending: "transferred" }]);
    expect(key.decision?.events).toEqual([
      { event: "ended", leaseId: ID("A"), owner: "one", principal: "P", fencingToken: START_MS, heldMs: 4_300, reason: "transferred" },
      { event: "transferred", leaseId: ID("B"), owner: "one", principal: "P", fencingToken: START_MS + 4_300 },
    ]);
  });

  it("takes the new owner and length from the request, and the margin that goes with it", () => {
    const key = held();
    transfer(key, "B", { toOwner: "two", leaseMs: 2 * LEASE_MS });
    expect(holdOf(key, "B")).toMatchObject({
      owner: "two",
      leaseMs: 2 * LEASE_MS,
      expiresAtMs: START_MS + 2 * LEASE_MS,
      marginMs: POLICY.marginMs(2 * LEASE_MS),
    });
    expect(key.record?.ttlAtSec).toBe(
      Math.ceil((START_MS + 2 * LEASE_MS + POLICY.marginMs(2 * LEASE_MS) + POLICY.retentionMs) / SECOND_MS),
    );
  });

  it("of one reader or permit leaves the floor where it was", () => {
    for (const options of [READER, permits(1)]) {
      const key = held(options).at(5);
      transfer(key, "B");
      expect(key.record).toMatchObject({ fenceFloor: START_MS, fencingToken: START_MS + 5 });
    }
  });

  it("sent again is the same lease while that lives, and tells nobody else of it", () => {
    const key = held();
    transfer(key, "B");
    const { record } = key;
    const again = transfer(key.at(LEASE_MS - 1), "B");
    expect(again).toMatchObject({ ok: true, how: "replayed", lease: { leaseId: ID("B"), fencingToken: START_MS + 1 } });
    expect(key.decision).toMatchObject({
      events: [{ event: "transferred", leaseId: ID("B"), owner: "", principal: "P", fencingToken: START_MS + 1, repeated: true }],
    });
    expect(key.decision).not.toHaveProperty("next");
    expect(transfer(key, "C")).toMatchObject({ code: "lease-lost", reason: "transferred" });
    expect(transfer(key.copy().at(LEASE_MS), "B")).toMatchObject({ code: "lease-lost", reason: "transferred" });
    // Once the new lease has a principal, only that one may repeat the transfer.
    expect(key.record).toBe(record);
    renew(key, "B", { principal: "Q" });
    expect(transfer(key, "B")).toMatchObject({ code: "forbidden" });
    expect(key.decision?.events).toEqual([]);
    expect(transfer(key, "B", { principal: "Q" })).toMatchObject({ how: "replayed" });
  });

  it("is no repeat of one if the lease ended otherwise", () => {
    const key = new QueueKey();
    key.acquire("A", READER);
    key.acquire("B", READER);
    key.release("A");
    expect(transfer(key, "B")).toMatchObject({ code: "lease-lost", reason: "released" });
  });

  it.each([
    ["holds", (key: QueueKey) => key.acquire("B", READER), "lease-reused"],
    ["waits", (key: QueueKey) => key.ask("B"), "lease-reused"],
    ["ended", (key: QueueKey) => key.release("B"), "lease-over"],
  ])("to an id that %s is refused", (_, prepare, code) => {
    const key = held(READER);
    prepare(key);
    const { record } = key;
    expect(transfer(key, "B")).toMatchObject({ code });
    expect(key.record).toBe(record);
  });

  it("to an id whose time is out of bounds is refused with the service's time", () => {
    const late = { toLeaseId: leaseId(2, 10_001) };
    expect(transfer(held(), "B", late)).toMatchObject({ code: "lease-id-time", serverTimeMs: START_MS });
  });
});

describe("a change of mode", () => {
  it("sent again is not logged again, since the lease is as it was", () => {
    const key = held(READER);
    key.change("A", "exclusive");
    expect(key.events).toBe("A changed");
    expect(key.change("A", "exclusive")).toMatchObject({ how: "replayed" });
    expect(key.decision?.events).toEqual([]);
  });
});

describe("a lease that was transferred", () => {
  /** A key whose lease A was transferred to B. */
  const handed = (): QueueKey => {
    const key = held({ requestHash: "of A" });
    transfer(key, "B");
    return key;
  };
  const as = (key: QueueKey, principal: string) => key.by(principal, "B");

  it("belongs to the first principal that renews it", () => {
    const key = handed();
    expect(outcomeOf(renew(key, "B", { principal: "Q" }))).toBe("renewed");
    expect([as(key, "Q").renew(), as(key, "P").renew()]).toMatchObject([{ how: "renewed" }, { code: "forbidden" }]);
  });

  it("belongs to the first principal that acquires it, with whatever parameters", () => {
    const key = handed();
    const { version = 0 } = key.record ?? {};
    expect(key.acquire("B", { principal: "Q", requestHash: "of B" })).toMatchObject({ how: "replayed", lease: { version: version + 1 } });
    expect(key.record).toMatchObject({ version: version + 1, holds: { [ID("B")]: { principal: "Q", leaseMs: LEASE_MS } } });
    expect(key.acquire("B", { principal: "P", requestHash: "of B" })).toMatchObject({ code: "forbidden" });
  });

  it("is shown to, released by and transferred by anybody until then", () => {
    expect(as(handed(), "Q").check()).toMatchObject({ how: "checked" });
    expect(as(handed(), "Q").release()).toMatchObject({ state: "released" });
    const again = { type: "transfer", key: "k", leaseId: ID("B"), principal: "Q", toLeaseId: ID("C") } as const;
    expect(handed().send(again)).toMatchObject({ how: "transferred" });
  });
});

describe("a broken lease", () => {
  it.each([
    ["drains", undefined, LEASE_MS, "expired"],
    ["drains for longer than it lasts", 2 * LEASE_MS, LEASE_MS, "expired"],
    ["drains for exactly as long as it lasts", LEASE_MS, LEASE_MS, "expired"],
    ["is cut short", 3_000, 3_000, "broken"],
  ])("that %s is held until then, and over for its reason afterwards", (_, drainMs, endsInMs, reason) => {
    const key = held();
    const marginMs = drainMs === 3_000 ? 0 : MARGIN_MS;
    expect(key.break("A", drainMs)).toEqual({ ok: true, breakInMs: endsInMs + marginMs });
    expect(holdOf(key, "A")).toMatchObject({ expiresAtMs: START_MS + endsInMs, marginMs, broken: marginMs === 0 ? "forced" : "drain" });
    expect(key.at(endsInMs - 1).check("A")).toMatchObject({ how: "checked", lease: { remainingMs: 1 } });
    expect(key.at(endsInMs).check("A")).toMatchObject({ code: "lease-lost", reason });
    expect(key.copy().release("A")).toMatchObject({ state: reason === "broken" ? "lost" : "expired" });
    if (marginMs > 0) expect(key.at(endsInMs + marginMs - 1).acquire("B")).toMatchObject({ code: "locked" });
    expect(key.at(endsInMs + marginMs).acquire("B")).toMatchObject({ how: "granted" });
    expect(key.record?.tombstones).toEqual([{ leaseId: ID("A"), ending: "broken", fencingToken: START_MS }]);
  });

  it("is broken again by the same token without an effect, and by force if that ends it earlier", () => {
    const key = held();
    key.break("A");
    const { record } = key;
    expect(key.break("A")).toMatchObject({ breakInMs: LEASE_MS + MARGIN_MS });
    expect(key.record).toBe(record);
    expect(key.decision?.events).toMatchObject([{ event: "breaking", leaseId: ID("A"), fencingToken: START_MS, repeated: true }]);
    expect(key.break("A", 2_000)).toMatchObject({ breakInMs: 2_000 });
    expect(key.break("A", 1_000)).toMatchObject({ breakInMs: 1_000 });
    expect(key.break("A")).toMatchObject({ breakInMs: 1_000 });
    expect(holdOf(key, "A")?.broken).toBe("forced");
    expect(key.decision?.events).toMatchObject([{ repeated: true }]);
    // By the later clock: no margin is left that an error of it could use up.
    expect(key.copy().at(998, 1).break("A")).toMatchObject({ breakInMs: 2 });
    expect(key.at(999, 1).break("A")).toMatchObject({ breakInMs: 0 });
    expect(key.all).toBe("");
  });

  it("ends with its release, and the break may be repeated: the key remembers its token, and that of no other lease", () => {
    const key = held();
    const breaks = () => key.send({ type: "break", key: "k", fencingToken: START_MS });
    breaks();
    expect(key.release("A")).toMatchObject({ state: "released" });
    expect(key.record?.tombstones).toEqual([{ leaseId: ID("A"), ending: "released", fencingToken: START_MS }]);
    expect(breaks()).toEqual({ ok: true, breakInMs: 0 });
    key.acquire("B");
    key.release("B");
    expect(key.record?.tombstones[0]).toEqual({ leaseId: ID("B"), ending: "released" });
  });

  it("ends with all holds of its scope, and the answer has the longest of their times", () => {
    const key = held({ ...IN_S, leaseMs: 2 * LEASE_MS });
    key.acquire("B", IN_S);
    expect(key.copy().break("A")).toEqual({ ok: true, breakInMs: 2 * LEASE_MS + POLICY.marginMs(2 * LEASE_MS) });
    key.break("A", 0);
    expect(key.all).toBe("");
    expect(key.events).toBe("A broken, B broken");
    expect(key.record?.tombstones).toEqual([
      { leaseId: ID("B"), ending: "broken", fencingToken: START_MS },
      { leaseId: ID("A"), ending: "broken", fencingToken: START_MS },
    ]);
  });

  it("was broken before: the request is answered and logged again, with the key in use or not", () => {
    const key = held();
    const { record } = key;
    key.break("A", 0);
    const again = { type: "break", key: "k", fencingToken: START_MS } as const;
    expect(key.send(again)).toEqual({ ok: true, breakInMs: 0 });
    expect(key.decision?.events).toEqual([
      { event: "ended", leaseId: ID("A"), owner: "", principal: "", fencingToken: START_MS, reason: "broken", repeated: true },
    ]);
    key.acquire("B");
    expect(key.send(again)).toEqual({ ok: true, breakInMs: 0 });
    expect(key.all).toBe("Bx");
    // Control: a token of a lease that ended otherwise is another's.
    key.record = record;
    key.release("A");
    key.at(1).acquire("B");
    expect(key.send(again)).toMatchObject({ code: "other-hold" });
  });

  it("is not found where nobody holds, unless a later token was granted", () => {
    const key = held();
    key.release("A");
    const token = (fencingToken: number) => key.send({ type: "break", key: "k", fencingToken });
    expect([token(START_MS - 1), token(START_MS), token(START_MS + 1)]).toMatchObject([
      { code: "other-hold" },
      { code: "not-found", detail: "Nobody holds k" },
      { code: "not-found" },
    ]);
  });

  it("offers the key to the first in the queue", () => {
    const key = held();
    key.ask("B");
    key.break("A", 0);
    expect([key.all, key.events]).toEqual(["Bx?", "A broken, B offered"]);
  });
});
