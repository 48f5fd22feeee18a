/** A queue is bounded in waiters and in bytes, because the cost of every write of the key depends on its size. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { isOverfull, placesFor } from "../../lib/core/lock/places.js";
import { bytesOf, isLong, SHORT_OWNER_BYTES } from "../../lib/core/record-bytes.js";
import type { Acquire } from "../../lib/core/commands.js";
import { leaseIdTimeMs } from "../../lib/core/lease-id.js";
import { LEASE_MS, leaseId } from "../store/fixture.js";
import { QueueKey } from "./queue-key.js";

const nth = (order: number): string => String.fromCharCode(64 + order);

/** A key that A holds for as long as needed, with `count` waiters. */
function queueOf(count: number, owner = ""): QueueKey {
  const key = new QueueKey();
  key.acquire("A", { leaseMs: 100 * LEASE_MS });
  for (let order = 2; order < count + 2; order++) key.ask(nth(order), { owner });
  return key;
}

describe("a full queue", () => {
  it("takes as many as may wait, and refuses the next with the time after which it may have a place", () => {
    const key = queueOf(LIMITS.waitersMax);
    expect(key.record?.waiters).toHaveLength(LIMITS.waitersMax);
    const { record } = key;
    const refused = key.ask(nth(LIMITS.waitersMax + 2));
    expect(refused).toMatchObject({ ok: false, code: "queue-full", retryAfterMs: LIMITS.burstWaitMs });
    expect(key.record).toBe(record);
  });

  it("refuses priority too, and lets those go on who wait", () => {
    const key = queueOf(LIMITS.waitersMax);
    expect(key.ask(nth(200), { priority: 9 })).toMatchObject({ code: "queue-full" });
    expect(key.ask("B")).toMatchObject({ state: "waiting", position: 1 });
    expect(key.ask(nth(LIMITS.waitersMax + 1))).toMatchObject({ state: "waiting", position: LIMITS.waitersMax });
  });

  it("of sleepers has places for those who poll, and one of those who poll for sleepers; control: not for one more of each", () => {
    const key = queueOf(0);
    const sleeps = { sleepMs: 100 * LEASE_MS };
    for (let order = 0; order < LIMITS.membersMax; order++) expect(key.ask(nth(order + 2), sleeps)).toMatchObject({ state: "waiting" });
    expect(key.ask(nth(300), sleeps)).toMatchObject({ code: "queue-full" });
    for (let order = 0; order < LIMITS.waitersMax; order++) expect(key.ask(nth(order + 301))).toMatchObject({ state: "waiting" });
    expect(key.ask(nth(400))).toMatchObject({ code: "queue-full" });
    expect(queueOf(LIMITS.waitersMax).ask(nth(200), sleeps)).toMatchObject({ state: "waiting" });
  });

  it("of sleepers with long names has bytes left for those who poll", () => {
    const key = queueOf(0);
    const sleeps = { sleepMs: 100 * LEASE_MS, owner: "o".repeat(LIMITS.ownerChars) };
    let order = 2;
    while (key.ask(nth(order), sleeps).ok) order++;
    expect(order).toBeLessThan(LIMITS.membersMax);
    for (let polling = 0; polling < 20; polling++) expect(key.ask(nth(200 + polling))).toMatchObject({ state: "waiting" });
  });

  it("has room again when somebody left, was offered the key, or was not heard of", () => {
    const left = queueOf(LIMITS.waitersMax);
    left.release("D");
    expect(left.ask(nth(200))).toMatchObject({ state: "waiting", position: LIMITS.waitersMax });
    const offered = queueOf(LIMITS.waitersMax);
    offered.release("A");
    expect(offered.ask(nth(200))).toMatchObject({ state: "waiting", position: LIMITS.waitersMax + 1 });
    const over = queueOf(LIMITS.waitersMax);
    over.at(DEFAULTS.waiterTtlMs).release("A");
    expect(over.all).toBe("");
  });

  it("tells who doesn't wait that the key is held, as ever", () => {
    expect(queueOf(LIMITS.waitersMax).acquire(nth(200))).toMatchObject({ code: "locked" });
  });

  it("is full before that when its owners have long names", () => {
    const owner = "€".repeat(LIMITS.ownerChars);
    const key = queueOf(LIMITS.waitersMax, owner);
    const { waiters = [] } = key.record ?? {};
    expect(waiters.length).toBeLessThan(LIMITS.waitersMax);
    expect(isOverfull(waiters, {}, LIMITS.waitersMax)).toBe(false);
    expect(isOverfull([...waiters, ...waiters.slice(0, 1)], {}, LIMITS.waitersMax)).toBe(true);
    expect(key.ask(nth(200), { owner })).toMatchObject({ code: "queue-full" });
    expect(key.ask(nth(201))).toMatchObject(
      waiters.length * (96 + bytesOf(owner)) + 113 <= LIMITS.queueBytes ? { state: "waiting" } : { code: "queue-full" },
    );
  });

  it("takes what fits to the last byte", () => {
    const owner = `${"€".repeat(138)}é`;
    expect(LIMITS.queueBytes % (96 + bytesOf(owner))).toBe(0);
    const most = LIMITS.queueBytes / (96 + bytesOf(owner));
    expect(queueOf(most, owner).record?.waiters).toHaveLength(most);
    expect(queueOf(most + 1, owner).record?.waiters).toHaveLength(most);
  });

  it("is never full by size while the names are short", () => {
    const key = queueOf(LIMITS.waitersMax, "x".repeat(SHORT_OWNER_BYTES));
    expect(key.record?.waiters).toHaveLength(LIMITS.waitersMax);
    expect(queueOf(LIMITS.waitersMax, "x".repeat(SHORT_OWNER_BYTES + 1)).record?.waiters).toHaveLength(LIMITS.waitersMax - 1);
  });

  it("may be full by size if one waiter has a longer name, or a short one and more to say", () => {
    const longest = "o".repeat(SHORT_OWNER_BYTES);
    const waiter = { owner: longest, mode: "exclusive", permits: 1, priority: 0 } as const;
    expect([longest, `${longest}o`, longest.replace("o", "é")].map((owner) => isLong({ ...waiter, owner }))).toEqual([false, true, true]);
    const more = [{ mode: "shared" }, { permits: 2 }, { priority: 1 }, { condition: "" }] as const;
    expect(more.map((said) => isLong({ ...waiter, ...said }))).toEqual([true, true, true, true]);
  });
});

