/** Whole answers over HTTP, member by member: what every caller of the API may rely on beyond the schemas of the document. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { VERSION } from "../../lib/core/version.js";
import { FORMAT_VERSION } from "../../lib/store/dynamo/item.js";
import { told } from "../e2e/calls.js";
import { type HttpService, serve } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import { localCalls } from "./local-calls.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { freshKey, newId, put, queue, get, post, start, begin, complete } = localCalls(() => service, "ORDER");

const LEASE_MS = 20_000;
const FREE_MS = LEASE_MS + takeoverMarginMs(LEASE_MS);

/** The members of every grant of an exclusive hold. */
const granted = (leaseMs: number) => ({
  mode: "exclusive",
  permits: 1,
  holdCount: 1,
  leaseMs,
  remainingMs: leaseMs,
  renewAfterMs: Math.floor(leaseMs / 3),
  serverTimeMs: service.clock.wallMs(),
});

/** The body without the version, which only the ETag shows. */
function shown({ headers, body }: Reply): object {
  const { version, ...rest } = body as { readonly version: number };
  expect(version).toBeGreaterThan(0);
  expect(headers["cache-control"]).toBe("no-store");
  return rest;
}

describe("a lock", () => {
  it("is granted with all that its holder must know, and not extended when it is asked for again", async () => {
    const body = { owner: "checkout-7", leaseMs: LEASE_MS, meta: { cart: [1] } };
    const lease = await put(freshKey(), body);
    const { key, leaseId, headers } = lease;
    expect([lease.status, headers["etag"], headers["idempotent-replayed"]]).toEqual([201, `"v${lease.body.version}"`, undefined]);
    expect(shown(lease)).toEqual({ ...granted(LEASE_MS), ...body, key, leaseId, fencingToken: service.clock.wallMs() });

    await service.clock.advance(4_000);
    const again = await put(key, body, { leaseId });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toEqual({ ...lease.body, remainingMs: LEASE_MS - 4_000, serverTimeMs: service.clock.wallMs() });
  });

  it("that is held is refused with its holders and the time to come again, and without their ids, principals and meta", async () => {
    const held = await put(freshKey(), { owner: "checkout-7", leaseMs: LEASE_MS, meta: { secret: "s3" } }, { as: "alice" });
    await service.clock.advance(1_500);
    const refused = await put(held.key, {}, { as: "bob" });
    const { fencingToken } = held.body as { fencingToken: number };
    const holder = { owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken, heldMs: 1_500, remainingMs: LEASE_MS - 1_500 };
    expect(told(refused)).toEqual([423, "locked"]);
    expect(refused.body).toMatchObject({
      ...{ definite: true, retry: "later", instance: `/v1/locks/${held.key}` },
      ...{ holders: [holder], retryAfterMs: FREE_MS - 1_500 },
    });
    for (const secret of [held.leaseId, "alice", "s3"]) expect(JSON.stringify([refused.headers, refused.body])).not.toContain(secret);
  });

  it("is shown with its holders and waiters, and as free where nobody ever used it", async () => {
    const { key, body: lease } = await put(freshKey(), { owner: "a", leaseMs: LEASE_MS });
    await queue(key, { owner: "b" });
    const { fencingToken } = lease as { fencingToken: number };
    expect(shown(await get(`/v1/locks/${key}`))).toEqual({
      ...{ key, mode: "exclusive", fencingToken },
      holders: [{ owner: "a", mode: "exclusive", permits: 1, fencingToken, heldMs: 0, leaseMs: LEASE_MS, remainingMs: LEASE_MS }],
      waiters: [{ owner: "b", mode: "exclusive", priority: 0, position: 1, waitingMs: 0 }],
      ifBroken: [{ fencingToken, breakInMs: LEASE_MS + takeoverMarginMs(LEASE_MS), next: [1] }],
    });
    const unused = freshKey();
    const free = await get(`/v1/locks/${unused}`);
    expect(free.body).toEqual({ key: unused, version: 0, mode: "exclusive", fencingToken: 0, holders: [], waiters: [] });
  });
});

describe("a set", () => {
  const putSet = (keys: readonly string[], leaseId = newId()) =>
    service.send("PUT", `/v1/lock-sets/${leaseId}`, { body: { keys, leaseMs: LEASE_MS } });

  it("is told of the key that has least time left", async () => {
    const [keys, leaseId] = [[freshKey(), freshKey()], newId()];
    const { body } = await putSet(keys, leaseId);
    await post(`/v1/locks/${keys[0]}/leases/${leaseId}/renew`, { leaseMs: 60_000 });
    await service.clock.advance(1_000);
    expect((await putSet(keys, leaseId)).body).toEqual({
      ...{ leaseId, leaseMs: LEASE_MS, remainingMs: LEASE_MS - 1_000, renewAfterMs: Math.floor(LEASE_MS / 3) },
      ...{ fencingTokens: body.fencingTokens as object, serverTimeMs: service.clock.wallMs() },
    });
  });

  it("is refused with the keys in its way, and the time at which the last of them is free", async () => {
    const keys = [freshKey(), freshKey(), freshKey()];
    await put(keys[0]!, { leaseMs: LEASE_MS });
    await put(keys[2]!, { leaseMs: 2_000 });
    const refused = await putSet(keys);
    expect(refused.body).toMatchObject({ status: 423, code: "locked", blocking: [keys[0], keys[2]], retryAfterMs: FREE_MS });
    expect(refused.body).not.toHaveProperty("instance");
  });

  it("counts a key that is named twice once, in each of its requests", async () => {
    const [keys, leaseId] = [Array.from({ length: LIMITS.setKeys }, freshKey), newId()];
    const named = [...keys, keys[0]!];
    const { status, body } = await putSet(named, leaseId);
    expect([status, Object.keys(body.fencingTokens as object)]).toEqual([201, [...keys].sort()]);
    expect((await post(`/v1/lock-sets/${leaseId}/renew`, { keys: named })).status).toBe(200);
    const released = await post(`/v1/lock-sets/${leaseId}/release`, { keys: named });
    expect(released.body.states).toEqual(Object.fromEntries(keys.map((key) => [key, "released"])));
    expect(told(await putSet([...keys, freshKey()]))).toEqual([400, "invalid-request"]);
  });

  it("of keys in use with a limit is 409 limit-mismatch, and says of which", async () => {
    const keys = [freshKey(), freshKey()];
    await put(keys[1]!, { limit: 3 });
    const refused = await putSet(keys);
    expect(told(refused)).toEqual([409, "limit-mismatch"]);
    expect(refused.body.detail).toContain(keys[1]);
  });
});

