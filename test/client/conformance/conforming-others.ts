/** Conformance: inspecting and breaking other clients' locks, and jobs that several clients share. */
import { describe, expect, it } from "vitest";
import { pages } from "../../support/pages.js";
import type { Fixture } from "./conformance.js";

export function describeOthers(fixture: Fixture): void {
  describe("shows", () => {
    it("who holds a key, and nothing that proves a hold", async () => {
      const name = fixture.fresh();
      expect(await fixture.rival.inspect(name)).toMatchObject({ key: name, holders: [], waiters: [] });
      const lease = await fixture.locks.acquire(name, { leaseMs: 5000 });
      const { leaseId, fencingToken } = lease;
      const found = await fixture.rival.inspect(name);
      expect(found).toMatchObject({ fencingToken, holders: [{ owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken }] });
      expect(found.holders[0]!.remainingMs).toBeGreaterThan(0);
      expect(JSON.stringify(found)).not.toContain(leaseId);
      await lease.release();
    });

    it("held keys by prefix and owner, a page at a time", async () => {
      const within = `${fixture.fresh()}:`;
      const names = ["a", "b", "c", "d"].map((letter) => within + letter);
      const leases = [];
      for (const name of names) leases.push(await (name.endsWith("c") ? fixture.rival : fixture.locks).acquire(name));
      await (await fixture.locks.acquire(`${within}e`)).release();

      expect((await pages(fixture.locks, { prefix: within, max: 2 })).flat()).toEqual(names);
      expect((await pages(fixture.locks, { prefix: within, owner: "rival" })).flat()).toEqual([names[2]]);
      expect((await pages(fixture.locks, { prefix: `${within}zz` })).flat()).toEqual([]);
      for (const lease of leases) await lease.release();
    });

    it("how a key changes, as it does, until it is told to end", async () => {
      const name = fixture.fresh();
      const end = new AbortController();
      const owners: string[] = [];
      const watching = (async () => {
        for await (const { holders } of fixture.rival.watch(name, { intervalMs: 100, signal: end.signal })) {
          owners.push(holders.map(({ owner }) => owner).join());
          if (owners.length === 1) await fixture.locks.acquire(name, { heartbeat: false, leaseMs: 60_000 });
          else end.abort();
        }
      })();
      await fixture.backend.passing(watching);
      expect(owners).toEqual(["", "checkout-7"]);
    });

    it("its health", async () => {
      const { status, version, serverTimeMs } = await fixture.locks.health();
      expect(status).toBe("ok");
      expect(version).toMatch(/^\d+\.\d+\.\d+/);
      expect(serverTimeMs).toBeGreaterThan(1_600_000_000_000);
    });
  });

  describe("ends somebody's hold", () => {
    it("by force at once, named by its token; a repeat spares the next holder", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name);
      const order = { reason: "conformance", fencingToken: lease.fencingToken, drainMs: 0 };
      expect(await fixture.rival.forceRelease(name, order)).toEqual({ breakInMs: 0 });
      const next = (await fixture.rival.tryAcquire(name))!;
      expect(await fixture.rival.forceRelease(name, order)).toEqual({ breakInMs: 0 });
      await next.renew();
      await expect(lease.renew()).rejects.toMatchObject({ name: "LockLostError", reason: "broken" });
      expect(await lease.release()).toBe("lost");
      await next.release();
    });

    it("only the one that was meant", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name);
      const other = { reason: "conformance", fencingToken: lease.fencingToken - 1 };
      await expect(fixture.rival.forceRelease(name, other)).rejects.toMatchObject({ code: "other-hold", definite: true });
      await expect(fixture.rival.forceRelease(fixture.fresh(), other)).rejects.toMatchObject({ code: "not-found" });
      await lease.renew();
      await lease.release();
    });
  });
}
