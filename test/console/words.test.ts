/** The console's words: a key's state as a sentence, its addresses, and when it polls. */
import { describe, expect, it } from "vitest";
import type { KeyView } from "../../console/data.js";
import { endOf, wordOf } from "../../console/text/held-text.js";
import { ApiError } from "../../console/page/api.js";
import { learnOffset, serviceNowMs, skewMs } from "../../console/page/clock.js";
import { isOld, poll } from "../../console/page/poll.js";
import { hrefOf, routeOf } from "../../console/page/route.js";
import { type Asked, skewText, statusOf } from "../../console/page/status.js";
import {
  afterText,
  breakCommand,
  keyTone,
  kindOf,
  lifeOf,
  sentence,
  shortToken,
  stateText,
  timeText,
  whenText,
} from "../../console/page/words.js";

type Holder = KeyView["holders"][number];
const holder = (more: Partial<Holder> = {}): Holder => ({
  owner: "me",
  mode: "exclusive",
  permits: 1,
  fencingToken: 1_795_418_612_644,
  heldMs: 25_000,
  remainingMs: 29_000,
  leaseMs: 30_000,
  ...more,
});
const view = (holders: readonly Holder[], more: Partial<KeyView> = {}): KeyView => ({
  key: "k",
  version: 1,
  mode: "exclusive",
  fencingToken: 7,
  holders,
  waiters: [],
  ...more,
});

const waiter = (owner: string) => ({ owner, mode: "exclusive", priority: 0, position: 1, waitingMs: 5 }) as const;
const offered = (owner: string) => ({ ...waiter(owner), offered: true }) as const;
const ended = { fencingToken: 7, heldMs: 3000, endedAgoMs: 40_000 };