describe("the last places of a queue", () => {
  const EACH_MS = 10;
  /** Returns the id of a caller that began to wait after so many others. */
  const cameAfter = (count: number) => leaseId(1, EACH_MS * count);
  /** A queue of callers that came one after the other, and its record. */
  const crowd = (count: number) => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 100 * LEASE_MS });
    for (let order = 1; order <= count; order++) comes(key, order);
    return key;
  };
  const comes = (key: QueueKey, order: number) => key.at(EACH_MS * order).ask("B", { leaseId: cameAfter(order) });
  const places = (count: number, came: number, options: Partial<Acquire> = {}) => {
    const asking = { leaseId: cameAfter(came), priority: 0, ...options } as Acquire;
    return placesFor(crowd(count).record?.waiters ?? [], asking);
  };

  it("are for who is likely to be next: as many as twice the free ones, or as came before the last in the queue", () => {
    expect([25, 39, 42].map((came) => places(24, came))).toEqual([LIMITS.waitersMax, LIMITS.waitersMax, LIMITS.placesForAnyone]);
    expect([32, 34].map((came) => places(31, came))).toEqual([LIMITS.waitersMax, LIMITS.placesForAnyone]);
    expect(places(31, 0)).toBe(LIMITS.waitersMax);
  });

  it("are for whoever comes, where nobody polls: those in the queue sleep, or came by a notify", () => {
    const asking = { leaseId: cameAfter(1000), priority: 0 } as Acquire;
    const { waiters = [] } = crowd(30).record ?? {};
    const asleep = waiters.map((waiter) => ({ ...waiter, asleep: true as const }));
    const woken = waiters.map((waiter) => ({ ...waiter, condition: "c" }));
    expect([[], asleep, woken].map((others) => placesFor(others, asking))).toEqual([32, 32, 32]);
  });

  it("are before the sleepers that came while one waited outside; control: a place that anyone may have is behind them", () => {
    const order = (polling: number): readonly number[] => {
      const key = crowd(polling);
      for (const came of [28, 31, 32, 33]) key.at(EACH_MS * came).ask("B", { leaseId: cameAfter(came), sleepMs: 100 * LEASE_MS });
      expect(comes(key, 30)).toMatchObject({ state: "waiting" });
      const { waiters = [] } = key.record ?? {};
      return waiters.slice(polling).map(({ leaseId: id }) => (leaseIdTimeMs(id) - leaseIdTimeMs(cameAfter(0))) / EACH_MS);
    };
    expect(order(26)).toEqual([28, 30, 31, 32, 33]);
    expect(order(10)).toEqual([28, 31, 32, 33, 30]);
  });

  it("are for who is urgent; who sleeps has places of its own", () => {
    expect(places(30, 100)).toBe(LIMITS.placesForAnyone);
    expect(places(30, 100, { priority: 1 })).toBe(LIMITS.waitersMax);
    expect(places(30, 100, { sleepMs: 60_000 })).toBe(LIMITS.membersMax);
  });

  it("are refused to who came later, who is told when its turn for a place is due; control: one who came before gets one", () => {
    const key = crowd(28);
    // 28 came within 270 ms, and this one 320 ms later: as 33 others did by then.
    const ahead = 320 / (270 / 28);
    const stepMs = LIMITS.unknownHeldMs + LIMITS.handOverMs;
    expect(comes(key, 60)).toMatchObject({ code: "queue-full", retryAfterMs: Math.round(stepMs * (ahead + 1)) });
    expect(comes(key, 29)).toMatchObject({ state: "waiting" });
    expect(comes(crowd(32), 33), "who is next").toMatchObject({ code: "queue-full", retryAfterMs: LIMITS.fullWaitMs });
  });

  it("are nobody's while fewer wait", () => {
    expect(comes(crowd(23), 1000)).toMatchObject({ state: "waiting" });
    expect(comes(crowd(24), 1000)).toMatchObject({ code: "queue-full", retryAfterMs: LIMITS.pollMaxMs });
  });
});
