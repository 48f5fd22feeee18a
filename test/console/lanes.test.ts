/** Lines of the log as lanes, as counts over time and as the deeds of operators: the pure parts of the console. */
import { describe, expect, it } from "vitest";
import { bucketsOf, deedOf, isLoss, lossesBefore, lossesOf, reasonOf, refusalsSince, toldOnce } from "../../console/activity.js";
import type { Line } from "../../console/data.js";
import { type Gone, arranged, beginning, ending, firstSpan, heldWith, lanesOf, withAnswer, withPresent } from "../../console/lanes.js";

let seq = 0;
/** A line at `atMs` of the lease `lease`. */
function line(atMs: number, event: Line["event"], lease: string, more: Partial<Line> = {}): Line {
  return { seq: seq++, event, kind: "lock", key: "k", atMs, lease, owner: `owner of ${lease}`, ...more };
}

const token = (fencingToken: number) => ({ fencingToken });

describe("what repeats", () => {
  const refused = (atMs: number, owner: string, more: Partial<Line> = {}) =>
    line(atMs, "refused", `try at ${atMs}`, { owner, reason: "locked", ...more });
  const told = (lines: readonly Line[]) =>
    toldOnce(lines).map(({ line: { atMs, owner }, times, firstAtMs }) => [owner, atMs, times, firstAtMs]);

  it("is told once, at its latest: the refusals of each standby", () => {
    const lines = [
      line(0, "granted", "a", { owner: "leader" }),
      refused(1, "one"),
      refused(2, "two"),
      refused(8, "one"),
      refused(9, "two"),
    ];
    expect(told(lines)).toEqual([
      ["leader", 0, 1, 0],
      ["one", 8, 2, 1],
      ["two", 9, 2, 2],
    ]);
  });

  it("is told again after something else at the key, of another key, and for another reason", () => {
    expect(told([refused(1, "one"), line(2, "ended", "a", { owner: "leader" }), refused(3, "one")])).toHaveLength(3);
    expect(told([refused(1, "one"), refused(2, "one", { key: "other" }), refused(3, "one", { reason: "throttled" })])).toHaveLength(3);
  });

  it("is never anything but a refusal", () => {
    expect(told([line(1, "granted", "a"), line(1, "granted", "a")])).toHaveLength(2);
  });
});

describe("the keys of a set", () => {
  const granted = (lease: string, key: string, fencingToken: number) => line(0, "granted", lease, { key, ...token(fencingToken) });
  const lines = [granted("a", "k", 7), granted("a", "other", 3), granted("a", "more", 1), granted("b", "alone", 7)];

  it("are those that the log has of the same lease", () => {
    expect(heldWith("k", 7, lines)).toEqual(["more", "other"]);
    expect(heldWith("other", 3, lines)).toEqual(["k", "more"]);
  });

  it("are none of another lease, of a run, or of a hold that is over", () => {
    expect(heldWith("alone", 7, lines)).toEqual([]);
    expect(heldWith("k", 6, lines)).toEqual([]);
    expect(heldWith("k", 7, [...lines, line(1, "ended", "a", { key: "more" })])).toEqual(["other"]);
    expect(heldWith("k", 7, [granted("a", "k", 7), { ...granted("a", "other", 3), kind: "run" }])).toEqual([]);
  });
});