describe("a key in words", () => {
  it.each<[string, KeyView, string]>([
    ["current", view([holder()]), "held by me for 25s, renewed 1s ago"],
    ["new", view([holder({ heldMs: 1_000 })]), "held by me for 1s, not renewed yet: its lease is current"],
    ["waited for", view([holder()], { waiters: [waiter("b"), waiter("c")] }), "held by me for 25s, renewed 1s ago; 2 wait, next b"],
    [
      "late",
      view([holder({ remainingMs: 8_000 })]),
      "held by me for 25s, not renewed for 22s: it may be dead, and if it stays silent, the key is free in about 9s",
    ],
    [
      "late since its grant, and waited for",
      view([holder({ remainingMs: 7_000, heldMs: 23_000 })], { waiters: [waiter("b")] }),
      "held by me for 23s, not renewed since: it may be dead, and if it stays silent, b gets the key in about 8s; b waits",
    ],
    [
      "over",
      view([holder({ remainingMs: 0 })], { waiters: [waiter("b")] }),
      "held by me for 25s, but its lease is over without a renewal: in a moment b gets the key; b waits",
    ],
    [
      "broken",
      view([holder({ breaking: true })]),
      "held by me for 25s, broken by an operator: it can't be renewed, and ends in 29s at the latest",
    ],
    ["shared", view([holder(), holder()]), "held by 2 leases together"],
    [
      "shared with one that is late",
      view([holder(), holder({ remainingMs: 1 })]),
      "held by 2 leases together, 1 of them not renewed in time",
    ],
    ["a semaphore", view([holder()], { limit: 3 }), "1 of 3 permits is out"],
    [
      "a semaphore at its limit",
      view([holder({ permits: 2 }), holder()], { limit: 3, waiters: [waiter("b"), waiter("c")] }),
      "all 3 permits are out; 2 wait, next b",
    ],
    ["offered", view([], { waiters: [offered("b")] }), "free, and offered to b, who has a few seconds to claim it"],
    ["free, and waited for without an offer", view([], { waiters: [waiter("dead")] }), "free; dead waits"],
    ["never used", view([], { fencingToken: 0 }), "free; no holder is on record"],
    ["free", view([]), "free"],
    ["free since a lease ran out", view([], { lapsed: [{ owner: "importer-9", ...ended }] }), "free for 40s: importer-9's lease ran out"],
    [
      "free, and remembers its last lease",
      view([], { recent: [{ askedAgoMs: 31 * 60_000, ending: "taken" }] }),
      "free; its last lease was asked for 31m ago (lost: its lease ran out)",
    ],
  ])("that is %s", (_, seen, text) => {
    expect(stateText(seen)).toBe(text);
  });

  /** A key by whose rule the end of the hold under each token lets in the waiters at `next`. */
  const told = (tokens: readonly number[], next: readonly number[], more: Partial<KeyView> = {}): KeyView =>
    view(
      tokens.map((fencingToken) => holder({ fencingToken, owner: `h${fencingToken}` })),
      { ifBroken: tokens.map((fencingToken) => ({ fencingToken, breakInMs: 31_000, next })), ...more },
    );

  it.each<[string, KeyView, string]>([
    ["of a sole holder", told([1], []), "the key is free at once"],
    ["of one that is waited for", told([1], [1], { waiters: [waiter("b"), waiter("c")] }), "b gets the key at once"],
    ["of a writer before readers", told([1], [1, 2], { waiters: [waiter("b"), waiter("c")] }), "b and c get the key at once"],
    [
      "of one of three readers, for which a writer waits",
      told([1, 2, 3], [], { waiters: [waiter("w")] }),
      "its hold is over at once: the key stays held by 2 others, and nobody who waits gets in",
    ],
    ["of one of two readers", told([1, 2], []), "its hold is over at once: the key stays held by h2"],
    [
      "of a permit, where the first in the queue needs all three",
      told([1, 2, 3], [], { limit: 3, waiters: [{ ...waiter("s3"), permits: 3 }] }),
      "its hold is over at once: 2 of 3 permits stay out, and nobody who waits gets in",
    ],
    [
      "of a permit, which makes room for many",
      told([1, 2], [1, 2, 3, 4], { limit: 9, waiters: ["a", "b", "c", "d"].map(waiter) }),
      "its hold is over at once: 1 of 9 permits stays out, and a, b and 2 more get in",
    ],
    [
      "of one of two, told by a list",
      view([holder(), holder({ fencingToken: 2 })], { waiters: [waiter("w")] }),
      "its hold is over at once",
    ],
    ["of a sole one, told by a list", view([holder()], { waiters: [waiter("w")] }), "w gets the key at once"],
  ])("tells what the end of a hold does to its key: %s", (_, seen, text) => {
    expect(afterText(seen, seen.holders[0]!, "at once")).toBe(text);
  });

  it("tells of one of several that is late who gets in then, and nothing of a free key", () => {
    const readers = told([1, 2], [], { waiters: [waiter("w")] });
    expect(lifeOf({ ...readers.holders[0]!, remainingMs: 8_000 }, readers)).toBe(
      "not renewed for 22s: it may be dead, and if it stays silent, its hold is over in about 31s: the key stays held by h2, and nobody who waits gets in",
    );
  });

  it.each([
    ["released", "me released it"],
    ["broken", "an operator broke the hold of me"],
    ["expired", "me's lease ran out"],
    ["transferred", "the hold of me ended"],
  ])("that is free tells by the log since when, and how its last hold ended: %s", (ending, how) => {
    const text = stateText(view([]), (ms) => `since ${ms}`, { owner: "me", endedAgoMs: 60_000, ending });
    expect(sentence(text)).toBe(`Free since 60000: ${how}.`);
  });

  it.each([
    ["ORDER_1231", "", `holdfast break ORDER_1231 --token 7 --reason "…"`],
    ["a b's", "--table t", String.raw`holdfast --table t break 'a b'\''s' --token 7 --reason "…"`],
  ])("%s has a command for a shell that ends its hold", (key, options, command) => {
    expect(breakCommand(key, 7, options)).toBe(command);
  });

  it("has the state of its worst hold", () => {
    expect(keyTone(view([holder(), holder({ remainingMs: 10_000 })]))).toBe("late");
    expect(keyTone(view([holder({ breaking: true }), holder({ remainingMs: 0 })]))).toBe("over");
    expect(keyTone(view([]))).toBe("free");
    expect([keyTone(view([], { waiters: [offered("b")] })), keyTone(view([], { waiters: [waiter("b")] }))]).toEqual(["waiting", "free"]);
  });

  it("tells permits, and the end of a token", () => {
    expect(kindOf(view([holder({ permits: 2 }), holder()], { limit: 5 }))).toBe("3 of 5 permits");
    expect([shortToken(12), shortToken(1_795_418_612_644)]).toEqual(["12", "…612644"]);
  });

  it("makes the marks of an owner that would turn the text around visible", () => {
    expect(stateText(view([holder({ owner: "\u202Eevil" })]))).toContain("held by \u{FFFD}evil for");
  });

  it("tells the time of day", () => {
    expect([timeText(0, true), timeText(1, true, true)]).toEqual(["00:00:00", "00:00:00.001"]);
  });

  it.each([
    ["2026-11-30T23:59:59Z", "23:59:59"],
    ["2026-11-29T23:59:59Z", "Nov 29, 23:59:59"],
    ["2026-12-01T00:00:00Z", "Dec 1, 00:00:00"],
    ["2025-11-30T12:00:00Z", "Nov 30, 2025, 12:00:00"],
  ])("tells %s with its date unless that is today's", (at, text) => {
    expect(whenText(Date.parse(at), Date.parse("2026-11-30T12:00:00Z"), true)).toBe(text);
  });
});

