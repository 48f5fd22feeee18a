/**
 * The meaning of what came back in place of the service's answer, by every way: over HTTP, straight on the table, and by a client of the AWS SDK.
 * Only silence is an outage, past which work may proceed without its lock.
 */
import { once } from "node:events";
import { type IncomingMessage, type RequestListener, type Server, type ServerResponse, createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { type Lease, type LockClient, type LockError, createLockClient } from "../../../lib/index.js";
import { refuse } from "../../../lib/core/errors.js";
import { toProblem } from "../../../lib/contract/problem.js";
import { engineLocation } from "../../../infra/local/engine-client.js";
import { freshTable } from "../../support/engine.js";
import { serve } from "../../support/http-service.js";
import { thrownBy } from "../../support/run-gate.js";
import { UNTRUSTED_CERTIFICATE, UNTRUSTED_KEY } from "../../support/untrusted-certificate.js";

const byFetch: typeof fetch = (...request) => fetch(...request);
const onTable = (options: object): LockClient => createTableClient({ tableName: "locks", ...options });

/** The ways to what listens at a URL. */
const WAYS = {
  "over HTTP": (url) => createLockClient({ url }),
  "over HTTP by fetch": (url) => createLockClient({ url, fetch: byFetch }),
  "straight on the table": (url) => onTable(engineLocation(url)),
  "by a client of the SDK": (url) => onTable({ client: new DynamoDBClient(engineLocation(url)) }),
} satisfies Record<string, (url: string) => LockClient>;
type Way = keyof typeof WAYS;
const WAY_NAMES = Object.keys(WAYS) as readonly Way[];

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) {
    server.close();
    server.closeAllConnections();
  }
});

