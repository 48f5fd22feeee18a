/** Conformance: readers and writers, together, exclusive, upgraded and downgraded. */
import { describe, expect, it } from "vitest";
import { LockTimeoutError } from "../../../lib/index.js";
import type { Fixture } from "./conformance.js";

const SHARED = { mode: "shared" } as const;

export function describeKindsModes(fixture: Fixture): void {
  describe("readers and writers", () => {
    it("readers hold together; a writer holds alone", async () => {
      const name = fixture.fresh();
      const readers = [await fixture.locks.acquire(name, SHARED), (await fixture.rival.tryAcquire(name, SHARED))!];
      expect(readers.map(({ mode, state }) => [mode, state])).toEqual([
        ["shared", "held"],
        ["shared", "held"],
      ]);
      expect(await fixture.rival.tryAcquire(name)).toBeNull();
      await readers[0]!.release();
      expect(await fixture.rival.tryAcquire(name)).toBeNull();
      await readers[1]!.release();
      const writer = (await fixture.rival.tryAcquire(name))!;
      expect(await fixture.locks.tryAcquire(name, SHARED)).toBeNull();
      await writer.release();
    });

    it("come and go as a crowd: 40 readers at once, then 40 permits, and nobody is turned away", async () => {
      for (const options of [SHARED, { limit: 40 }]) {
        const name = fixture.fresh();
        const clients = Array.from({ length: 40 }, (_, at) => (at % 2 === 0 ? fixture.locks : fixture.rival));
        const crowd = await fixture.backend.passing(Promise.all(clients.map((locks) => locks.acquire(name, options))));
        expect(new Set(crowd.map(({ fencingToken }) => fencingToken)).size).toBe(40);
        expect(await fixture.backend.passing(Promise.all(crowd.map((lease) => lease.release())))).toEqual(crowd.map(() => "released"));
        await (await fixture.locks.acquire(name)).release();
      }
    });

    it("the only reader becomes the writer, and a reader again: a larger token each time, the same lease", async () => {
      const name = fixture.fresh();
      const lease = await fixture.locks.acquire(name, SHARED);
      const tokens = [lease.fencingToken];
      await lease.upgrade();
      expect(lease.mode).toBe("exclusive");
      expect(await fixture.rival.tryAcquire(name, SHARED)).toBeNull();
      tokens.push(lease.fencingToken);
      await lease.downgrade();
      expect([lease.mode, lease.fenceFloor]).toEqual(["shared", tokens[1]]);
      tokens.push(lease.fencingToken);
      expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
      const beside = (await fixture.rival.tryAcquire(name, SHARED))!;
      await lease.renew();
      expect(lease.isHeld()).toBe(true);
      await beside.release();
      expect(await lease.release()).toBe("released");
    });

    it("an upgrade waits for the other readers, lets no new ones in meanwhile, and comes when they have gone", async () => {
      const name = fixture.fresh();
      const [lease, theirs] = [await fixture.locks.acquire(name, SHARED), await fixture.rival.acquire(name, SHARED)];
      await expect(fixture.backend.passing(lease.upgrade({ waitMs: 0 }))).rejects.toBeInstanceOf(LockTimeoutError);
      expect([lease.mode, lease.isHeld()]).toEqual(["shared", true]);
      expect(await fixture.rival.tryAcquire(name, SHARED)).toBeNull();
      const upgrading = lease.upgrade();
      await fixture.backend.passing(theirs.release());
      await fixture.backend.passing(upgrading);
      expect([lease.mode, lease.isHeld()]).toEqual(["exclusive", true]);
      await lease.release();
    });

    it("of two readers that want to write, the second is told of the conflict; it goes, and the first has it", async () => {
      const name = fixture.fresh();
      const [first, second] = [await fixture.locks.acquire(name, SHARED), await fixture.rival.acquire(name, SHARED)];
      await expect(fixture.backend.passing(first.upgrade({ waitMs: 0 }))).rejects.toBeInstanceOf(LockTimeoutError);
      await expect(fixture.backend.passing(second.upgrade())).rejects.toMatchObject({ code: "upgrade-conflict", definite: true });
      expect([second.mode, second.isHeld()]).toEqual(["shared", true]);
      await second.release();
      await fixture.backend.passing(first.upgrade({ waitMs: 0 }));
      expect(first.mode).toBe("exclusive");
      await first.release();
    });
  });
}
