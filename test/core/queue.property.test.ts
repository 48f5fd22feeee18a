/** The rules of the queue over random histories of the pure core. Controls: each rule fails on a mutant of the core. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import { outcomeOf } from "../store/fixture.js";
import { type RuleName, RULES_OF_KINDS } from "./kinds-rules.js";
import type { Core } from "./queue-core.js";
import { BROKEN, SERVED } from "./queue-broken.js";
import { CORE } from "./queue-core.js";
import { type Asked, type QueueHistory, playQueue, queueHistories, slackMs } from "./queue-history.js";
import { type QueueRule, RULES_OF_QUEUES } from "./queue-rules.js";
import { isThorough, sized } from "../support/tier.js";
import { type MustFail, recordWitnesses, replayWitnesses } from "../support/witnesses.js";

const SEED = 20_270_402;
const ALL = Object.keys(RULES_OF_QUEUES) as QueueRule[];
/** The rules of all kinds that also hold with a queue. */
const OF_KINDS: readonly RuleName[] = [
  "S5: a command about one lease leaves every other alone until its margin is over",
  "S10: the count is of living levels",
  "S11: never a writer with anybody, on the record",
  "S11: never a writer with anybody, as they believe",
  "S12: never more permits out than the limit, on the record",
  "S12: never more permits out than the limit, as they believe",
  "a break ends the whole hold",
];
const histories = fc.oneof(queueHistories(0), queueHistories(DEFAULTS.clockGuardMs - 1));

/** Plays a history through `core`, checks these rules, and returns the first violation. */
function play(
  history: QueueHistory,
  core: Core,
  names: readonly QueueRule[],
  ofKinds: readonly RuleName[] = [],
  told: (asked: Asked) => void = () => undefined,
) {
  const watches = names.map((name) => [name, RULES_OF_QUEUES[name](slackMs(history))] as const);
  const kinds = ofKinds.map((name) => [name, RULES_OF_KINDS[name]()] as const);
  return playQueue(history, core, (asked) => {
    told(asked);
    for (const [name, watch] of watches) {
      const broken = watch(asked);
      if (broken !== undefined) return `${name}: ${broken}`;
    }
    const { command } = asked;
    if (!command) return undefined;
    for (const [name, watch] of kinds) {
      const broken = watch({ ...asked, command });
      if (broken !== undefined) return `${name}: ${broken}`;
    }
    return undefined;
  });
}

/** The outcomes of a request, with the state of its caller. */
function wordsFor({ command, answer, before, after, isTouched, by }: Asked): readonly string[] {
  const id = by?.leaseId;
  const where = before?.offers.some(({ leaseId }) => leaseId === id)
    ? "offered"
    : before?.waiters.some(({ leaseId }) => leaseId === id)
      ? "waiting"
      : "new";
  const made = (after?.offers.length ?? 0) - (before?.offers.length ?? 0);
  return [
    `${command?.type ?? "look"} of ${where}: ${outcomeOf(answer)}`,
    ...(isTouched ? ["heard of"] : []),
    ...(made > 1 ? ["several are offered the key at once"] : []),
    ...(by && !by.isItself && where === "offered" && answer.ok ? ["a duplicate claims"] : []),
  ];
}

/** Outcomes that the histories reach, each at least once. */
const REACHED = [
  ...["granted", "waiting", "locked", "limit-mismatch", "replayed", "lease-over"].map((outcome) => `acquire of new: ${outcome}`),
  ...["granted", "waiting", "locked", "forbidden"].map((outcome) => `acquire of waiting: ${outcome}`),
  ...["granted", "forbidden"].map((outcome) => `acquire of offered: ${outcome}`),
  ...["waiting", "offered"].flatMap((where) => [
    `look of ${where}: waiting`,
    `release of ${where}: never`,
    `release of ${where}: forbidden`,
  ]),
  ...["released", "expired", "transferred", "forbidden"].map((outcome) => `release of new: ${outcome}`),
  ...["changed", "locked"].map((outcome) => `mode of new: ${outcome}`),
  ...["breaking", "broken"].map((outcome) => `break of new: ${outcome}`),
  ...["heard of", "several are offered the key at once", "a duplicate claims"],
];

describe("in random histories of a key that many want", () => {
  it("no rule is broken, whoever visits as told is granted, and every outcome is reached", { timeout: 120_000 }, () => {
    const told = new Map<string, number>();
    const count = (asked: Asked): void => wordsFor(asked).forEach((word) => told.set(word, (told.get(word) ?? 0) + 1));
    fc.assert(
      fc.property(histories, (history) => {
        expect(play(history, CORE, ALL, OF_KINDS, count)).toBeUndefined();
      }),
      { seed: SEED, numRuns: sized({ quick: 100, slow: 3000 }) },
    );
    if (!isThorough()) return;
    expect(
      REACHED.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it("control: every rule is broken by something", () => {
    expect(new Set(BROKEN.map(({ rule }) => rule))).toEqual(new Set([...ALL, SERVED]));
  });
});

/** Returns the path of the first history in which this core breaks the rule; undefined if there is none. */
function brokenIn({ rule, core }: (typeof BROKEN)[number], bounds: { path?: string; numRuns: number }): string | undefined {
  const { errorInstance, counterexamplePath } = fc.check(
    fc.property(histories, (history) => {
      expect(play(history, { ...CORE, ...core }, rule === SERVED ? [] : [rule]) ?? "").not.toContain(rule);
    }),
    { seed: SEED, endOnFailure: true, ...bounds },
  );
  if (errorInstance !== null) expect((errorInstance as Error).name).toBe("AssertionError");
  return counterexamplePath ?? undefined;
}

const MISTAKES = BROKEN.map((broken): MustFail<string> => ({
  name: `${broken.does}: ${broken.rule}`,
  title: `control: a core that ${broken.does} breaks the rule ${broken.rule}`,
  isShownBy: async (path) => brokenIn(broken, { path, numRuns: 1 }) !== undefined,
  search: async () => brokenIn(broken, { numRuns: 12_000 }),
}));

describe("a mistake in the queue", { timeout: 60_000 }, () => (isThorough() ? recordWitnesses : replayWitnesses)(MISTAKES));