it("a renewal that is refused among others is a whole problem, with the path of its key", async () => {
  const key = freshKey();
  const { body } = await post("/v1/renewals", { leases: [{ key, leaseId: newId() }] });
  const problem = { status: 410, code: "lease-lost", reason: "never", definite: true, retry: "new-lease" };
  expect(body.results).toMatchObject([{ key, instance: `/v1/locks/${key}`, ...problem }]);
});

describe("a run", () => {
  it("is started with the run and its lease in one flat body", async () => {
    const begun = await begin(undefined, { leaseMs: LEASE_MS, owner: "billing-3", fingerprint: "f" });
    const { key, leaseId, headers } = begun;
    const run = { state: "running", attempt: 1, takeover: false, owner: "billing-3", fencingToken: service.clock.wallMs() };
    expect(shown(begun)).toEqual({ ...granted(LEASE_MS), ...run, key, leaseId });
    expect([headers["etag"], headers["idempotent-replayed"]]).toEqual([`"v${begun.body.version}"`, undefined]);
  });

  it("that is started again with another value of any field is 422 lease-reused", async () => {
    const { key, leaseId } = await begin(undefined, { owner: "a" });
    const kept = [{ keepResultMs: 60_000 }, { keepResultMs: "forever" }];
    for (const other of [{ leaseMs: 31_000 }, { owner: "b" }, { fingerprint: "g" }, { maxAttempts: 6 }, ...kept])
      expect(told(await start(key, { owner: "a", ...other }, { leaseId }))).toEqual([422, "lease-reused"]);
    expect((await start(key, { owner: "a" }, { leaseId })).status).toBe(200);
  });

  it("that is under way is refused with the time at which its lease is over, and without its id, principal and fingerprint", async () => {
    const { key, leaseId } = await begin(undefined, { leaseMs: LEASE_MS, fingerprint: "secret-of-it" }, { as: "alice" });
    await service.clock.advance(1_500);
    const refused = await start(key, {}, { as: "bob" });
    expect(told(refused)).toEqual([409, "run-in-progress"]);
    expect(refused.body).toMatchObject({
      ...{ definite: true, retry: "later", instance: `/v1/runs/${key}` },
      ...{ retryAfterMs: FREE_MS - 1_500 },
    });
    const said = JSON.stringify([refused.headers, refused.body]);
    for (const secret of [leaseId, "alice", "secret-of-it"]) expect(said).not.toContain(secret);
  });

  const KEPT = { keptForMs: DEFAULTS.keepResultMs };
  it.each<[what: string, outcome: object, seen: object]>([
    ["succeeded", { state: "succeeded", result: [1] }, KEPT],
    ["succeeded without a stored result", { state: "succeeded", resultOmitted: true }, KEPT],
    ["failed for good", { state: "failed", error: { code: 1 }, retryable: false }, KEPT],
    ["failed and may be tried again", { state: "failed", error: { code: 1 }, retryable: true }, {}],
  ])("that %s is shown with its outcome, and was shown with its runner before", async (_what, outcome, seen) => {
    const run = await begin(undefined, { leaseMs: LEASE_MS, owner: "billing-3" });
    const { key } = run;
    const { fencingToken } = run.body as { fencingToken: number };
    await service.clock.advance(1_000);
    const running = { state: "running", owner: "billing-3", heldMs: 1_000, remainingMs: LEASE_MS - 1_000 };
    expect(shown(await get(`/v1/runs/${key}`))).toEqual({ key, attempt: 1, fencingToken, ...running });
    expect((await complete(run, outcome)).body).toEqual({ recorded: true });
    const ended = { owner: "billing-3", endedAgoMs: 0, tookMs: 1_000 };
    expect(shown(await get(`/v1/runs/${key}`))).toEqual({ key, attempt: 1, fencingToken, ...ended, ...outcome, ...seen });
  });
});

it("the service tells a caller as whom it knows it, and by which parameters it decides", async () => {
  const { body } = await service.send("GET", "/v1/health?caller=1", { as: "alice" });
  const identity = { namespace: "default", principal: "local/alice" };
  const parameters = { format: FORMAT_VERSION, clockErrorMs: DEFAULTS.clockErrorMs, retentionMs: DEFAULTS.retentionMs };
  const serverTimeMs = service.clock.wallMs();
  expect(body).toEqual({ status: "ok", version: VERSION, serverTimeMs, caller: { ...identity, ...parameters } });
});
