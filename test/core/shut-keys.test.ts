/**
 * Keys that were unavailable although no lease held them. Regressions: dead waiters that were never removed, and
 * releases by a function whose clock was days off. Each bug was in the pure core; the stores follow it.
 */
import { describe, expect, it } from "vitest";
import { inspection } from "../../lib/core/lock/views.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { LEASE_MS, leaseId, MARGIN_MS, START_MS } from "../store/fixture.js";
import { QueueScene } from "../store/queue-fixture.js";
import { SetScene, setOutcome } from "../store/sets-fixture.js";
import { QueueKey } from "./queue-key.js";
import { ID } from "./kinds-key.js";
import { BACKENDS } from "../store/backends.js";

const DAY_MS = 86_400_000;
/** The letters of a hundred waiters, after A's. */
const CROWD = Array.from({ length: LIMITS.waitersMax }, (_, index) => String.fromCharCode(66 + index));
/** One more letter. */
const LATE = String.fromCharCode(66 + 120);
/** The time at which the last of them is dead, which grows with its place. */
const ALL_DEAD_MS = DEFAULTS.waiterTtlMs + DEFAULTS.waiterTtlStepMs * LIMITS.waitersMax + 1;

/** A key that A holds and a hundred wait for, each last seen in its place. */
function crowded(): QueueKey {
  const key = new QueueKey();
  key.acquire("A", { leaseMs: 10 * LEASE_MS });
  for (const letter of CROWD) key.ask(letter);
  for (const letter of CROWD) key.at(8000).ask(letter);
  return key;
}

describe("a queue of dead waiters", () => {
  it("is gone when somebody comes, while the key is still held", () => {
    const key = crowded();
    expect(key.ask(LATE)).toMatchObject({ code: "queue-full" });
    for (let ms = 8000; ms < 8000 + ALL_DEAD_MS; ms += LEASE_MS) key.at(ms).renew("A", 10 * LEASE_MS);
    expect(key.at(8000 + ALL_DEAD_MS).ask(LATE)).toMatchObject({ state: "waiting", position: 1 });
  });

  it("is gone with the holder's next heartbeat once the first of it is dead, and its writes are small again", () => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 10 * LEASE_MS });
    for (const letter of "BCD") key.ask(letter);
    key.at(DEFAULTS.waiterTtlMs - 1).renew("A", 10 * LEASE_MS);
    expect(key.record?.waiters).toHaveLength(3);
    key.at(DEFAULTS.waiterTtlMs).renew("A", 10 * LEASE_MS);
    expect(key.record?.waiters).toHaveLength(0);
  });

  it("lets who waits behind a dead first one in, when a reader's heartbeat finds it dead", () => {
    const key = new QueueKey();
    key.acquire("A", { mode: "shared", leaseMs: 10 * LEASE_MS });
    key.ask("B");
    key.at(8000).ask("C", { mode: "shared" });
    key.at(DEFAULTS.waiterTtlMs).renew("A", 10 * LEASE_MS);
    expect(key.all).toBe("As Cs?");
  });

  it("is not shown to who inspects the key", () => {
    const key = crowded();
    key.at(8000 + ALL_DEAD_MS);
    expect(inspection("k", key.record, key.reading).waiters).toEqual([]);
    expect(key.record?.waiters).toHaveLength(LIMITS.waitersMax);
  });

  it("keeps the key from a caller that only tries for two windows after the lease, however many there are", () => {
    const key = crowded();
    const overMs = 10 * LEASE_MS + MARGIN_MS * 10;
    let freeMs: number | undefined;
    for (let ms = 8000; freeMs === undefined && ms < 10 * overMs; ms += 500) {
      const answer = key.at(ms).acquire(LATE);
      if (answer.ok) freeMs = ms;
    }
    expect(freeMs).toBeDefined();
    expect((freeMs ?? 0) - overMs).toBeLessThanOrEqual(2 * DEFAULTS.offerWindowMs);
  });

  it("does not make a living waiter's poll write while others stand between: the first living one writes", () => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 10 * LEASE_MS });
    for (const letter of "BCD") key.ask(letter);
    key.at(9000).ask("C");
    key.at(9000).ask("D");
    key.at(DEFAULTS.waiterTtlMs + 100);
    expect(key.look("D").retryAfterMs).toBeGreaterThan(0);
    expect(key.look("C").retryAfterMs).toBe(0);
    key.ask("C");
    expect(key.all).toBe("Ax Cx… Dx…");
  });
});

