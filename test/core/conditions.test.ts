/** Conditions in the core: waiting frees the key in one change, a notify wakes one live waiter, and no notify is lost or counted twice. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { inspection, inspectionTag } from "../../lib/core/lock/views.js";
import { recordBytes } from "../../lib/core/record-bytes.js";
import { LEASE_MS, POLICY, START_MS } from "../store/fixture.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";

const { waiterTtlMs: TTL_MS, offerWindowMs: WINDOW_MS } = DEFAULTS;

/** A key on which these pairs waited: `"AB"` held as A and waits as B. */
function waitSetOf(...pairs: readonly string[]): QueueKey {
  const key = new QueueKey();
  for (const [held = "", waits = ""] of pairs) {
    key.acquire(held);
    key.wait(held, waits);
  }
  return key;
}

describe("a wait", () => {
  it("frees the key and joins the wait set in one change", () => {
    const key = new QueueKey();
    key.acquire("A");
    const { version = 0 } = key.record ?? {};
    expect(key.wait("A", "B")).toEqual({
      ok: true,
      state: "waiting",
      position: 1,
      retryAfterMs: LIMITS.pollStepMs,
      pollWithinMs: LIMITS.pollMaxMs,
      condition: "c",
    });
    expect(key.record?.version).toBe(version + 1);
    expect([key.all, key.set, key.events]).toEqual(["", "B:c", "A released, B waiting"]);
  });

  it("offers the key to the first waiter in the same change", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.ask("C");
    key.wait("A", "B");
    expect([key.all, key.set]).toEqual(["Cx?", "B:c"]);
  });

  it("leaves the key to any caller: a member of the wait set is not in the queue", () => {
    const key = waitSetOf("AB");
    expect(key.acquire("C")).toMatchObject({ how: "granted" });
    expect(key.ask("D")).toMatchObject({ state: "waiting", position: 1 });
    expect(key.set).toBe("B:c");
  });

  it("goes on, whatever its own requests, until a notify", () => {
    const key = waitSetOf("AB");
    for (const _time of [1, 2]) expect(key.ask("B")).toMatchObject({ state: "waiting", condition: "c" });
    expect(key.look("B")).toMatchObject({ condition: "c", retryAfterMs: LIMITS.pollStepMs });
    expect([key.all, key.set]).toEqual(["", "B:c"]);
  });

  it("can be repeated: the same place, and no second member", () => {
    const key = waitSetOf("AB");
    const { record } = key;
    expect(key.wait("A", "B")).toMatchObject({ state: "waiting", position: 1, condition: "c" });
    expect(key.record).toBe(record);
    key.acquire("C");
    key.notify("C", 1);
    const repeated = key.wait("A", "B");
    expect(repeated).toMatchObject({ state: "waiting", position: 1 });
    expect(repeated).not.toHaveProperty("condition");
    expect(key.wait("A", "B", "c", { principal: "Q" })).toMatchObject({ code: "forbidden" });
    key.release("C");
    expect(key.wait("A", "B")).toMatchObject({ state: "waiting", retryAfterMs: 0 });
    key.ask("B");
    expect(key.wait("A", "B")).toMatchObject({ code: "lease-lost", reason: "released" });
  });

  it("is refused for a lease that is lost, and nothing is held", () => {
    const key = new QueueKey();
    expect(key.wait("A", "B")).toMatchObject({ code: "lease-lost", reason: "never" });
    key.acquire("A");
    expect(key.at(LEASE_MS).wait("A", "B")).toMatchObject({ code: "lease-lost", reason: "expired" });
    key.at(LEASE_MS + POLICY.marginMs(LEASE_MS)).acquire("C");
    expect(key.wait("A", "B")).toMatchObject({ code: "lease-lost", reason: "taken" });
    expect(key.set).toBe("");
  });

  it("is refused for another principal's lease, and for an id that is in use or was", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.ask("C");
    expect(key.wait("A", "B", "c", { principal: "Q" })).toMatchObject({ code: "forbidden" });
    expect(key.wait("A", "A")).toMatchObject({ code: "lease-reused" });
    expect(key.wait("A", "C")).toMatchObject({ code: "lease-reused" });
    key.release("E");
    expect(key.wait("A", "E")).toMatchObject({ code: "lease-over" });
    key.wait("A", "B");
    key.ask("C");
    expect(key.wait("C", "B")).toMatchObject({ code: "lease-reused" });
    expect([key.all, key.set]).toEqual(["Cx", "B:c"]);
  });

  it.each([
    ["a reader", () => new QueueKey(), READER],
    ["a permit of a semaphore", () => new QueueKey(), permits(1)],
    ["a permit that takes all", () => new QueueKey(), permits(3)],
  ])("is refused for %s, as is a notify, and the lease holds on", (_who, make, options) => {
    const key = make();
    key.acquire("A", options);
    expect(key.wait("A", "B")).toMatchObject({ code: "not-exclusive" });
    expect(key.notify("A", 1)).toMatchObject({ code: "not-exclusive" });
    expect(key.renew("A")).toMatchObject({ how: "renewed" });
  });

  it("is refused while another level of its scope holds the key", () => {
    const key = new QueueKey();
    key.acquire("A", IN_S);
    key.acquire("B", IN_S);
    expect(key.wait("A", "C")).toMatchObject({ code: "not-exclusive" });
    expect(key.notify("B", 1)).toMatchObject({ code: "not-exclusive" });
    key.release("B");
    expect(key.wait("A", "C")).toMatchObject({ state: "waiting" });
  });

  it("shares the bound of the queue", () => {
    const key = new QueueKey();
    const letter = (number: number): string => String.fromCharCode(64 + number);
    const waitAs = (number: number) => {
      key.acquire(letter(number), { leaseMs: 100 * LEASE_MS });
      return key.wait(letter(number), letter(1000 + number));
    };
    for (let number = 1; number < LIMITS.waitersMax; number++) expect(waitAs(number)).toMatchObject({ state: "waiting" });
    key.acquire(letter(LIMITS.waitersMax), { leaseMs: 100 * LEASE_MS });
    key.ask(letter(2000));
    expect(waitAs(LIMITS.waitersMax)).toMatchObject({ code: "queue-full" });
    expect(key.record?.waitSet).toHaveLength(LIMITS.waitersMax - 1);
    expect(key.at(TTL_MS).wait(letter(LIMITS.waitersMax), letter(3000))).toMatchObject({ state: "waiting" });
    expect(key.record?.waitSet).toHaveLength(1);
  });

  it("keeps the key to its kind: no other limit while somebody waits", () => {
    const key = waitSetOf("AB");
    expect(key.acquire("C", permits(1))).toMatchObject({ code: "limit-mismatch" });
    expect(key.at(TTL_MS).acquire("C", permits(1))).toMatchObject({ how: "granted" });
  });
});

