/** The rules of all kinds of locks over random histories of the pure core. Controls: each rule fails on a mutant of the core. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Decision } from "../../lib/core/commands.js";
import type { LockRecord } from "../../lib/core/record.js";
import { outcomeOf } from "../store/fixture.js";
import { type Decide, BROKEN, decide } from "./kinds-broken.js";
import { type History, kindHistories, resolver } from "./kinds-history.js";
import { type RuleName, type Taken, RULES_OF_KINDS } from "./kinds-rules.js";
import { isThorough, sized } from "../support/tier.js";

const SEED = 20_270_401;
const RULE_NAMES = Object.keys(RULES_OF_KINDS) as RuleName[];

/** Plays a history through `decider`, checks these rules, and returns the first violation. */
function play(history: History, decider: Decide, names: readonly RuleName[], told: (outcome: string) => void = () => undefined) {
  const watches = names.map((name) => [name, RULES_OF_KINDS[name]()] as const);
  const resolve = resolver(history, "k");
  let record: LockRecord | undefined;
  for (const step of history.steps) {
    const asked = resolve(step, record);
    const { answer, next } = decider(record, asked.command, asked.reading);
    const taken: Taken = { ...asked, answer, before: record, after: next ?? record };
    told(`${asked.command.type}: ${wordFor(taken, answer)}`);
    for (const [name, watch] of watches) {
      const broken = watch(taken);
      if (broken !== undefined) return `${name}: ${broken}`;
    }
    record = taken.after;
  }
  return undefined;
}

function wordFor({ command, before }: Taken, answer: Decision["answer"]): string {
  if (command.type !== "acquire" || !answer.ok || !("lease" in answer) || answer.how !== "granted") return outcomeOf(answer);
  const tokens = Object.values(before?.holds ?? {}).map(({ fencingToken }) => fencingToken);
  if (tokens.includes(answer.lease.fencingToken)) return "nested";
  return tokens.length > 0 ? "joined or taken over" : "granted";
}

/** Outcomes that the histories reach, each at least once. */
const REACHED = {
  acquire: ["granted", "joined or taken over", "nested", "replayed", "locked", "limit-mismatch", "lease-over", "lease-reused", "forbidden"],
  mode: [
    ...["changed", "replayed", "locked", "upgrade-conflict", "token-mismatch", "limit-mismatch", "forbidden"],
    ...["expired", "broken", "released"].map((reason) => `lease-lost: ${reason}`),
  ],
  transfer: ["transferred", "replayed", "locked", "lease-lost: expired", "lease-lost: broken"],
  renew: ["renewed", "lease-lost: expired", "lease-lost: broken", "lease-lost: taken"],
  release: ["released", "expired", "lost", "transferred"],
  break: ["breaking", "broken", "other-hold"],
};

describe("in random histories of all kinds", () => {
  it("no rule is broken, and every outcome is reached", { timeout: 120_000 }, () => {
    const told = new Map<string, number>();
    const count = (outcome: string): void => void told.set(outcome, (told.get(outcome) ?? 0) + 1);
    fc.assert(
      fc.property(kindHistories, (history) => {
        expect(play(history, decide, RULE_NAMES, count)).toBeUndefined();
      }),
      { seed: SEED, numRuns: sized({ quick: 100, slow: 5000 }) },
    );
    if (!isThorough()) return;
    const wanted = Object.entries(REACHED).flatMap(([command, outcomes]) => outcomes.map((outcome) => `${command}: ${outcome}`));
    expect(
      wanted.filter((outcome) => !told.has(outcome)),
      JSON.stringify([...told]),
    ).toEqual([]);
  });

  it("control: every rule is broken by something", () => {
    expect(new Set(BROKEN.map(({ rule }) => rule))).toEqual(new Set(RULE_NAMES));
  });

  it.each(BROKEN)("control: a core that $does breaks the rule $rule", { timeout: 60_000 }, ({ rule, decider }) => {
    const { failed, errorInstance } = fc.check(
      fc.property(kindHistories, (history) => {
        expect(play(history, decider(), [rule])).toBeUndefined();
      }),
      { seed: SEED, numRuns: 5000, endOnFailure: true },
    );
    expect(failed).toBe(true);
    expect((errorInstance as Error).name).toBe("AssertionError");
  });
});
