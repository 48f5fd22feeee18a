/** The answers to waiters, the interval at which they must poll, and the lease they get when they reach the head of the queue. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { leaseId, LEASE_MS, MARGIN_MS, POLICY, START_MS } from "../store/fixture.js";
import { ID, permits, READER } from "./kinds-key.js";
import { turnMs } from "../store/queue-fixture.js";
import { QueueKey, queueOf } from "./queue-key.js";

const { offerWindowMs: WINDOW_MS, waiterTtlMs: TTL_MS, waiterTtlStepMs: STEP_MS } = DEFAULTS;
const { pollMaxMs: VISIT_MS, keepAliveAfterMs: REPORT_MS } = LIMITS;

describe("who waits is told", () => {
  it("its position, whose turn it is counted in", () => {
    const key = queueOf("BCD");
    expect(Array.from("BCD").map((letter) => key.look(letter).position)).toEqual([1, 2, 3]);
    key.release("A");
    expect(Array.from("BCD").map((letter) => key.look(letter).position)).toEqual([1, 2, 3]);
    key.ask("B");
    expect(Array.from("CD").map((letter) => key.look(letter).position)).toEqual([1, 2]);
    const readers = queueOf("");
    for (const letter of "BCD") readers.ask(letter, READER);
    readers.change("A", "shared");
    expect(Array.from("BCD").map((letter) => readers.look(letter).position)).toEqual([1, 2, 3]);
  });

  it("to come the sooner the nearer it is, and never later than that", () => {
    const key = queueOf("BCDEFGHIJKLMNOPQRSTUVWXYZ");
    const told = Array.from("BCDEFGHIJKLMNOPQRSTUVWXYZ").map((letter) => key.look(letter));
    expect(told.map(({ retryAfterMs }) => retryAfterMs)).toEqual(told.map((_, place) => turnMs(place + 1, undefined, 1)));
    expect(new Set(told.map(({ pollWithinMs }) => pollWithinMs))).toEqual(new Set([VISIT_MS]));
  });

  it("to come when the lease at the front is likely to end, soon again while it goes on, and after half of it by a clock that is behind", () => {
    const key = queueOf("BC");
    const wholeMs = LIMITS.unknownHeldMs + LIMITS.handOverMs;
    const told = (ms: number) => Array.from("BC").map((letter) => key.at(ms).look(letter).retryAfterMs);
    expect(told(wholeMs / 2 - 0.5)).toEqual([turnMs(1), turnMs(2)]);
    expect(told(wholeMs)).toEqual([1, turnMs(2, undefined, 0)]);
    expect(told(10 * wholeMs)).toEqual([turnMs(1, undefined, 0.25), turnMs(2, undefined, 0.25)]);
    expect(told(-1)).toEqual([turnMs(1), turnMs(2)]);
  });

  it("to come after a few ms again, and those behind soon after who is next, however long the leases before were", () => {
    const key = queueOf("BCD").at(1000);
    key.release("A");
    key.acquire("B");
    key.at(6000);
    const { handOverMs } = LIMITS;
    expect(Array.from("CD").map((letter) => key.look(letter).retryAfterMs)).toEqual([4 * handOverMs, 7 * handOverMs]);
  });

  it("to ask at once when it is its turn, and nothing of a lease", () => {
    const key = queueOf("B");
    key.release("A");
    expect(key.check("B")).toEqual({ ok: true, state: "waiting", position: 1, retryAfterMs: 0, pollWithinMs: VISIT_MS });
  });

  it("to ask at once when there is something to write, by a look that writes nothing", () => {
    const takeableMs = 1000 + POLICY.marginMs(1000);
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 1000 });
    key.ask("B");
    key.ask("C");
    const { record } = key;
    expect(key.at(takeableMs - 1, 4_000).look("C").retryAfterMs).toBeGreaterThan(0);
    expect(key.at(takeableMs).look("C").retryAfterMs).toBe(0);
    expect(key.record).toBe(record);
  });

  it("to come back in time to say that it is still there, while an offer stands unclaimed", () => {
    const key = queueOf("BC").at(1000);
    key.release("A");
    expect(key.at(1500).look("C")).toMatchObject({ retryAfterMs: turnMs(1, 1000), pollWithinMs: REPORT_MS - 500 });
    expect(key.at(999 + REPORT_MS).look("C")).toMatchObject({ retryAfterMs: 1, pollWithinMs: 1 });
    expect(key.at(1000 + REPORT_MS).look("C")).toMatchObject({ retryAfterMs: 0 });
    expect(key.ask("C")).toMatchObject({ retryAfterMs: turnMs(1, 1000), pollWithinMs: VISIT_MS });
    expect(key.look("C")).toMatchObject({ retryAfterMs: turnMs(1, 1000), pollWithinMs: VISIT_MS });
  });

  it("by the later clock, which comes first", () => {
    const key = queueOf("BC").at(1000);
    key.release("A");
    expect(key.at(1000, REPORT_MS).look("C").retryAfterMs).toBe(0);
    expect(key.at(1000, REPORT_MS - 1).look("C").retryAfterMs).toBe(1);
  });
});

describe("who waits is heard of", () => {
  it("by no write for half of its time, then by one that leaves the version alone", () => {
    const key = queueOf("BC");
    const { record } = key;
    const ttlMs = TTL_MS;
    expect(key.at(ttlMs / 2 - 1).ask("C")).toMatchObject({ state: "waiting", position: 2 });
    expect(key.record).toBe(record);
    expect(key.look("C").retryAfterMs).toBeGreaterThan(0);
    expect(key.at(ttlMs / 2).look("C").retryAfterMs).toBe(0);
    expect(key.ask("C")).toMatchObject({ state: "waiting", position: 2 });
    expect(key.decision).toMatchObject({ touch: { index: 1 }, events: [] });
    expect(key.decision).not.toHaveProperty("next");
    expect(key.record?.version).toBe(record?.version);
    expect(key.waiter("C")).toMatchObject({ ttlMs: TTL_MS + STEP_MS, aliveUntilMs: START_MS + ttlMs / 2 + TTL_MS + STEP_MS });
    expect(key.waiter("B")).toBe(record?.waiters[0]);
  });

  it("for longer, the farther back it stands", () => {
    const key = queueOf("BCDE").at(TTL_MS);
    for (const letter of "BCDE") key.ask(letter);
    expect(Array.from("BCDE").map((letter) => key.waiter(letter).ttlMs)).toEqual([0, 1, 2, 3].map((place) => TTL_MS + place * STEP_MS));
  });

  it("once more when an offer stands for long, and not again for the same", () => {
    const key = queueOf("BC").at(1000);
    key.release("A");
    key.at(999 + REPORT_MS).ask("C");
    expect(key.decision).not.toHaveProperty("touch");
    key.at(1000 + REPORT_MS).ask("C");
    expect(key.decision).toHaveProperty("touch");
    key.at(999 + WINDOW_MS).ask("C");
    expect(key.decision).not.toHaveProperty("touch");
  });

  it("by no write for an offer that was made when it was seen", () => {
    const key = queueOf("BC").at(TTL_MS / 2);
    key.ask("C");
    key.release("A");
    expect(key.at(TTL_MS / 2 + REPORT_MS).look("C")).toMatchObject({ retryAfterMs: turnMs(1, TTL_MS / 2), pollWithinMs: VISIT_MS });
  });

  it("by the earlier clock when it is over, the later when it was", () => {
    const key = queueOf("BC").at(TTL_MS - 1, 9_000);
    key.release("A");
    expect(key.all).toBe("Bx? Cx…");
    const other = queueOf("BC").at(TTL_MS);
    other.release("A");
    expect(other.all).toBe("");
  });

  it("with every move that its own asking makes", () => {
    const key = queueOf("BCD").at(1000);
    key.release("A");
    key.at(1000 + REPORT_MS).ask("C");
    key.at(1000 + WINDOW_MS).ask("D");
    expect(key.all).toBe("Cx? Dx…");
    expect(key.waiter("D").aliveUntilMs).toBe(START_MS + 1000 + WINDOW_MS + TTL_MS + STEP_MS);
  });

  it("until later than before, though it came forward", () => {
    const key = queueOf("BCDEFGHIJK").at(1000);
    key.at(TTL_MS / 2).ask("K");
    const { aliveUntilMs } = key.waiter("K");
    for (const letter of "DEFGHIJA") key.release(letter);
    key.at(TTL_MS / 2 + REPORT_MS).ask("C");
    key.at(TTL_MS / 2 + WINDOW_MS).ask("K");
    expect([key.all, key.waiter("K").aliveUntilMs]).toEqual(["Cx? Kx…", aliveUntilMs + 1]);
  });
});

describe("who was not seen in time", () => {
  /** A key that A holds and B, C, D wait for, of whom only B was seen lately. */
  const ghosts = (): QueueKey => {
    const key = queueOf("BCD");
    key.at(8_000).ask("B");
    return key.at(TTL_MS + 3 * STEP_MS);
  };

  it("loses its place to whoever comes, although the first is alive and the caller doesn't wait", () => {
    const waits = ghosts();
    expect(waits.ask("E")).toMatchObject({ state: "waiting", position: 2 });
    expect([waits.all, waits.events]).toEqual(["Ax Bx… Ex…", "C skipped, D skipped, E queued"]);
    const leaves = ghosts();
    expect(leaves.acquire("E")).toMatchObject({ code: "locked" });
    expect([leaves.all, leaves.events]).toEqual(["Ax Bx…", "C skipped, D skipped"]);
  });

  it("keeps it past a poll of the first, and past a level that joins a scope", () => {
    const polled = ghosts();
    expect(polled.ask("B")).toMatchObject({ state: "waiting", position: 1 });
    expect(polled.all).toBe("Ax Bx… Cx… Dx…");
    const joined = new QueueKey();
    joined.acquire("A", { scope: "scope S", leaseMs: 100 * LEASE_MS });
    joined.ask("B");
    expect(joined.at(TTL_MS).acquire("C", { scope: "scope S" })).toMatchObject({ how: "granted" });
    expect(joined.all).toBe("Ax=Cx Bx…");
  });

  it("loses it to a release, wherever it stands, and to the poll of any other once the key is free", () => {
    const key = queueOf("BCD");
    key.at(8_000).ask("C");
    key.at(TTL_MS + 3 * STEP_MS).release("A");
    expect([key.all, key.events]).toEqual(["Cx?", "A released, B skipped, D skipped, C offered"]);
    const free = new QueueKey();
    free.acquire("A");
    for (const letter of "BCD") free.ask(letter);
    for (const letter of "CD") free.at(8_000).ask(letter);
    // C is the first that lives. D, behind it, skips only those whom it would offer the key.
    expect(free.at(TTL_MS).ask("D")).toMatchObject({ state: "waiting", position: 2 });
    expect([free.all, free.events]).toEqual(["Cx? Dx…", "A taken, B skipped, C offered"]);
  });

  it("is told to ask at once by a look, even where nobody else lives", () => {
    expect(queueOf("B").at(TTL_MS).look("B")).toMatchObject({ position: 1, retryAfterMs: 0 });
  });

  it("loses an offer that lapsed, to a caller that is refused for its limit", () => {
    const key = new QueueKey();
    key.acquire("A", { ...permits(1), leaseMs: 100 * LEASE_MS });
    key.acquire("F", permits(2));
    key.ask("B", permits(2));
    key.ask("C", permits(1));
    key.release("F");
    key.at(LIMITS.keepAliveAfterMs).ask("C", permits(1));
    key.release("C");
    expect(key.at(LIMITS.keepAliveAfterMs + WINDOW_MS).acquire("E")).toMatchObject({ code: "limit-mismatch" });
    expect([key.all, key.events]).toEqual(["A1/3", "B skipped"]);
  });

  /** Regression: dead waiters were never removed, or kept the key for a window each, although nobody held it. */
  it("keeps the key from a caller that only tries for two windows after the lease, however many there are", () => {
    const crowd = Array.from({ length: LIMITS.waitersMax }, (_, order) => String.fromCharCode(66 + order));
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 10 * LEASE_MS });
    for (const ms of [0, 8000]) for (const letter of crowd) key.at(ms).ask(letter);
    const overMs = 10 * LEASE_MS + MARGIN_MS * 10;
    let freeMs: number | undefined;
    for (let ms = 8000; freeMs === undefined && ms < 10 * overMs; ms += 500) {
      const answer = key.at(ms).acquire("late");
      if (answer.ok) freeMs = ms;
    }
    expect(freeMs).toBeDefined();
    expect((freeMs ?? 0) - overMs).toBeLessThanOrEqual(2 * WINDOW_MS);
  });

  it("does not make a living waiter's poll write while others stand between: the first living one writes", () => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 10 * LEASE_MS });
    for (const letter of "BCD") key.ask(letter);
    key.at(9000).ask("C");
    key.at(9000).ask("D");
    key.at(TTL_MS + 100);
    expect(key.look("D").retryAfterMs).toBeGreaterThan(0);
    expect(key.look("C").retryAfterMs).toBe(0);
    key.ask("C");
    expect(key.all).toBe("Ax Cx… Dx…");
  });
});