describe("lanes", () => {
  it("tell a wait, its offer, the hold and its end", () => {
    const lanes = lanesOf([
      line(100, "queued", "a", { position: 1 }),
      line(250, "offered", "a"),
      line(300, "granted", "a", { ...token(7), waitedMs: 205 }),
      line(900, "ended", "a", { ...token(7), heldMs: 600, reason: "released" }),
    ]);
    expect(lanes).toEqual([
      {
        id: "a",
        owner: "owner of a",
        wait: { fromMs: 100, toMs: 300 },
        hold: { fromMs: 300, toMs: 900, fencingToken: 7 },
        end: { atMs: 900, kind: "released" },
        moments: [{ atMs: 250, kind: "offered" }],
      },
    ]);
  });

  it("go on while nothing ended them", () => {
    const [held, waiting] = lanesOf([line(0, "granted", "a", token(1)), line(5, "queued", "b")]);
    expect([held?.hold, held && ending(held)]).toEqual([{ fromMs: 0, fencingToken: 1 }, Infinity]);
    expect([waiting?.wait, waiting && ending(waiting)]).toEqual([{ fromMs: 5 }, Infinity]);
  });

  it("tell the reason of a break, and that a waiter gave up or lost its place", () => {
    const lanes = lanesOf([
      line(0, "granted", "a", token(1)),
      line(1, "queued", "b"),
      line(2, "queued", "c"),
      line(3, "breaking", "a", { ...token(1), reason: "its machine is gone", by: "carol" }),
      line(4, "ended", "b", { reason: "cancelled" }),
      line(5, "skipped", "c"),
      line(6, "ended", "a", { ...token(1), heldMs: 6, reason: "broken" }),
    ]);
    expect(lanes.map(({ id, end }) => [id, end])).toEqual([
      ["a", { atMs: 6, kind: "broken" }],
      ["b", { atMs: 4, kind: "cancelled" }],
      ["c", { atMs: 5, kind: "skipped" }],
    ]);
    expect(lanes[0]).toMatchObject({ broken: { by: "carol", why: "its machine is gone" }, moments: [{ atMs: 3, kind: "breaking" }] });
    const [forced] = lanesOf([line(6, "ended", "d", { ...token(1), heldMs: 6, reason: "broken: its machine: gone", by: "dan" })]);
    expect([forced?.end, forced?.broken]).toEqual([
      { atMs: 6, kind: "broken" },
      { by: "dan", why: "its machine: gone" },
    ]);
    expect(lanes[1]?.wait).toEqual({ fromMs: 1, toMs: 4 });
  });

  it("have one hold for a lease that changed its mode, under the token that it has since", () => {
    const lanes = lanesOf([line(0, "granted", "a", token(1)), line(5, "changed", "a", { ...token(2), mode: "shared" })]);
    const present = [{ fencingToken: 2, owner: "a", heldMs: 10 }];
    expect(withPresent(lanes, present, 10)).toEqual([
      { id: "a", owner: "owner of a", hold: { fromMs: 0, fencingToken: 2 }, moments: [{ atMs: 5, kind: "changed" }] },
    ]);
  });

  it.each([
    ["succeeded", undefined],
    ["failed", true],
    ["retry", true],
  ] as const)("say of an attempt that recorded %s if it failed", (outcome, hasFailed) => {
    const lines = [line(0, "granted", "a", token(1)), line(5, "ended", "a", { reason: "released", heldMs: 5 })];
    expect(lanesOf([...lines, line(5, "recorded", "a", { outcome })])[0]?.hasFailed).toBe(hasFailed);
  });

  it("are shown for a minute at first, and all of them where none is in that", () => {
    const over = lanesOf([line(0, "granted", "a", token(1)), line(5, "ended", "a", { reason: "released", heldMs: 5 })]);
    const held = lanesOf([line(0, "granted", "b", token(2))]);
    const ALL = 0;
    expect([over, held, []].map((lanes) => [64, 65].map((nowMs) => firstSpan(lanes, 60, ALL, nowMs)))).toEqual([
      [60, ALL],
      [60, 60],
      [60, 60],
    ]);
  });

  it("draw a hold from its end alone, where the log begins in the middle of it", () => {
    const [lane] = lanesOf([line(900, "ended", "a", { ...token(7), heldMs: 600, reason: "taken" })]);
    expect(lane?.hold).toMatchObject({ fromMs: 300, fencingToken: 7 });
  });

  it("draw the wait of a caller that asked again and again, and none of a grant at once", () => {
    const lanes = lanesOf([line(5000, "granted", "a", { waitedMs: 4000 }), line(5000, "granted", "b", { waitedMs: 3 })]);
    expect(lanes.map(({ wait }) => wait)).toEqual([{ fromMs: 1000, toMs: 5000 }, undefined]);
  });

  it("leave out refusals, repeats, and releases of leases that never were", () => {
    const lines = [
      line(1, "refused", "a", { reason: "locked" }),
      line(2, "ended", "b", { reason: "cancelled" }),
      line(3, "granted", "c", { repeated: true }),
      line(4, "reset", "d"),
    ];
    expect(lanesOf(lines)).toEqual([]);
  });

  it("keep a hold that was handed over apart from the one that got it", () => {
    const lanes = lanesOf([
      line(0, "granted", "a", token(1)),
      line(10, "transferred", "b", token(2)),
      line(10, "ended", "a", { ...token(1), heldMs: 10, reason: "transferred" }),
    ]);
    expect(lanes.map(({ id, hold, end }) => [id, hold?.fromMs, end?.kind])).toEqual([
      ["a", 0, "transferred"],
      ["b", 10, undefined],
    ]);
  });

  it("tell a run's attempt and outcome", () => {
    const [lane] = lanesOf([
      line(0, "granted", "a", { ...token(1), attempt: 2 }),
      line(9, "ended", "a", { ...token(1), heldMs: 9, reason: "released" }),
      line(9, "recorded", "a", { attempt: 2, outcome: "succeeded" }),
    ]);
    expect([lane?.hold?.attempt, lane?.moments, lane?.hasFailed]).toEqual([2, [{ atMs: 9, kind: "recorded" }], undefined]);
  });

  it("tell a failed attempt from an occurrence that never ran", () => {
    const lanes = (["", "FinalError", "TickSkipped", "TickTooLate"] as const).map((errorName) =>
      lanesOf([line(0, "granted", "a", token(1)), line(9, "recorded", "a", { outcome: "failed", errorName })]),
    );
    expect(lanes.map(([lane]) => lane?.hasFailed)).toEqual([true, true, undefined, undefined]);
  });

  it("stand with the holders above, then who waits, then what is over; a long queue is one lane", () => {
    const few = lanesOf([
      line(0, "granted", "over", token(1)),
      line(1, "ended", "over", { ...token(1), heldMs: 1, reason: "released" }),
      line(2, "granted", "holder", token(2)),
      line(3, "queued", "b"),
      line(4, "queued", "c"),
    ]);
    expect(arranged(few, 24).map(({ id }) => id)).toEqual(["holder", "b", "c", "over"]);
    expect(arranged(few, 2).map(({ id }) => id)).toEqual(["holder", "b"]);
    const crowd = lanesOf([
      line(2, "granted", "holder", token(2)),
      ...Array.from({ length: 80 }, (_, at) => line(3 + at, "queued", `w${at}`)),
    ]);
    expect(arranged(crowd, 24).map(({ owner, wait }) => [owner, wait])).toEqual([
      ["owner of holder", undefined],
      ["80 waiting", { fromMs: 3 }],
    ]);
  });

  it("have the present holders: one without a line gets a lane, one that is gone ends", () => {
    const lanes = lanesOf([line(100, "granted", "a", token(1)), line(200, "granted", "b", token(2))]);
    const holders = [
      { fencingToken: 2, owner: "b", heldMs: 800 },
      { fencingToken: 3, owner: "old", heldMs: 950 },
    ];
    const shown = withPresent(lanes, holders, 1000, (fencingToken) => (fencingToken === 1 ? { lapsedAtMs: 700 } : undefined));
    expect(shown.map((lane) => [lane.owner, beginning(lane), ending(lane), lane.end?.kind])).toEqual([
      ["old", 50, Infinity, undefined],
      ["owner of a", 100, 700, "expired"],
      ["owner of b", 200, Infinity, undefined],
    ]);
    expect(shown[1]?.hold?.toMs).toBe(700);
  });

  it.each<[string, Gone | undefined, readonly [afterMs: number, atMs: number]]>([
    ["nobody saw it: after its last line", undefined, [150, 1000]],
    ["a page saw it held, and later gone", { heldAtMs: 300, goneAtMs: 350 }, [300, 350]],
    ["a page saw it only gone", { goneAtMs: 350 }, [150, 350]],
  ])("leave the end of a hold open where no line and no answer tells it: %s", (_, gone, [afterMs, atMs]) => {
    const lines = [line(100, "granted", "a", token(1)), line(150, "changed", "a", { ...token(1), mode: "shared" })];
    const [lane] = withPresent(lanesOf(lines), [], 1000, () => gone);
    expect(lane?.hold).toMatchObject({ fromMs: 100, toMs: afterMs });
    expect(lane?.end).toEqual({ atMs, afterMs, kind: "unknown" });
  });

  it("end where the lease ended, and not where somebody saw it", () => {
    const granted = line(0, "granted", "a", token(1));
    const [seen] = lanesOf([granted, line(43_000, "ended", "a", { ...token(1), heldMs: 43_000, lapsedMs: 40_000, reason: "taken" })]);
    expect([seen?.hold?.toMs, seen?.end]).toEqual([3000, { atMs: 3000, kind: "taken" }]);
    const [released] = lanesOf([granted, line(2000, "ended", "a", { ...token(1), heldMs: 2000, reason: "released" })]);
    expect([released?.hold?.toMs, released?.end]).toEqual([2000, { atMs: 2000, kind: "released" }]);
    // The line of its grant came 300 ms late.
    const [late] = lanesOf([
      line(300, "granted", "a", token(1)),
      line(3040, "ended", "a", { ...token(1), heldMs: 3020, lapsedMs: 20, reason: "taken" }),
    ]);
    expect(late?.hold).toMatchObject({ fromMs: 20, toMs: 3020 });
  });
});

