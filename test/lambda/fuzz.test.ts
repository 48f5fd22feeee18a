/**
 * Malformed requests, hundreds in the quick tier and 40,000 in the slow one: for any request, the answer is a small JSON document, no answer is a failure of the
 * service, and none names a lease that the request didn't name (support/reply.ts checks all of it).
 */
import fc from "fast-check";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { matchRoute } from "../../lambda/match-route.js";
import { operationAt, PATHS, ROUTE_KEYS } from "../../lambda/routes.js";
import { ACQUIRE, COMPLETE_RUN, directService, START } from "../support/direct-service.js";
import { type HttpService, serve } from "../support/http-service.js";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { checkReply, replyFrom } from "../support/reply.js";
import { isThorough, sized } from "../support/tier.js";
import type { Reply } from "../support/reply.js";

let service: HttpService;
beforeAll(async () => {
  service = await serve();
  // Another caller's lease, which no answer may name.
  await service.send("PUT", `/v1/locks/ORDER_1/leases/${leaseIdAt(service.clock.wallMs())}`, {
    body: { leaseMs: 86_400_000 },
    as: "holder",
  });
  await service.send("PUT", `/v1/runs/ORDER_1/leases/${leaseIdAt(service.clock.wallMs())}`, {
    body: { leaseMs: 86_400_000 },
    as: "holder",
  });
});
afterAll(() => service.close());

const ascii = (maxLength: number) => fc.string({ unit: "binary-ascii", maxLength });
const anyText = (maxLength: number) =>
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)), maxLength });
const junkKey = fc.oneof(
  fc.constantFrom("ORDER_1", "ORDER_2", ".", "..", "%", "%2e%2e", "%00", "x".repeat(300), "__proto__"),
  ascii(20).map(encodeURIComponent),
  fc.webPath(),
);
const junkLeaseId = fc.oneof(
  fc.uuid({ version: 7 }),
  fc.uuid(),
  fc.nat(2_000_000).map((ms) => leaseIdAt(service.clock.wallMs() - 1_000_000 + ms)),
  ascii(40).map(encodeURIComponent),
);
const junkPath = fc.oneof(
  fc
    .tuple(fc.constantFrom(...PATHS), junkKey, junkLeaseId)
    .map(([path, key, leaseId]) => path.replace("{key}", () => key).replace("{leaseId}", () => leaseId)),
  fc.webUrl({ withQueryParameters: true }).map((url) => new URL(url).pathname + new URL(url).search),
  fc.tuple(fc.constantFrom("locks", "runs"), fc.webQueryParameters()).map(([kind, query]) => `/v1/${kind}?${query}`),
);
const FIELDS = "leaseMs owner meta mode permits leaseId reason fencingToken drainMs scope";
const FIELDS_OF_RUNS = "fingerprint keepResultMs maxAttempts checkpoint state result error retryable";
const member = fc.constantFrom(...`${FIELDS} ${FIELDS_OF_RUNS} __proto__ constructor`.split(" "), "");
const value = fc.oneof(
  fc.jsonValue(),
  fc.double(),
  fc.maxSafeInteger(),
  fc.integer({ min: 1_000, max: 90_000 }),
  anyText(300),
  fc.constant({ __proto__: null, a: [1e300] }),
);
const junkBody = fc.oneof(
  fc.constant(undefined),
  fc.dictionary(member, value).map((body) => JSON.stringify(body)),
  fc.json({ maxDepth: 5 }),
  anyText(200),
  fc.constantFrom(
    "{",
    "[".repeat(9_000),
    `{"meta":${'{"a":'.repeat(2_000)}1${"}".repeat(2_001)}`,
    `{"owner":"${"é".repeat(9_000)}"}`,
    `{"state":"succeeded","result":"${"é".repeat(140_000)}"}`,
    `{"state":"succeeded","result":${"[".repeat(130_000)}${"]".repeat(130_000)}}`,
    `{"state":"failed","retryable":true,"error":${'{"__proto__":'.repeat(90)}1${"}".repeat(90)}}`,
    '{"leaseMs":1e999}',
    "\u0000",
    "﻿{}",
  ),
);
const junkType = fc.oneof(
  { weight: 4, arbitrary: fc.constant("application/json") },
  { weight: 1, arbitrary: fc.constantFrom("text/plain", "application/json;", "a/b+json", "json", "multipart/form-data; boundary=x") },
);
const headerText = fc.string({ unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength: 100 });
const junkHeaders = fc.dictionary(
  fc.constantFrom("if-none-match", "x-holdfast-principal", "prefer", "accept", "authorization", "x-forwarded-for", "cookie"),
  fc.oneof(headerText, fc.constantFrom("*", "wait=1", "wait=3, foo", "wait=99999999999", "wait==", 'wait="')),
);
const method = fc.constantFrom("GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS");

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
}
/** Requests that no client would send. */
const junk = fc.record<Sent>({ method, path: junkPath, body: junkBody });
/** Lease ids that may come to hold: a few that are frequent, and many that are new. */
const usedLeaseId = fc
  .oneof(fc.nat(5), fc.nat(1_000))
  .map((order) => leaseIdFrom(service.clock.wallMs(), Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, order >> 8, order)));
