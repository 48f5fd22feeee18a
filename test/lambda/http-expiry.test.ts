/** Leases of holders that went silent: over HTTP, with a clock that the test advances. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
let keys = 0;
const newId = (): string => leaseIdAt(service.clock.wallMs());
const path = (key: string, leaseId: string): string => `/v1/locks/${key}/leases/${leaseId}`;

/** A holder of its own key that crashes. */
async function crashed(): Promise<{ key: string; url: string; fencingToken: number }> {
  const key = `CRASHED_${++keys}`;
  const url = path(key, newId());
  const { body } = await service.send("PUT", url, { body: { leaseMs: LEASE_MS, owner: "crashed" } });
  return { key, url, fencingToken: body.fencingToken };
}

const stateOf = async (url: string): Promise<unknown> => (await service.send("DELETE", url)).headers["lease-state"];

describe("a crashed holder's key", () => {
  it("is granted within lease + margin, not a millisecond before, with a larger token", async () => {
    const { key, fencingToken } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS - 1);
    const early = await service.send("PUT", path(key, newId()));
    expect([early.status, early.body.retryAfterMs, early.headers["retry-after"]]).toEqual([423, 1, "1"]);
    expect(early.body.holders).toMatchObject([{ owner: "crashed", remainingMs: 0 }]);
    await service.clock.advance(1);
    const granted = await service.send("PUT", path(key, newId()));
    expect(granted.status).toBe(201);
    expect(granted.body.fencingToken).toBeGreaterThan(fencingToken);
  });

  it("is granted to who comes back after retryAfterMs", async () => {
    const { key } = await crashed();
    const { body } = await service.send("PUT", path(key, newId()));
    await service.clock.advance(body.retryAfterMs);
    expect((await service.send("PUT", path(key, newId()))).status).toBe(201);
  });

  it("is not granted while the holder renews", async () => {
    const { key, url } = await crashed();
    for (let beat = 0; beat < 5; beat++) {
      await service.clock.advance(LEASE_MS - 1);
      expect((await service.send("POST", `${url}/renew`)).status).toBe(200);
    }
    expect((await service.send("PUT", path(key, newId()))).status).toBe(423);
  });
});

describe("a lease that ran out", () => {
  it("says expired when it is released, again and again, as long as nobody was granted since", async () => {
    const { key, url } = await crashed();
    await service.clock.advance(LEASE_MS);
    expect(await stateOf(url)).toBe("expired");
    expect((await service.send("PUT", path(key, newId()))).status).toBe(201);
    expect(await stateOf(url)).toBe("expired");
  });

  it("says lost when it is released after a takeover, and leaves the new holder alone", async () => {
    const { key, url } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS);
    const next = path(key, newId());
    await service.send("PUT", next);
    expect(await stateOf(url)).toBe("lost");
    expect(await stateOf(url)).toBe("lost");
    expect((await service.send("GET", next)).status).toBe(200);
  });

  it.each([
    ["expired", LEASE_MS, false],
    ["taken", LEASE_MS + MARGIN_MS, true],
  ])("is not renewed, nor asked for, nor checked, nor handed over: 410, %s", async (reason, afterMs, isTaken) => {
    const { key, url } = await crashed();
    await service.clock.advance(afterMs);
    if (isTaken) await service.send("PUT", path(key, newId()));
    const attempts = [
      await service.send("POST", `${url}/renew`),
      await service.send("GET", url),
      await service.send("POST", `${url}/transfer`, { body: { leaseId: newId() } }),
    ];
    for (const { status, body } of attempts)
      expect([status, body.code, body.reason, body.definite]).toEqual([410, "lease-lost", reason, true]);
    const again = await service.send("PUT", url, { body: { leaseMs: LEASE_MS, owner: "crashed" } });
    expect([again.status, again.body.code]).toEqual([410, "lease-over"]);
  });

  it("holds to its last millisecond", async () => {
    const { url } = await crashed();
    await service.clock.advance(LEASE_MS - 1);
    expect((await service.send("GET", url)).body.remainingMs).toBe(1);
    expect((await service.send("POST", `${url}/renew`)).body.remainingMs).toBe(LEASE_MS);
  });
});

describe("a leaseId whose time is off", () => {
  it.each([
    ["10 s ahead", 10_000, 201],
    ["a little more than 10 s ahead", 10_001, 422],
    ["15 min behind", -900_000, 201],
    ["a little more than 15 min behind", -900_001, 422],
  ])("%s (%i ms): %i", async (_what, offMs, status) => {
    const reply = await service.send("PUT", path(`OFF_${++keys}`, leaseIdAt(service.clock.wallMs() + offMs)));
    expect(reply.status).toBe(status);
    if (status === 422)
      expect(reply.body).toMatchObject({ code: "lease-id-time", retry: "new-lease", definite: true, serverTimeMs: service.clock.wallMs() });
  });

  it("is refused only at its first acquire: a long hold may be asked for again", async () => {
    const url = path(`LONG_${++keys}`, newId());
    await service.send("PUT", url, { body: { leaseMs: 3_600_000 } });
    await service.clock.advance(1_800_000);
    expect((await service.send("PUT", url, { body: { leaseMs: 3_600_000 } })).status).toBe(200);
  });

  it("does not brick its key when it is cancelled, however often: a right id is granted", async () => {
    const key = `AHEAD_${++keys}`;
    for (let ahead = 1; ahead <= 9; ahead++) {
      expect(await stateOf(path(key, leaseIdAt(service.clock.wallMs() + ahead * 3_600_000)))).toBe("never");
    }
    expect((await service.send("PUT", path(key, newId()))).status).toBe(201);
  });
});