describe("counts over time", () => {
  const lines = [
    line(-1, "granted", "z", { waitedMs: 9999 }),
    line(0, "granted", "a", { waitedMs: 5 }),
    line(9, "granted", "b", { waitedMs: 70 }),
    line(10, "refused", "c", { reason: "locked" }),
    line(11, "refused", "c", { reason: "other-hold" }),
    line(12, "refused", "c", { reason: "locked" }),
    line(29, "ended", "a", { heldMs: 29, reason: "taken" }),
    line(30, "granted", "d"),
  ];

  it("belong to their part of the time, and those outside to none", () => {
    expect(bucketsOf(lines, lossesOf(lines), 0, 10, 3)).toEqual([
      { fromMs: 0, granted: 2, refused: 0, lost: 0, longestWaitMs: 70 },
      { fromMs: 10, granted: 0, refused: 3, lost: 0, longestWaitMs: 0 },
      { fromMs: 20, granted: 0, refused: 0, lost: 1, longestWaitMs: 0 },
    ]);
  });

  it.each<[string, Partial<Line>, boolean]>([
    ["ran out", { heldMs: 1, reason: "expired" }, true],
    ["was broken", { heldMs: 1, reason: "broken: why" }, true],
    ["was released", { heldMs: 1, reason: "released" }, false],
    ["never held", { reason: "expired" }, false],
    ["is told again", { heldMs: 1, reason: "taken", repeated: true }, false],
  ])("a lease that %s is a loss or not", (_, more, isLost) => {
    expect(isLoss(line(0, "ended", "a", more))).toBe(isLost);
  });

  it("of a lease that ran out belongs to the time at which it did, whenever a request saw it", () => {
    const tenMinutesMs = 600_000;
    const taken = line(tenMinutesMs + 50, "ended", "a", { heldMs: tenMinutesMs, lapsedMs: tenMinutesMs, reason: "taken" });
    expect(lossesOf([taken])).toEqual([50]);
    expect(bucketsOf([taken], [50], 0, 100, 1)).toMatchObject([{ lost: 1 }]);
    expect([0, 49, 50, 51].map((at) => lossesBefore(tenMinutesMs + at, [50]))).toEqual([1, 1, 1, 0]);
  });

  it("have the leases that no line ends yet, each key of a set, and none twice", () => {
    const untold = ["K", "K2"].map((key) => ({ key, lease: "a", agoMs: 30 }));
    const taken = line(40, "ended", "a", { key: "K", heldMs: 30, lapsedMs: 10, reason: "taken" });
    expect(lossesOf([], untold, 50)).toEqual([20, 20]);
    expect(lossesOf([taken], untold, 50)).toEqual([30, 20]);
    expect(lossesOf([line(40, "ended", "a", { key: "K", heldMs: 30, reason: "released" })], untold, 50)).toEqual([20]);
    expect(lossesOf([line(40, "ended", "r", { kind: "run", heldMs: 30, reason: "taken" })])).toEqual([]);
  });

  it("tell the most frequent refusal first", () => {
    expect(refusalsSince(lines, 10)).toEqual([
      ["locked", 2],
      ["other-hold", 1],
    ]);
    expect(refusalsSince(lines, 12)).toEqual([["locked", 1]]);
  });
});

