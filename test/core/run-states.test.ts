/**
 * Every state of a run × every command. A cell is the answer, then `→` and the record after it, if it changed: the
 * run's state and attempt (`!` a takeover, `*` with a checkpoint, `=` with an outcome, `-` no run), then the holder.
 */
import { describe, expect, it } from "vitest";
import type { Command } from "../../lib/core/commands.js";
import type { Tombstone, LockRecord, Run } from "../../lib/core/record.js";
import {
  at,
  complete,
  DAY_MS,
  decided,
  hold,
  LEASE_MS,
  MARGIN_MS,
  ME,
  NOW_MS,
  OTHER,
  over,
  record,
  run,
  said,
  start,
  BY_ME,
  BY_OTHER,
} from "./run-parts.js";

const CHECKPOINT = { digest: "c", bytes: 1, text: "1" };
const RESULT = { digest: "r", bytes: 1, text: "2" };

/** The columns of the tables. */
const COMMANDS: readonly Command[] = [
  start(),
  complete("succeeded", { payload: RESULT }),
  complete("failed"),
  complete("retry"),
  { type: "renew", key: "k", leaseId: ME, principal: "me" },
  { type: "release", key: "k", leaseId: ME, principal: "me" },
  { type: "reset", key: "k" },
];

const mine = (over: Parameters<typeof hold>[0] = {}): Pick<LockRecord, "holds"> => ({ holds: { [ME]: hold(over) } });
const others = (over: Parameters<typeof hold>[0] = {}): Pick<LockRecord, "holds"> => ({
  holds: { [OTHER]: hold({ principal: "someone", ...over }) },
});
const ended = (ending: Tombstone["ending"]): Pick<LockRecord, "tombstones"> => ({ tombstones: [{ leaseId: ME, ending }] });
const recordedByMe = (state: "succeeded" | "failed" | "retry", attempt = 1): Run => ({
  ...run({ state, attempt }),
  outcome: {
    ...BY_ME,
    ...(state === "succeeded" && { payload: RESULT }),
    ...(state !== "retry" && { keptUntilMs: NOW_MS + DAY_MS }),
  },
});
const RUN_OUT = { expiresAtMs: NOW_MS };
const TAKEABLE = { expiresAtMs: NOW_MS - MARGIN_MS };

interface State {
  readonly state: string;
  readonly known: LockRecord | undefined;
  readonly cells: string;
}
const state = (name: string, known: Partial<LockRecord> | undefined, ...cells: string[]): State => ({
  state: name,
  known: known && record(known),
  cells: cells.join(" | "),
});