describe("a line of the log in words", () => {
  it.each<[string, object, string, object]>([
    ["a release", { reason: "released", heldMs: 3000 }, "released", { why: "", held: "held 3s" }],
    [
      "a lease that another took over",
      { reason: "taken", heldMs: 43_000, lapsedMs: 40_000 },
      "lost",
      { why: "lease ran out", held: "held at most 3s, taken 40s later" },
    ],
    ["a late release", { reason: "expired", heldMs: 5000, lapsedMs: 2000 }, "lost", { why: "lease ran out", held: "held at most 3s" }],
    ["a break", { reason: "broken: its machine: gone", heldMs: 3000 }, "broken", { why: "its machine: gone", held: "held at most 3s" }],
    ["a waiter that leaves", { reason: "cancelled" }, "gave up", { why: "", held: "" }],
    ["a hand-over", { reason: "transferred", heldMs: 10 }, "handed on", { why: "", held: "held 10ms" }],
    ["an end that nobody knows", { reason: "unknown", heldMs: 3000 }, "ended", { why: "unknown", held: "held at most 3s" }],
    ["a waiter that is silent", { event: "skipped" }, "lost place", { why: "it did not ask again in time", held: "" }],
    ["a refusal", { event: "refused", reason: "locked" }, "refused", { why: "locked", held: "" }],
  ])("tells %s by a word of its own", (_, line, word, end) => {
    const told = { event: "ended", ...line };
    expect([wordOf(told), endOf(told)]).toEqual([word, end]);
  });
});

describe("an address", () => {
  it.each(["ORDER_1", "a~5Fb", "..", "a:b", "100%"])("keeps the key %s", (key) => {
    expect(routeOf(hrefOf("locks", key))).toMatchObject({ place: "locks", key });
  });

  it("keeps the filters, and leaves out empty ones", () => {
    const href = hrefOf("runs", undefined, { prefix: "a&b=", state: "" });
    expect(href).toBe("#/runs?prefix=a%26b%3D");
    expect(routeOf(href).query.get("prefix")).toBe("a&b=");
  });

  it.each(["", "#", "#/", "#/nowhere", "#secret=x"])("%j is the list of locks", (hash) => {
    expect(routeOf(hash)).toMatchObject({ place: "locks" });
    expect(routeOf(hash).key).toBeUndefined();
  });
});

