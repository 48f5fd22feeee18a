/** The console's view over all keys that were read: figures, the keys that need a look, order and search. */
import { describe, expect, it } from "vitest";
import type { KeyView, RunOfKey } from "../../console/data.js";
import { canBeKey, figuresOf, locksOf, LONG_WAIT_MS, LOOKS_MAX, nextInOf, thatFit } from "../../console/overview.js";
import { MARGIN_MS } from "../../console/page/words.js";
import { formatSeconds } from "../../console/text/duration.js";
import { becameOf, DEFAULT_ATTEMPTS, hasUsedUp, lastsOf, nextOf, stateOf } from "../../console/text/run-text.js";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";

/** A key that is held by `owner` with a lease of 30 s, and waited for, for these times. */
function view(key: string, owner = "me", remainingMs = 29_000, ...waits: readonly number[]): KeyView {
  const holder = {
    owner,
    mode: "exclusive",
    permits: 1,
    fencingToken: 7,
    heldMs: 100_000 - remainingMs,
    remainingMs,
    leaseMs: 30_000,
  } as const;
  const waiters = waits.map((waitingMs, at) => ({
    owner: `waiter-${at}`,
    mode: "exclusive" as const,
    priority: 0,
    position: at + 1,
    waitingMs,
  }));
  return { key, version: 1, mode: "exclusive", fencingToken: 7, holders: [holder], waiters };
}

const EVERYTHING = { find: "", order: "wait", onlyWaited: false, rowsMax: 100 } as const;
const keysOf = (views: readonly { readonly key: string }[]) => views.map(({ key }) => key);

const READ = [
  view("CART_1"),
  view("ORDER_1231", "checkout-7", 5_000, 200, 90_000),
  view("ORDER_2", "checkout-8", 28_000, 70_000),
  view("Z"),
];

describe("the held keys", () => {
  it.each([
    ["wait", ["ORDER_1231", "ORDER_2", "CART_1", "Z"]],
    ["left", ["ORDER_1231", "ORDER_2", "CART_1", "Z"]],
    ["held", ["ORDER_1231", "ORDER_2", "CART_1", "Z"]],
    ["key", ["CART_1", "ORDER_1231", "ORDER_2", "Z"]],
  ] as const)("are sorted by %s before the rows are cut", (order, keys) => {
    expect(keysOf(locksOf(READ, { ...EVERYTHING, order }).items)).toEqual(keys);
    expect(locksOf(READ, { ...EVERYTHING, order, rowsMax: 1 })).toMatchObject({ items: [{ key: keys[0] }], fits: 4 });
  });

  it.each([
    ["1231", ["ORDER_1231"]],
    ["order_", ["ORDER_1231", "ORDER_2"]],
    ["Checkout-8", ["ORDER_2"]],
    ["waiter-1", ["ORDER_1231"]],
    ["nobody", []],
  ])("are found by %s: a part of the key, of its holder or of a waiter", (find, keys) => {
    const found = locksOf(READ, { ...EVERYTHING, find });
    expect([keysOf(found.items), found.fits]).toEqual([keys, keys.length]);
    // The figures are of all.
    expect(found.figures.held).toBe(4);
  });

  it("are found by the parts that the key was made from", () => {
    expect(
      keysOf(locksOf([{ ...view("stripe_evt~5F1"), parts: "stripe, evt_1" }, view("b")], { ...EVERYTHING, find: "evt_1" }).items),
    ).toEqual(["stripe_evt~5F1"]);
  });

  it("that are waited for are all found, and counted with their waiters and the holders that are late", () => {
    const { items, figures } = locksOf(READ, { ...EVERYTHING, onlyWaited: true, order: "key" });
    expect(keysOf(items)).toEqual(["ORDER_1231", "ORDER_2"]);
    expect(figures).toEqual({ held: 4, waiting: 3, waitedFor: 2, late: 1 });
  });

  it("need a look if their holder is late or a caller waits for long: the longest wait first, and only as many as are read", () => {
    const { looks, looksInAll } = locksOf(
      [view("late", "a", 1_000), view("short wait", "a", 29_000, LONG_WAIT_MS), view("long wait", "a", 29_000, LONG_WAIT_MS + 1), ...READ],
      { ...EVERYTHING, find: "nothing" },
    );
    expect(keysOf(looks)).toEqual(["ORDER_1231", "ORDER_2", "long wait", "late"]);
    expect(looksInAll).toBe(4);
    const many = Array.from({ length: 9 }, (_, at) => view(`k${at}`, "a", 9_000 - at));
    const most = locksOf(many, EVERYTHING);
    expect([keysOf(most.looks)[0], most.looks.length, most.looksInAll]).toEqual(["k8", LOOKS_MAX, 9]);
  });
});

