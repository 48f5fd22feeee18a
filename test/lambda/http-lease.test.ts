/** One lease over HTTP, from its first PUT to its last DELETE, and the answers to other callers meanwhile. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

let keys = 0;
const freshKey = (): string => `ORDER_${++keys}`;
const newId = (): string => leaseIdAt(service.clock.wallMs());
const path = (key: string, leaseId: string): string => `/v1/locks/${key}/leases/${leaseId}`;

describe("a first PUT", () => {
  it("is granted: 201, with a token and all that a holder must know", async () => {
    const [key, leaseId] = [freshKey(), newId()];
    const { status, headers, body } = await service.send("PUT", path(key, leaseId), {
      body: { owner: "checkout-7", leaseMs: 20_000, meta: { cart: [1] } },
    });
    expect(status).toBe(201);
    expect(body).toMatchObject({
      key,
      leaseId,
      owner: "checkout-7",
      leaseMs: 20_000,
      remainingMs: 20_000,
      mode: "exclusive",
      permits: 1,
      holdCount: 1,
      meta: { cart: [1] },
    });
    expect(body.fencingToken).toBeGreaterThan(0);
    expect(body.serverTimeMs).toBe(service.clock.wallMs());
    expect(headers["etag"]).toBe(`"v${body.version}"`);
    expect(headers["cache-control"]).toBe("no-store");
    expect(headers).not.toHaveProperty("idempotent-replayed");
  });

  it.each([
    ["no body", undefined],
    ["an empty object", {}],
    ["an empty body", ""],
    ["all defaults written out", { leaseMs: 30_000, owner: "", mode: "exclusive", permits: 1 }],
  ])("takes %s for a mutex with defaults", async (_what, body) => {
    const reply = await service.send("PUT", path(freshKey(), newId()), { body });
    expect([reply.status, reply.body.leaseMs, reply.body.owner]).toEqual([201, 30_000, ""]);
  });
});

describe("the same PUT again", () => {
  it("is the same lease: 200, the same token, not extended, and says that it is a replay", async () => {
    const url = path(freshKey(), newId());
    const first = await service.send("PUT", url, { body: { leaseMs: 10_000 } });
    await service.clock.advance(4_000);
    const again = await service.send("PUT", url, { body: { leaseMs: 10_000 } });
    expect(again.status).toBe(200);
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(again.body).toEqual({ ...first.body, remainingMs: 6_000, serverTimeMs: service.clock.wallMs() });
  });

  it("is the same whatever the order of its members, and with defaults written out", async () => {
    const url = path(freshKey(), newId());
    await service.send("PUT", url, { body: { owner: "a", meta: { x: 1, y: { b: 1, a: [2] } } } });
    const again = await service.send("PUT", url, { body: { leaseMs: 30_000, meta: { y: { a: [2], b: 1 }, x: 1 }, owner: "a" } });
    expect(again.status).toBe(200);
  });

  it.each([{ leaseMs: 31_000 }, { owner: "b" }, { meta: { x: 1 } }])("with other parameters (%o) is 422 lease-reused", async (other) => {
    const url = path(freshKey(), newId());
    await service.send("PUT", url, { body: { owner: "a" } });
    const reply = await service.send("PUT", url, { body: { owner: "a", ...other } });
    expect([reply.status, reply.body.code, reply.body.retry]).toEqual([422, "lease-reused", "new-lease"]);
  });
});

describe("while it is held", () => {
  it("another leaseId is told 423, when to come back and who holds, but not the holder's leaseId or principal", async () => {
    const [key, holder] = [freshKey(), newId()];
    const held = await service.send("PUT", path(key, holder), {
      body: { owner: "checkout-7", meta: { secret: "s3" } },
      as: "alice-of-accounts",
    });
    await service.clock.advance(1_500);
    const reply = await service.send("PUT", path(key, newId()), { as: "bob" });
    expect(reply.status).toBe(423);
    expect(reply.body).toMatchObject({
      code: "locked",
      definite: true,
      retry: "later",
      instance: `/v1/locks/${key}`,
      holders: [
        { owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken: held.body.fencingToken, heldMs: 1_500, remainingMs: 28_500 },
      ],
    });
    // Lease 30 s, margin 2E + 2ρL + 1 ms.
    expect(reply.body.retryAfterMs).toBe(28_500 + 1_061);
    expect(reply.headers["retry-after"]).toBe("30");
    const said = JSON.stringify([reply.headers, reply.body]);
    for (const secret of [holder, "alice", "s3"]) expect(said).not.toContain(secret);
  });

  it("another principal's PUT, renew, check, transfer and release are 403 and change nothing", async () => {
    const url = path(freshKey(), newId());
    const before = await service.send("PUT", url, { as: "alice" });
    const attempts = [
      await service.send("PUT", url, { as: "bob" }),
      await service.send("POST", `${url}/renew`, { as: "bob" }),
      await service.send("GET", url, { as: "bob" }),
      await service.send("POST", `${url}/transfer`, { body: { leaseId: newId() }, as: "bob" }),
      await service.send("DELETE", url, { as: "bob" }),
      await service.send("DELETE", url),
    ];
    for (const { status, body } of attempts) expect([status, body.code, body.retry]).toEqual([403, "forbidden", "never"]);
    expect((await service.send("GET", url, { as: "alice" })).body).toEqual(before.body);
  });

  it("is renewed: 200, longer, the same token; never shorter, even when asked for less", async () => {
    const url = path(freshKey(), newId());
    const first = await service.send("PUT", url, { body: { leaseMs: 10_000 } });
    await service.clock.advance(4_000);
    const renewed = await service.send("POST", `${url}/renew`);
    expect(renewed.status).toBe(200);
    expect(renewed.body).toMatchObject({ fencingToken: first.body.fencingToken, leaseMs: 10_000, remainingMs: 10_000 });
    expect(renewed.body.version).toBeGreaterThan(first.body.version);

    const longer = await service.send("POST", `${url}/renew`, { body: { leaseMs: 60_000, meta: { step: 2 } } });
    expect(longer.body).toMatchObject({ leaseMs: 60_000, remainingMs: 60_000, meta: { step: 2 } });
    const shorter = await service.send("POST", `${url}/renew`, { body: { leaseMs: 1_000 } });
    expect([shorter.status, shorter.body.remainingMs]).toEqual([200, 60_000]);
    expect(shorter.body.meta).toEqual({ step: 2 });
  });

  it("is still mine: GET 200 with the ETag of its version", async () => {
    const url = path(freshKey(), newId());
    const { body } = await service.send("PUT", url);
    const reply = await service.send("GET", url);
    expect([reply.status, reply.headers["etag"]]).toEqual([200, `"v${body.version}"`]);
    expect(reply.body).toEqual(body);
  });
});

describe("a DELETE", () => {
  it("releases: 204 released, and again 204 released; then the leaseId is over and a new one gets a larger token", async () => {
    const [key, leaseId] = [freshKey(), newId()];
    const url = path(key, leaseId);
    const { body } = await service.send("PUT", url);
    for (const _time of [1, 2]) {
      const { status, headers } = await service.send("DELETE", url);
      expect([status, headers["lease-state"]]).toEqual([204, "released"]);
    }
    const over = await service.send("PUT", url);
    expect([over.status, over.body.code, over.body.retry]).toEqual([410, "lease-over", "new-lease"]);
    for (const attempt of [await service.send("POST", `${url}/renew`), await service.send("GET", url)]) {
      expect([attempt.status, attempt.body.code, attempt.body.reason]).toEqual([410, "lease-lost", "released"]);
    }

    const next = await service.send("PUT", path(key, newId()));
    expect(next.status).toBe(201);
    expect(next.body.fencingToken).toBeGreaterThan(body.fencingToken);
  });

  it("that comes before its PUT is 204 never, and makes that PUT 410", async () => {
    const url = path(freshKey(), newId());
    const first = await service.send("DELETE", url);
    expect([first.status, first.headers["lease-state"]]).toEqual([204, "never"]);
    expect((await service.send("DELETE", url)).headers["lease-state"]).toBe("never");
    const late = await service.send("PUT", url);
    expect([late.status, late.body.code]).toEqual([410, "lease-over"]);
    expect((await service.send("GET", url)).body.reason).toBe("never");
  });

  it("beside the holder's lease leaves that one alone", async () => {
    const [key, holder] = [freshKey(), newId()];
    await service.send("PUT", path(key, holder));
    await service.send("DELETE", path(key, newId()));
    expect((await service.send("GET", path(key, holder))).status).toBe(200);
  });

  it("holds back every duplicate, also when eight other leases of the key have ended since", async () => {
    const key = freshKey();
    const first = newId();
    await service.send("PUT", path(key, first));
    await service.send("DELETE", path(key, first));
    for (let ended = 0; ended < 8; ended++) {
      await service.clock.advance(1);
      const leaseId = newId();
      expect((await service.send("PUT", path(key, leaseId))).status).toBe(201);
      await service.send("DELETE", path(key, leaseId));
    }
    const late = await service.send("PUT", path(key, first));
    expect([late.status, late.body.code]).toEqual([410, "lease-over"]);
    expect((await service.send("DELETE", path(key, first))).headers["lease-state"]).toBe("unknown");
  });
});
