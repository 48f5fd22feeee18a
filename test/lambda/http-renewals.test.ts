/** `POST /v1/renewals` over HTTP: the heartbeats of many leases in one request, each with its own answer. */
import * as v from "valibot";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { ANSWERS } from "../../lib/contract/answers.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import type { Asked } from "./kinds.js";
import { kindsOn, told } from "./kinds.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
const ID = "0199a000-0000-7000-8000-000000000000";
const { freshKey, newId, put, get, post, release } = kindsOn(() => service, "BEAT");

interface Renewal {
  readonly key: string;
  readonly leaseId: string;
  readonly leaseMs?: number;
}
const renewals = (leases: readonly Renewal[], as?: string): Promise<Reply> => post("/v1/renewals", { leases }, as);
const renewalOf = ({ key, leaseId }: Asked): Renewal => ({ key, leaseId });

describe("renewals", () => {
  it("of 25 leases are 200, one result each in the same order, each as a renewal of its own would be", async () => {
    const leases: Asked[] = [];
    for (let index = 0; index < LIMITS.renewalsMax; index++) leases.push(await put(freshKey(), { leaseMs: LEASE_MS, owner: `o${index}` }));
    await service.clock.advance(5_000);
    const shuffled = leases.toSorted((a, b) => (a.leaseId.slice(-4) < b.leaseId.slice(-4) ? -1 : 1));
    const { status, body } = await renewals(shuffled.map(renewalOf));
    expect(status).toBe(200);
    expect(v.safeParse(ANSWERS.Renewals, body).issues).toBeUndefined();
    expect(body.results).toHaveLength(LIMITS.renewalsMax);
    for (const [index, { key, leaseId, url, body: granted }] of shuffled.entries()) {
      expect(body.results[index]).toMatchObject({ status: 200, key, leaseId, fencingToken: granted.fencingToken, remainingMs: LEASE_MS });
      const { status: _status, ...lease } = body.results[index];
      expect((await get(url)).body).toEqual(lease);
    }
  });

  it("have mixed outcomes: what befell one is no other's business", async () => {
    const [fine, broken, theirs, expiring, longer, released] = [
      await put(freshKey(), { leaseMs: LEASE_MS }),
      await put(freshKey(), { leaseMs: LEASE_MS }),
      await put(freshKey(), { leaseMs: LEASE_MS }, { as: "alice" }),
      await put(freshKey(), { leaseMs: 5_000 }),
      await put(freshKey(), { leaseMs: LEASE_MS }),
      await put(freshKey(), { leaseMs: LEASE_MS }),
    ];
    await post(`/v1/locks/${broken.key}/break`, { reason: "stuck", fencingToken: broken.body.fencingToken });
    await release(released.url);
    await service.clock.advance(5_000 + takeoverMarginMs(5_000));
    await put(expiring.key);
    const never = { key: freshKey(), leaseId: newId() };
    const asked = [broken, fine, theirs, expiring, released].map(renewalOf);
    const { status, body } = await renewals([...asked, never, { ...renewalOf(longer), leaseMs: 60_000 }]);
    expect(status).toBe(200);
    expect(v.safeParse(ANSWERS.Renewals, body).issues).toBeUndefined();
    expect(body.results).toMatchObject([
      { key: broken.key, status: 410, code: "lease-lost", reason: "broken", definite: true, retry: "new-lease" },
      { key: fine.key, status: 200, remainingMs: LEASE_MS },
      { key: theirs.key, status: 403, code: "forbidden", retry: "never" },
      { key: expiring.key, status: 410, code: "lease-lost", reason: "taken" },
      { key: released.key, status: 410, code: "lease-lost", reason: "released" },
      { key: never.key, status: 410, code: "lease-lost", reason: "never" },
      { key: longer.key, status: 200, leaseMs: 60_000, remainingMs: 60_000 },
    ]);
    expect(body.results[0].instance).toBe(`/v1/locks/${broken.key}`);
  });

  it("are of every kind of lease, several of one key among them", async () => {
    const [pool, shelf, cart] = [freshKey(), freshKey(), freshKey()];
    const scope = "trace-d75597dee50b0cac";
    const leases = [
      await put(pool, { limit: 3, permits: 2, leaseMs: LEASE_MS }),
      await put(pool, { limit: 3, leaseMs: LEASE_MS }),
      await put(shelf, { mode: "shared", leaseMs: LEASE_MS }),
      await put(shelf, { mode: "shared", leaseMs: LEASE_MS }),
      await put(cart, { scope, leaseMs: LEASE_MS }),
      await put(cart, { scope, leaseMs: LEASE_MS }),
    ];
    await service.clock.advance(5_000);
    const { body } = await renewals([...leases, leases[0]!].map(renewalOf));
    expect(body.results.map(({ status, remainingMs }: { status: number; remainingMs: number }) => [status, remainingMs])).toEqual(
      Array.from({ length: 7 }, () => [200, LEASE_MS]),
    );
    expect(body.results).toMatchObject([{ permits: 2 }, { permits: 1 }, { mode: "shared" }, {}, { holdCount: 2 }, {}, {}]);
  });

  it("never shorten, and keep each lease's own length when none is said", async () => {
    const [long, short] = [await put(freshKey(), { leaseMs: 60_000 }), await put(freshKey(), { leaseMs: 2_000 })];
    await service.clock.advance(1_000);
    const { body } = await renewals([renewalOf(long), renewalOf(short)]);
    expect(body.results).toMatchObject([{ leaseMs: 60_000 }, { leaseMs: 2_000, remainingMs: 2_000 }]);
    expect((await renewals([{ ...renewalOf(long), leaseMs: 1_000 }])).body.results[0].remainingMs).toBe(60_000);
  });

  it.each<[what: string, body: object, field: string]>([
    ["nothing", {}, "leases"],
    ["none", { leases: [] }, "leases"],
    ["26", { leases: Array.from({ length: 26 }, (_, index) => ({ key: `k${index}`, leaseId: ID })) }, "leases"],
    ["a lease without a key", { leases: [{ leaseId: ID }] }, "leases.0.key"],
    ["a lease under no id", { leases: [{ key: "k", leaseId: "x" }] }, "leases.0.leaseId"],
    ["a lease without an id", { leases: [{ key: "k" }] }, "leases.0.leaseId"],
    ["a field of single renewals", { leases: [{ key: "k", leaseId: ID, meta: {} }] }, "leases.0.meta"],
    ["a length out of bounds", { leases: [{ key: "k", leaseId: ID, leaseMs: 1 }] }, "leases.0.leaseMs"],
    ["more than leases", { leases: [{ key: "k", leaseId: ID }], leaseMs: 5_000 }, "leaseMs"],
  ])("of %s are 400, naming the field", async (_what, body, field) => {
    const reply = await service.send("POST", "/v1/renewals", { body });
    expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", field]);
    expect(reply.body).not.toHaveProperty("instance");
  });

  it("of 26 real leases are 400 and renew none of them", async () => {
    const leases: Asked[] = [];
    for (let index = 0; index < LIMITS.renewalsMax + 1; index++) leases.push(await put(freshKey(), { leaseMs: LEASE_MS }));
    await service.clock.advance(1_000);
    const refused = await renewals(leases.map(renewalOf));
    expect([...told(refused), refused.body.field]).toEqual([400, "invalid-request", "leases"]);
    expect((await get(leases[0]!.url)).body.remainingMs).toBe(LEASE_MS - 1_000);
    // Control: without the last one the request is accepted, and none is left out.
    expect((await renewals(leases.slice(1).map(renewalOf))).status).toBe(200);
    expect((await get(leases[1]!.url)).body.remainingMs).toBe(LEASE_MS);
  });
});