describe("the deeds of operators", () => {
  it.each<[string, Partial<Line> & Pick<Line, "event">, string | undefined]>([
    ["a break that lets the hold drain", { event: "breaking", reason: "gone" }, "drain"],
    ["a break that ends it at once", { event: "ended", reason: "broken: gone", heldMs: 1 }, "force"],
    ["a reset", { event: "reset", kind: "run", reason: "wrong" }, "reset"],
    ["the end of a hold that drained", { event: "ended", reason: "broken", heldMs: 1 }, undefined],
    ["an abandoned attempt that a reset ended", { event: "ended", kind: "run", reason: "broken: wrong" }, undefined],
    ["a release", { event: "ended", reason: "released" }, undefined],
    ["the offer of the key that a break freed", { event: "offered", reason: "gone" }, undefined],
    ["a repeated break", { event: "breaking", reason: "gone", repeated: true }, undefined],
  ])("%s is one or not", (_, { event, ...more }, deed) => {
    expect(deedOf(line(0, event, "a", more))).toBe(deed);
  });

  it("have the operator's own words", () => {
    expect(["gone", "broken: gone", "broken: broken: twice"].map((reason) => reasonOf({ reason }))).toEqual([
      "gone",
      "gone",
      "broken: twice",
    ]);
  });
});

