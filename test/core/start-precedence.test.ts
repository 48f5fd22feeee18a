/** The first condition that a start meets decides: each row of lib/core/run/start.ts's list, against every row below it. */
import { describe, expect, it } from "vitest";
import type { Start } from "../../lib/core/commands.js";
import type { LockRecord, Run } from "../../lib/core/record.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { at, decided, hold, LEASE_MS, MARGIN_MS, ME, NOW_MS, OTHER, over, record, run, said, start } from "./run-parts.js";

const MINUTE_MS = 60_000;

/** The key's record and the command. */
interface Asked {
  readonly known: LockRecord;
  readonly command: Start;
}

interface Fact {
  readonly row: number;
  readonly fact: string;
  /** Adds the fact to a state. */
  readonly add: (to: Asked) => Asked;
  readonly answer: string;
}

const knowing = ({ known, command }: Asked, parts: Partial<LockRecord>): Asked => ({ known: { ...known, ...parts }, command });
const asking = ({ known, command }: Asked, parts: Partial<Start>): Asked => ({ known, command: { ...command, ...parts } });
/** Changes the run. Fields left out are as before, or those of a failed run that may be retried. */
const withRun = (to: Asked, parts: Partial<Run>): Asked => knowing(to, { run: { ...(to.known.run ?? run({ state: "retry" })), ...parts } });
const withMine = (to: Asked, parts: Parameters<typeof hold>[0]): Asked =>
  knowing(withRun(to, {}), { holds: { ...to.known.holds, [to.command.leaseId]: hold(parts) } });
/** A completed run with a stored outcome, by default with the fingerprint of the request. */
const overAndKept = (to: Asked, state: "succeeded" | "failed", fingerprint = "asked"): Asked =>
  asking(withRun(to, { ...over(state), fingerprint }), { fingerprint: "asked" });

/** In order of precedence, numbered as in start.ts. */
const FACTS: readonly Fact[] = [
  { row: 1, fact: "runs already", add: (to) => withMine(to, {}), answer: "replayed" },
  { row: 1, fact: "runs for another principal", add: (to) => withMine(to, { principal: "someone" }), answer: "forbidden" },
  { row: 1, fact: "ran out, and nobody took over", add: (to) => withMine(to, { expiresAtMs: NOW_MS }), answer: "lease-over" },
  { row: 1, fact: "runs with other parameters", add: (to) => withMine(to, { requestHash: "others" }), answer: "lease-reused" },
  { row: 2, fact: "meets a success that is kept", add: (to) => overAndKept(to, "succeeded"), answer: "succeeded" },
  { row: 2, fact: "meets a failure that is kept", add: (to) => overAndKept(to, "failed"), answer: "failed" },
  {
    row: 2,
    fact: "meets the success of another payload",
    add: (to) => overAndKept(to, "succeeded", "another"),
    answer: "fingerprint-mismatch",
  },
  {
    row: 3,
    fact: "ended",
    add: (to) => knowing(to, { tombstones: [{ leaseId: to.command.leaseId, ending: "released" }] }),
    answer: "lease-over",
  },
  { row: 3, fact: "is at the floor", add: (to) => knowing(to, { lowWatermark: to.command.leaseId }), answer: "lease-over" },
  { row: 3, fact: "is too old", add: (to) => asking(to, { leaseId: leaseIdAt(NOW_MS - 15 * MINUTE_MS - 1) }), answer: "lease-id-time" },
  { row: 3, fact: "is too new", add: (to) => asking(to, { leaseId: leaseIdAt(NOW_MS + 10_001) }), answer: "lease-id-time" },
  {
    row: 4,
    fact: "is about another payload",
    add: (to) => asking(withRun(to, { fingerprint: "another" }), { fingerprint: "asked" }),
    answer: "fingerprint-mismatch",
  },
  {
    row: 5,
    fact: "meets somebody who runs",
    add: (to) => knowing(withRun(to, { state: "running" }), { holds: { ...to.known.holds, [OTHER]: hold({ principal: "someone" }) } }),
    answer: "run-in-progress",
  },
  {
    row: 6,
    fact: "comes after the last attempt it would make",
    add: (to) => asking(withRun(to, { attempt: 5 }), { maxAttempts: 5 }),
    answer: "attempts-exhausted",
  },
  { row: 7, fact: "comes after a failure that may be tried again", add: (to) => withRun(to, { state: "retry" }), answer: "granted" },
  {
    row: 7,
    fact: "meets a runner whose lease ran out, margin included",
    add: (to) =>
      knowing(withRun(to, { state: "running" }), { holds: { ...to.known.holds, [OTHER]: hold({ expiresAtMs: NOW_MS - MARGIN_MS }) } }),
    answer: "granted",
  },
];