describe("a reader that waits to become the writer", () => {
  it("still waits after an offer beside it was claimed, and no longer once it is gone", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.ask("B", READER);
    key.change("A", "shared");
    expect(key.change("A", "exclusive")).toMatchObject({ code: "locked" });
    expect(key.ask("B", READER)).toMatchObject({ how: "granted" });
    expect(key.record?.upgrading?.leaseId).toBe(ID("A"));
    expect(key.acquire("C", READER)).toMatchObject({ code: "locked" });
    key.at(LEASE_MS + MARGIN_MS).acquire("D");
    expect(key.all).toBe("Dx");
    expect(key.record).not.toHaveProperty("upgrading");
  });
});

describe("whose turn it is", () => {
  it("has its window from the later clock on, and until the earlier one has passed it", () => {
    const key = queueOf("BC").at(1000, 9_000);
    key.release("A");
    expect(key.record?.offers).toMatchObject([{ leaseId: ID("B"), offeredAtMs: START_MS + 10_000 }]);
    expect(key.at(10_000 + WINDOW_MS - 1, 9_000).ask("C")).toMatchObject({ state: "waiting", position: 2 });
    expect(key.at(10_000 + WINDOW_MS).ask("C")).toMatchObject({ how: "granted" });
  });
});

describe("whose turn it was holds", () => {
  it("from its own claim, with a token of then and the whole of its lease", () => {
    const key = queueOf("B").at(1000);
    const before = key.tokenOf("A");
    key.release("A");
    expect(key.record).toMatchObject({ fencingToken: before, holds: {} });
    const answer = key.at(3000).ask("B");
    expect(answer).toMatchObject({ how: "granted", lease: { fencingToken: START_MS + 3000, leaseMs: LEASE_MS, remainingMs: LEASE_MS } });
    expect(key.record).toMatchObject({ fenceFloor: START_MS + 3000, offers: [] });
  });

  it("though its id is below the floor by then, and made long ago", () => {
    const key = queueOf("B");
    for (let order = 1000; order < 1012; order++) key.send({ type: "release", key: "k", leaseId: leaseId(order), principal: "P" });
    expect((key.record?.lowWatermark ?? "") > ID("B")).toBe(true);
    const takeableMs = 100 * LEASE_MS + MARGIN_MS * 100;
    for (let ms = 0; ms < LIMITS.leaseIdBehindMs; ms += VISIT_MS) expect(key.at(ms).ask("B")).toMatchObject({ state: "waiting" });
    expect(takeableMs).toBeGreaterThan(LIMITS.leaseIdBehindMs);
    expect(key.at(takeableMs).ask("B")).toMatchObject({ how: "granted" });
  });

  it("with every one of its permits, beside others of the same batch, each with a token of its own", () => {
    const key = new QueueKey();
    key.acquire("A", permits(3));
    key.ask("B", permits(1));
    key.ask("C", permits(2));
    key.release("A");
    key.ask("C", permits(2));
    key.ask("B", permits(1));
    expect(key.all).toBe("B1/3 C2/3");
    expect(key.tokenOf("B")).toBeGreaterThan(key.tokenOf("C"));
  });

  it("whose offers are in the record by their times and ids, as the table has them", () => {
    const key = queueOf("");
    key.ask("B", READER);
    key.ask("C", { ...READER, priority: 1 });
    key.change("A", "shared");
    expect(key.all).toBe("As Bs? Cs?");
    expect(key.events).toBe("A changed, C offered, B offered");
  });

  it("as many readers at once as a key has leases, and not one more", () => {
    const key = queueOf("");
    for (let order = 2; order <= 1 + LIMITS.waitersMax; order++) key.ask(String.fromCharCode(64 + order), READER);
    key.change("A", "shared");
    expect(key.record?.offers).toHaveLength(LIMITS.waitersMax);
    for (let order = 2 + LIMITS.waitersMax; order <= LIMITS.leasesMax + 10; order++) key.ask(String.fromCharCode(64 + order), READER);
    const { holds = {}, offers = [], waiters = [] } = key.record ?? {};
    expect([Object.keys(holds).length + offers.length, waiters.length]).toEqual([LIMITS.leasesMax, 10]);
  });

  it("once an asking reader is the only one left: a turn that nobody came for keeps it no longer", () => {
    const key = queueOf("");
    key.ask("B", READER);
    key.change("A", "shared");
    expect(key.change("A", "exclusive")).toMatchObject({ code: "locked" });
    expect(key.at(WINDOW_MS).change("A", "exclusive")).toMatchObject({ how: "changed" });
    expect(key.all).toBe("Ax");
    expect(key.ask("B", READER)).toMatchObject({ state: "waiting" });
  });
});