describe("the answers about a lease of 30 s that is granted at 0 and renewed at 10 s", () => {
  /** Returns the lease by answers of these times: each is asked for, decided, and there. */
  const seen = (...answers: readonly (readonly [askedMs: number, decidedMs: number, atMs: number])[]) =>
    answers.reduce(
      (lease, [askedMs, decidedMs, atMs]) => {
        const remainingMs = 30_000 - (decidedMs < 10_000 ? decidedMs : decidedMs - 10_000);
        return withAnswer(lease, { remainingMs, leaseMs: 30_000, heldMs: decidedMs }, { askedMs, atMs });
      },
      { lastsUntilMs: 0, renewedAtMs: [] as readonly number[] },
    );

  it("show no renewal where one is slow on its way, and its end as the fastest tells it", () => {
    expect(seen([1000, 1010, 3000], [4000, 4010, 4020])).toEqual({ lastsUntilMs: 30_010, renewedAtMs: [] });
    expect(seen([1000, 1010, 1020], [4000, 4010, 9000])).toEqual({ lastsUntilMs: 30_010, renewedAtMs: [] });
  });

  it("show the renewal once, by the first answer after it that tells it for certain", () => {
    expect(seen([1000, 1010, 1020], [12_000, 12_010, 12_020], [14_000, 14_010, 19_000])).toEqual({
      lastsUntilMs: 40_010,
      renewedAtMs: [10_010],
    });
    expect(seen([12_000, 12_010, 12_020])).toEqual({ lastsUntilMs: 40_010, renewedAtMs: [10_010] });
  });
});
