/** Operator calls on runs, over HTTP: inspect, list, and reset, which lets a run start afresh. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "SHIP");

const LEASE_MS = 10_000;
const OVER_MS = LEASE_MS + takeoverMarginMs(LEASE_MS);
const short = (owner = "me") => ({ body: { leaseMs: LEASE_MS, owner } });
const FAILED = { state: "failed", error: { code: 1 }, retryable: true };

describe("a look at a run", () => {
  it("shows who runs it, since when and for how long; its tag is another with every change but a heartbeat", async () => {
    const { key, url, reply } = await runs.begin(undefined, short("billing-3"));
    await service.clock.advance(1_000);
    const first = await runs.look(key);
    const { version, ...body } = first.body;
    const { fencingToken } = reply.body as { fencingToken: number };
    expect(body).toEqual({ key, state: "running", attempt: 1, fencingToken, owner: "billing-3", heldMs: 1_000, remainingMs: 9_000 });
    expect(version).toBe(reply.body.version);
    const tags = [first.headers["etag"] ?? ""];
    expect(tags[0]).toMatch(/^"[^"]+"$/);

    await service.send("POST", `${url}/renew`, { body: { leaseMs: 60_000 } });
    expect((await runs.look(key)).headers["etag"]).toBe(tags[0]);
    await service.send("POST", `${url}/renew`, { body: { checkpoint: 1 } });
    tags.push((await runs.look(key)).headers["etag"] ?? "");
    await runs.complete(url, FAILED);
    tags.push((await runs.look(key)).headers["etag"] ?? "");
    const next = await runs.begin(key);
    tags.push((await runs.look(key)).headers["etag"] ?? "");
    await runs.complete(next.url, { state: "succeeded" });
    tags.push((await runs.look(key)).headers["etag"] ?? "");
    expect(new Set(tags).size).toBe(5);
  });

  it.each([
    ["succeeded", { state: "succeeded", result: [1] }, { state: "succeeded", result: [1], keptForMs: 86_400_000 }],
    [
      "succeeded, its result not kept",
      { state: "succeeded", resultOmitted: true },
      { state: "succeeded", resultOmitted: true, keptForMs: 86_400_000 },
    ],
    ["failed for good", { ...FAILED, retryable: false }, { ...FAILED, retryable: false, keptForMs: 86_400_000 }],
    ["failed and may be tried again", FAILED, FAILED],
  ])("that %s shows what came of it", async (_what, outcome, seen) => {
    const key = await runs.finished(outcome);
    const { version: _version, fencingToken: _token, ...body } = (await runs.look(key)).body as Record<string, unknown>;
    expect(body).toEqual({ key, attempt: 1, ...seen });
  });

  it("of what was never run is 404, and so is one of what was only cancelled", async () => {
    const key = runs.freshKey();
    const reply = await runs.look(key);
    expect([...told(reply), reply.body.instance]).toEqual([404, "not-found", `/v1/runs/${key}`]);
    await service.send("DELETE", runs.url(key));
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    // A lock with that key is not a run.
    await service.send("PUT", `/v1/locks/${key}/leases/${runs.newId()}`);
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
  });

  it("is 304 for who knows the tag: alone, weakened, in a list, or by any", async () => {
    const key = await runs.finished({ state: "succeeded", result: 1 });
    const tag = (await runs.look(key)).headers["etag"] ?? "";
    for (const known of [tag, `W/${tag}`, `"other", ${tag}`, "*"]) {
      const { status, headers, text } = await runs.look(key, { "if-none-match": known });
      expect([known, status, headers["etag"], text]).toEqual([known, 304, tag, ""]);
    }
    for (const other of ['"other"', tag.slice(0, -2), ""])
      expect((await runs.look(key, { "if-none-match": other })).status, other).toBe(200);
    await runs.reset(key);
    expect((await runs.look(key, { "if-none-match": "*" })).status).toBe(404);
  });
});

describe("a list of runs", () => {
  const keysOf = ({ body }: { body: { items: { key: string }[] } }) => body.items.map(({ key }) => key);
  const list = (query: string) => service.send("GET", `/v1/runs?prefix=LIST_${query}`);

  it("has them by prefix and state, in the order of their keys, page by page, and without their values", async () => {
    await runs.begin("LIST_e", short());
    await service.clock.advance(OVER_MS);
    await runs.finished({ state: "succeeded", result: "value" }, {}, "LIST_c");
    await runs.finished({ state: "failed", error: "value", retryable: false }, {}, "LIST_a");
    await runs.finished({ state: "failed", error: "value", retryable: true }, {}, "LIST_d");
    const { url } = await runs.begin("LIST_b", short("billing-3"));
    await service.send("POST", `${url}/renew`, { body: { checkpoint: "value" } });
    await service.send("DELETE", (await runs.begin("LIST_x")).url);
    await runs.finished({ state: "succeeded" }, {}, "OTHER_a");
    await service.send("PUT", `/v1/locks/LIST_lock/leases/${runs.newId()}`);

    const all = await list("");
    expect(keysOf(all)).toEqual(["LIST_a", "LIST_b", "LIST_c", "LIST_d", "LIST_e"]);
    expect(all.body.items).toMatchObject([
      { state: "failed", retryable: false, keptForMs: 86_400_000 },
      { state: "running", owner: "billing-3", heldMs: 0, remainingMs: LEASE_MS },
      { state: "succeeded", keptForMs: 86_400_000 },
      { state: "failed", retryable: true },
      { state: "interrupted" },
    ]);
    expect(all.text).not.toContain("value");
    expect(all.body).not.toHaveProperty("cursor");

    expect(keysOf(await list("&state=failed"))).toEqual(["LIST_a", "LIST_d"]);
    expect(keysOf(await list("&state=running"))).toEqual(["LIST_b"]);
    expect(keysOf(await list("&state=succeeded"))).toEqual(["LIST_c"]);
    expect(keysOf(await list("&state=interrupted"))).toEqual(["LIST_e"]);
    expect(keysOf(await service.send("GET", "/v1/runs?prefix=NOBODY"))).toEqual([]);

    const first = await list("&max=3");
    expect([keysOf(first), first.body.cursor]).toEqual([["LIST_a", "LIST_b", "LIST_c"], "LIST_c"]);
    const rest = await list(`&max=3&cursor=${first.body.cursor}`);
    expect([keysOf(rest), rest.body.cursor]).toEqual([["LIST_d", "LIST_e"], undefined]);

    // Page by page the list is the same, for any page size and filter.
    const found: string[] = [];
    let cursor: string | undefined = "";
    for (let page = 0; cursor !== undefined && page < 20; page++) {
      const reply = await list(`&state=failed&max=1${cursor && `&cursor=${cursor}`}`);
      found.push(...keysOf(reply));
      cursor = (reply.body as { cursor?: string }).cursor;
    }
    expect(found).toEqual(["LIST_a", "LIST_d"]);
  });

  it("is of runs alone, and the list of locks of locks alone", async () => {
    const { key } = await runs.begin("BOTH_run");
    await service.send("PUT", `/v1/locks/BOTH_lock/leases/${runs.newId()}`);
    expect(keysOf(await service.send("GET", "/v1/runs?prefix=BOTH_"))).toEqual([key]);
    expect(keysOf(await service.send("GET", "/v1/locks?prefix=BOTH_"))).toEqual(["BOTH_lock"]);
  });
});

describe("a reset", () => {
  it.each([
    ["succeeded", { state: "succeeded", result: 1 }],
    ["failed for good", { ...FAILED, retryable: false }],
    ["failed and may be tried again", FAILED],
  ])("of a run that %s: 200, again 200; it is forgotten, and the next start is a first attempt", async (_what, outcome) => {
    const { key, url, reply } = await runs.begin(undefined, { body: { fingerprint: "f" } });
    await service.send("POST", `${url}/renew`, { body: { checkpoint: 1 } });
    await runs.complete(url, outcome);
    for (const _time of [1, 2]) {
      const { status, body } = await runs.reset(key);
      expect([status, body]).toEqual([200, { reset: true }]);
    }
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    expect(keysLike(await service.send("GET", `/v1/runs?prefix=${key}`))).toEqual([]);
    const next = await runs.begin(key, { body: { fingerprint: "g", maxAttempts: 1 } });
    expect(next.reply.body).toMatchObject({ attempt: 1, takeover: false });
    expect(next.reply.body).not.toHaveProperty("checkpoint");
    expect(next.reply.body.fencingToken).toBeGreaterThan(reply.body.fencingToken);
  });

  it("of a run that is under way is 409, to the end of its margin, and changes nothing", async () => {
    const { key, url } = await runs.begin(undefined, short());
    for (const [passMs, retryAfterMs] of [
      [0, OVER_MS],
      [OVER_MS - 1, 1],
    ] as const) {
      await service.clock.advance(passMs);
      const reply = await runs.reset(key);
      expect([...told(reply), reply.body.retryAfterMs, reply.body.definite]).toEqual([409, "run-in-progress", retryAfterMs, true]);
      expect(reply.headers["retry-after"]).toBe(String(Math.ceil(retryAfterMs / 1_000)));
    }
    expect((await runs.complete(url, { state: "succeeded" })).status).toBe(200);
  });

  it("of one that was interrupted ends it: its runner records nothing any more, large or small", async () => {
    const { key, url } = await runs.begin(undefined, short());
    await service.clock.advance(OVER_MS);
    expect((await runs.reset(key)).status).toBe(200);
    for (const result of [1, "large".repeat(1_000)]) {
      const late = await runs.complete(url, { state: "succeeded", result });
      expect([...told(late), late.body.reason]).toEqual([410, "lease-lost", "broken"]);
    }
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    expect((await runs.begin(key)).reply.body).toMatchObject({ attempt: 1, takeover: false });
  });

  it("of what came of it: sent again by the lease that recorded it, it is told that it was, and stays forgotten", async () => {
    const { key, url } = await runs.begin();
    await runs.complete(url, { state: "succeeded", result: 1 });
    await runs.reset(key);
    const late = await runs.complete(url, { state: "succeeded", result: 1 });
    expect([late.status, late.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(told(await runs.complete(url, { state: "succeeded", result: 2 }))).toEqual([410, "lease-lost"]);
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    expect(told(await service.send("PUT", url))).toEqual([410, "lease-over"]);
  });

  it("of what was never run is 404", async () => {
    const key = runs.freshKey();
    const reply = await runs.reset(key);
    expect([...told(reply), reply.body.definite, reply.body.instance]).toEqual([404, "not-found", true, `/v1/runs/${key}`]);
  });

  it("leaves the lock of that key alone", async () => {
    const key = await runs.finished({ state: "succeeded" });
    const lock = `/v1/locks/${key}/leases/${runs.newId()}`;
    await service.send("PUT", lock);
    await runs.reset(key);
    expect((await service.send("GET", lock)).status).toBe(200);
  });
});

function keysLike({ body }: { body: { items: { key: string }[] } }): readonly string[] {
  return body.items.map(({ key }) => key);
}
