/**
 * Each part of a form's expressions is needed: with a change in it, a common write leaves something other than the core would, or is
 * refused on a key on which it was taken. So these are the mutation tests of lib/store/dynamo/predicates.ts, whose code is text.
 */
import { describe, expect, it } from "vitest";
import type { FormWrite } from "../../lib/store/dynamo/predicates.js";
import { conditionMutants, updateMutants } from "./expression-mutants.js";
import { type Asked, type Came, type Difference, COMMON, differencesFor, pathOf, take } from "./form-cases.js";

/** Changes that no key shows, each with the reason. */
const EQUIVALENT: readonly (readonly [expression: RegExp, mutant: RegExp, why: string])[] = [
  [/^cv = v AND size\(h\) > co AND size\(qi\)/, /^attribute_not_exists\(cw.#me\) → true$/, "a key with a wait set has no sums"],
  [/rn = :run/, /^ug is not removed$/, "a run has no readers"],
  [/^SET h.#me.e = (?!.* x = :ttl)/, /cv/, "a run has no readers and no permits, and its renewal is written as that of a lock"],
];

/** One common write on one key, and what became of it. */
interface Try {
  readonly asked: Asked;
  readonly fast: FormWrite;
  readonly difference: Difference;
  readonly came: Came;
}

const TRIES: readonly Try[] = Object.values(COMMON).flatMap((asked) => {
  const fast = pathOf(asked)!;
  return differencesFor(asked).map((difference) => ({ asked, fast, difference, came: take(asked, fast, difference.item) }));
});

describe.each([
  { part: "condition", mutantsOf: conditionMutants },
  { part: "update", mutantsOf: updateMutants },
] as const)("each change of the $part is noticed", ({ part, mutantsOf }) => {
  const expressions = new Set(TRIES.map(({ fast }) => fast[part]));
  it.each([...expressions])("%s", (expression) => {
    const tries = TRIES.filter(({ fast }) => fast[part] === expression);
    const mutants = mutantsOf(expression);
    const survivors = mutants.filter(({ text }) => !tries.some((each) => isNoticed(each, { ...each.fast, [part]: text })));
    const excused = mutants.filter(({ name }) => EQUIVALENT.some(([of, mutant]) => of.test(expression) && mutant.test(name)));
    expect(survivors.map(({ name }) => name)).toEqual(excused.map(({ name }) => name));
    expect(mutants.length).toBeGreaterThan(excused.length);
  });
});

function isNoticed({ asked, difference, came }: Try, fast: FormWrite): boolean {
  try {
    return take(asked, fast, difference.item) !== came;
  } catch {
    return true;
  }
}