describe("a notify", () => {
  it("wakes the first that waits for the condition: it queues, and gets the key with a new token", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    const token = key.record?.fencingToken ?? 0;
    expect(key.notify("E", 1)).toEqual({ ok: true, how: "notified", notified: 1 });
    expect([key.all, key.set, key.events]).toEqual(["Ex Bx…", "D:c", "B queued"]);
    key.release("E");
    expect(key.all).toBe("Bx?");
    expect(key.look("B")).not.toHaveProperty("condition");
    expect(key.ask("B")).toMatchObject({ how: "granted", lease: { fencingToken: expect.any(Number) } });
    expect(key.record?.fencingToken).toBeGreaterThan(token);
  });

  it("wakes nobody of another condition, and is no error if nobody waits", () => {
    const key = waitSetOf("AB");
    key.acquire("C");
    const { record } = key;
    expect(key.notify("C", 1, { condition: "d" })).toEqual({ ok: true, how: "notified", notified: 0 });
    expect(key.record).toBe(record);
  });

  it("of all wakes all of the condition, in the order of their arrival, behind those that queued before", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.wait("E", "F", "other");
    key.acquire("G");
    key.ask("H");
    expect(key.notify("G", 1, { all: true })).toMatchObject({ notified: 2 });
    expect([key.all, key.set]).toEqual(["Gx Hx… Bx… Dx…", "F:other"]);
  });

  it("that is repeated wakes no second one, and says the same", () => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    key.notify("G", 1);
    expect(key.notify("G", 1)).toEqual({ ok: true, how: "replayed", notified: 1 });
    expect(key.set).toBe("D:c F:c");
    expect(key.notify("G", 2)).toMatchObject({ how: "notified", notified: 1 });
    expect(key.notify("G", 1)).toMatchObject({ how: "replayed" });
    expect(key.set).toBe("F:c");
  });

  it("without a number is a new one each time", () => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    for (const _time of [1, 2]) expect(key.notify("G")).toMatchObject({ how: "notified", notified: 1 });
    expect(key.set).toBe("F:c");
  });

  it("counts anew after a transfer, and for another lease", () => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    key.notify("G", 7);
    key.at(1).send({ type: "transfer", key: "k", leaseId: ID("G"), principal: "P", toLeaseId: ID("H") });
    expect(key.notify("H", 1)).toMatchObject({ how: "notified", notified: 1 });
    key.release("H");
    key.ask("B");
    expect(key.notify("B", 1)).toMatchObject({ how: "notified", notified: 1 });
    expect(key.set).toBe("");
  });

  it("is refused without the key: never held, waiting, expired, or another's", () => {
    const key = waitSetOf("AB");
    expect(key.notify("A", 1)).toMatchObject({ code: "lease-lost", reason: "released" });
    expect(key.notify("B", 1)).toMatchObject({ code: "lease-lost", reason: "never" });
    key.acquire("C");
    expect(key.notify("C", 1, { principal: "Q" })).toMatchObject({ code: "forbidden" });
    expect(key.at(LEASE_MS).notify("C", 1)).toMatchObject({ code: "lease-lost", reason: "expired" });
    expect(key.set).toBe("B:c");
  });

  it("skips the dead: it wakes the first that was heard of in time", () => {
    const key = waitSetOf("AB", "CD");
    key.at(TTL_MS / 2).ask("D");
    expect(key.decision).toMatchObject({ touch: { index: 1, inWaitSet: true } });
    key.at(TTL_MS - LEASE_MS / 2).acquire("E");
    expect(key.at(TTL_MS).notify("E", 1)).toMatchObject({ notified: 1 });
    expect([key.all, key.set, key.events]).toEqual(["Ex Dx…", "", "B skipped, D queued"]);
  });

  it("never makes a record larger", () => {
    const key = new QueueKey();
    for (const [held, waits] of ["AB", "CD", "EF"] as const) {
      key.acquire(held!);
      key.wait(held!, waits!, "x".repeat(LIMITS.conditionChars));
    }
    key.acquire("G");
    for (const sequence of [1, 2, 3]) {
      const before = key.record && recordBytes(key.record);
      key.notify("G", sequence, { condition: "x".repeat(LIMITS.conditionChars) });
      expect(key.record && recordBytes(key.record)).toBeLessThanOrEqual(before ?? 0);
    }
    expect(key.set).toBe("");
  });
});

