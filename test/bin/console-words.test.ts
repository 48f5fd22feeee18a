/** The console's words: a key's state as a sentence, its addresses, and when it polls. */
import { describe, expect, it } from "vitest";
import type { KeyView } from "../../bin/console/data.js";
import { endOf, wordOf } from "../../bin/held-text.js";
import { isOld, poll } from "../../bin/console/page/poll.js";
import { hrefOf, routeOf } from "../../bin/console/page/route.js";
import {
  breakCommand,
  keyTone,
  kindOf,
  oldSentenceOf,
  sentenceOf,
  signOfLife,
  shortToken,
  spanText,
  timeText,
  toneOf,
} from "../../bin/console/page/words.js";

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

/** A look at noon, `agoMs` after the answer. */
const NOON_MS = 12 * 3_600_000;
const noon = (agoMs = 0) => ({ nowMs: NOON_MS, agoMs, isUtc: true });
const waiter = (owner: string) => ({ owner, mode: "exclusive", priority: 0, position: 1, waitingMs: 5 }) as const;

describe("a key in words", () => {
  it.each<[string, KeyView, number, string]>([
    ["current", view([holder()]), 0, "Held by me since 11:59:35 (25s). Renewed 1s ago: its lease is current."],
    ["new", view([holder({ heldMs: 1_000 })]), 0, "Held by me since 11:59:59 (1s). Granted 1s ago: its lease is current."],
    [
      "late",
      view([holder({ remainingMs: 8_000 })]),
      0,
      "Held by me since 11:59:35 (25s). Not renewed for 22s: it may be dead. If it stays silent, the key is free in about 9s.",
    ],
    [
      "late since its grant, and waited for",
      view([holder({ remainingMs: 7_000, heldMs: 22_000 })], { waiters: [waiter("checkout-13")] }),
      1_000,
      "Held by me since 11:59:37 (23s). Not renewed since it was granted 24s ago: it may be dead. If it stays silent, checkout-13 gets the key in about 7s.",
    ],
    [
      "over",
      view([holder({ remainingMs: 900 })], { waiters: [waiter("b")] }),
      1_000,
      "Held by me since 11:59:34 (26s). Its lease is over: its holder didn't renew it. In a moment, b gets the key.",
    ],
    [
      "broken",
      view([holder({ breaking: true })]),
      0,
      "Held by me since 11:59:35 (25s). An operator broke this hold: it can't be renewed, and ends in 29s at the latest.",
    ],
    ["shared", view([holder(), holder()]), 0, "Held by 2 leases together."],
    ["offered", view([], { waiters: [waiter("b")] }), 0, "Free, and offered to b, who has 5s to claim it."],
    ["never used", view([], { fencingToken: 0 }), 0, "Free. No holder is on record."],
    ["free", view([]), 0, "Free."],
    [
      "free since a lease ran out",
      view([], { lapsed: [{ owner: "importer-9", fencingToken: 7, heldMs: 3000, endedAgoMs: 40_000 }] }),
      1_000,
      "Free since 11:59:19. importer-9's lease ran out; nobody has taken the key since.",
    ],
    [
      "free, and remembers its last lease",
      view([], { recent: [{ askedAgoMs: 31 * 60_000, ending: "taken" }] }),
      0,
      "Free. The last lease was asked for 31m ago (lost: its lease ran out).",
    ],
  ])("that is %s", (_, seen, agoMs, sentence) => {
    expect(sentenceOf(seen, noon(agoMs))).toBe(sentence);
  });

  it.each([
    ["released", "me released it"],
    ["broken", "An operator broke the hold of me"],
    ["expired", "me's lease ran out"],
    ["transferred", "The hold of me ended"],
  ])("that is free tells by the log since when, and how its last hold ended: %s", (ending, how) => {
    const sentence = sentenceOf(view([]), noon(), { owner: "me", endedAtMs: NOON_MS - 60_000, ending });
    expect(sentence).toBe(`Free since 11:59:00. ${how}; nobody has taken the key since.`);
  });

  it.each<[string, Holder, string]>([
    ["renewed", holder(), "me renewed 1s ago, so it is probably running."],
    ["was just granted", holder({ heldMs: 1000 }), "me was granted the key 1s ago, so it is probably running."],
    ["is late", holder({ remainingMs: 8000 }), "me has not renewed for 22s: it may be dead."],
    ["was broken before", holder({ breaking: true }), "me holds it."],
  ])("tells who is about to break it that its holder %s", (_, seen, sign) => {
    expect(signOfLife(seen, 0)).toBe(sign);
  });

  it.each([
    ["ORDER_1231", "", `holdfast break ORDER_1231 --token 7 --reason "…"`],
    ["a b's", "--table t", String.raw`holdfast --table t break 'a b'\''s' --token 7 --reason "…"`],
  ])("%s has a command for a shell that ends its hold", (key, options, command) => {
    expect(breakCommand(key, 7, options)).toBe(command);
  });

  it.each<[string, KeyView, string]>([
    ["held", view([holder({ remainingMs: 20_000 })]), "held by me, last renewed 10s before"],
    ["new", view([holder({ heldMs: 1_000 })]), "held by me, granted 1s before"],
    ["broken", view([holder({ breaking: true })]), "held by me, whose hold an operator had broken"],
    ["shared", view([holder(), holder()]), "held by 2 leases together"],
    ["free", view([]), "free"],
    [
      "offered",
      view([], { waiters: [{ owner: "b", mode: "exclusive", priority: 0, position: 1, waitingMs: 5 }] }),
      "free, and offered to b",
    ],
  ])("that was %s by an old answer is told as of its time, and nothing is concluded", (_, seen, state) => {
    expect(oldSentenceOf(seen, "22:18:39")).toBe(`At 22:18:39 it was ${state}. Not known since.`);
  });

  it("is without a bar and a judgement where the service doesn't tell the lease's length", () => {
    const { leaseMs: _unknown, ...old } = holder({ remainingMs: 8_000 });
    expect([sentenceOf(view([old]), noon()), toneOf(old)]).toEqual(["Held by me since 11:59:35 (25s). 8s of its lease are left.", "held"]);
  });

  it("has the state of its worst hold", () => {
    expect(keyTone(view([holder(), holder({ remainingMs: 10_000 })]))).toBe("late");
    expect(keyTone(view([holder({ breaking: true }), holder({ remainingMs: 0 })]))).toBe("over");
    expect(keyTone(view([]))).toBe("free");
    expect(keyTone(view([], { waiters: [{ owner: "b", mode: "exclusive", priority: 0, position: 1, waitingMs: 5 }] }))).toBe("waiting");
    // A lease of 30 s with 16 s left is late 2 s later.
    expect([keyTone(view([holder({ remainingMs: 16_000 })])), keyTone(view([holder({ remainingMs: 16_000 })]), 2_000)]).toEqual([
      "held",
      "late",
    ]);
  });

  it("tells permits, and the end of a token", () => {
    expect(kindOf(view([holder({ permits: 2 }), holder()], { limit: 5 }))).toBe("3 of 5 permits");
    expect([shortToken(12), shortToken(1_795_418_612_644)]).toEqual(["12", "…612644"]);
  });

  it("makes the marks of an owner that would turn the text around visible", () => {
    expect(sentenceOf(view([holder({ owner: "\u202Eevil" })]), noon())).toContain("Held by \u{FFFD}evil since");
  });

  it("tells the time that a picture shows", () => {
    expect([60_000, 600_000, 3_600_000].map((ms) => `in the last ${spanText(ms)}`)).toEqual([
      "in the last minute",
      "in the last 10m",
      "in the last hour",
    ]);
  });

  it("tells the time of day", () => {
    expect([timeText(0, true), timeText(1, true, true)]).toEqual(["00:00:00", "00:00:00.001"]);
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

describe("a poll", () => {
  /** A poll whose answers and time the test turns. */
  function polling() {
    const asked: { answer: (value: number) => void; fail: () => void }[] = [];
    const told: unknown[] = [];
    let timer: { readonly ms: number; readonly run: () => void } | undefined;
    const state = { isIdle: false };
    const running = poll<number>({
      ask: () => new Promise((answer, fail) => asked.push({ answer, fail: () => fail(new Error("down")) })),
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

  it("tells nothing once it is stopped", async () => {
    const { asked, told, running, settled, hasTimer } = polling();
    running.stop();
    asked[0]?.answer(1);
    await settled();
    running.wake();
    expect([told, asked.length, hasTimer()]).toEqual([[], 1, false]);
  });
});
