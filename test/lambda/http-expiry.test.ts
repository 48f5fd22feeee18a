/** Leases of holders that went silent: over HTTP, with a clock that the test advances. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";
import { kindsOn } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, put, get, post, release } = kindsOn(() => service, "CRASHED");

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
/** A holder of its own key that crashes. */
const crashed = () => put(freshKey(), { leaseMs: LEASE_MS, owner: "crashed" });

describe("a crashed holder's key", () => {
  it("is granted within lease + margin, not a millisecond before, with a larger token", async () => {
    const { key, body } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS - 1);
    const early = await put(key);
    expect([early.status, early.body.retryAfterMs, early.headers["retry-after"]]).toEqual([423, 1, "1"]);
    expect(early.body.holders).toMatchObject([{ owner: "crashed", remainingMs: 0 }]);
    await service.clock.advance(1);
    const granted = await put(key);
    expect(granted.status).toBe(201);
    expect(granted.body.fencingToken).toBeGreaterThan(body.fencingToken);
  });

  it("is granted to who comes back after retryAfterMs", async () => {
    const { key } = await crashed();
    await service.clock.advance((await put(key)).body.retryAfterMs as number);
    expect((await put(key)).status).toBe(201);
  });
});

describe("a lease that ran out", () => {
  it("says expired when it is released, again and again, as long as nobody was granted since", async () => {
    const { key, url } = await crashed();
    await service.clock.advance(LEASE_MS);
    expect(await release(url)).toBe("expired");
    expect((await put(key)).status).toBe(201);
    expect(await release(url)).toBe("expired");
  });

  it("says lost when it is released after a takeover, and leaves the new holder alone", async () => {
    const { key, url } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS);
    const next = await put(key);
    expect([await release(url), await release(url)]).toEqual(["lost", "lost"]);
    expect((await get(next.url)).status).toBe(200);
  });

  it("holds to its last millisecond", async () => {
    const { url } = await crashed();
    await service.clock.advance(LEASE_MS - 1);
    expect((await get(url)).body.remainingMs).toBe(1);
    expect((await post(`${url}/renew`)).body.remainingMs).toBe(LEASE_MS);
  });
});
