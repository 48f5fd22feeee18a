/** The breaker as a table: state × event × time → state. */
import { describe, expect, it } from "vitest";
import { type Breaker, type BreakerEvent, afterEvent, isProbeDue, UNTRIPPED } from "../../../lib/client/wire/breaker.js";

/** An event, and how long after the one before it happens, in ms. */
type Step = readonly [event: BreakerEvent, afterMs?: number];

const MIDDLE = 0.5;
const REST_MS = 60_000;

function played(steps: readonly Step[], random = MIDDLE): { readonly state: Breaker; readonly nowMs: number } {
  let nowMs = 1_000_000;
  let state = UNTRIPPED;
  for (const [event, afterMs = 10] of steps) state = afterEvent(state, event, (nowMs += afterMs), random);
  return { state, nowMs };
}

const times = (count: number, ...steps: readonly Step[]): readonly Step[] => Array.from({ length: count }, () => steps).flat();
const FAILED = ["failed"] as const;
const ANSWERED = ["answered"] as const;
const TRIPPED = times(3, FAILED);
const PROBED = [["probe", REST_MS], ["probe-answered"]] as const;

describe("the breaker", () => {
  it.each<[what: string, steps: readonly Step[], rests: boolean]>([
    ["nothing has happened", [], false],
    ["two attempts in a row failed", times(2, FAILED), false],
    ["three attempts in a row failed", TRIPPED, true],
    ["three failed, hours apart, and nothing else was sent", times(3, ["failed", 3_600_000]), true],
    ["an answer came between failures", [...times(2, FAILED), ANSWERED, ...times(2, FAILED)], false],
    ["four of eight failed by turns", times(4, FAILED, ANSWERED), false],
    ["five of nine failed within 10 s", [...times(4, FAILED, ANSWERED), FAILED], true],
    ["five of ten failed within 10 s, the last one last", [ANSWERED, ...times(4, FAILED, ANSWERED), FAILED], true],
    ["five of eleven failed within 10 s", [ANSWERED, ANSWERED, ...times(4, FAILED, ANSWERED), FAILED], false],
    [
      "five of nine failed, the first of them more than 10 s ago",
      [FAILED, ["answered", 10_001], ...times(3, FAILED, ANSWERED), FAILED],
      false,
    ],
    ["a rest is over, and no probe was sent", [...TRIPPED, ["answered", 10 * REST_MS]], true],
    ["one probe was answered", [...TRIPPED, ...PROBED], true],
    ["two probes were answered", [...TRIPPED, ...times(2, ...PROBED)], true],
    ["three probes were answered", [...TRIPPED, ...times(3, ...PROBED)], false],
    ["two probes were answered, and the third was not", [...TRIPPED, ...times(2, ...PROBED), ["probe"], ["probe-failed"]], true],
    [
      "a failed probe was followed by two answered ones",
      [...TRIPPED, ...times(2, ...PROBED), ["probe"], ["probe-failed"], ...times(2, ...PROBED)],
      true,
    ],
    ["two probes were answered, and the third was unclear", [...TRIPPED, ...times(2, ...PROBED), ["probe"], ["probe-unclear"]], true],
    [
      "one of four probes was unclear, and the others were answered",
      [...TRIPPED, ...PROBED, ["probe"], ["probe-unclear"], ...times(2, ...PROBED)],
      false,
    ],
    ["the service failed again after its return", [...TRIPPED, ...times(3, ...PROBED), ...times(2, FAILED)], false],
    ["and a third time in a row", [...TRIPPED, ...times(3, ...PROBED), ...TRIPPED], true],
  ])("if %s", (_what, steps, rests) => {
    expect(played(steps).state.rests).toBe(rests);
  });

  it.each([
    [0, 48_000],
    [MIDDLE, REST_MS],
    [1, 72_000],
  ])("at random %d, lets the service rest for %d ms, also after a failed probe", (random, restMs) => {
    for (const steps of [TRIPPED, [...TRIPPED, ["probe", REST_MS], ["probe-failed"]] as const]) {
      const { state, nowMs } = played(steps, random);
      expect([isProbeDue(state, nowMs + restMs - 1), isProbeDue(state, nowMs + restMs)]).toEqual([false, true]);
    }
  });

  it("sends one probe at a time, and the next a second after the answer", () => {
    const { state: sent, nowMs: sentMs } = played([...TRIPPED, ["probe", REST_MS]]);
    expect(isProbeDue(sent, sentMs + REST_MS)).toBe(false);
    const { state, nowMs } = played([...TRIPPED, ...PROBED]);
    expect([isProbeDue(state, nowMs + 999), isProbeDue(state, nowMs + 1000)]).toEqual([false, true]);
  });

  it("sends the next one a second after an unclear answer too", () => {
    const { state, nowMs } = played([...TRIPPED, ["probe", REST_MS], ["probe-unclear"]]);
    expect([isProbeDue(state, nowMs + 999), isProbeDue(state, nowMs + 1000)]).toEqual([false, true]);
  });

  it("never probes a service in use, and remembers at most eleven seconds of it", () => {
    const { state, nowMs } = played(times(60, ["answered", 1000]));
    expect(isProbeDue(state, nowMs + REST_MS)).toBe(false);
    expect(!state.rests && state.seconds.length).toBeLessThanOrEqual(11);
  });
});
