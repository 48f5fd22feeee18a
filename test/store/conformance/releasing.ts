/** The end of a hold in a store, beyond the table of states: release, transfer, break. */
import { expect, it } from "vitest";
import { LIMITS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, B, C, D, leaseId, leaseIn, LEASE_MS, MARGIN_MS, POLICY, Fixture, START_MS } from "../fixture.js";

/** The tests of releasing. */
export function releases(store: () => LockStore): void {
  it("frees the key and remembers how the lease ended", async () => {
    const lock = new Fixture(store());
    const { version } = leaseIn(await lock.acquire(A));
    expect(await lock.at(500).release(A)).toEqual({ ok: true, state: "released" });
    expect(await lock.read()).toMatchObject({
      version: version + 1,
      fencingToken: START_MS,
      holds: {},
      tombstones: [{ leaseId: A, ending: "released" }],
      lowWatermark: "",
    });
  });

  it("refuses another principal, and the holder keeps the key", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    const before = await lock.read();
    expect(await lock.release(A, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.read()).toEqual(before);
  });

  it("remembers the last eight that ended, and of all before the highest", async () => {
    const lock = new Fixture(store());
    const ids = [5, 3, 9, 1, 8, 2, 7, 4, 6, 10, 11].map((order) => leaseId(order));
    for (const [index, id] of ids.entries()) {
      // In rotation: a release on the fast path, a release after a read, and a cancel.
      if (index % 3 !== 2) await lock.at(index * 2 * LEASE_MS).acquire(id);
      if (index % 3 === 1) lock.at(index * 2 * LEASE_MS + LEASE_MS);
      await lock.release(id);
    }
    const record = await lock.read();
    expect(record?.tombstones.map((entry) => entry.leaseId)).toEqual(ids.slice(3).reverse());
    expect(record?.lowWatermark).toBe(leaseId(9));
    expect(await lock.release(leaseId(3))).toEqual({ ok: true, state: "unknown" });
  });

  it("keeps the acquire out that it cancelled, however late it comes", async () => {
    const lock = new Fixture(store());
    expect(await lock.release(A)).toEqual({ ok: true, state: "never" });
    expect(await lock.read()).toMatchObject({ fencingToken: 0, holds: {}, tombstones: [{ leaseId: A, ending: "cancelled" }] });
    expect(await lock.at(LIMITS.leaseIdBehindMs).acquire(A)).toMatchObject({ code: "lease-over" });
  });

  it("does not remember an id that is too old to be granted", async () => {
    const lock = new Fixture(store()).at(LIMITS.leaseIdBehindMs + LIMITS.leaseIdAheadMs + 1);
    expect(await lock.release(A)).toEqual({ ok: true, state: "unknown" });
    expect(await lock.read()).toBeUndefined();
  });

  it("lets no garbage collection forget the end too early", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A, { leaseMs: 1_000 });
    lock.at(60_000);
    await lock.release(A);
    expect((await lock.read())?.ttlAtSec).toBe(Math.ceil((START_MS + 60_000 + POLICY.retentionMs) / 1000));
  });
}