async function listening(server: Server, protocol = "http"): Promise<string> {
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Returns the URL of a server that answers each request so. */
const answering =
  (status: number, body: string, headers: Readonly<Record<string, string>> = { "content-type": "text/html" }) =>
  (): Promise<string> => {
    const answer: RequestListener = (_request, response) => void response.writeHead(status, headers).end(body);
    return listening(createServer(answer));
  };

const PAGE = "<html><body>Blocked</body></html>";
const JSON_TYPE = { "content-type": "application/json" };
const AMZ_TYPE = { "content-type": "application/x-amz-json-1.0" };

/** The codes that a wrapper proceeds past for no option. */
const FINAL = ["not-configured", "forbidden", "not-found", "too-large"];

/** The URLs of servers that are not the service. None of them is an outage. */
const WRONG: Readonly<Record<string, () => Promise<string>>> = {
  "a certificate that nobody trusts": () => listening(createTlsServer({ key: UNTRUSTED_KEY, cert: UNTRUSTED_CERTIFICATE }), "https"),
  "a 401 of a proxy": answering(401, PAGE),
  "a 403 of a proxy": answering(403, PAGE),
  "a 403 of a gateway": answering(403, '{"message":"Forbidden"}', JSON_TYPE),
  "a 403 with a code": answering(403, '{"code":"Blocked"}', JSON_TYPE),
  "a 404 page": answering(404, PAGE),
  "a 407 of a proxy": answering(407, PAGE),
  "a 413 page": answering(413, PAGE),
  "a 200 that is a page": answering(200, PAGE),
  "a 200 that is {}": answering(200, "{}", JSON_TYPE),
  "a 200 that is {} of the table's type": answering(200, "{}", AMZ_TYPE),
  "a 200 without a body": answering(200, ""),
  "a 302": answering(302, "", { location: "/login" }),
  "a 400 page": answering(400, PAGE),
  "a 400 of DynamoDB itself": answering(400, '{"__type":"com.amazon.coral.validate#ValidationException","message":"No"}', {
    ...AMZ_TYPE,
    "x-amzn-requestid": "ABC",
  }),
  "a 501": answering(501, PAGE),
  "a 505": answering(505, PAGE),
  "no TLS": async () => (await answering(200, PAGE)()).replace("http:", "https:"),
  "a refused connection": async () => {
    const server = createServer();
    const url = await listening(server);
    server.close();
    return url;
  },
};

/** The URLs of servers that are an outage, or may be one. */
const OUTAGES: Readonly<Record<string, () => Promise<string>>> = {
  "a 500 page": answering(500, PAGE),
  "a 502 page": answering(502, PAGE),
  "a 503 page": answering(503, PAGE),
  "a 504 page": answering(504, PAGE),
  "a refusal of DynamoDB that breaks off": () =>
    listening(
      createServer((request, response) => {
        response.writeHead(400, { ...AMZ_TYPE, "x-amzn-requestid": "ABC", "content-length": "100" }).write('{"__type":');
        request.socket.end();
      }),
    ),
  "a connection that breaks": () => listening(createServer((request) => void request.socket.destroy())),
  silence: () => listening(createServer(() => undefined)),
};

interface Came {
  readonly result: unknown;
  readonly runs: number;
}

/** Returns what work under a lock came to, which proceeds past an outage. */
async function workAt(url: string, way: Way, waitMs?: number): Promise<Came> {
  const locks = WAYS[way](url);
  let runs = 0;
  const work = () => ++runs;
  const options = { whenUnavailable: "proceed", ...(waitMs !== undefined && { waitMs }) } as const;
  const result = await locks.withLock("ORDER_1", options, work).catch((error: unknown) => error);
  return { result, runs };
}

/** Plays all rows by all ways at once: a wrong address is asked for about two seconds. */
async function playAll(rows: Readonly<Record<string, () => Promise<string>>>, waitMs?: number): Promise<ReadonlyMap<string, Came>> {
  const urls = await Promise.all(Object.entries(rows).map(async ([what, urlOf]) => [what, await urlOf()] as const));
  const cells = urls.flatMap(([what, url]) => WAY_NAMES.map(async (way) => [`${what}, ${way}`, await workAt(url, way, waitMs)] as const));
  return new Map(await Promise.all(cells));
}

describe("something that is not the service", () => {
  const cells = Object.keys(WRONG)
    .flatMap((what) => WAY_NAMES.map((way) => [what, way] as const))
    // Node's own fetch makes a failure without a reason of it.
    .filter(([what, way]) => what !== "a 407 of a proxy" || way !== "over HTTP by fetch");
  let came: ReadonlyMap<string, Came>;
  beforeAll(async () => {
    came = await playAll(WRONG);
  }, 60_000);

  it.each(cells)("(%s, %s) is refused by name, and no work proceeds past it", (what, way) => {
    const { result, runs } = came.get(`${what}, ${way}`)!;
    expect(runs).toBe(0);
    const [codes, status] = way.includes("HTTP") ? [FINAL, /^a ([345]\d\d)/.exec(what)?.[1]] : [["not-configured"]];
    expect(result).toMatchObject({
      name: "LockError",
      code: expect.toBeOneOf(codes) as unknown,
      httpStatus: status && Number(status),
    });
  });

  it("is told by its URL and by what it said", async () => {
    const said = (what: string, way: Way): string => (came.get(`${what}, ${way}`)!.result as Error).message;
    const table = "straight on the table";
    expect(said("a certificate that nobody trusts", table)).toMatch(
      /certificate of https:\S+ is not trusted \(DEPTH_ZERO_SELF_SIGNED_CERT\)/,
    );
    expect(said("a 403 of a gateway", table)).toMatch(/A proxy or a gateway answered 403 before http:\S+: Forbidden$/);
    expect(said("a 200 that is a page", table)).toMatch(/What answers \(200\) at http:\S+ is not DynamoDB: is the endpoint right\?$/);
    for (const way of WAY_NAMES)
      expect(said("a refused connection", way)).toMatch(/no answer \(ECONNREFUSED\) from .*right, and does it run\?/);
  });

  it("is none sooner either: a call with no time for a second attempt proceeds past nothing", async () => {
    const urls = await Promise.all([WRONG["a refused connection"]!(), WRONG["a 200 that is a page"]!()]);
    const cells = WAY_NAMES.flatMap((way) => urls.map((url) => [way, url] as const));
    const ended = cells.map(async ([way, url]) => {
      const locks = WAYS[way](url).forInvocation({ getRemainingTimeInMillis: () => 1200 });
      let runs = 0;
      const error = await thrownBy(locks.withLock("ORDER_1", { waitMs: 0, whenUnavailable: "proceed" }, () => ++runs));
      return [way, (error as LockError).code, runs];
    });
    expect(await Promise.all(ended)).toEqual(cells.map(([way]) => [way, "not-configured", 0]));
  });
});

describe("over HTTP", () => {
  it.each<[what: string, ask: (locks: LockClient) => Promise<unknown>]>([
    ["acquire", (locks) => locks.acquire("ORDER_1")],
    ["runOnce", (locks) => locks.runOnce("ORDER_1", () => "done")],
    ["list", (locks) => locks.list()],
  ])("%s asks nobody eight times, and knows that nothing happened", async (_what, ask) => {
    let attempts = 0;
    const counting: typeof fetch = (...request) => (attempts++, fetch(...request));
    const locks = createLockClient({ url: await WRONG["a refused connection"]!(), fetch: counting });
    expect(await thrownBy(ask(locks))).toMatchObject({ name: "LockError", code: "not-configured", definite: true, retry: "never" });
    expect(attempts).toBe(8);
  });

  it.each<[what: string, ask: (locks: LockClient) => Promise<unknown>]>([
    ["a run", (locks) => locks.runs.get("RUN_1")],
    ["a key", (locks) => locks.inspect("KEY_1")],
    ["what is left of a limit", (locks) => locks.limiter("LIMIT_1", { rates: [{ count: 5, perMs: 1000 }] }).remaining()],
  ])("another server's 404 is not taken for the service's word on %s", async (_what, ask) => {
    const locks = createLockClient({ url: await WRONG["a 404 page"]!() });
    await expect(ask(locks)).rejects.toMatchObject({ code: "not-found", definite: true });
  });

  it("control: the service's own is: a run that never ran is null", async () => {
    const body = JSON.stringify(toProblem(refuse("not-found"), "/v1/runs/RUN_1"));
    const url = await answering(404, body, { "content-type": "application/problem+json" })();
    expect(await createLockClient({ url }).runs.get("RUN_1")).toBeNull();
  });
});

describe("control: an outage", () => {
  const cells = Object.keys(OUTAGES).flatMap((what) => WAY_NAMES.map((way) => [what, way] as const));
  let came: ReadonlyMap<string, Came>;
  beforeAll(async () => {
    came = await playAll(OUTAGES, 50);
  }, 60_000);

  it.each(cells)("(%s, %s) is one, which work may proceed past", (what, way) => {
    expect(came.get(`${what}, ${way}`)).toEqual({ result: 1, runs: 1 });
  });
});

/** A server before another one. It answers in its place while `instead` says how. */
async function before(target: string) {
  const state: { instead?: ((response: ServerResponse) => void) | undefined } = {};
  const server = createServer((request: IncomingMessage, response) => {
    void text(request).then(async (body) => {
      if (state.instead) return state.instead(response);
      const { method = "GET", headers } = request;
      const { host: _host, connection: _connection, "content-length": _length, ...rest } = headers as Record<string, string>;
      const sent = await fetch(target + request.url!, { method, headers: rest, ...(body !== "" && { body }) });
      const { "content-encoding": _e, "transfer-encoding": _t, connection: _c, ...received } = Object.fromEntries(sent.headers);
      response.writeHead(sent.status, received).end(await sent.text());
    });
  });
  const url = await listening(server);
  const { port } = server.address() as AddressInfo;
  return {
    url,
    state,
    async stop() {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
    start: () => once(server.listen(port, "127.0.0.1"), "listening"),
  };
}

/** The answers that come in the place of the service for a while. */
const INSTEAD: readonly (readonly [what: string, status: number, body: string])[] = [
  ["403", 403, PAGE],
  ["404", 404, '{"message":"Not Found"}'],
  ["a page", 200, PAGE],
  ["{}", 200, "{}"],
];

describe.each(WAY_NAMES)("where the service has answered before, %s", (way) => {
  let proxy: Awaited<ReturnType<typeof before>>;
  let locks: LockClient;
  let stopService: () => Promise<unknown>;
  beforeAll(async () => {
    if (way.includes("HTTP")) {
      const service = await serve();
      stopService = () => service.close();
      proxy = await before(service.url);
      locks = WAYS[way](proxy.url);
    } else {
      const { tableName, endpoint } = await freshTable();
      stopService = async () => undefined;
      proxy = await before(endpoint);
      const place = engineLocation(proxy.url);
      locks = createTableClient({ tableName, ...(way === "straight on the table" ? place : { client: new DynamoDBClient(place) }) });
    }
  });
  afterAll(async () => {
    await locks.close();
    await stopService();
  });
  const instead = (status: number, body: string) => (response: ServerResponse) =>
    void response.writeHead(status, { "content-type": body.startsWith("{") ? "application/json" : "text/html" }).end(body);

  it.each(INSTEAD)("a lease outlives %s to its renewals: its state is unknown, and held again afterwards", async (_what, status, body) => {
    const lease: Lease = await locks.acquire(`LEASE_${status}_${body.length}`, { leaseMs: 30_000, heartbeat: false });
    proxy.state.instead = instead(status, body);
    const renewing = lease.renew().catch((error: unknown) => error);
    await expect.poll(() => lease.state).toBe("unknown");
    expect(lease.isHeld()).toBe(true);
    proxy.state.instead = undefined;
    await renewing;
    await lease.renew();
    expect(lease.state).toBe("held");
    await lease.release();
  });

  it.each(INSTEAD)("an outcome that meets %s once is recorded: the work is done once", async (_what, status, body) => {
    const key = `RUN_${status}_${body.length}`;
    let runs = 0;
    const work = (): number => {
      proxy.state.instead = (response) => {
        proxy.state.instead = undefined;
        instead(status, body)(response);
      };
      return ++runs;
    };
    expect([await locks.runOnce(key, work), await locks.runOnce(key, work)]).toMatchObject([{ replayed: false }, { replayed: true }]);
    proxy.state.instead = undefined;
    expect(runs).toBe(1);
  });

  it.each(INSTEAD)("a release that meets %s once frees the key", async (_what, status, body) => {
    const key = `KEY_${status}_${body.length}`;
    const lease = await locks.acquire(key);
    proxy.state.instead = (response) => {
      proxy.state.instead = undefined;
      instead(status, body)(response);
    };
    expect(await lease.release()).toBe("released");
    const next = await locks.tryAcquire(key);
    expect(next).not.toBeNull();
    await next?.release();
  });

  it("a connection that is refused is an outage, and ends with it", async () => {
    await (await locks.acquire("ORDER_1")).release();
    await proxy.stop();
    const options = { waitMs: 50, whenUnavailable: "proceed" } as const;
    expect(await locks.withLock("ORDER_1", options, () => "proceeded")).toBe("proceeded");
    await proxy.start();
    await (await locks.acquire("ORDER_1")).release();
  });
});