describe("the header", () => {
  const NOW_MS = 1_000_000_000_000;
  const SECOND_MS = 1000;
  /** A poll whose last answer and present request are so many seconds old. */
  const asked = (answeredS?: number, askedS?: number, more: Partial<Asked> = {}): Asked => ({
    everyMs: 5 * SECOND_MS,
    sinceMs: NOW_MS - 600 * SECOND_MS,
    data: {},
    ...(answeredS !== undefined && { atMs: NOW_MS - answeredS * SECOND_MS }),
    asked: { current: askedS === undefined ? undefined : NOW_MS - askedS * SECOND_MS },
    ...more,
  });
  const refused = (code: string, status?: number) => asked(3, undefined, { error: new ApiError({ code, message: "no", status }) });
  const many = { data: { requests: 20 } };
  const said = (views: readonly Asked[], others: readonly Asked[] = []): string => {
    const { tone, state, age } = statusOf(views, others, NOW_MS);
    return `${tone}: ${state} ${age}`.trim();
  };

  it.each<[string, Asked, string]>([
    ["that was answered", asked(2), "held: live answered 2s ago"],
    ["that asks again", asked(6, 1), "held: live answered 6s ago"],
    ["that missed one answer", asked(10, 5.1), "late: no answer yet for 5s"],
    ["that missed two", asked(11, 10.1), "over: no answer for 11s"],
    ["that is stopped at a look of 20 requests", asked(101, 21, many), "late: no answer yet for 21s"],
    ["that is stopped there for longer", asked(141, 41, many), "over: no answer for 2m 21s"],
    ["answered just now", asked(0), "held: live answered <1s ago"],
    ["after a look of 20 requests", asked(10, undefined, many), "held: live answered 10s ago"],
    ["that rests after one for longer than an interval", asked(10.1, undefined, many), "unknown: resting answered 10s ago, asks in 1m 29s"],
    ["that rests after one for long", asked(40, undefined, many), "unknown: resting answered 40s ago, asks in 1m"],
    ["that asks again after one", asked(101, 1, many), "unknown: asking answered 1m 41s ago"],
    ["that was never answered", asked(undefined, 1, { sinceMs: NOW_MS - 1000 }), "unknown: asking"],
    ["that gets 401", refused("not-configured", 401), "over: not accepted, or not set up (401) for 3s"],
    ["that has no credentials", refused("not-configured"), "over: not accepted, or not set up for 3s"],
    ["that gets 403", refused("forbidden", 403), "over: not allowed (403) for 3s"],
    ["that gets 429", refused("throttled", 429), "over: throttled (429) for 3s"],
    ["of a throttled table", refused("throttled"), "over: throttled for 3s"],
    ["that gets 503", refused("unavailable", 503), "over: failing (503) for 3s"],
    ["that gets 504", refused("unavailable", 504), "over: failing (504) for 3s"],
    ["whose service gets no answer", refused("unavailable"), "over: no answer for 3s"],
    ["that fails in the console itself", asked(3, undefined, { error: new TypeError("no") }), "over: failing for 3s"],
    ["that gets a page", refused("no-answer"), "over: no answer of holdfast for 3s"],
    ["that nobody answers", refused("unreachable"), "over: no answer for 3s"],
    ["that gets another refusal", refused("contended"), "over: refused (contended) for 3s"],
  ])("says of a view %s", (_, view, text) => {
    expect(said([view])).toBe(text);
    // Answers to other polls make no view live.
    expect(said([view], [asked(1)])).toBe(text);
  });

  it("says that another poll of the service fails, and isn't live while one of two polls of the view was never answered", () => {
    expect(said([asked(40, undefined, many)], [refused("unavailable", 503)])).toBe("over: failing (503) for 3s");
    expect(said([asked(1), asked(undefined, 1, { sinceMs: NOW_MS - 1000 })])).toBe("unknown: asking");
  });

  it("says how far this device's clock is from the service's, of which all times are", () => {
    const HOUR_MS = 3_600_000;
    const nowMs = Date.now();
    for (const [awayMs, text] of [
      [0, ""],
      [-HOUR_MS - 500, "this device's clock is 1h ahead: times are the service's"],
      [HOUR_MS + 500, "this device's clock is 1h behind: times are the service's"],
      [4000, ""],
    ] as const) {
      learnOffset(nowMs + awayMs, nowMs, nowMs);
      expect(skewText(skewMs())).toBe(text);
      expect(Math.abs(serviceNowMs() - nowMs - awayMs)).toBeLessThan(HOUR_MS / 10);
    }
    learnOffset(nowMs, nowMs, nowMs);
  });

  it("keeps the offset of the quickest answer, which errs least", () => {
    const nowMs = Date.now();
    learnOffset(nowMs + 60_000, nowMs, nowMs + 10);
    learnOffset(nowMs + 61_900, nowMs, nowMs + 2000);
    expect(skewMs()).toBe(-59_995);
    learnOffset(nowMs, nowMs, nowMs);
    expect(skewMs()).toBeUndefined();
  });
});

