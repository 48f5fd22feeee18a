/**
 * The conformance of a store, in what it adds to the core: every command in every state, twice; many at once; what is kept and listed. The rules of a decision are
 * the core's tables, and test/store/differential compares random histories. Every store passes this suite in full; an exception would be
 * named here, with its reason. The suite advances time itself and gives every test its own key, so it can run on a shared engine.
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { LockStore } from "../../../lib/store/port.js";
import { waitsForConditions } from "./conditions.js";
import { contends } from "./contending.js";
import { acquires } from "./granting.js";
import { limits } from "./limiting.js";
import { lists } from "./listing.js";
import { apart, keeps, listsRuns } from "./run-listing.js";
import { RunScene } from "../run-fixture.js";
import { expectedOfRun, playRun, RUN_STATES } from "./run-states.js";
import { runs } from "./running.js";
import { A, Fixture } from "../fixture.js";
import { expected, play, STATES } from "./states.js";
import { sleeps } from "./sleeping.js";

/** Runs the suite for the stores that `makeStore` creates. */
export function lockStoreConformance(name: string, makeStore: () => LockStore | Promise<LockStore>): void {
  describe(`${name} is a store of locks and runs`, () => {
    let made: LockStore;
    const store = (): LockStore => made;
    beforeAll(async () => {
      made = await makeStore();
    });

    describe("in every state, every command, and each sent again", () => {
      it.each(STATES)("$state", async (state) => {
        expect(await play(state, () => new Fixture(made))).toEqual(expected(state));
      });
    });
    describe("acquire", () => acquires(store));
    describe("list", () => lists(store));
    describe("limits", () => limits(store));
    describe("many at once", () => contends(store));
    describe("conditions", () => waitsForConditions(store));
    describe("a waiter that sleeps", () => sleeps(store));

    describe("in every state of a run, every command, and each sent again", () => {
      it.each(RUN_STATES)("$state", async (state) => {
        expect(await playRun(state, () => new RunScene(made))).toEqual(expectedOfRun(state));
      });
    });
    describe("a run", () => runs(store));
    describe("payloads", () => keeps(store));
    describe("listing runs", () => listsRuns(store));
    describe("a lock and a run of the same key", () => apart(store));

    it("reads what was written last, and nothing where nothing was", async () => {
      const lock = new Fixture(made);
      expect(await lock.read()).toBeUndefined();
      for (let ms = 0; ms < 20; ms++) {
        const answer = await lock.at(ms).acquire(A);
        expect((await lock.read())?.version).toBe(answer.ok && answer.lease.version);
        await lock.renew(A);
        expect((await lock.read())?.holds[A]?.expiresAtMs).toBe(lock.clocks.latestMs + 10_000);
      }
    });
  });
}