describe("a search", () => {
  it.each(["1231", "ORDER_1231", "a:b.c~5F-d"])("for %s can be a key", (text) => expect(canBeKey(text)).toBe(true));
  it.each(["", "two words", "x".repeat(201), "ü"])("for %j can't", (text) => expect(canBeKey(text)).toBe(false));

  it("finds runs by key and owner", () => {
    const runs: readonly RunOfKey[] = [
      { key: "REFUND_1", state: "running", owner: "worker-3", attempt: 1, fencingToken: 1 },
      { key: "REFUND_2", state: "succeeded", attempt: 1, fencingToken: 2 },
    ];
    expect([keysOf(thatFit(runs, "d_2")), keysOf(thatFit(runs, "WORKER"))]).toEqual([["REFUND_2"], ["REFUND_1"]]);
  });
});

describe("the figures", () => {
  const said = (more: boolean, read = 4) =>
    figuresOf({ figures: { held: 4, waiting: 0, waitedFor: 0, late: 1 }, more, read }).map(({ count, text }) => `${count} ${text}`);

  it("are of all held keys", () => expect(said(false)).toEqual(["4 keys held", "0 callers waiting", "1 holder not renewed in time"]));

  it("are the least that there are, and say of how many keys, as long as not all were read", () => {
    expect(said(true, 500)).toEqual([
      "≥ 4 keys held, of 500 read",
      "≥ 0 callers waiting, of 500 read",
      "≥ 1 holder not renewed in time, of 500 read",
    ]);
  });
});

describe("a failed run", () => {
  const failed = (attempt: number, retryable = true) => ({ key: "REFUND_18", state: "failed", retryable, attempt }) as const;

  it.each([
    [failed(4), "failed, can be retried", "failed, and can be retried", false],
    [failed(5), "failed 5 times, refused until reset", "failed 5 times, and is refused until it is reset", true],
    [failed(7), "failed 7 times, past the default limit", "failed 7 times, past the default limit", true],
    [failed(5, false), "failed", "failed", false],
    [{ ...failed(1, false), errorName: "TickTooLate" }, "too late", "came too late", false],
    [{ key: "REFUND_18", state: "interrupted", attempt: 5 } as const, "interrupted", "was interrupted", false],
  ])("%j is %s, and %s", (run, text, became, isUsedUp) => {
    expect([stateOf(run), becameOf(run), hasUsedUp(run)]).toEqual([text, became, isUsedUp]);
  });

  it("that was interrupted needs a start", () => {
    const start = "start it again, unless something does by itself: that takes over";
    expect(nextOf({ state: "interrupted" })).toBe(`${start}. Until then it stays unfinished`);
    expect(nextOf({ state: "interrupted", checkpoint: 3 })).toBe(`${start} from this checkpoint. Until then it stays unfinished`);
  });

  it.each([
    [{ heldMs: 61_000 }, "has run for 1m 1s"],
    [{ heldMs: 61_000, remainingMs: 20_000 }, "has run for 1m 1s, and ends in 20s unless it is renewed"],
    [{ endedAgoMs: 61_000 }, "ended 1m 1s ago"],
    [{ endedAgoMs: 61_000, tookMs: 2000 }, "ended 1m 1s ago and took 2s"],
    [{ endedAgoMs: 61_000, tookMs: 2000, keptForMs: 86_400_000 }, "ended 1m 1s ago, took 2s and is kept for 1d"],
    [{ keptForMs: "forever" } as const, "is kept for ever"],
    [{}, ""],
  ])("with %j lasts: %s", (run, text) => expect(lastsOf(run)).toBe(text));

  it("has used up its attempts by the service's own default, as the time until a takeover is the core's", () => {
    expect(DEFAULT_ATTEMPTS).toBe(DEFAULTS.maxAttempts);
    expect(MARGIN_MS).toBe(takeoverMarginMs(0) - 1);
  });
});

describe("a duration in a live list", () => {
  it.each([
    [0, "0s"],
    [1, "<1s"],
    [999, "<1s"],
    [1_000, "1s"],
    [61_000, "1m 1s"],
    [-5, "0s"],
  ])("of %i ms is %s", (ms, text) => expect(formatSeconds(ms)).toBe(text));
});

it.each([
  ["without permits", undefined, 0],
  ["with one that is free", { out: 1, of: 2, waiting: 0 }, 0],
  ["with none that is free", { out: 2, of: 2, waiting: 0 }, undefined],
  ["with one for which others wait", { out: 1, of: 2, waiting: 1 }, undefined],
])("the time of the next start of a limit is known, unless it waits for a permit: %s", (_what, permits, nextInMs) => {
  expect(nextInOf({ key: "k", nextInMs: 0, ...(permits && { permits }) })).toBe(nextInMs);
});
