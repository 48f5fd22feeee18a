/** A store's grants, beyond the table of states: the lease's fields, its token, its times. */
import { expect, it } from "vitest";
import { LIMITS } from "../../../lib/core/limits.js";
import type { LockStore } from "../../../lib/store/port.js";
import { A, B, C, leaseId, leaseIn, LEASE_MS, MARGIN_MS, outcomeOf, POLICY, Fixture, START_MS } from "../fixture.js";

const SECOND_MS = 1000;

/** The tests of acquiring. */
// Over 60 lines: a list of tests, each of which is short.
export function acquires(store: () => LockStore): void {
  it("grants a key that nobody used, with a token no lower than the later clock", async () => {
    const lock = new Fixture(store()).at(0, 400);
    const answer = await lock.acquire(A, { owner: "checkout-7", meta: { cart: [1, "two", null, { deep: true }] } });
    expect(answer).toEqual({
      ok: true,
      how: "granted",
      lease: {
        key: "ORDER_1",
        leaseId: A,
        owner: "checkout-7",
        mode: "exclusive",
        permits: 1,
        holdCount: 1,
        fencingToken: START_MS + 400,
        leaseMs: LEASE_MS,
        remainingMs: LEASE_MS,
        renewAfterMs: Math.floor(LEASE_MS / 3),
        version: START_MS + 401,
        serverTimeMs: START_MS + 400,
        meta: { cart: [1, "two", null, { deep: true }] },
      },
    });
  });

  it("keeps what the next decision needs, and for how long", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A, { owner: "checkout-7", meta: { cart: 1 } });
    expect(await lock.read()).toEqual({
      version: START_MS + 1,
      fencingToken: START_MS,
      fenceFloor: START_MS,
      limit: 1,
      holds: {
        [A]: {
          principal: "P",
          owner: "checkout-7",
          mode: "exclusive",
          permits: 1,
          fencingToken: START_MS,
          leaseMs: LEASE_MS,
          grantedAtMs: START_MS,
          expiresAtMs: START_MS + LEASE_MS,
          marginMs: MARGIN_MS,
          requestHash: "same",
          meta: { cart: 1 },
        },
      },
      offers: [],
      waiters: [],
      tombstones: [],
      lowWatermark: "",
      ttlAtSec: Math.ceil((START_MS + LEASE_MS + MARGIN_MS + POLICY.retentionMs) / SECOND_MS),
    });
  });

  it("gives every grant a larger token and a larger version, whether time goes on, stands still or steps back", async () => {
    const lock = new Fixture(store());
    const grants = [];
    for (const [order, ms] of [0, 0, 1, 1, -5_000, 60_000, 60_000].entries()) {
      lock.at(ms);
      grants.push(leaseIn(await lock.acquire(leaseId(order))));
      await lock.release(leaseId(order));
    }
    expect(grants.map(({ fencingToken }) => fencingToken - START_MS)).toEqual([0, 1, 2, 3, 4, 60_000, 60_001]);
    const versions = grants.map(({ version }) => version);
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b));
  });

  it("gives the same lease to the same id, without extending it", async () => {
    const lock = new Fixture(store());
    const first = leaseIn(await lock.acquire(A));
    const before = await lock.read();
    const again = await lock.at(4_000, 500).acquire(A);
    expect(again).toEqual({
      ok: true,
      how: "replayed",
      lease: { ...first, remainingMs: LEASE_MS - 4_500, serverTimeMs: START_MS + 4_500 },
    });
    expect(await lock.read()).toEqual(before);
  });

  it("keeps whatever JSON a note is, to the last digit", async () => {
    const nested = Array.from({ length: 40 }).reduce<unknown>((inner) => [inner], "deep");
    const meta = { "": "", "a.b #c": [null, true, 1e300, -1e-300, 0.1, 2 ** 53, {}, []], nested, text: "é \u0000 \ud83d\ude00" };
    const lock = new Fixture(store());
    expect(leaseIn(await lock.acquire(A, { meta })).meta).toEqual(meta);
    expect(leaseIn(await lock.acquire(A, { meta })).meta).toEqual(meta);
    expect(leaseIn(await lock.renew(A, { meta: { renewed: meta } })).meta).toEqual({ renewed: meta });
    expect((await lock.read())?.holds[A]?.meta).toEqual({ renewed: meta });
  });

  it.each([
    ["with other parameters", { requestHash: "other" }, "lease-reused"],
    ["by another principal", { by: "Q" }, "forbidden"],
  ])("refuses the same id %s, and changes nothing", async (_, options, code) => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    const before = await lock.read();
    expect(await lock.acquire(A, options)).toMatchObject({ ok: false, code });
    expect(await lock.read()).toEqual(before);
  });

  it("says who holds the key and when to come back, and no more of them", async () => {
    const lock = new Fixture(store());
    const { fencingToken } = leaseIn(await lock.acquire(A, { owner: "checkout-7", by: "account/AROASECRET" }));
    const refusal = await lock.at(4_000, 200).acquire(B);
    expect(refusal).toMatchObject({
      ok: false,
      code: "locked",
      definite: true,
      retryAfterMs: LEASE_MS + MARGIN_MS - 4_000,
      holders: [{ owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken, heldMs: 4_200, remainingMs: LEASE_MS - 4_200 }],
    });
    expect(JSON.stringify(refusal)).not.toMatch(new RegExp(`${A}|AROASECRET`));
  });

  it.each([
    { earlier: LEASE_MS + MARGIN_MS - 1, ahead: 0, comes: "locked" },
    { earlier: LEASE_MS + MARGIN_MS - 1, ahead: 9_999, comes: "locked" },
    { earlier: LEASE_MS + MARGIN_MS, ahead: 0, comes: "granted" },
    { earlier: LEASE_MS + MARGIN_MS, ahead: 9_999, comes: "granted" },
  ])("takes over by the earlier clock alone: at $earlier ms, the later $ahead ms ahead: $comes", async ({ earlier, ahead, comes }) => {
    const lock = new Fixture(store());
    const { fencingToken } = leaseIn(await lock.acquire(A));
    const answer = await lock.at(earlier, ahead).acquire(B, { by: "Q" });
    expect(outcomeOf(answer)).toBe(comes);
    if (!answer.ok) return;
    expect(answer).toMatchObject({ lease: { remainingMs: LEASE_MS, fencingToken: START_MS + earlier + ahead } });
    expect(leaseIn(answer).fencingToken).toBeGreaterThan(fencingToken);
    expect(Object.keys((await lock.read())?.holds ?? {})).toEqual([B]);
  });

  it.each([
    ["a free key", false],
    ["a key that was used", true],
  ])("refuses an id whose time is out of bounds on %s, and changes nothing", async (_, used) => {
    for (const [ms, code] of [
      [LIMITS.leaseIdAheadMs + 1, "lease-id-time"],
      [-LIMITS.leaseIdBehindMs - 1, "lease-id-time"],
      [LIMITS.leaseIdAheadMs, undefined],
      [-LIMITS.leaseIdBehindMs, undefined],
    ] as const) {
      const lock = new Fixture(store());
      if (used) await lock.acquire(A).then(() => lock.release(A));
      const before = await lock.read();
      const answer = await lock.acquire(leaseId(9, ms));
      if (code === undefined) expect(answer).toMatchObject({ how: "granted" });
      else {
        expect(answer).toMatchObject({ code, serverTimeMs: START_MS });
        expect(await lock.read()).toEqual(before);
      }
    }
  });

  it("still knows a lease whose id has become too old for a first acquire", async () => {
    const lock = new Fixture(store());
    const { fencingToken } = leaseIn(await lock.acquire(A, { leaseMs: 4 * LIMITS.leaseIdBehindMs }));
    lock.at(3 * LIMITS.leaseIdBehindMs);
    expect(await lock.acquire(A, { leaseMs: 4 * LIMITS.leaseIdBehindMs })).toMatchObject({ how: "replayed", lease: { fencingToken } });
  });

  it("grants no id at or below the highest that it has forgotten, and says above which", async () => {
    const lock = new Fixture(store());
    // The highest of all ends first, so it is the first to be forgotten.
    const highest = leaseId(500, 3);
    for (const id of [highest, ...Array.from({ length: LIMITS.tombstonesMax }, (_, order) => leaseId(order + 1))]) await lock.release(id);
    expect(await lock.acquire(leaseId(499, 3))).toMatchObject({ code: "lease-over", leaseIdAboveMs: START_MS + 3 });
    expect(await lock.acquire(highest)).toMatchObject({ code: "lease-over" });
    expect(await lock.acquire(leaseId(501, 3))).toMatchObject({ how: "granted" });
  });

  it("keeps namespaces and keys apart", async () => {
    const here = new Fixture(store());
    const elsewhere = new Fixture(store());
    const besides = new Fixture(store(), { namespace: here.address.namespace, key: "ORDER_2" });
    for (const lock of [here, elsewhere, besides]) expect(await lock.acquire(A)).toMatchObject({ how: "granted" });
    await here.release(A);
    expect(await here.acquire(B)).toMatchObject({ how: "granted" });
    for (const lock of [elsewhere, besides]) expect(await lock.acquire(C)).toMatchObject({ code: "locked" });
  });
}

