/**
 * The conformance of a store, in what it adds to the core: many at once, and what is kept and listed. The rules of a decision are the core's
 * tables, and test/store/differential compares random histories of all commands, with the records. Every store passes this suite in full; an exception would be
 * named here, with its reason. The suite advances time itself and gives every test its own key, so it can run on a shared engine.
 */
import { beforeAll, describe, expect, it } from "vitest";
import type { LockStore } from "../../../lib/store/port.js";
import { waitsForConditions } from "./conditions.js";
import { contends } from "./contending.js";
import { limits } from "./limiting.js";
import { lists } from "./listing.js";
import { apart, keeps, listsRuns } from "./run-listing.js";
import { runs } from "./running.js";
import { A, B, C, Fixture } from "../fixture.js";

/** Runs the suite for the stores that `makeStore` creates. */
export function lockStoreConformance(name: string, makeStore: () => LockStore | Promise<LockStore>): void {
  describe(`${name} is a store of locks and runs`, () => {
    let made: LockStore;
    const store = (): LockStore => made;
    beforeAll(async () => {
      made = await makeStore();
    });

    describe("list", () => lists(store));
    describe("limits", () => limits(store));
    describe("many at once", () => contends(store));
    describe("conditions", () => waitsForConditions(store));

    describe("a run", () => runs(store));
    describe("payloads", () => keeps(store));
    describe("listing runs", () => listsRuns(store));
    describe("a lock and a run of the same key", () => apart(store));

    it("keeps namespaces and keys apart", async () => {
      const here = new Fixture(made);
      const elsewhere = new Fixture(made);
      const besides = new Fixture(made, { namespace: here.address.namespace, key: "ORDER_2" });
      for (const lock of [here, elsewhere, besides]) expect(await lock.acquire(A)).toMatchObject({ how: "granted" });
      await here.release(A);
      expect(await here.acquire(B)).toMatchObject({ how: "granted" });
      for (const lock of [elsewhere, besides]) expect(await lock.acquire(C)).toMatchObject({ code: "locked" });
    });

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
