/**
 * Checks that a service conforms to the API's description of HTTP, by HTTP alone: any service at a target's URL can be
 * tested, repeatedly, and beside other users of the same table.
 */
import { afterAll, beforeAll, describe, it } from "vitest";
import { type Calls, callsOf } from "./calls.js";
import { expires } from "./conformance/expiry.js";
import { acquires, releases, renews } from "./conformance/leases.js";
import { changesMode } from "./conformance/modes.js";
import { breaks, inspects, lists } from "./conformance/operators.js";
import { principals } from "./conformance/principals.js";
import { queues } from "./conformance/queue.js";
import { races } from "./conformance/races.js";
import { bodies, paths, service } from "./conformance/requests.js";
import { operatesRuns, outcomes, starts } from "./conformance/runs.js";
import { renewals, sets } from "./conformance/sets.js";
import { transfers } from "./conformance/transfers.js";
import { type Fixture, openFixture } from "./fixture.js";
import type { Need, Suite } from "./suite.js";
import type { Target } from "./target.js";

export type { Target } from "./target.js";

/** More than any test needs: time-dependent tests wait in one place, once. */
const TIMEOUT_MS = 60_000;

const PARTS: readonly (readonly [name: string, declare: (suite: Suite, calls: Calls) => void])[] = [
  ["an acquire", acquires],
  ["a renewal, and a look", renews],
  ["a release", releases],
  ["a change of mode", changesMode],
  ["the queue", queues],
  ["a transfer", transfers],
  ["an inspection", inspects],
  ["a list of locks", lists],
  ["a break", breaks],
  ["sets", sets],
  ["renewals in one request", renewals],
  ["a start", starts],
  ["an outcome", outcomes],
  ["runs, seen from outside", operatesRuns],
  ["principals", principals],
  ["bodies", bodies],
  ["paths", paths],
  ["the service", service],
  ["many at once", races],
  ["time", expires],
];

/** Declares every test of the conformance in `suite`. */
export function declareConformance(suite: Suite, calls: Calls): void {
  for (const [name, declare] of PARTS) suite.describe(name, () => declare(suite, calls));
}

export interface Declared {
  /** The number of requests sent so far. Leases that are still held are released after the last test. */
  sent(): number;
}

/** Declares vitest's conformance tests of the target that `start` returns. */
export function conformance(name: string, start: () => Promise<Target>): Declared {
  return declareOn(`${name} keeps to the API`, start, declareConformance);
}

/** Declares the tests of `declare` for the target that `start` returns; `lacks` gives the reason for skipping a test with a need. */
export function declareOn(
  title: string,
  start: () => Promise<Target>,
  declare: (suite: Suite, calls: Calls) => void,
  lacks?: (need: Need) => string | undefined,
): Declared {
  let opened: Fixture | undefined;
  const fixture = (): Fixture => {
    if (!opened) throw new Error("The target is not there yet");
    return opened;
  };
  describe(title, { timeout: TIMEOUT_MS }, () => {
    beforeAll(async () => {
      const target = await start();
      try {
        opened = await openFixture(target);
      } catch (error) {
        await target.close?.();
        throw error;
      }
    }, TIMEOUT_MS);
    afterAll(() => opened?.close(), TIMEOUT_MS);
    declare(inVitest(lacks ?? ((need) => fixture().lacks(need))), callsOf(fixture));
  });
  return { sent: () => opened?.sent ?? 0 };
}

function inVitest(lacks: (need: Need) => string | undefined): Suite {
  return {
    describe: (name, declare) => void describe(name, declare),
    beforeAll: (prepare) => beforeAll(prepare, TIMEOUT_MS),
    it: (name, check) => void it(name, check),
    itWith: (needs, name, check) =>
      void it(name, async ({ skip }) => {
        const why = [needs].flat().map(lacks).find(Boolean);
        if (why !== undefined) skip(why);
        await check();
      }),
  };
}