/** The tests of renewing. */
// Over 60 lines: a list of tests, each of which is short.
export function renews(store: () => LockStore): void {
  it.each([
    { was: 30_000, given: "its own length", length: 30_000 },
    { was: LEASE_MS, given: "its own length", length: LEASE_MS },
    { was: LEASE_MS, given: 60_000, length: 60_000 },
    { was: 60_000, given: 59_500, length: 59_500 },
    { was: 60_000, given: 59_000, length: 59_000 },
  ])("extends a lease of $was ms, asked for $given: $length ms from then", async ({ was, given, length }) => {
    const lock = new Fixture(store());
    const granted = leaseIn(await lock.acquire(A, { leaseMs: was }));
    const renewed = await lock.at(1_000, 100).renew(A, typeof given === "string" ? {} : { leaseMs: given });
    const { version, ...rest } = granted;
    expect(renewed).toMatchObject({
      how: "renewed",
      lease: { ...rest, leaseMs: length, remainingMs: length, renewAfterMs: Math.floor(length / 3), serverTimeMs: START_MS + 1_100 },
    });
    expect(leaseIn(renewed).version).toBe(version + 1);
    const record = await lock.read();
    expect(record?.version).toBe(version + 1);
    expect(record?.holds[A]).toMatchObject({ expiresAtMs: START_MS + 1_100 + length, leaseMs: length });
    // The margin that was promised for a longer lease stays.
    expect(record?.holds[A]?.marginMs).toBe(POLICY.marginMs(Math.max(was, length)));
  });

  it("never shortens", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A, { leaseMs: 60_000 });
    const answer = await lock.at(1_000).renew(A, { leaseMs: 30_000 });
    expect(answer).toMatchObject({ how: "renewed", lease: { leaseMs: 60_000, remainingMs: 59_000 } });
    expect((await lock.read())?.holds[A]).toMatchObject({ expiresAtMs: START_MS + 60_000, leaseMs: 60_000 });
  });

  it("never promises more than its length, however far the clocks are apart", async () => {
    const lock = new Fixture(store()).at(0, 5_000);
    await lock.acquire(A);
    expect(await lock.at(1_000).renew(A)).toMatchObject({ lease: { remainingMs: LEASE_MS } });
    expect((await lock.read())?.holds[A]?.expiresAtMs).toBe(START_MS + 5_000 + LEASE_MS);
  });

  it("keeps the note that came with the acquire until a renewal brings another", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A, { meta: { step: 1 } });
    expect(await lock.renew(A)).toMatchObject({ lease: { meta: { step: 1 } } });
    expect(await lock.renew(A, { meta: { step: 2 } })).toMatchObject({ lease: { meta: { step: 2 } } });
    expect((await lock.read())?.holds[A]?.meta).toEqual({ step: 2 });
  });

  it("refuses another principal, and changes nothing", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A);
    const before = await lock.read();
    expect(await lock.renew(A, { by: "Q" })).toMatchObject({ code: "forbidden" });
    expect(await lock.read()).toEqual(before);
  });

  it("keeps the item from garbage collection for as long as the lease it extends", async () => {
    const lock = new Fixture(store());
    await lock.acquire(A, { leaseMs: 1_000 });
    await lock.renew(A, { leaseMs: 3_600_000 });
    const endMs = START_MS + 3_600_000 + POLICY.marginMs(3_600_000) + POLICY.retentionMs;
    expect((await lock.read())?.ttlAtSec).toBe(Math.ceil(endMs / SECOND_MS));
  });
}
