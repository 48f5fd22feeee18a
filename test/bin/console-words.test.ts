/** The console's words: a key's state as a sentence, its addresses, and when it polls. */
import { describe, expect, it } from "vitest";
import type { KeyView } from "../../bin/console/data.js";
import { poll } from "../../bin/console/page/poll.js";
import { hrefOf, routeOf } from "../../bin/console/page/route.js";
import { keyTone, kindOf, sentenceOf, shortToken, spanText, timeText, toneOf } from "../../bin/console/page/words.js";

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

describe("a key in words", () => {
  it.each<[string, KeyView, number, string]>([
    ["current", view([holder()]), 0, "Held by me. Renewed 1s ago: its lease is current."],
    ["new", view([holder({ heldMs: 1_000 })]), 0, "Held by me. Granted 1s ago: its lease is current."],
    [
      "late",
      view([holder({ remainingMs: 8_000 })]),
      0,
      "Held by me. Renewed 22s ago, and not since: its holder is late, or doesn't renew. Its lease ends in 8s.",
    ],
    [
      "over",
      view([holder({ remainingMs: 900 })]),
      1_000,
      "Held by me. Its lease is over: its holder didn't renew it. The key is free in a moment.",
    ],
    [
      "broken",
      view([holder({ breaking: true })]),
      0,
      "Held by me. An operator broke this hold: it can't be renewed, and ends in 29s at the latest.",
    ],
    ["shared", view([holder(), holder()]), 0, "Held by 2 leases together."],
    ["never used", view([], { fencingToken: 0 }), 0, "Free. No holder is on record."],
    ["free", view([]), 0, "Free."],
  ])("that is %s", (_, seen, agoMs, sentence) => {
    expect(sentenceOf(seen, agoMs)).toBe(sentence);
  });

  it("is without a bar and a judgement where the service doesn't tell the lease's length", () => {
    const { leaseMs: _unknown, ...old } = holder({ remainingMs: 8_000 });
    expect([sentenceOf(view([old])), toneOf(old)]).toEqual(["Held by me. 8s of its lease are left.", "held"]);
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
    expect(sentenceOf(view([holder({ owner: "\u202Eevil" })]))).toContain("Held by \u{FFFD}evil.");
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

  it("tells nothing once it is stopped", async () => {
    const { asked, told, running, settled, hasTimer } = polling();
    running.stop();
    asked[0]?.answer(1);
    await settled();
    running.wake();
    expect([told, asked.length, hasTimer()]).toEqual([[], 1, false]);
  });
});
