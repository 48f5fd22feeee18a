/** Conditions in the core: waiting frees the key in one change, a notify wakes one live waiter, and no notify is lost or counted twice. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { inspection, inspectionTag } from "../../lib/core/lock/views.js";
import { recordBytes } from "../../lib/core/record-bytes.js";
import type { Mode } from "../../lib/core/record.js";
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

  it("keeps the record for a retention, by the later clock", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.at(LEASE_MS - 1, 9_000).wait("A", "B");
    expect(key.record?.ttlAtSec).toBe(Math.ceil((START_MS + LEASE_MS - 1 + 9_000 + POLICY.retentionMs) / 1000));
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

  it("has a place behind the whole queue and those that waited before, and polls the less often for it", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    expect(key.look("D")).toMatchObject({ position: 2, retryAfterMs: 2 * LIMITS.pollStepMs });
    for (const letter of "FG") key.ask(letter);
    expect(key.look("D")).toMatchObject({ position: 4, retryAfterMs: 4 * LIMITS.pollStepMs });
  });

  it("goes on, whatever its own requests, until a notify", () => {
    const key = waitSetOf("AB");
    for (const _time of [1, 2]) expect(key.ask("B")).toMatchObject({ state: "waiting", condition: "c" });
    expect(key.look("B")).toMatchObject({ condition: "c", retryAfterMs: LIMITS.pollStepMs });
    expect([key.all, key.set]).toEqual(["", "B:c"]);
  });

  it("goes on while another lease of its scope holds the key: that is no notify", () => {
    const key = new QueueKey();
    key.acquire("A", IN_S);
    key.wait("A", "B", "c", IN_S);
    key.acquire("C", IN_S);
    expect(key.ask("B", IN_S)).toMatchObject({ state: "waiting", condition: "c" });
    expect([key.all, key.set]).toEqual(["Cx", "B:c"]);
    expect(key.notify("C", 1)).toMatchObject({ notified: 1 });
    expect(key.ask("B", IN_S)).toMatchObject({ how: "granted", lease: { holdCount: 2 } });
  });

  it("is told by a keep-alive once half of its time is over, and not before; no poll is logged", () => {
    const key = waitSetOf("AB");
    const polled = (ms: number) => {
      key.at(ms).ask("B");
      return [key.decision?.touch?.waiter.aliveUntilMs, key.decision?.next, key.decision?.events];
    };
    expect(polled(TTL_MS / 2 - 1)).toEqual([undefined, undefined, []]);
    expect(polled(TTL_MS / 2)).toEqual([START_MS + TTL_MS / 2 + TTL_MS, undefined, []]);
  });

  it("keeps the record for a retention again by a keep-alive, if no more than half of one is left by the later clock", () => {
    const aheadMs = 500;
    const latestMs = START_MS + TTL_MS / 2 + aheadMs;
    const halfSec = (latestMs + POLICY.retentionMs / 2) / 1000;
    const kept = (ttlAtSec: number) => {
      const key = waitSetOf("AB");
      key.record = { ...key.record!, ttlAtSec };
      key.at(TTL_MS / 2, aheadMs).ask("B");
      return key.decision?.touch?.ttlAtSec;
    };
    expect(kept(halfSec + 1)).toBeUndefined();
    expect(kept(halfSec)).toBe((latestMs + POLICY.retentionMs) / 1000);
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
    expect(key.decision?.events).toEqual([]);
    expect(key.wait("A", "B", "c", { principal: "Q" })).toMatchObject({ code: "forbidden" });
    expect(key.decision?.events).toEqual([]);
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

  it("ends a hold that an operator is ending, and the break may be repeated", () => {
    const key = new QueueKey();
    key.acquire("A");
    const token = key.tokenOf("A");
    const breaks = () => key.send({ type: "break", key: "k", fencingToken: token });
    breaks();
    expect(key.wait("A", "B")).toMatchObject({ state: "waiting" });
    expect(breaks()).toEqual({ ok: true, breakInMs: 0 });
    expect(key.record?.tombstones).toMatchObject([{ leaseId: ID("A"), ending: "released", fencingToken: token }]);
    key.acquire("C");
    key.wait("C", "D");
    expect(key.record?.tombstones[0]).toEqual({ leaseId: ID("C"), ending: "released" });
  });

  it("is refused as broken once a break by force is over, and before that as any other", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.break("A", 1_000);
    expect(key.at(1_000).wait("A", "B")).toMatchObject({ code: "lease-lost", reason: "broken" });
    expect(key.notify("A", 1)).toMatchObject({ code: "lease-lost", reason: "broken" });
  });

  it("is refused for another principal's lease, and for an id that is in use or was", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.ask("C");
    expect(key.wait("A", "B", "c", { principal: "Q" })).toMatchObject({ code: "forbidden" });
    expect(key.wait("A", "A")).toMatchObject({ code: "lease-reused" });
    expect(key.wait("A", "C")).toMatchObject({ code: "lease-reused" });
    expect(key.decision?.events).toEqual([]);
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
    expect(key.notify("A", 1)).toMatchObject({ code: "not-exclusive", detail: expect.stringContaining("can't wait") as string });
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

  it("has places of its own, whoever polls", () => {
    const key = new QueueKey();
    const letter = (number: number): string => String.fromCharCode(64 + number);
    const waitAs = (number: number) => {
      key.acquire(letter(number), { leaseMs: 100 * LEASE_MS });
      return key.wait(letter(number), letter(1000 + number));
    };
    const most = LIMITS.membersMax;
    for (let number = 1; number <= most; number++) expect(waitAs(number)).toMatchObject({ state: "waiting" });
    key.acquire(letter(most + 1), { leaseMs: 100 * LEASE_MS });
    key.ask(letter(2000));
    expect(waitAs(most + 1)).toMatchObject({
      code: "queue-full",
      retryAfterMs: LIMITS.pollMaxMs,
      detail: `${most} wait for conditions of k already`,
    });
    expect(key.decision?.events).toEqual([]);
    expect(key.record?.waitSet).toHaveLength(most);
    expect(key.at(TTL_MS).wait(letter(most + 1), letter(3000))).toMatchObject({ state: "waiting" });
    expect(key.record?.waitSet).toHaveLength(1);
  });

  it("keeps the key to its kind: no other limit while somebody waits", () => {
    const key = waitSetOf("AB");
    expect(key.acquire("C", permits(1))).toMatchObject({ code: "limit-mismatch" });
    expect(key.at(TTL_MS).acquire("C", permits(1))).toMatchObject({ how: "granted" });
  });

  it("is over for a dead member once the key has another limit: it can't come back and keep out all that could notify it", () => {
    const key = waitSetOf("AB");
    key.at(TTL_MS).acquire("C", permits(1));
    expect(key.check("B")).toMatchObject({ code: "lease-lost" });
    expect(key.ask("B")).toMatchObject({ code: "limit-mismatch" });
    key.release("C");
    expect(key.acquire("D")).toMatchObject({ how: "granted" });
    expect(key.set).toBe("");
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
    expect([key.record, key.decision?.events]).toEqual([record, []]);
  });

  it("of all wakes all of the condition, in the order of their arrival, behind those that queued before", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.wait("E", "F", "other");
    key.acquire("G");
    key.ask("H");
    expect(key.notify("G", 1, { all: true })).toMatchObject({ notified: 2 });
    expect([key.all, key.set]).toEqual(["Gx Hx… Bx… Dx…", "F:other"]);
    expect(key.decision?.events.map(({ position }) => position)).toEqual([2, 3]);
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

  it.each<[then: string, modes: readonly Mode[]]>([
    ["", []],
    [" and two changes of mode", ["shared", "exclusive"]],
  ])("counts anew after a transfer%s, and for another lease", (_, modes) => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    key.notify("G", 7);
    key.at(1).send({ type: "transfer", key: "k", leaseId: ID("G"), principal: "P", toLeaseId: ID("H") });
    for (const mode of modes) key.change("H", mode);
    expect(key.notify("H", 1)).toMatchObject({ how: "notified", notified: 1 });
    key.release("H");
    key.ask("B");
    expect(key.notify("B", 1)).toMatchObject({ how: "notified", notified: 1 });
    expect(key.set).toBe("");
  });

  it("that is repeated after changes of the lease's mode wakes no second one", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E", 1);
    for (const mode of ["shared", "exclusive"] as const) {
      key.at(1).change("E", mode);
      expect(key.record?.holds[ID("E")]?.notified).toEqual({ fencingToken: key.tokenOf("E"), sequence: 1, count: 1 });
    }
    expect(key.notify("E", 1)).toEqual({ ok: true, how: "replayed", notified: 1 });
    expect(key.set).toBe("D:c");
    expect(key.notify("E", 2)).toMatchObject({ how: "notified", notified: 1 });
  });

  it("that is late, after another of the same lease, wakes nobody", () => {
    const key = waitSetOf("AB", "CD", "EF");
    key.acquire("G");
    key.notify("G", 7);
    const { record } = key;
    expect(key.notify("G", 6)).toEqual({ ok: true, how: "replayed", notified: 0 });
    expect(key.notify("G", 7)).toEqual({ ok: true, how: "replayed", notified: 1 });
    expect([key.record, key.decision?.events]).toEqual([record, []]);
  });

  it("is noted on the hold only if it woke a waiter, and has a sequence", () => {
    const noted = (key: QueueKey, letter: string): unknown => key.record?.holds[ID(letter)]?.notified;
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E");
    expect([key.all, noted(key, "E")]).toEqual(["Ex Bx…", undefined]);
    const dead = waitSetOf("AB").at(TTL_MS);
    dead.acquire("E");
    expect(dead.notify("E", 1)).toMatchObject({ how: "notified", notified: 0 });
    expect([dead.set, dead.events, noted(dead, "E")]).toEqual(["", "B skipped", undefined]);
    key.notify("E", 1);
    expect(noted(key, "E")).toMatchObject({ sequence: 1, count: 1 });
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

  it("skips the dead: it wakes the first that was heard of in time, and looks no further and at no other condition", () => {
    const key = new QueueKey();
    key.acquire("G");
    key.wait("G", "H", "other");
    for (const [held = "", waits = ""] of ["AB", "CD", "IJ"]) {
      key.acquire(held);
      key.wait(held, waits);
    }
    key.at(TTL_MS / 2).ask("D");
    expect(key.decision).toMatchObject({ touch: { index: 2, inWaitSet: true } });
    key.at(TTL_MS - LEASE_MS / 2).acquire("E");
    expect(key.at(TTL_MS).notify("E", 1)).toMatchObject({ notified: 1 });
    expect([key.all, key.set, key.events]).toEqual(["Ex Dx…", "H:other J:c", "B skipped, D queued"]);
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

  it("if its offer lapses, while the next of the queue gets the key", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E", 1);
    key.ask("F");
    key.release("E");
    key.at(WINDOW_MS - 1).ask("F");
    expect([key.all, key.set]).toEqual(["Bx? Fx…", "D:c"]);
    const { version = 0 } = key.record ?? {};
    expect(key.at(WINDOW_MS).ask("F")).toMatchObject({ how: "granted" });
    expect([key.all, key.set, key.events]).toEqual(["Fx Dx…", "", "B skipped, D queued, F granted"]);
    expect(key.record?.version).toBe(version + 1);
  });

  it("if its offer lapses, and a waiter asks whose turn it is not", () => {
    const key = waitSetOf("AB", "CD");
    key.acquire("E");
    key.notify("E", 1);
    for (const letter of "FG") key.ask(letter);
    key.release("E");
    for (const letter of "FG") key.at(WINDOW_MS - 1).ask(letter);
    expect(key.at(WINDOW_MS).ask("G")).toMatchObject({ state: "waiting", position: 2 });
    expect([key.all, key.set, key.events]).toEqual(["Fx? Gx… Dx…", "", "B skipped, F offered, D queued"]);
  });

  it("of its own condition, if there is one", () => {
    const key = new QueueKey();
    for (const [held = "", waits = "", condition] of ["ABc", "CDd", "EFc"]) {
      key.acquire(held);
      key.wait(held, waits, condition);
    }
    key.acquire("G", { leaseMs: 100 * LEASE_MS });
    key.notify("G", 1, { condition: "d" });
    key.notify("G", 2);
    key.at(TTL_MS / 2).ask("F");
    key.at(TTL_MS).release("G");
    expect([key.all, key.set, key.events]).toEqual(["Fx?", "", "G released, D skipped, B skipped, F queued, F offered"]);
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

  it("tells for how long each has waited, and no time below zero", () => {
    const key = waitSetOf("AB");
    const waited = (ms: number) => inspection("k", key.record, key.at(ms).reading).waitSet?.map(({ waitingMs }) => waitingMs);
    expect(waited(400)).toEqual([400]);
    expect(waited(-1_000)).toEqual([0]);
  });

  it("has a tag of who waits for what, in order, and not of the time", () => {
    const tagOf = (members: readonly (readonly [owner: string, condition: string])[], waitingMs = 0): string =>
      inspectionTag({
        ...inspection("k", undefined, new QueueKey().reading),
        waitSet: members.map(([owner, condition]) => ({ owner, condition, waitingMs })),
      });
    const [one, two] = [["one", "c"] as const, ["two", "c"] as const];
    const tags = [[one], [two], [["one", "d"] as const], [one, two], [two, one]].map((members) => tagOf(members));
    expect(new Set(tags).size).toBe(tags.length);
    expect(tagOf([one], 5)).toBe(tagOf([one]));
  });

  it("leaves out the dead", () => {
    const key = waitSetOf("AB").at(TTL_MS);
    expect(inspection("k", key.record, key.reading)).not.toHaveProperty("waitSet");
    expect(key.reading.latestMs).toBe(START_MS + TTL_MS);
  });
});