const NOTHING: Asked = { known: record(), command: start() };
const answerTo = ({ known, command }: Asked): string => said(decided(known, command));

describe("a start", () => {
  it("of what nobody ran answers granted", () => {
    expect(said(decided(undefined, start()))).toBe("granted");
    expect(answerTo(NOTHING)).toBe("granted");
  });

  for (const { row, fact, add, answer } of FACTS) {
    it(`by an id that ${fact} answers ${answer}`, () => {
      expect(answerTo(add(NOTHING))).toBe(answer);
    });
    // The seventh row applies when none of the others did.
    const weaker = FACTS.filter((other) => other.row > row && other.row < 7);
    it.each(weaker)("... also when it $fact", (other) => {
      expect(answerTo(other.add(NOTHING)), "alone").toBe(other.answer);
      expect(answerTo(add(other.add(NOTHING)))).toBe(answer);
    });
  }

  it("by an id that runs is refused for its principal before its time, and for its time before its parameters", () => {
    const all = { principal: "someone", expiresAtMs: NOW_MS, requestHash: "others" };
    expect(answerTo(withMine(NOTHING, all))).toBe("forbidden");
    expect(answerTo(withMine(NOTHING, { ...all, principal: "me" }))).toBe("lease-over");
    expect(answerTo(withMine(NOTHING, { requestHash: "others" }))).toBe("lease-reused");
  });

  it("looks at the id's time before it looks at who runs, and only at an id that is new", () => {
    const old = leaseIdAt(NOW_MS - 16 * MINUTE_MS);
    const known = record({ holds: { [old]: hold() }, run: run() });
    expect(said(decided(known, start({ leaseId: old })))).toBe("replayed");
    expect(said(decided(known, start({ leaseId: leaseIdAt(NOW_MS - 16 * MINUTE_MS) })))).toBe("lease-id-time");
  });
});

describe("somebody who runs", () => {
  const runs = record({ holds: { [OTHER]: hold({ principal: "someone", owner: "checkout-7" }) }, run: run() });

  it.each([
    { earlier: LEASE_MS - 1, ahead: 0, comes: "run-in-progress", inMs: MARGIN_MS + 1 },
    { earlier: LEASE_MS + MARGIN_MS - 1, ahead: 9_999, comes: "run-in-progress", inMs: 1 },
    { earlier: LEASE_MS + MARGIN_MS, ahead: 0, comes: "granted", inMs: undefined },
  ])("is left alone until the end of the margin by the earlier clock: at $earlier ms, $comes", ({ earlier, ahead, comes, inMs }) => {
    const decision = decided(runs, start(), at(earlier, ahead));
    expect(said(decision)).toBe(comes);
    expect(decision.answer.ok ? undefined : decision.answer.retryAfterMs).toBe(inMs);
  });

  it("is not told of: a refusal says when to come back, and nothing else", () => {
    const { answer } = decided(runs, start());
    expect(answer).toEqual({
      ok: false,
      code: "run-in-progress",
      definite: true,
      retry: "later",
      detail: expect.any(String) as string,
      retryAfterMs: LEASE_MS + MARGIN_MS,
    });
    expect(JSON.stringify(answer)).not.toMatch(new RegExp(`${OTHER}|someone|checkout-7`));
  });

  it("who was taken over is remembered as taken, and the new lease runs by the later clock under a larger token", () => {
    const { next, events } = decided(runs, start(), at(LEASE_MS + MARGIN_MS, 400));
    const latestMs = NOW_MS + LEASE_MS + MARGIN_MS + 400;
    expect(next).toMatchObject({ tombstones: [{ leaseId: OTHER, ending: "taken" }], fencingToken: latestMs });
    expect(next?.holds).toMatchObject({ [ME]: { expiresAtMs: latestMs + LEASE_MS, fencingToken: latestMs } });
    expect(Object.keys(next?.holds ?? {})).toEqual([ME]);
    expect(events).toMatchObject([
      { event: "ended", leaseId: OTHER, reason: "taken", heldMs: latestMs - NOW_MS, lapsedMs: MARGIN_MS + 400 },
      { event: "granted", leaseId: ME, attempt: 2, fencingToken: latestMs },
    ]);
  });

  it("has a token above every earlier one, though the clock is behind it", () => {
    expect(decided(record({ fencingToken: NOW_MS + 99 }), start()).next?.fencingToken).toBe(NOW_MS + 100);
  });
});
