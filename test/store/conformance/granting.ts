/** A store's grants, beyond the table of states: everything that comes with one is kept, and keys are apart. */
import { expect, it } from "vitest";
import type { LockStore } from "../../../lib/store/port.js";
import { A, B, C, leaseIn, LEASE_MS, MARGIN_MS, POLICY, Fixture, START_MS } from "../fixture.js";

const SECOND_MS = 1000;

/** The tests of acquiring. */
export function acquires(store: () => LockStore): void {
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

  it("keeps whatever JSON a note is, to the last digit", async () => {
    const nested = Array.from({ length: 40 }).reduce<unknown>((inner) => [inner], "deep");
    const meta = { "": "", "a.b #c": [null, true, 1e300, -1e-300, 0.1, 2 ** 53, {}, []], nested, text: "é \u0000 \ud83d\ude00" };
    const lock = new Fixture(store());
    expect(leaseIn(await lock.acquire(A, { meta })).meta).toEqual(meta);
    expect(leaseIn(await lock.acquire(A, { meta })).meta).toEqual(meta);
    expect(leaseIn(await lock.renew(A, { meta: { renewed: meta } })).meta).toEqual({ renewed: meta });
    expect((await lock.read())?.holds[A]?.meta).toEqual({ renewed: meta });
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
