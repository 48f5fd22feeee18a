/** A lease's life over HTTP: acquired, acquired again, renewed, checked, released, and never held again. */
import { expect } from "vitest";
import { LEASE_ID } from "../../support/lease-ids.js";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const MINUTE_MS = 60_000;

/** Acquires, and repeated acquires. */
export function acquires({ it }: Suite, { freshKey, newId, put, hold }: Calls): void {
  it("of a free key is 201, with everything that a holder must know", async () => {
    const key = freshKey();
    const body = { leaseMs: 20_000, owner: "checkout-7", meta: { order: "é", nested: [1, null, { a: true }] } };
    const { status, headers, leaseId, body: lease } = await put(key, body);
    expect(status).toBe(201);
    expect(lease).toMatchObject({ key, leaseId, ...body, mode: "exclusive", permits: 1, holdCount: 1 });
    expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
    expect(lease.remainingMs).toBeGreaterThan(0);
    expect(lease.remainingMs).toBeLessThanOrEqual(20_000);
    expect(lease.renewAfterMs).toBeLessThan(20_000);
    expect(headers["etag"]).toBe(`"v${lease.version}"`);
    expect(headers).not.toHaveProperty("idempotent-replayed");
    expect(lease).not.toHaveProperty("fenceFloor");
  });

  it("again is 200: the same lease, the same token, not extended, and it says so", async () => {
    const first = await hold(undefined, { leaseMs: MINUTE_MS });
    const again = await put(first.key, { leaseMs: MINUTE_MS, mode: "exclusive", limit: 1, permits: 1, priority: 0, owner: "" }, first);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body.remainingMs).toBeLessThanOrEqual(first.body.remainingMs as number);
    const { remainingMs: _left, serverTimeMs: _now, ...same } = first.body;
    expect(again.body).toMatchObject(same);
  });

  it("of a held key is 423 at once, with who holds it and when to come again, and never the holder's leaseId", async () => {
    const first = await hold(undefined, { leaseMs: MINUTE_MS, owner: "checkout-7" });
    const refused = await put(first.key, { owner: "other" });
    expect(told(refused)).toEqual([423, "locked"]);
    const { definite, retry, retryAfterMs, holders } = refused.body;
    expect([definite, retry]).toEqual([true, "later"]);
    expect(retryAfterMs).toBeGreaterThan(0);
    expect(refused.headers["retry-after"]).toBe(String(Math.ceil(retryAfterMs / 1000)));
    expect(holders).toMatchObject([{ owner: "checkout-7", mode: "exclusive", fencingToken: first.body.fencingToken }]);
    expect(holders[0].remainingMs).toBeLessThanOrEqual(MINUTE_MS);
    expect(refused.text).not.toMatch(new RegExp(LEASE_ID.source, "i"));
  });

  it("with a leaseId from the future or from long ago is 422 lease-id-time, with the service's time", async () => {
    for (const fromNowMs of [5 * MINUTE_MS, -16 * MINUTE_MS]) {
      const refused = await put(freshKey(), {}, { leaseId: newId(fromNowMs) });
      expect([...told(refused), refused.body.retry]).toEqual([422, "lease-id-time", "new-lease"]);
      expect(Number.isSafeInteger(refused.body.serverTimeMs)).toBe(true);
    }
    await hold(freshKey(), {}, { leaseId: newId(-10 * MINUTE_MS) });
  });
}

/** Heartbeats and checks. */
export function renews({ it }: Suite, { freshKey, newId, get, post, hold, release }: Calls): void {
  it("is 200 with the same token and a new version, and may change length and meta", async () => {
    const held = await hold(undefined, { leaseMs: 5_000, meta: { step: 1 } });
    const renewed = await post(`${held.url}/renew`, { leaseMs: MINUTE_MS, meta: { step: 2 } });
    expect(renewed.status).toBe(200);
    expect(renewed.body).toMatchObject({ fencingToken: held.body.fencingToken, leaseMs: MINUTE_MS, meta: { step: 2 } });
    expect(renewed.body.remainingMs).toBeGreaterThan(5_000);
    expect(renewed.body.version).toBeGreaterThan(held.body.version as number);
    expect(renewed.headers["etag"]).toBe(`"v${renewed.body.version}"`);
    const looked = await get(held.url);
    expect([looked.status, looked.body.version, looked.body.meta]).toEqual([200, renewed.body.version, { step: 2 }]);
  });

  it("is 410 lease-lost once it was released, and tells so; of a leaseId that never held, never", async () => {
    const held = await hold();
    await release(held);
    for (const refused of [await post(`${held.url}/renew`), await get(held.url)]) {
      expect([...told(refused), refused.body.reason, refused.body.retry]).toEqual([410, "lease-lost", "released", "new-lease"]);
    }
    const url = `/v1/locks/${freshKey()}/leases/${newId()}`;
    for (const refused of [await post(`${url}/renew`), await get(url)]) {
      expect([...told(refused), refused.body.reason]).toEqual([410, "lease-lost", "never"]);
    }
  });
}

/** Releases, and requests after them. */
export function releases({ it }: Suite, { put, hold, release }: Calls): void {
  it("is 204 released, also when it is sent again, and the key is free", async () => {
    const held = await hold();
    expect([await release(held), await release(held)]).toEqual(["released", "released"]);
    await hold(held.key);
    expect(await release(held)).toBe("released");
  });

  it("is final: a late duplicate of the acquire is 410 lease-over, and takes nothing from who holds by then", async () => {
    const held = await hold();
    await release(held);
    const late = await put(held.key, {}, held);
    expect([...told(late), late.body.retry]).toEqual([410, "lease-over", "new-lease"]);
    const next = await hold(held.key);
    expect(told(await put(held.key, {}, held))).toEqual([410, "lease-over"]);
    expect((await put(next.key, {}, next)).status).toBe(200);
  });
}