/** Ids that are an hour old. */
const longOverLeaseId = fc.nat(9).map((order) => leaseIdAt(service.clock.wallMs() - 3_600_000 - order));
/** Requests that a client might send, correct or nearly so. */
const nearlyRight = fc
  .record({
    routeKey: fc.constantFrom(ACQUIRE, ACQUIRE, START, START, COMPLETE_RUN, ...ROUTE_KEYS),
    key: fc.constantFrom("ORDER_1", "ORDER_2"),
    leaseId: fc.oneof({ weight: 4, arbitrary: usedLeaseId }, { weight: 1, arbitrary: longOverLeaseId }),
    to: usedLeaseId,
    body: fc.record(
      { leaseMs: fc.integer({ min: 900, max: 60_000 }), owner: anyText(10), meta: fc.dictionary(anyText(5), fc.jsonValue()) },
      { requiredKeys: [] },
    ),
    token: fc.nat(),
    run: fc.record(
      { fingerprint: fc.constantFrom("f", "g"), maxAttempts: fc.nat(9), keepResultMs: fc.constant(60_000) },
      { requiredKeys: [] },
    ),
    outcome: fc.oneof(
      fc.record({ state: fc.constant("succeeded"), result: fc.jsonValue() }, { requiredKeys: ["state"] }),
      fc.record(
        { state: fc.constant("failed"), error: fc.jsonValue(), retryable: fc.boolean() },
        { requiredKeys: ["state", "error", "retryable"] },
      ),
    ),
  })
  .map(({ routeKey, key, leaseId, to, body, token, run, outcome }): Sent => {
    const [verb = "", path = ""] = routeKey.split(" ", 2);
    const bodies: Readonly<Record<string, object>> = {
      transfer: { leaseId: to },
      break: { reason: "stuck", fencingToken: token },
      start: run,
      renewRun: { checkpoint: outcome },
      complete: outcome,
      resetRun: { reason: "stuck" },
      resetLimit: { reason: "stuck" },
    };
    const own = bodies[operationAt(routeKey) ?? ""] ?? body;
    const sent = verb === "PUT" || verb === "POST" ? JSON.stringify(own) : undefined;
    return { method: verb, path: path.replace("{key}", key).replace("{leaseId}", leaseId), body: sent };
  });

/** Sends the path unchanged; `fetch` would normalize it. */
async function sendRaw(to: string, { method, path, body }: Sent, headers: Readonly<Record<string, string>>): Promise<Reply> {
  const { hostname, port } = new URL(to);
  const sent = request({ hostname, port, path, method, headers });
  const answered = new Promise<Reply>((resolve, reject) => {
    sent.on("error", reject);
    sent.on("response", (response) => {
      const named = Object.entries(response.headers).map(([name, said]) => [name, String(said)]);
      text(response).then(
        (said) => resolve(replyFrom(response.statusCode ?? 0, Object.fromEntries(named) as Record<string, string>, said)),
        reject,
      );
    });
  });
  sent.end(body);
  return answered;
}

/** The number of requests of each test. */
const REQUESTS = sized({ quick: 60, slow: 6000 });
/** More than they take on a loaded machine. */
const LONG_MS = 600_000;

describe("junk over HTTP", { timeout: LONG_MS }, () => {
  it("is answered, never with a 5xx", async () => {
    const statuses = new Set<number>();
    const property = fc.asyncProperty(fc.oneof(junk, nearlyRight), junkHeaders, junkType, async (sent, headers, type) => {
      const { path, body } = sent;
      const contentType = body === undefined ? {} : { "content-type": type, "content-length": String(Buffer.byteLength(body)) };
      const { answer: reply } = await service.clock.passUntil(sendRaw(service.url, sent, { ...headers, ...contentType }));
      statuses.add(reply.status);
      expect(reply.status).toBeLessThan(500);
      const encodedPath = path.split("?", 1)[0] ?? "";
      const route = matchRoute(sent.method, encodedPath);
      // The gateway itself refuses paths that can't be decoded or begin with two slashes, before the service.
      if (route && !path.startsWith("//")) checkReply(route.routeKey, reply, `${decodeURIComponent(encodedPath)} ${path} ${body ?? ""}`);
    });
    await fc.assert(property, { numRuns: REQUESTS });
    // So many requests reach all parts of the service, and not only the first check.
    if (isThorough()) expect([...statuses]).toEqual(expect.arrayContaining([200, 201, 204, 400, 404, 405, 409, 410, 415, 422, 423]));
  });
});

describe("junk in events", { timeout: LONG_MS }, () => {
  it("is answered, never with a 5xx, and never told as a failure", async () => {
    const { ask, clock, failures } = directService();
    const routeKey = fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...ROUTE_KEYS) }, { weight: 1, arbitrary: anyText(30) });
    const property = fc.asyncProperty(
      routeKey,
      fc.oneof(junkKey, anyText(250)),
      fc.oneof(junkLeaseId, anyText(50)),
      junkBody,
      fc.boolean(),
      fc.dictionary(anyText(10), anyText(100)),
      fc.dictionary(fc.oneof(anyText(10), fc.constantFrom("max", "prefix", "owner", "cursor", "deep", "state")), anyText(50)),
      async (route, key, leaseId, body, base64, headers, query) => {
        const reply = await ask(route, { key, leaseId, body, base64, headers: { ...headers }, query, timeEpoch: clock.wallMs() });
        expect(reply.status).toBeLessThan(500);
      },
    );
    await fc.assert(property, { numRuns: REQUESTS });
    expect(failures).toEqual([]);
  });
});
