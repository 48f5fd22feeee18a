/** Declares the tests: with vitest for a target that must pass them, or into a list of their names and needs. */
import type { Principal } from "./target.js";

/**
 * A test's requirements beyond a first principal: another principal, a path in the target's document, or the operators'
 * routes, which function URLs don't serve. Tests of a deployment may also need a restricted client, another session of
 * the first role, a number of requests that is too many, or callers that sign.
 */
export type Need = Principal | `/v1/${string}` | "operators" | DeployedNeed;

/** Requirements that only a deployment may meet. */
export type DeployedNeed = "client" | "session" | "burst" | "signatures";

/** Declares tests. */
export interface Suite {
  describe(name: string, declare: () => void): void;
  /** Runs once before the tests of its `describe`. */
  beforeAll(prepare: () => Promise<void>): void;
  it(name: string, check: () => Promise<void>): void;
  /** A test that is skipped, with a reason, if the target doesn't meet a need of it. */
  itWith(needs: Need | readonly Need[], name: string, check: () => Promise<void>): void;
}

/** A test that was declared into a list. */
export interface Listed {
  /** The test's name, with the names of its `describe` blocks. */
  readonly name: string;
  readonly needs: readonly Need[];
  /** Runs the preparation of its `describe`, and then the test. Rejects if the test fails. */
  run(): Promise<void>;
}

/** The tests that `declare` declares, without running them. */
export function listed(declare: (suite: Suite) => void): readonly Listed[] {
  const tests: Listed[] = [];
  const names: string[] = [];
  let prepares: readonly (() => Promise<void>)[] = [];
  const add = (name: string, check: () => Promise<void>, needs: readonly Need[]): void => {
    const scope = prepares;
    tests.push({
      name: [...names, name].join(" > "),
      needs,
      async run() {
        for (const prepare of scope) await prepare();
        await check();
      },
    });
  };
  declare({
    describe(name, inner) {
      const outside = prepares;
      names.push(name);
      inner();
      names.pop();
      prepares = outside;
    },
    beforeAll: (prepare) => void (prepares = [...prepares, prepare]),
    it: (name, check) => add(name, check, []),
    itWith: (needs, name, check) => add(name, check, [needs].flat()),
  });
  return tests;
}