describe("the notify of a waiter that leaves without the key goes to the next", () => {
  it("if it cancels, in the queue or with an offer", () => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    key.notify("G", 1);
    key.release("B");
    expect([key.all, key.set]).toEqual(["Gx Dx…", "F:c"]);
    key.release("G");
    key.release("D");
    expect([key.all, key.set]).toEqual(["Fx?", ""]);
  });

  it("and not if it cancels in the wait set", () => {
    const key = waitSetOf("AB", "CD");
    expect(key.release("B")).toMatchObject({ state: "never" });
    expect([key.all, key.set]).toEqual(["", "D:c"]);
  });

  it("if its offer lapses", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E", 1);
    key.release("E");
    expect(key.all).toBe("Bx?");
    expect(key.at(WINDOW_MS - 1).look("D").retryAfterMs).toBeGreaterThan(0);
    expect(key.at(WINDOW_MS).look("D").retryAfterMs).toBe(0);
    expect(key.ask("D")).toMatchObject({ state: "waiting", retryAfterMs: 0 });
    expect([key.all, key.set, key.events]).toEqual(["Dx?", "", "B skipped, D queued, D offered"]);
    expect(key.ask("D")).toMatchObject({ how: "granted" });
  });

  it("if it dies in the queue", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E", { leaseMs: 100 * LEASE_MS });
    key.notify("E", 1);
    key.at(TTL_MS / 2).ask("D");
    key.at(TTL_MS).release("E");
    expect([key.all, key.set]).toEqual(["Dx?", ""]);
  });

  it("and not once it had the key", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E", 1);
    key.release("E");
    key.ask("B");
    key.release("B");
    expect([key.all, key.set]).toEqual(["", "D:c"]);
  });
});

describe("an inspection", () => {
  it("shows who waits for which condition, and its tag changes with them", () => {
    const key = waitSetOf("AB");
    const shown = inspection("k", key.record, key.reading);
    expect(shown).toMatchObject({ holders: [], waiters: [], waitSet: [{ owner: "", condition: "c", waitingMs: expect.any(Number) }] });
    key.release("B");
    const empty = inspection("k", key.record, key.reading);
    expect(empty).not.toHaveProperty("waitSet");
    expect(inspectionTag(empty)).not.toBe(inspectionTag(shown));
  });

  it("leaves out the dead", () => {
    const key = waitSetOf("AB").at(TTL_MS);
    expect(inspection("k", key.record, key.reading)).not.toHaveProperty("waitSet");
    expect(key.reading.latestMs).toBe(START_MS + TTL_MS);
  });
});