describe("a poll", () => {
  /** A poll whose answers and time the test turns. */
  function polling() {
    const asked: { reader: AbortSignal; answer: (value: unknown) => void; fail: () => void }[] = [];
    const told: unknown[] = [];
    let timer: { readonly ms: number; readonly run: () => void } | undefined;
    const state = { isIdle: false };
    const running = poll({
      ask: (reader) => new Promise((answer, fail) => asked.push({ reader, answer, fail: () => fail(new Error("down")) })),
      tell: (result) => told.push("data" in result ? result.data : "failed"),
      everyMs: 1000,
      isIdle: () => state.isIdle,
      later(ms, run) {
        timer = { ms, run };
        return () => (timer = undefined);
      },
    });
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    const next = async (): Promise<number | undefined> => {
      const { ms, run } = timer ?? {};
      run?.();
      await settled();
      return ms;
    };
    return { asked, told, state, running, settled, next, hasTimer: () => timer !== undefined };
  }

  it("sends the next request only after the answer to the last, however often it is woken", async () => {
    const { asked, told, running, settled, next, hasTimer } = polling();
    running.wake();
    running.wake();
    expect([asked.length, hasTimer()]).toEqual([1, false]);
    asked[0]?.answer(7);
    await settled();
    expect([told, await next(), asked.length]).toEqual([[7], 1000, 2]);
    running.stop();
  });

  it("sends none while nobody looks, and one at once when somebody does", async () => {
    const { asked, state, running, settled, next, hasTimer } = polling();
    asked[0]?.answer(1);
    await settled();
    state.isIdle = true;
    await next();
    running.wake();
    expect([asked.length, hasTimer()]).toEqual([1, false]);
    state.isIdle = false;
    running.wake();
    expect(asked.length).toBe(2);
    running.stop();
  });

  it("waits longer after each failure, up to a minute, and not after an answer", async () => {
    const { asked, running, settled, next } = polling();
    const waits: (number | undefined)[] = [];
    for (let failure = 0; failure < 8; failure++) {
      asked.at(-1)?.fail();
      await settled();
      waits.push(await next());
    }
    expect(waits).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000]);
    asked.at(-1)?.answer(1);
    await settled();
    expect(await next()).toBe(1000);
    running.stop();
  });

  it.each<[string, unknown, number, boolean]>([
    ["of one request", {}, 5000, false],
    ["of one request", {}, 5001, true],
    ["of three requests, after which the poll rests three times as long", { requests: 3 }, 13_000, false],
    ["of three requests", { requests: 3 }, 13_001, true],
    ["that never came", undefined, 5001, true],
  ])("makes an answer %s old after two intervals and a request's time: %j, %i ms", (_, data, ageMs, old) => {
    expect(isOld(ageMs, 2000, data)).toBe(old);
  });

  it("rests for as many intervals as the last answer took requests", async () => {
    const { asked, running, settled, next } = polling();
    asked[0]?.answer({ requests: 4 });
    await settled();
    expect(await next()).toBe(4000);
    running.stop();
  });

  it("tells nothing once it is stopped, and aborts what it asked", async () => {
    const { asked, told, running, settled, hasTimer } = polling();
    running.stop();
    expect(asked[0]?.reader.aborted).toBe(true);
    asked[0]?.answer(1);
    await settled();
    running.wake();
    expect([told, asked.length, hasTimer()]).toEqual([[], 1, false]);
  });
});
