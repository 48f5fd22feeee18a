/** Operations on a key from outside of its lease, over HTTP: break, transfer, inspect, list, health. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { VERSION } from "../../lib/core/version.js";
import { FORMAT_VERSION } from "../../lib/store/dynamo/item.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const LEASE_MS = 20_000;
let keys = 0;
const freshKey = (): string => `STOCK_${++keys}`;
const newId = (): string => leaseIdAt(service.clock.wallMs());
const path = (key: string, leaseId: string): string => `/v1/locks/${key}/leases/${leaseId}`;

async function held(key = freshKey(), owner = "me"): Promise<{ key: string; url: string; leaseId: string; fencingToken: number }> {
  const leaseId = newId();
  const { status, body } = await service.send("PUT", path(key, leaseId), { body: { leaseMs: LEASE_MS, owner } });
  expect(status).toBe(201);
  return { key, url: path(key, leaseId), leaseId, fencingToken: body.fencingToken };
}

describe("a break", () => {
  const breaking = (key: string, fencingToken: number, drainMs?: number) =>
    service.send("POST", `/v1/locks/${key}/break`, { body: { reason: "stuck", fencingToken, drainMs }, as: "operator" });

  it("without force: 202, the holder keeps its lease but can't renew it, and then the key is free", async () => {
    const { key, url, fencingToken } = await held();
    const { status, body } = await breaking(key, fencingToken);
    expect([status, body.breakInMs]).toEqual([202, LEASE_MS + takeoverMarginMs(LEASE_MS)]);
    expect((await service.send("GET", url)).status).toBe(200);
    expect((await service.send("GET", `/v1/locks/${key}`)).body.holders).toMatchObject([{ breaking: true }]);
    const renewed = await service.send("POST", `${url}/renew`);
    expect([renewed.status, renewed.body.reason]).toEqual([410, "broken"]);
    await service.clock.advance(body.breakInMs);
    await held(key);
  });

  it("by force: 202 until the drain is over, without a margin, and what the lease guarded is lost", async () => {
    const { key, url, fencingToken } = await held();
    const { status, body } = await breaking(key, fencingToken, 3_000);
    expect([status, body.breakInMs]).toEqual([202, 3_000]);
    expect((await service.send("GET", url)).body.remainingMs).toBe(3_000);
    await service.clock.advance(3_000);
    await held(key);
    expect((await service.send("DELETE", url)).headers["lease-state"]).toBe("lost");
  });

  it("with no time to drain: 200, over now", async () => {
    const { key, url, fencingToken } = await held();
    const { status, body } = await breaking(key, fencingToken, 0);
    expect([status, body.breakInMs]).toEqual([200, 0]);
    const next = await held(key);
    expect(next.fencingToken).toBeGreaterThan(fencingToken);
    expect((await service.send("GET", url)).body.reason).toBe("broken");
    expect((await service.send("GET", `/v1/locks/${key}`)).body.recent).toEqual([{ askedAgoMs: 0, ending: "broken" }]);
  });

  it("again spares the next holder: 200 while the break is remembered", async () => {
    const { key, fencingToken } = await held();
    await breaking(key, fencingToken, 0);
    const next = await held(key);
    const again = await breaking(key, fencingToken, 0);
    expect([again.status, again.body.breakInMs]).toEqual([200, 0]);
    expect((await service.send("GET", next.url)).status).toBe(200);
  });

  it("of another hold than the present one is 412, and of a free key 404", async () => {
    const { key, url, fencingToken } = await held();
    await service.send("DELETE", url);
    expect((await breaking(key, fencingToken, 0)).status).toBe(404);
    await held(key);
    const other = await breaking(key, fencingToken, 0);
    expect([other.status, other.body.code]).toEqual([412, "other-hold"]);
    expect((await breaking(freshKey(), 1)).status).toBe(404);
  });
});

describe("a transfer", () => {
  it("hands the hold to a new leaseId: 200, a new token; again: 200, the same; the old lease is over", async () => {
    const { key, url, fencingToken } = await held();
    const [to, other] = [newId(), newId()];
    const handed = await service.send("POST", `${url}/transfer`, { body: { leaseId: to, owner: "worker", leaseMs: 5_000 } });
    expect(handed.status).toBe(200);
    expect(handed.body).toMatchObject({ key, leaseId: to, owner: "worker", leaseMs: 5_000, remainingMs: 5_000 });
    expect(handed.body.fencingToken).toBeGreaterThan(fencingToken);

    const again = await service.send("POST", `${url}/transfer`, { body: { leaseId: to, owner: "worker", leaseMs: 5_000 } });
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toEqual(handed.body);

    const twice = await service.send("POST", `${url}/transfer`, { body: { leaseId: other } });
    expect([twice.status, twice.body.reason]).toEqual([410, "transferred"]);
    expect((await service.send("DELETE", url)).headers["lease-state"]).toBe("transferred");
    expect((await service.send("PUT", path(key, newId()))).status).toBe(423);
  });

  it.each(["PUT", "POST"])("belongs to its first caller (by %s) from then on, to the others not any more", async (method) => {
    const { key, url } = await held();
    const to = path(key, newId());
    await service.send("POST", `${url}/transfer`, { body: { leaseId: to.split("/").at(-1) } });
    const first = await service.send(method, method === "PUT" ? to : `${to}/renew`, { as: "worker" });
    expect(first.status).toBe(200);
    for (const attempt of [await service.send("POST", `${to}/renew`), await service.send("PUT", to), await service.send("DELETE", to)]) {
      expect([attempt.status, attempt.body.code]).toEqual([403, "forbidden"]);
    }
    expect((await service.send("DELETE", to, { as: "worker" })).headers["lease-state"]).toBe("released");
  });

  it("to a leaseId that had its life, or whose time is off, changes nothing", async () => {
    const ended = await held();
    await service.send("DELETE", ended.url);
    const { url } = await held(ended.key);
    const over = await service.send("POST", `${url}/transfer`, { body: { leaseId: ended.leaseId } });
    const off = await service.send("POST", `${url}/transfer`, { body: { leaseId: leaseIdAt(service.clock.wallMs() + 60_000) } });
    expect([over.body.code, off.body.code]).toEqual(["lease-over", "lease-id-time"]);
    expect((await service.send("GET", url)).status).toBe(200);
  });
});

describe("a look at a key", () => {
  it("shows who holds it, and never a leaseId; a key that nobody ever used is free", async () => {
    const { key, fencingToken } = await held();
    const { status, body } = await service.send("GET", `/v1/locks/${key}`, { as: "bob" });
    expect(status).toBe(200);
    expect(body).toMatchObject({ key, mode: "exclusive", fencingToken, waiters: [] });
    const holder = { owner: "me", mode: "exclusive", permits: 1, fencingToken, heldMs: 0, remainingMs: LEASE_MS, leaseMs: LEASE_MS };
    expect([body.holders, body.recent]).toEqual([[holder], undefined]);
    const unused = await service.send("GET", `/v1/locks/${freshKey()}`);
    expect([unused.status, unused.body.holders]).toEqual([200, []]);
  });

  it("has a tag that a renewal keeps and a release changes; If-None-Match gets 304", async () => {
    const { key, url } = await held();
    const look = (tag: string) => service.send("GET", `/v1/locks/${key}`, { headers: { "if-none-match": tag } });
    const tag = (await service.send("GET", `/v1/locks/${key}`)).headers["etag"] ?? "";
    expect(tag).toMatch(/^"[^"]+"$/);
    await service.send("POST", `${url}/renew`, { body: { leaseMs: 60_000 } });
    const unchanged = await look(tag);
    expect([unchanged.status, unchanged.headers["etag"], unchanged.text]).toEqual([304, tag, ""]);
    for (const matching of [`W/${tag}`, `"other", ${tag}`, "*"]) expect((await look(matching)).status, matching).toBe(304);
    for (const other of ['"other"', tag.slice(0, -2), ""]) expect((await look(other)).status, other).toBe(200);
    await service.send("DELETE", url);
    const changed = await look(tag);
    expect([changed.status, changed.headers["etag"] === tag]).toEqual([200, false]);
  });
});

describe("a list", () => {
  it("has the held keys by prefix and owner, in order, page by page", async () => {
    for (const key of ["LIST_c", "LIST_a", "LIST_d", "LIST_b"]) await held(key, key === "LIST_d" ? "other" : "me");
    await service.send("DELETE", (await held("LIST_x")).url);
    const keysOf = ({ body }: { body: { items: { key: string }[] } }) => body.items.map(({ key }) => key);

    expect(keysOf(await service.send("GET", "/v1/locks?prefix=LIST_"))).toEqual(["LIST_a", "LIST_b", "LIST_c", "LIST_d"]);
    expect(keysOf(await service.send("GET", "/v1/locks?prefix=LIST_&owner=other"))).toEqual(["LIST_d"]);
    const first = await service.send("GET", "/v1/locks?prefix=LIST_&max=3");
    expect([keysOf(first), first.body.cursor]).toEqual([["LIST_a", "LIST_b", "LIST_c"], "LIST_c"]);
    const rest = await service.send("GET", `/v1/locks?prefix=LIST_&max=3&cursor=${first.body.cursor}`);
    expect([keysOf(rest), rest.body.cursor]).toEqual([["LIST_d"], undefined]);
    expect(keysOf(await service.send("GET", "/v1/locks?prefix=NOBODY"))).toEqual([]);
  });

  it("leaves out what may be taken over", async () => {
    await held("GONE_1");
    await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS));
    expect((await service.send("GET", "/v1/locks?prefix=GONE_")).body.items).toEqual([]);
  });
});

describe("the service", () => {
  it.each(["/v1/health", "/v1/health?deep=1", "/v1/health?deep=0"])("says that it is up: %s", async (url) => {
    const { status, body } = await service.send("GET", url);
    expect([status, body]).toEqual([200, { status: "ok", version: VERSION, serverTimeMs: service.clock.wallMs() }]);
  });

  it("tells a caller as whom it knows it, and by which parameters records are decided on, if it is asked", async () => {
    const { status, body } = await service.send("GET", "/v1/health?caller=1", { as: "alice" });
    const identity = { namespace: "default", principal: "local/alice" };
    const parameters = { format: FORMAT_VERSION, clockErrorMs: DEFAULTS.clockErrorMs, retentionMs: DEFAULTS.retentionMs };
    expect([status, body.caller]).toEqual([200, { ...identity, ...parameters }]);
  });

  it("serves its own description", async () => {
    const { status, body } = await service.send("GET", "/v1/openapi.json");
    expect([status, body.openapi]).toEqual([200, "3.1.0"]);
  });
});