describe("a release that a function handles whose clock is days off", () => {
  it.each([
    ["ahead", 100, 3 * DAY_MS],
    ["behind", 100 - 3 * DAY_MS, 3 * DAY_MS],
  ])("%s: hands nothing on, and the next waiter is granted at its next poll", (_where, atMs, aheadMs) => {
    const key = new QueueKey();
    key.acquire("A");
    key.at(50).ask("B");
    key.at(atMs, aheadMs).release("A");
    expect(key.all).toBe("Bx…");
    expect(key.at(200).ask("B")).toMatchObject({ how: "granted" });
  });

  it("leaves no time of its own on the record", () => {
    const key = new QueueKey();
    key.acquire("A");
    const ttlAtSec = key.record?.ttlAtSec ?? 0;
    key.at(100, 3 * DAY_MS).release("A");
    expect(key.record?.ttlAtSec).toBe(ttlAtSec);
    const fresh = new QueueKey();
    fresh.at(100, 3 * DAY_MS).release("A");
    expect(fresh.record?.version).toBeLessThan(START_MS + DAY_MS);
    expect(fresh.record?.ttlAtSec).toBeLessThan((START_MS + 2 * DAY_MS) / 1000);
    fresh.at(100 - 3 * DAY_MS, 3 * DAY_MS).release("B");
    expect(fresh.record?.ttlAtSec).toBeGreaterThan((START_MS + DAY_MS / 2) / 1000);
  });

  it.each([
    ["that ran out by the later clock alone", { atMs: 2 * LEASE_MS - 3 * DAY_MS, leaseMs: LEASE_MS, says: "unknown" }],
    ["that lives by both", { atMs: -3 * DAY_MS, leaseMs: 2 * LEASE_MS, says: "released" }],
    ["that ran out by both", { atMs: 2 * LEASE_MS, leaseMs: LEASE_MS, says: "expired" }],
  ])("says of a hold %s what is true by both, and so does its repeat", (_which, { atMs, says, leaseMs }) => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs });
    expect(key.at(atMs, 3 * DAY_MS).release("A")).toMatchObject({ state: says });
    expect(key.at(3 * LEASE_MS).release("A")).toMatchObject({ state: says });
  });

  it("says `unknown` of an id that may have held and been collected, and keeps its late duplicate out", () => {
    const key = new QueueKey();
    key.at(-3 * DAY_MS + 20 * 60_000, 3 * DAY_MS);
    expect(key.release("A")).toMatchObject({ state: "unknown" });
    expect(key.at(0).acquire("A")).toMatchObject({ code: "lease-over" });
    expect(key.release("A")).toMatchObject({ state: "unknown" });
  });
});

describe("ids that are cancelled by callers that hold nothing", () => {
  it.each([
    ["right", 0, 0],
    ["days ahead", 0, 3 * DAY_MS],
    ["days behind", -3 * DAY_MS, 3 * DAY_MS],
  ])("leave every key open to one id that fits a fresh key too, handled by a clock that is %s", (_where, atMs, aheadMs) => {
    const key = new QueueKey();
    const cancel = (id: string) => key.at(atMs, aheadMs).send({ type: "release", key: "k", leaseId: id, principal: "P" });
    for (const ms of [38 * 60_000, 11_000, 10_000, 9_500, 9_000, 100, 3 * DAY_MS])
      for (let order = 1; order <= 20; order++) cancel(leaseId(order, ms));
    key.at(0);
    const next = leaseId(99, LIMITS.leaseIdAheadMs);
    const acquire = (record: QueueKey) =>
      record.send({
        type: "acquire",
        key: "k",
        leaseId: next,
        principal: "P",
        owner: "",
        leaseMs: LEASE_MS,
        mode: "exclusive",
        limit: 1,
        permits: 1,
        priority: 0,
        requestHash: "",
      });
    expect(acquire(key)).toMatchObject({ how: "granted" });
    expect(acquire(new QueueKey())).toMatchObject({ how: "granted" });
  });

  it("handled days ahead leave no floor behind, after eight holds either", () => {
    const key = new QueueKey();
    for (let order = 1; order <= 20; order++)
      key.at(0, 3 * DAY_MS).send({ type: "release", key: "k", leaseId: leaseId(order, 3 * DAY_MS), principal: "P" });
    for (const [index, letter] of Array.from("ABCDEFGHIJ").entries()) {
      expect(key.at(index + 1).acquire(letter)).toMatchObject({ how: "granted" });
      key.release(letter);
    }
    expect(key.at(100).acquire("K")).toMatchObject({ how: "granted" });
    expect(key.record?.lowWatermark).toBe(ID("F"));
  });
});

describe("the floor that readers' resources compare", () => {
  it("is above a dead writer's token, so that its late write is refused", () => {
    const key = new QueueKey();
    key.acquire("A");
    const token = key.tokenOf("A");
    key.at(LEASE_MS + MARGIN_MS).acquire("B", { mode: "shared" });
    key.acquire("C", { mode: "shared" });
    expect(key.lease("B").fenceFloor).toBeGreaterThan(token);
    expect(key.lease("C").fenceFloor).toBe(key.lease("B").fenceFloor);
  });
});

describe.each(BACKENDS)("a set with a key whose holder and waiters died together, in %s", (_name, processes) => {
  it("is granted to a caller that only tries, two windows after the lease at the latest", { timeout: 120_000 }, async () => {
    const [store] = await processes();
    const sets = new SetScene(store);
    const key = new QueueScene(store, sets.key("a").address);
    await key.acquire(leaseId(1), { leaseMs: LEASE_MS });
    const dead = Array.from({ length: 20 }, (_, index) => leaseId(index + 2));
    for (const id of dead) await key.queue(id);
    for (const id of dead) await key.at(8000).queue(id);
    const overMs = LEASE_MS + MARGIN_MS;
    let grantedMs: number | undefined;
    for (let ms = overMs; grantedMs === undefined && ms < 4 * overMs; ms += 1000) {
      const outcome = setOutcome(["a", "b"], await sets.at(ms).acquire(leaseId(99, ms), ["a", "b"]));
      if (outcome === "granted") grantedMs = ms;
    }
    expect((grantedMs ?? Infinity) - overMs).toBeLessThanOrEqual(2 * DEFAULTS.offerWindowMs);
  });
});
