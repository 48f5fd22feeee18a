/** Strangers' access to leases of every kind: 403 in the same namespace, nothing outside of it; and the fields that no caller ever sees. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Reply } from "../support/reply.js";
import type { EventParts } from "../support/http-event.js";
import { BOB } from "../support/http-event.js";
import { ACQUIRE, CHECK, directService, RELEASE, RENEW } from "../support/direct-service.js";
import type { HttpService } from "../support/http-service.js";
import { serve } from "../support/http-service.js";
import { kindsOn, told } from "./kinds.js";

const SCOPE = "request-0af7651916cd43dd8448eb211c80319c";

describe("whoever looks", () => {
  let service: HttpService;
  beforeAll(async () => void (service = await serve()));
  afterAll(() => service.close());
  const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "SECRET");

  it("is never shown another's leaseId, nor anybody's scope or principal; and none is logged", async () => {
    const [key, other] = [freshKey(), freshKey()];
    const mine = { scope: SCOPE, leaseMs: 5_000 };
    const held = [await put(key, mine, { as: "alice-of-accounts" }), await put(key, mine, { as: "alice-of-accounts" })];
    const [outer, inner] = [held[0]!, held[1]!];
    const setId = newId();
    const set = await service.send("PUT", `/v1/lock-sets/${setId}`, { body: { keys: [other], scope: SCOPE }, as: "alice-of-accounts" });
    const strangers: Reply[] = [
      await put(key),
      await put(key, { limit: 2 }),
      await put(key, { scope: SCOPE, mode: "shared" }, { leaseId: inner.leaseId }),
      await get(`/v1/locks/${key}`),
      await get("/v1/locks?prefix=SECRET"),
      await service.send("PUT", `/v1/lock-sets/${newId()}`, { body: { keys: [key, other] } }),
      await post("/v1/renewals", { leases: [{ key, leaseId: outer.leaseId }] }),
      await post(`${outer.url}/mode`, { mode: "shared", fencingToken: outer.body.fencingToken }),
      await post(`${outer.url}/transfer`, { leaseId: newId() }),
    ];
    const own = [outer, inner, set, await get(inner.url, "alice-of-accounts"), await put(key, { scope: SCOPE, limit: 0 })];
    await post(`/v1/locks/${key}/break`, { reason: "stuck", fencingToken: outer.body.fencingToken, drainMs: 0 });
    await release(inner.url, "alice-of-accounts");
    await post(`/v1/lock-sets/${setId}/release`, { keys: [other] }, "alice-of-accounts");

    // The tests' service checks of every reply that it has no leaseId but those of its request.
    for (const { text, headers } of [...strangers, ...own]) {
      expect(text + JSON.stringify(headers)).not.toContain(SCOPE);
      expect(text + JSON.stringify(headers)).not.toContain("alice");
    }
    const logged = JSON.stringify(service.lines);
    expect(service.lines.length).toBeGreaterThan(10);
    for (const secret of [SCOPE, setId, outer.leaseId, inner.leaseId]) expect(logged).not.toContain(secret);
    // Control: the log does identify callers, and distinguishes leases.
    expect(logged).toContain("alice-of-accounts");
    expect(new Set(service.lines.map(({ lease }) => lease)).size).toBeGreaterThan(3);
  });

  it("and is another principal gets 403 for every lease, and changes nothing", async () => {
    const leases = [
      await put(freshKey(), { mode: "shared" }, { as: "alice" }),
      await put(freshKey(), { limit: 2, permits: 2 }, { as: "alice" }),
      await put(freshKey(), { scope: SCOPE }, { as: "alice" }),
    ];
    for (const { key, leaseId, url, body } of leases) {
      const attempts = [
        await put(key, { mode: body.mode, limit: body.permits, permits: body.permits }, { leaseId }),
        await get(url),
        await post(`${url}/renew`),
        await post(`${url}/mode`, { mode: "exclusive", fencingToken: body.fencingToken }),
        await post(`${url}/transfer`, { leaseId: newId() }),
      ];
      for (const attempt of attempts) expect(told(attempt)).toEqual([403, "forbidden"]);
      expect(await release(url)).toBe(403);
      expect((await get(url, "alice")).body).toEqual(body);
    }
  });
});

describe("another namespace", () => {
  const SET = "PUT /v1/lock-sets/{leaseId}";
  const stranger = { iam: { accountId: "444455556666", userId: "AROAEVE:session-1" } };
  const namedAs = (authorizer: unknown, more: Partial<EventParts> = {}): Partial<EventParts> => ({ authorizer, ...more });

  it("has keys of the same names, and its own locks, permits, scopes and sets of them", async () => {
    const service = directService({ tenancy: "account" });
    const leaseId = service.newId();
    const body = { scope: SCOPE, limit: 2, permits: 2 };
    const held = await service.ask(ACQUIRE, { leaseId, body });
    expect(held.status).toBe(201);
    // Control: within the namespace the lease excludes others, and the scope gives access.
    expect(told(await service.ask(ACQUIRE, namedAs(BOB, { leaseId: service.newId(), body: { limit: 2 } })))).toEqual([423, "locked"]);
    const inside = await service.ask(ACQUIRE, namedAs(BOB, { leaseId: service.newId(), body }));
    expect(inside.body.holdCount).toBe(2);

    const seen = await service.ask("GET /v1/locks/{key}", namedAs(stranger));
    expect(seen.body).toMatchObject({ version: 0, holders: [], fencingToken: 0 });
    expect((await service.ask("GET /v1/locks", namedAs(stranger))).body.items).toEqual([]);
    for (const route of [CHECK, RENEW]) {
      const reply = await service.ask(route, namedAs(stranger, { leaseId }));
      expect([...told(reply), reply.body.reason]).toEqual([410, "lease-lost", "never"]);
    }
    const renewals = await service.ask("POST /v1/renewals", namedAs(stranger, { body: { leases: [{ key: "ORDER_1", leaseId }] } }));
    expect(renewals.body.results).toMatchObject([{ key: "ORDER_1", status: 410, code: "lease-lost", reason: "never" }]);
    expect((await service.ask(RELEASE, namedAs(stranger, { leaseId }))).headers["lease-state"]).toBe("never");

    const own = await service.ask(ACQUIRE, namedAs(stranger, { leaseId: service.newId(), body }));
    expect([own.status, own.body.holdCount]).toEqual([201, 1]);
    const set = await service.ask(SET, namedAs(stranger, { leaseId: service.newId(), body: { keys: ["ORDER_1"] } }));
    expect(set.status).toBe(409);
    expect((await service.ask(CHECK, { leaseId })).body.holdCount).toBe(2);
  });
});
