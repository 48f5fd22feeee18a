/** The views of a key: its holders and waiters, the time until it is free, the reason of a loss, a run, and the tags of conditional reads. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, FOREVER_MS } from "../../lib/core/limits.js";
import { breaksOf } from "../../lib/core/lock/break.js";
import { inOrder, isSameQueue } from "../../lib/core/lock/places.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import type { Inspection } from "../../lib/core/lock/views.js";
import {
  endedLeases,
  freeInMs,
  holdersOf,
  inspection,
  inspectionTag,
  lapsedHolds,
  leaseLost,
  runTag,
  runView,
  withinBytes,
} from "../../lib/core/lock/views.js";
import type { Ending, LockRecord, Offer } from "../../lib/core/record.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { ID, IN_S, permits, READER } from "./kinds-key.js";
import { QueueKey } from "./queue-key.js";
import { at, BY_OTHER, DAY_MS, hold, LEASE_MS, MARGIN_MS, ME, NOW_MS, OTHER, over, record, run } from "./run-parts.js";

const inspect = (key: QueueKey): Inspection => inspection("k", key.record, key.reading);

describe("an inspection", () => {
  it("of a key that was never used is free", () => {
    expect(inspection("k", undefined, at(0))).toEqual({
      key: "k",
      version: 0,
      mode: "exclusive",
      fencingToken: 0,
      holders: [],
      waiters: [],
    });
  });

  it("has the holders, the oldest first, and everyone who waits, in order", () => {
    const key = new QueueKey();
    key.acquire("B", { ...READER, owner: "two" });
    key.acquire("A", { ...READER, owner: "one", leaseMs: 1_000 });
    key.ask("C", { owner: "three", priority: 1 });
    key.ask("D", { ...READER, owner: "four" });
    const seen = inspect(key.at(400));
    const token = key.tokenOf("B");
    expect(seen).toEqual({
      key: "k",
      version: key.record?.version,
      mode: "shared",
      fencingToken: token + 1,
      holders: [
        { owner: "two", mode: "shared", permits: 1, fencingToken: token, heldMs: 400, remainingMs: 9_600, leaseMs: 10_000 },
        { owner: "one", mode: "shared", permits: 1, fencingToken: token + 1, heldMs: 400, remainingMs: 600, leaseMs: 1_000 },
      ],
      waiters: [
        { owner: "three", mode: "exclusive", priority: 1, position: 1, waitingMs: 400 },
        { owner: "four", mode: "shared", priority: 0, position: 2, waitingMs: 400 },
      ],
    });
  });

  it("shows no lease whose margin is over, no offer that lapsed, and no waiter that was not seen in time", () => {
    const key = new QueueKey();
    key.acquire("A", { leaseMs: 1_000 });
    key.ask("B", { owner: "two" });
    const owners = (): unknown => [inspect(key).holders.length, inspect(key).waiters.map(({ owner, position }) => [owner, position])];
    expect(owners()).toEqual([1, [["two", 1]]]);
    key.at(DEFAULTS.waiterTtlMs);
    expect(owners()).toEqual([0, []]);
    key.at(500).release("A");
    key.ask("C", { owner: "three" });
    expect([key.all, owners()]).toEqual([
      "Bx? Cx…",
      [
        0,
        [
          ["two", 1],
          ["three", 2],
        ],
      ],
    ]);
    key.at(500 + DEFAULTS.offerWindowMs);
    expect(owners()).toEqual([0, [["three", 1]]]);
    // An id that is ahead of the clock has waited for no time yet.
    key.at(-1_000);
    expect(inspect(key).waiters.map(({ waitingMs }) => waitingMs)).toEqual([0, 0]);
  });

  it("tells to whom the key is offered, which hold was broken, and how the last leases ended", () => {
    const key = new QueueKey();
    key.acquire("A");
    key.ask("B", { owner: "two" });
    key.release("A");
    expect(inspect(key).waiters).toMatchObject([{ owner: "two", offered: true }]);
    key.ask("B", { owner: "two" });
    const { waiters, holders } = inspect(key);
    expect([waiters, holders[0]?.breaking]).toEqual([[], undefined]);
    const before = inspectionTag(inspect(key));
    key.send({ type: "break", key: "k", fencingToken: key.tokenOf("B") });
    expect(inspect(key).holders).toMatchObject([{ owner: "two", breaking: true }]);
    expect(inspectionTag(inspect(key))).not.toBe(before);
    expect(endedLeases(key.record ?? EMPTY_RECORD, key.at(700).reading)).toEqual([{ askedAgoMs: 700, ending: "released" }]);
    expect(endedLeases(key.record ?? EMPTY_RECORD, key.at(-1_000).reading)).toEqual([{ askedAgoMs: 0, ending: "released" }]);
  });

  const writer = { owner: "w" };
  it.each<[string, readonly ((key: QueueKey) => unknown)[], readonly (readonly string[])[]]>([
    ["a sole holder, waited for", [(key) => key.acquire("A"), (key) => key.ask("B", { owner: "b" }), (key) => key.ask("C")], [["b"]]],
    [
      "readers, waited for by a writer",
      [(key) => key.acquire("A", READER), (key) => key.acquire("B", READER), (key) => key.ask("C", writer)],
      [[], []],
    ],
    [
      "a writer, waited for by readers and a writer",
      [
        (key) => key.acquire("A"),
        (key) => key.ask("B", { ...READER, owner: "r" }),
        (key) => key.ask("C", { ...READER, owner: "s" }),
        (key) => key.ask("D", writer),
      ],
      [["r", "s"]],
    ],
    [
      "a semaphore whose first waiter needs more than one hold",
      [
        (key) => key.acquire("A", permits(1, 3)),
        (key) => key.acquire("B", permits(2, 3)),
        (key) => key.ask("C", { ...permits(2, 3), owner: "two" }),
        (key) => key.ask("D", { ...permits(1, 3), owner: "one" }),
      ],
      [[], ["two"]],
    ],
    [
      "one that is broken already, and ends in a second",
      [(key) => key.acquire("A"), (key) => key.ask("B", { owner: "b" }), (key) => key.break("A", 1000)],
      [["b"]],
    ],
    [
      "leases of one scope, which end together",
      [(key) => key.acquire("A", IN_S), (key) => key.acquire("B", IN_S), (key) => key.ask("C", writer)],
      [["w"]],
    ],
    [
      "readers of whom one waits to become the writer, waited for by a reader",
      [
        (key) => key.acquire("A", READER),
        (key) => key.acquire("B", READER),
        (key) => key.send({ type: "mode", key: "k", leaseId: ID("B"), principal: "P", mode: "exclusive", fencingToken: key.tokenOf("B") }),
        (key) => key.ask("C", { ...READER, owner: "r" }),
      ],
      [[], ["r"]],
    ],
    ["nobody", [(key) => key.acquire("A"), (key) => key.release("A")], []],
  ])("tells what a break would do, which a break and the polls after it then do, of %s", (_, steps, breaks) => {
    const key = new QueueKey();
    for (const step of steps) step(key);
    const { waiters } = inspect(key);
    const told = breaksOf(key.record ?? EMPTY_RECORD, key.reading);
    expect(told.map(({ next }) => next.map((place) => waiters[place - 1]?.owner))).toEqual(breaks);
    for (const { fencingToken, breakInMs, next } of told) {
      const broken = key.copy();
      expect(key.copy().send({ type: "break", key: "k", fencingToken })).toMatchObject({ breakInMs });
      broken.send({ type: "break", key: "k", fencingToken, drainMs: 0 });
      const got = waiters.filter(({ owner, mode, permits: count = 1, position }) => {
        const letter = String.fromCharCode(64 + Number.parseInt((key.record?.waiters[position - 1]?.leaseId ?? "").slice(-4), 16));
        return !("state" in broken.ask(letter, { owner, mode, permits: count, limit: key.record?.limit ?? 1 }));
      });
      expect(got.map(({ position }) => position)).toEqual(next);
    }
  });

  it("tells which leases ran out and since when, once the key may go to another", () => {
    const held = record({ holds: { [ME]: hold({ owner: "importer-9" }) } });
    const { fencingToken = 0 } = held.holds[ME] ?? {};
    expect(lapsedHolds(held, at(LEASE_MS + MARGIN_MS - 1))).toEqual([]);
    expect(lapsedHolds(held, at(LEASE_MS + MARGIN_MS))).toEqual([
      { owner: "importer-9", fencingToken, heldMs: LEASE_MS, endedAgoMs: MARGIN_MS },
    ]);
    expect(lapsedHolds(record(), at(LEASE_MS + MARGIN_MS))).toEqual([]);
    const three = {
      b: hold({ fencingToken: 2 }),
      c: hold({ fencingToken: 3, expiresAtMs: NOW_MS + 2 * LEASE_MS }),
      a: hold({ fencingToken: 1 }),
    };
    expect(lapsedHolds(record({ holds: three }), at(LEASE_MS + MARGIN_MS)).map((one) => one.fencingToken)).toEqual([1, 2]);
  });

  it("tells the limit of a semaphore while it is in use, or waited for", () => {
    const key = new QueueKey();
    key.acquire("A", permits(2));
    expect(inspect(key)).toMatchObject({ limit: 3, holders: [{ permits: 2 }] });
    key.ask("B", permits(2));
    key.release("A");
    expect(inspect(key)).toMatchObject({ limit: 3, holders: [], waiters: [{ position: 1 }] });
    key.release("B");
    expect(inspect(key)).not.toHaveProperty("limit");
    key.at(1).acquire("C");
    expect(inspect(key)).not.toHaveProperty("limit");
  });

  it("has a tag that changes with the holders and those who wait, and not with a heartbeat", () => {
    const key = new QueueKey();
    const tag = (): string => inspectionTag(inspect(key));
    const free = tag();
    key.acquire("A", { ...READER, owner: "one" });
    const held = tag();
    key.at(5).renew("A");
    expect(tag()).toBe(held);
    key.acquire("B", { ...READER, owner: "two" });
    const both = tag();
    key.ask("C", { owner: "three" });
    const waited = tag();
    const other = inspect(key);
    const changed = [
      { ...other, limit: 3 },
      { ...other, waiters: other.waiters.map((waiter) => ({ ...waiter, priority: 1 })) },
      { ...other, waiters: other.waiters.map((waiter) => ({ ...waiter, owner: "four" })) },
      { ...other, holders: other.holders.map((holder) => ({ ...holder, owner: "four" })) },
    ].map(inspectionTag);
    expect(new Set([free, held, both, waited, ...changed]).size).toBe(8);
    for (const each of [free, held]) expect(each).toMatch(/^"\d+\.[\w-]{8}"$/);
  });
});

describe("a list of views", () => {
  it("ends before it exceeds its bytes, and has one view at least", () => {
    const views = ["aa", "éé", "cc"];
    expect([12, 13, 14].map((bytes) => withinBytes(views, bytes).length)).toEqual([2, 2, 3]);
    expect([9, 10].map((bytes) => withinBytes(views, bytes).length)).toEqual([1, 2]);
    expect([0, 4].map((bytes) => withinBytes(views, bytes))).toEqual([["aa"], ["aa"]]);
    expect(withinBytes([], 0)).toEqual([]);
  });

  it("of holders is in the order of their tokens, without those whose margin is over", () => {
    const holds = {
      a: hold({ fencingToken: 9 }),
      b: hold({ fencingToken: 3 }),
      c: hold({ fencingToken: 5, expiresAtMs: NOW_MS - MARGIN_MS }),
    };
    expect(holdersOf(record({ holds }), at(0)).map(({ fencingToken }) => fencingToken)).toEqual([3, 9]);
  });
});

describe("the time until a key is free", () => {
  const offer = { offeredAtMs: NOW_MS } as Offer;
  const waiter = { aliveUntilMs: NOW_MS + 700 } as LockRecord["waiters"][number];
  it.each<[string, Partial<LockRecord>, number]>([
    ["the first lease's margin", { holds: { [ME]: hold(), [OTHER]: hold({ expiresAtMs: NOW_MS + 5 }) }, waiters: [waiter] }, 5 + MARGIN_MS],
    ["the first offer's window", { holds: { [ME]: hold() }, offers: [offer] }, DEFAULTS.offerWindowMs],
    ["a waiter's life, where nobody else is left", { waiters: [waiter] }, 700],
    ["nothing that has passed", { holds: { [ME]: hold({ expiresAtMs: NOW_MS - LEASE_MS }) } }, 0],
  ])("is that of %s, by the earlier clock", (_, parts, ms) => {
    expect(freeInMs(record(parts), at(0, 9_000))).toBe(ms);
  });
});

describe("the reason why a lease is lost", () => {
  const lost = (known: LockRecord | undefined, leaseId = ME): unknown => leaseLost(known, leaseId, at(0));
  it.each<[Ending, string]>([
    ["released", "released"],
    ["expired", "expired"],
    ["taken", "taken"],
    ["broken", "broken"],
    ["transferred", "transferred"],
    ["cancelled", "never"],
    ["unknown", "released"],
  ])("of one that ended as %s is %s, with a sentence of its own", (ending, reason) => {
    expect(lost(record({ tombstones: [{ leaseId: ME, ending }] }))).toMatchObject({
      code: "lease-lost",
      reason,
      detail: expect.stringMatching(/^(The lease|An operator|The hold|This leaseId)/) as string,
    });
  });

  it("is its age or others, where the key doesn't know it", () => {
    expect(lost(undefined)).toMatchObject({ reason: "never" });
    expect(lost(record({ lowWatermark: ME }))).toMatchObject({ reason: "taken" });
    expect(lost(record(), leaseIdAt(NOW_MS - DAY_MS))).toMatchObject({ reason: "expired" });
  });
});

describe("a view of a run", () => {
  const view = (parts: Partial<LockRecord>, work = run({ attempt: 3 }), reading = at(1_000, 200)) =>
    runView("k", record({ ...parts, run: work }), work, reading);
  const common = { key: "k", version: 3, attempt: 3, fencingToken: NOW_MS - 7 };

  it("is running while a lease holds it, and interrupted once that may be taken over", () => {
    const holds = { [ME]: hold({ owner: "worker" }) };
    expect(view({ holds })).toEqual({ ...common, state: "running", owner: "worker", heldMs: 1_200, remainingMs: LEASE_MS - 1_200 });
    expect(view({ holds }, run({ attempt: 3 }), at(LEASE_MS + MARGIN_MS))).toEqual({
      ...common,
      state: "interrupted",
      owner: "worker",
      endedAgoMs: MARGIN_MS,
    });
    expect(view({}, run({ attempt: 3, state: "interrupted" }))).toEqual({ ...common, state: "interrupted" });
  });

  const ENDED = { owner: "", endedAgoMs: 1_200, tookMs: 0 };

  it("is failed, and tells if it may be tried again", () => {
    expect(view({}, run({ attempt: 3, state: "retry" }))).toEqual({ ...common, state: "failed", retryable: true });
    expect(view({}, over("failed", { attempt: 3 }))).toEqual({
      ...{ ...common, ...ENDED, state: "failed", retryable: false, keptForMs: DAY_MS - 1_200 },
    });
  });

  it("tells for how long its outcome is stored, never less than nothing, and that a result was left out", () => {
    const done = over("succeeded", { attempt: 3 });
    expect(view({}, done)).toEqual({ ...common, ...ENDED, state: "succeeded", keptForMs: DAY_MS - 1_200 });
    const { outcome: late } = over("succeeded", { outcome: { ...BY_OTHER, owner: "worker", startedAtMs: NOW_MS - 700 } });
    expect(view({}, { ...done, outcome: late! })).toMatchObject({ owner: "worker", endedAgoMs: 1_200, tookMs: 700 });
    expect(view({}, done, at(2 * DAY_MS))).toMatchObject({ keptForMs: 0 });
    expect(view({}, { ...done, keepResultMs: FOREVER_MS })).toMatchObject({ keptForMs: "forever" });
    const { outcome } = done;
    expect(view({}, { ...done, outcome: { ...outcome!, omitted: true } })).toMatchObject({ resultOmitted: true });
    const { outcome: _none, ...unknown } = done;
    expect(view({}, unknown)).toMatchObject({ state: "succeeded", keptForMs: 0 });
  });

  it("tells that it took over an attempt without an outcome", () => {
    expect(view({}, run({ takeover: true }))).toMatchObject({ takeover: true });
    expect(view({}, run())).not.toHaveProperty("takeover");
  });

  it.each<[text: string | undefined, errorName: string | undefined]>([
    ['{"name":"TickSkipped","message":"no"}', "TickSkipped"],
    [JSON.stringify({ name: "x".repeat(100) }), "x".repeat(64)],
    ...['{"message":"no"}', '{"name":7}', '{"name":""}', '"no"', "null", undefined].map((text): [string | undefined, undefined] => [
      text,
      undefined,
    ]),
  ])("of a failure has the name of its error, if the record has it: %s", (text, errorName) => {
    for (const state of ["failed", "retry"] as const) {
      const done = over(state === "failed" ? "failed" : "succeeded", { attempt: 3 });
      const payload = { digest: "d", bytes: 1, ...(text !== undefined && { text }) };
      expect(view({}, { ...done, state, outcome: { ...done.outcome!, payload } }).errorName).toBe(errorName);
    }
  });

  it("of a success has no name of an error, whatever its result is", () => {
    const done = over("succeeded", { attempt: 3 });
    const payload = { digest: "d", bytes: 1, text: '{"name":"me"}' };
    expect(view({}, { ...done, outcome: { ...done.outcome!, payload } })).not.toHaveProperty("errorName");
  });

  it("has a tag of its state, attempt, token and checkpoint", () => {
    const shown = view({}, over("succeeded", { attempt: 3 }));
    expect(runTag(shown, run())).toBe(`"succeeded.3.${NOW_MS - 7}"`);
    expect(runTag(shown, run({ checkpoint: { digest: "0123456789", bytes: 1 } }))).toBe(`"succeeded.3.${NOW_MS - 7}.01234567"`);
  });
});

describe("two states of a queue", () => {
  const queue = (...waiters: readonly (readonly [leaseId: string, aliveUntilMs: number])[]): LockRecord => ({
    ...EMPTY_RECORD,
    waiters: waiters.map(([leaseId, aliveUntilMs]) => ({ leaseId, aliveUntilMs }) as LockRecord["waiters"][number]),
  });
  it.each<[string, LockRecord, LockRecord, boolean]>([
    ["the same waiters", queue(["a", 1], ["b", 2]), queue(["a", 1], ["b", 2]), true],
    ["no waiters", queue(), queue(), true],
    ["one more", queue(["a", 1]), queue(["a", 1], ["b", 2]), false],
    ["one less", queue(["a", 1], ["b", 2]), queue(["a", 1]), false],
    ["another", queue(["a", 1], ["b", 2]), queue(["a", 1], ["c", 2]), false],
    ["one that was seen since", queue(["a", 1], ["b", 2]), queue(["a", 1], ["b", 3]), false],
  ])("are compared by their waiters, and by when each was seen: %s", (_, one, other, isSame) => {
    expect(isSameQueue(one, other)).toBe(isSame);
  });

  it("have their offers in the order of their times, then of their ids", () => {
    const offers = [
      { leaseId: "c", offeredAtMs: 1 },
      { leaseId: "a", offeredAtMs: 2 },
      { leaseId: "b", offeredAtMs: 1 },
    ] as unknown as readonly Offer[];
    expect(offers.toSorted(inOrder).map(({ leaseId }) => leaseId)).toEqual(["b", "c", "a"]);
    expect(
      offers
        .toReversed()
        .toSorted(inOrder)
        .map(({ leaseId }) => leaseId),
    ).toEqual(["b", "c", "a"]);
  });
});