/** The tests of transfers. */
export function transfers(store: () => LockStore): void {
  it("hands the hold to the new id with a larger token and its own length, in one change", async () => {
    const lock = new Fixture(store());
    const from = leaseIn(await lock.acquire(A, { owner: "checkout-7", meta: { step: 1 } }));
    const answer = await lock.transfer(A, B, { leaseMs: 60_000, toOwner: "shipping-2" });
    expect(answer).toMatchObject({
      how: "transferred",
      lease: {
        leaseId: B,
        owner: "shipping-2",
        leaseMs: 60_000,
        remainingMs: 60_000,
        fencingToken: from.fencingToken + 1,
        version: from.version + 1,
        meta: { step: 1 },
      },
    });
    expect(await lock.read()).toMatchObject({ tombstones: [{ leaseId: A, ending: "transferred" }], fencingToken: from.fencingToken + 1 });
  });

  it("gives the same token when it is sent again, to whoever was handed the hold too", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    const { fencingToken } = leaseIn(await lock.transfer(A, B));
    expect(await lock.at(1_000).transfer(A, B)).toMatchObject({ how: "replayed", lease: { leaseId: B, fencingToken } });
    expect(await lock.acquire(B, { by: "Q" })).toMatchObject({ how: "replayed", lease: { fencingToken } });
  });

  it.each<[string, (lock: Fixture) => Promise<unknown>, string]>([
    ["renews it", (lock) => lock.renew(B, { by: "Q" }), "renewed"],
    ["asks for it", (lock) => lock.acquire(B, { by: "Q" }), "replayed"],
  ])("binds the hold to the first principal that %s", async (_, first, how) => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    await lock.transfer(A, B);
    expect(await first(lock)).toMatchObject({ how });
    for (const another of [lock.acquire(B), lock.renew(B), lock.release(B)]) expect(await another).toMatchObject({ code: "forbidden" });
    expect(await lock.renew(B, { by: "Q" })).toMatchObject({ how: "renewed" });
    expect(await lock.release(B, { by: "Q" })).toEqual({ ok: true, state: "released" });
  });

  it.each([
    ["another principal's lease", { by: "Q" }, C, "forbidden"],
    ["a lease to itself", {}, A, "lease-reused"],
    ["to an id that ended", {}, B, "lease-over"],
    ["to an id from the future", {}, leaseId(1, LIMITS.leaseIdAheadMs + 1), "lease-id-time"],
  ])("refuses to hand over %s, and changes nothing", async (_, options, to, code) => {
    const lock = new Fixture(store());
    await lock.release(B);
    await lock.acquire(A);
    const before = await lock.read();
    expect(await lock.transfer(A, to, options)).toMatchObject({ ok: false, code });
    expect(await lock.read()).toEqual(before);
  });
}

/** The tests of breaking. */
export function breaks(store: () => LockStore): void {
  it("leaves the holder its lease, which can't be renewed, when no force is asked for", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    expect(await lock.at(4_000, 300).breakHold()).toEqual({ ok: true, breakInMs: LEASE_MS + MARGIN_MS - 4_000 });
    expect(await lock.renew(A)).toMatchObject({ code: "lease-lost", reason: "broken" });
    expect(await lock.at(LEASE_MS + MARGIN_MS - 1).acquire(B)).toMatchObject({ code: "locked" });
    expect(await lock.at(LEASE_MS + MARGIN_MS).acquire(B)).toMatchObject({ how: "granted" });
    expect(await lock.release(A)).toEqual({ ok: true, state: "lost" });
  });

  it("keeps no margin when force is asked for", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    expect(await lock.breakHold(undefined, 2_000)).toEqual({ ok: true, breakInMs: 2_000 });
    expect((await lock.read())?.holds[A]).toMatchObject({ broken: "forced", expiresAtMs: START_MS + 2_000, marginMs: 0 });
    expect(await lock.at(1_999).acquire(B)).toMatchObject({ code: "locked" });
    expect(await lock.at(2_000).acquire(B)).toMatchObject({ how: "granted" });
  });

  it("is no force when the holder would have had less time anyway", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    expect(await lock.breakHold(undefined, LEASE_MS)).toEqual({ ok: true, breakInMs: LEASE_MS + MARGIN_MS });
    expect((await lock.read())?.holds[A]).toMatchObject({ broken: "drain", expiresAtMs: START_MS + LEASE_MS, marginMs: MARGIN_MS });
  });

  it.each([undefined, 0])("spares the next holder when it is sent again (drainMs %s)", async (drainMs) => {
    const lock = new Fixture(store());
    const { fencingToken } = leaseIn(await lock.acquire(A));
    await lock.breakHold(fencingToken, drainMs);
    lock.at(LEASE_MS + MARGIN_MS);
    const next = leaseIn(await lock.acquire(B));
    expect(await lock.breakHold(fencingToken, drainMs)).toEqual({ ok: true, breakInMs: 0 });
    expect(await lock.acquire(B)).toMatchObject({ how: "replayed", lease: { fencingToken: next.fencingToken } });
    expect(await lock.renew(B)).toMatchObject({ how: "renewed" });
  });

  it("names the hold by its token: another's is not touched, and a key that was never used has none", async () => {
    const lock = new Fixture(store());
    expect(await lock.breakHold(START_MS, 0)).toMatchObject({ code: "not-found" });
    const { fencingToken } = leaseIn(await lock.acquire(D));
    const before = await lock.read();
    expect(await lock.breakHold(fencingToken - 1, 0)).toMatchObject({ code: "other-hold" });
    expect(await lock.breakHold(fencingToken + 1, 0)).toMatchObject({ code: "other-hold" });
    expect(await lock.read()).toEqual(before);
  });
}