// prettier-ignore
const STATES: readonly State[] = [
  //                                           start                    succeeded                     failed                         retry                           renew                            release                  reset
  state("nobody ran it", undefined,
    "granted → R1 me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → -", "not-found"),
  state("its only start was given up", { tombstones: [{ leaseId: OTHER, ending: "released" }] },
    "granted → R1 me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → -", "reset"),
  state("I run it", { ...mine(), run: run() },
    "replayed", "recorded → S1=", "recorded → F1=", "recorded → T1=", "renewed → R1 me", "released → -", "run-in-progress"),
  state("I run it and saved a checkpoint", { ...mine(), run: run({ checkpoint: CHECKPOINT }) },
    "replayed", "recorded → S1=", "recorded → F1=", "recorded → T1*=", "renewed → R1* me", "released → -", "run-in-progress"),
  state("I run it, and others failed before", { ...mine(), run: run({ attempt: 3, checkpoint: CHECKPOINT }) },
    "replayed", "recorded → S3=", "recorded → F3=", "recorded → T3*=", "renewed → R3* me", "released → T2*", "run-in-progress"),
  state("I took it over", { ...mine(), run: run({ attempt: 2, takeover: true, checkpoint: CHECKPOINT }) },
    "replayed", "recorded → S2!=", "recorded → F2!=", "recorded → T2!*=", "renewed → R2!* me", "released → I1*", "run-in-progress"),
  state("my lease ran out, nobody took over", { ...mine(RUN_OUT), run: run({ checkpoint: CHECKPOINT }) },
    "lease-over", "recorded → S1=", "recorded → F1=", "recorded → T1*=", "lease-lost: expired", "expired → -", "run-in-progress"),
  state("my lease ran out, margin included", { ...mine(TAKEABLE), run: run({ attempt: 2 }) },
    "lease-over", "recorded → S2=", "recorded → F2=", "recorded → T2=", "lease-lost: expired", "expired → T1", "reset → -"),
  state("another principal runs it under my id", { ...mine({ principal: "someone" }), run: run() },
    "forbidden", "forbidden", "forbidden", "forbidden", "forbidden", "forbidden", "run-in-progress"),
  state("another runs it", { ...others(), run: run() },
    "run-in-progress", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → R1 other", "run-in-progress"),
  state("another took it over from me", { ...others(), ...ended("taken"), run: run({ attempt: 2, takeover: true }) },
    "lease-over", "lease-lost: taken", "lease-lost: taken", "lease-lost: taken", "lease-lost: taken", "lost", "run-in-progress"),
  state("another ran it, and its lease ran out", { ...others(TAKEABLE), run: run({ checkpoint: CHECKPOINT }) },
    "granted → R2!* me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → R1* other", "reset → -"),
  state("interrupted", { run: run({ state: "interrupted", attempt: 2, checkpoint: CHECKPOINT }) },
    "granted → R3!* me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → I2*", "reset → -"),
  state("another failed, and it may be tried again", { run: run({ state: "retry", outcome: BY_OTHER, checkpoint: CHECKPOINT }) },
    "granted → R2*= me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → T1*=", "reset → -"),
  state("I failed, and it may be tried again", { ...ended("released"), run: recordedByMe("retry") },
    "lease-over", "outcome-differs", "outcome-differs", "replayed", "lease-lost: released", "released", "reset → -"),
  state("I failed, and another tries again", { ...others(), ...ended("released"), run: { ...recordedByMe("retry"), state: "running", attempt: 2 } },
    "lease-over", "outcome-differs", "outcome-differs", "replayed", "lease-lost: released", "released", "run-in-progress"),
  state("I failed, another tried again and fell silent", { ...others(TAKEABLE), ...ended("released"), run: { ...recordedByMe("retry"), state: "running", attempt: 2 } },
    "lease-over", "outcome-differs", "outcome-differs", "replayed", "lease-lost: released", "released", "reset → -"),
  state("I failed, and another did, too", { ...ended("released"), run: run({ state: "retry", attempt: 2, outcome: BY_OTHER }) },
    "lease-over", "lease-lost: released", "lease-lost: released", "lease-lost: released", "lease-lost: released", "released", "reset → -"),
  state("I succeeded", { ...ended("released"), run: recordedByMe("succeeded") },
    "succeeded", "replayed", "outcome-differs", "outcome-differs", "lease-lost: released", "released", "reset → -"),
  state("I succeeded past my lease", { ...ended("expired"), run: recordedByMe("succeeded", 2) },
    "succeeded", "replayed", "outcome-differs", "outcome-differs", "lease-lost: expired", "expired", "reset → -"),
  state("I failed for good", { ...ended("released"), run: recordedByMe("failed") },
    "failed", "outcome-differs", "replayed", "outcome-differs", "lease-lost: released", "released", "reset → -"),
  state("another succeeded", { run: over() },
    "succeeded", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → S1=", "reset → -"),
  state("another took over from me and succeeded", { ...ended("taken"), run: over("succeeded", { attempt: 2 }) },
    "succeeded", "lease-lost: taken", "lease-lost: taken", "lease-lost: taken", "lease-lost: taken", "lost", "reset → -"),
  state("another failed for good", { run: over("failed") },
    "failed", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → F1=", "reset → -"),
  state("another succeeded, long ago", { run: over("succeeded", { attempt: 4, outcome: { ...BY_OTHER, keptUntilMs: NOW_MS } }) },
    "granted → R1 me", "lease-lost: never", "lease-lost: never", "lease-lost: never", "lease-lost: never", "never → S4=", "reset → -"),
];

const LETTERS = { running: "R", interrupted: "I", retry: "T", succeeded: "S", failed: "F" } as const;

function cellOf(known: LockRecord | undefined, command: Command): string {
  const decision = decided(known, command);
  const { next } = decision;
  if (!next) return said(decision);
  return `${said(decision)} → ${[runIn(next), ...Object.keys(next.holds).map((id) => (id === ME ? "me" : "other"))].join(" ")}`;
}

function runIn({ run: kept }: LockRecord): string {
  if (!kept) return "-";
  return `${LETTERS[kept.state]}${kept.attempt}${kept.takeover ? "!" : ""}${kept.checkpoint ? "*" : ""}${kept.outcome ? "=" : ""}`;
}

describe("what comes of a command, in every state of a run", () => {
  it.each(STATES)("$state", ({ known, cells }) => {
    expect(COMMANDS.map((command) => cellOf(known, command))).toEqual(cells.split(" | "));
  });

  const rows = STATES.flatMap(({ state: name, known }) => COMMANDS.map((command) => ({ name, known, command })));

  it("each, sent again, says the same and changes nothing more; only a renewal extends again", () => {
    const changed = rows.filter(({ known, command }) => {
      const { next } = decided(known, command);
      return command.type !== "renew" && next && decided(next, command).next;
    });
    expect(changed.map(({ name, command }) => `${name}: ${command.type}`)).toEqual([]);
  });

  it("every change raises the version by one, and no refusal changes or logs anything", () => {
    for (const { name, known, command } of rows) {
      const { answer, next, events } = decided(known, command);
      if (!answer.ok) expect(events, `${name}: ${command.type}`).toEqual([]);
      if (next) expect(next.version, `${name}: ${command.type}`).toBe((known?.version ?? NOW_MS) + 1);
      if (!answer.ok) expect(next, `${name}: ${command.type}`).toBeUndefined();
    }
  });

  it("a reset leaves nothing of the run, and all that keeps late duplicates out", () => {
    const known = record({ ...others(TAKEABLE), ...ended("taken"), lowWatermark: "f", run: run({ attempt: 4, checkpoint: CHECKPOINT }) });
    const { next, events } = decided(known, { type: "reset", key: "k" });
    expect(next).toEqual({
      version: 4,
      fencingToken: known.fencingToken,
      fenceFloor: known.fenceFloor,
      limit: 1,
      holds: {},
      offers: [],
      waiters: [],
      tombstones: [
        { leaseId: OTHER, ending: "broken", fencingToken: hold().fencingToken },
        { leaseId: ME, ending: "taken" },
      ],
      lowWatermark: "f",
      ttlAtSec: (NOW_MS + DAY_MS) / 1000,
    });
    expect(events).toMatchObject([
      { event: "ended", leaseId: OTHER, reason: "broken" },
      { event: "reset", attempt: 4 },
    ]);
  });

  it("a reset with a token forgets the run of that token, and spares one that began since", () => {
    const reset = { type: "reset", key: "k", fencingToken: 7 } as const;
    expect(decided(record({ fencingToken: 7, run: over() }), reset)).toMatchObject({ answer: { ok: true }, next: { holds: {} } });
    expect(decided(record({ fencingToken: 7 }), reset)).toMatchObject({ answer: { ok: true }, events: [{ repeated: true }] });
    const since = decided(record({ fencingToken: 8, run: over() }), reset);
    expect(since).toMatchObject({ answer: { code: "other-hold", detail: "k was started again since" }, events: [] });
    expect(since.next).toBeUndefined();
  });

  it("a refused reset says when to come back, or that there is nothing", () => {
    const reset = { type: "reset", key: "k" } as const;
    expect(decided(record({ ...others(), run: run() }), reset).answer).toMatchObject({ retryAfterMs: LEASE_MS + MARGIN_MS });
    expect(decided(undefined, reset).answer).toMatchObject({ code: "not-found", detail: "Nothing was run under k" });
  });

  it("a reset is logged with the lease that recorded the outcome, if there is one", () => {
    const events = (of: Run) => decided(record({ run: of }), { type: "reset", key: "k" }).events;
    expect(events(over())).toEqual([{ event: "reset", leaseId: OTHER, owner: "", principal: "", attempt: 1 }]);
    expect(events(run({ state: "interrupted" }))).toEqual([{ event: "reset", leaseId: "", owner: "", principal: "", attempt: 1 }]);
  });

  it("a start that is sent again is logged as that", () => {
    const known = record({ ...mine({ owner: "worker" }), run: run({ attempt: 2 }) });
    expect(decided(known, start()).events).toEqual([
      { event: "replayed", leaseId: ME, owner: "worker", principal: "me", fencingToken: NOW_MS - 7, attempt: 2 },
    ]);
  });

  it.each<[string, object]>([
    ["a result", { payload: RESULT }],
    ["a result that was left out", { omitted: true }],
    ["nothing", {}],
  ])("a start after the work is over gets its outcome: %s", (_, stored) => {
    const outcome = { ...BY_OTHER, keptUntilMs: NOW_MS + DAY_MS, ...stored };
    expect(decided(record({ run: over("succeeded", { attempt: 4, outcome }) }), start())).toStrictEqual({
      answer: { ok: true, state: "succeeded", attempt: 4, ...stored },
      events: [],
    });
    const { outcome: _none, ...unknown } = over();
    expect(decided(record({ run: unknown }), start()).answer).toStrictEqual({ ok: true, state: "succeeded", attempt: 1 });
  });

  it("the next attempt keeps what a newer version wrote, and is told of a checkpoint whose item may be gone first", () => {
    const unknown = { zz: "newer" };
    const checkpoint = { digest: "d", bytes: 5_000, ttlAtSec: 1 };
    const { next, answer } = decided(record({ run: run({ state: "retry", unknown, checkpoint }) }), start());
    expect(next?.run).toMatchObject({ unknown, checkpoint });
    expect(answer).toMatchObject({ checkpoint, outlived: { digest: "d", ttlAtSec: next?.ttlAtSec } });
    const small = decided(record({ run: run({ state: "retry", checkpoint: CHECKPOINT }) }), start());
    expect(small.answer).not.toHaveProperty("outlived");
    expect(small.next?.run).not.toHaveProperty("unknown");
    expect(decided(undefined, start()).answer).not.toHaveProperty("checkpoint");
  });

  it.each([
    [5, 4, 5],
    [5, 5, 5],
    [5, 6, 6],
    [5, undefined, undefined],
    [undefined, 4, 4],
  ])("a checkpoint numbered %j is replaced by one numbered %j: then it is %j", (before, sequence, now) => {
    const numbered = (digest: string, as: number | undefined) => ({
      digest,
      bytes: 1,
      text: "1",
      ...(as !== undefined && { sequence: as }),
    });
    const known = record({ ...mine(), run: run({ checkpoint: numbered("old", before) }) });
    const renewal = { type: "renew", key: "k", leaseId: ME, principal: "me", checkpoint: numbered("new", sequence) } as const;
    const isLate = before !== undefined && sequence !== undefined && sequence < before;
    expect(decided(known, renewal).next?.run?.checkpoint).toEqual(numbered(isLate ? "old" : "new", now));
  });

  it("a renewal with a checkpoint that is not stored is refused, and may be sent again", () => {
    const renewal = { type: "renew", key: "k", leaseId: ME, principal: "me", checkpoint: { digest: "c", bytes: 5_000 } } as const;
    expect(decided(record({ ...mine(), run: run() }), renewal)).toMatchObject({
      answer: { ok: false, code: "unavailable", definite: true },
      events: [],
    });
  });

  it("a reset waits for the end of the margin by the earlier clock", () => {
    const known = record({ ...others(), run: run() });
    const resetAt = (ms: number, aheadMs = 0): string => said(decided(known, { type: "reset", key: "k" }, at(ms, aheadMs)));
    expect(resetAt(LEASE_MS + MARGIN_MS - 1, 9_999)).toBe("run-in-progress");
    expect(resetAt(LEASE_MS + MARGIN_MS)).toBe("reset");
  });
});

describe("an outcome", () => {
  it.each([
    ["with the same result", complete("succeeded", { payload: { ...RESULT, ttlAtSec: 99 } }), "replayed"],
    ["with another result", complete("succeeded", { payload: { ...RESULT, digest: "other" } }), "outcome-differs"],
    ["without the result", complete("succeeded"), "outcome-differs"],
    ["with its result left out", complete("succeeded", { omitted: true }), "outcome-differs"],
    ["by another principal", complete("succeeded", { payload: RESULT, principal: "someone" }), "forbidden"],
  ])("sent again %s answers as it must", (_, command, answer) => {
    const known = record({ ...ended("released"), run: recordedByMe("succeeded") });
    expect(cellOf(known, command)).toBe(answer);
    if (answer !== "replayed") expect(decided(known, command).events).toEqual([]);
  });

  it("that was left out is told from another", () => {
    const first = decided(record({ ...mine(), run: run() }), complete("succeeded", { omitted: true }));
    expect(first.next?.run?.outcome).toEqual({ ...BY_ME, omitted: true, keptUntilMs: NOW_MS + DAY_MS });
    expect(cellOf(first.next, complete("succeeded", { omitted: true }))).toBe("replayed");
    expect(cellOf(first.next, complete("succeeded"))).toBe("outcome-differs");
  });

  it.each([
    { earlier: LEASE_MS - 1, ahead: 9_999, ending: "released" },
    { earlier: LEASE_MS, ahead: 0, ending: "expired" },
  ])("says truthfully whether the lease lasted until then: at $earlier ms it was $ending", ({ earlier, ahead, ending }) => {
    const { next, events } = decided(record({ ...mine(), run: run() }), complete("succeeded"), at(earlier, ahead));
    expect(next?.tombstones).toEqual([{ leaseId: ME, ending, outcome: expect.any(String) }]);
    expect(events[0]).toMatchObject({ event: "ended", leaseId: ME, reason: ending });
  });

  it("is recognised by its lease after later attempts, if it is the same to the last part", () => {
    const mineIs = complete("retry", { payload: RESULT });
    const first = decided(record({ ...mine(), run: run() }), mineIs).next!;
    const later = { ...first, run: run({ state: "retry", attempt: 2, outcome: BY_OTHER }) };
    expect(decided(later, mineIs)).toEqual({
      answer: { ok: true, how: "replayed" },
      events: [{ event: "recorded", leaseId: ME, owner: "", principal: "me", outcome: "retry", repeated: true }],
    });
    for (const other of [
      complete("retry"),
      complete("failed", { payload: RESULT }),
      complete("retry", { payload: { ...RESULT, digest: "other" } }),
      complete("retry", { payload: RESULT, omitted: true }),
      { ...mineIs, principal: "someone" },
    ])
      expect(decided(later, other), JSON.stringify(other)).toMatchObject({
        answer: { code: "lease-lost", reason: "released" },
        events: [],
      });
    expect(first.tombstones[0]?.outcome).toMatch(/^[\w-]{11}$/);
    // Control: a lease that recorded nothing is not one that did.
    const silent = { ...later, tombstones: [{ leaseId: OTHER, ending: "released" as const, outcome: first.tombstones[0]!.outcome! }] };
    expect(decided(silent, mineIs).answer).toMatchObject({ code: "lease-lost", reason: "never" });
  });

  it("sent again is told with its attempt, as long as that is the latest", () => {
    const again = (of: Run) => decided(record({ ...ended("released"), run: of }), complete("retry")).events;
    expect(again(recordedByMe("retry", 3))).toMatchObject([{ attempt: 3, repeated: true }]);
    const running = again({ ...recordedByMe("retry", 3), state: "running", attempt: 4 });
    expect(running).toMatchObject([{ repeated: true }]);
    expect(running[0]).not.toHaveProperty("attempt");
  });

  it("replaces that of the attempt before it, whole", () => {
    const failed = { ...BY_OTHER, payload: RESULT, omitted: true } as const;
    const { next } = decided(record({ ...mine(), run: run({ attempt: 2, outcome: failed }) }), complete("retry"));
    expect(next?.run?.outcome).toEqual(BY_ME);
  });

  it.each<[string, Partial<LockRecord>, string]>([
    ["by the one who runs", { ...mine(), run: run() }, "unavailable"],
    ["by one whose lease ran out", { ...mine(RUN_OUT), run: run() }, "unavailable"],
    ["by another principal", { ...mine({ principal: "someone" }), run: run() }, "forbidden"],
    ["by one who lost it", { ...others(), ...ended("taken"), run: run() }, "lease-lost: taken"],
    ["by one who recorded it before", { ...ended("released"), run: recordedByMe("succeeded") }, "replayed"],
  ])("is not recorded %s while its text is kept nowhere", (_, known, answer) => {
    const unkept = { digest: RESULT.digest, bytes: 5_000 };
    const decision = decided(record(known), complete("succeeded", { payload: unkept }));
    expect(said(decision)).toBe(answer);
    expect(decision.next).toBeUndefined();
    if (answer === "unavailable") expect(decision.answer).toMatchObject({ definite: true });
    if (!decision.answer.ok) expect(decision.events).toEqual([]);
  });

  it("sent again is told once more, for a log that missed it; so is a reset", () => {
    const again = decided(record({ ...ended("released"), run: recordedByMe("failed") }), complete("failed"));
    expect(again.events).toMatchObject([{ event: "recorded", leaseId: ME, principal: "me", outcome: "failed", repeated: true }]);
    expect(decided(record(), { type: "reset", key: "k" }).events).toMatchObject([{ event: "reset", repeated: true }]);
  });

  it("says in the log how the lease ended and what came of which attempt", () => {
    const known = record({ ...mine({ grantedAtMs: NOW_MS - 4_000 }), run: run({ attempt: 2 }) });
    expect(decided(known, complete("retry"), at(0, 500)).events).toMatchObject([
      { event: "ended", leaseId: ME, reason: "released", heldMs: 4_500 },
      { event: "recorded", leaseId: ME, attempt: 2, outcome: "retry" },
    ]);
  });
});
