/**
 * A single attempt over HTTP: every operation's request, and what of its answers is taken for one, by one table; and what depends on who
 * sends, by each way to send. What the statuses and the failures of others mean is in test/core/what-came-back.test.ts.
 */
import { getEventListeners, once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { HttpOptions } from "../../../lib/client/wire/http-options.js";
import { httpApi } from "../../../lib/client/wire/http.js";
import type { Operation } from "../../../lib/core/api/call.js";
import { refuse, refuseLocally } from "../../../lib/core/errors.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { type LockApi, NoResponse } from "../../../lib/core/api/locks.js";
import { toProblem } from "../../../lib/contract/problem.js";
import { type StubServer, startStubServer } from "./stub-server.js";
import { PATIENCE } from "../../support/patience.js";

const REF = { key: "refund:42~x", leaseId: "01a2ce8b-d400-7145-b733-952723412670" };
const OTHER_ID = "01a2ce8b-d400-7145-b733-952723412671";
const LEASE = {
  ...{ ...REF, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7 },
  ...{ leaseMs: 3000, remainingMs: 2990, renewAfterMs: 1000, version: 4, serverTimeMs: 1 },
};
const SET = { leaseId: REF.leaseId, fencingTokens: { a: 1, b: 2 }, leaseMs: 1, remainingMs: 1, renewAfterMs: 1, serverTimeMs: 1 };
const KEYS = { leaseId: REF.leaseId, keys: ["a", "b"] };
const RATES = [{ count: 1, perMs: 1000 }];
const PROBLEM = { "content-type": "application/problem+json" };

const LOCK = `/v1/locks/${REF.key}`;
const AT = `${LOCK}/leases/${REF.leaseId}`;
const SET_AT = `/v1/lock-sets/${REF.leaseId}`;
const RUN = `/v1/runs/${REF.key}`;
const LIMIT = `/v1/limits/${REF.key}`;
/** Members by which an answer is about another lease, or about other keys. */
const OTHERS_LEASE = [{ key: "b" }, { leaseId: OTHER_ID }];
const OTHERS_SET = [{ leaseId: OTHER_ID }, { fencingTokens: { a: 1 } }];
const OTHERS_KEY = [{ key: "b" }];

/** A request, and an answer to it with the members by which it would be one to another request. */
type Row = readonly [
  ask: (to: ServiceApi) => Promise<unknown>,
  request: string,
  body?: object | undefined,
  right?: object,
  others?: readonly object[],
];

/** Every operation: without a row, a new one is an error of the compiler. */
const OPERATIONS: Readonly<Record<Operation, Row>> = {
  acquire: [(to) => to.acquire({ ...REF, leaseMs: 3000, owner: "me" }), `PUT ${AT}`, { leaseMs: 3000, owner: "me" }, LEASE, OTHERS_LEASE],
  renew: [(to) => to.renew({ ...REF, leaseMs: 3000 }), `POST ${AT}/renew`, { leaseMs: 3000 }, LEASE, OTHERS_LEASE],
  check: [(to) => to.check(REF), `GET ${AT}`, undefined, LEASE, OTHERS_LEASE],
  release: [(to) => to.release(REF), `DELETE ${AT}`],
  changeMode: [
    (to) => to.changeMode({ ...REF, mode: "shared", fencingToken: 7 }),
    `POST ${AT}/mode`,
    { mode: "shared", fencingToken: 7 },
    LEASE,
    OTHERS_LEASE,
  ],
  transfer: [
    (to) => to.transfer({ key: REF.key, leaseId: OTHER_ID, to: { leaseId: REF.leaseId, owner: "you" } }),
    `POST ${LOCK}/leases/${OTHER_ID}/transfer`,
    { leaseId: REF.leaseId, owner: "you" },
    LEASE,
    OTHERS_LEASE,
  ],
  waitForCondition: [
    (to) => to.waitForCondition({ ...REF, condition: "ready", to: { leaseId: OTHER_ID, leaseMs: 3000 } }),
    `POST ${AT}/wait`,
    { condition: "ready", leaseId: OTHER_ID, leaseMs: 3000 },
  ],
  notify: [
    (to) => to.notify({ ...REF, condition: "ready", sequence: 1, all: true }),
    `POST ${AT}/notify`,
    { condition: "ready", sequence: 1, all: true },
  ],
  breakHold: [
    (to) => to.breakHold({ key: REF.key, fencingToken: 7, reason: "stuck" }),
    `POST ${LOCK}/break`,
    { fencingToken: 7, reason: "stuck" },
  ],
  inspect: [
    (to) => to.inspect(REF),
    `GET ${LOCK}`,
    undefined,
    { key: REF.key, version: 1, mode: "exclusive", fencingToken: 7, holders: [], waiters: [] },
    OTHERS_KEY,
  ],
  list: [
    (to) => to.list({ prefix: "a:", owner: "one & two+three", max: 5 }),
    "GET /v1/locks?prefix=a%3A&owner=one%20%26%20two%2Bthree&max=5",
  ],
  acquireSet: [
    (to) => to.acquireSet({ leaseId: REF.leaseId, locks: [{ key: "a" }, { key: "b" }] }),
    `PUT ${SET_AT}`,
    { locks: [{ key: "a" }, { key: "b" }] },
    SET,
    OTHERS_SET,
  ],
  renewSet: [(to) => to.renewSet(KEYS), `POST ${SET_AT}/renew`, { keys: KEYS.keys }, SET, OTHERS_SET],
  releaseSet: [
    (to) => to.releaseSet(KEYS),
    `POST ${SET_AT}/release`,
    { keys: KEYS.keys },
    { states: { a: "released", b: "lost" } },
    [{ states: { a: "released" } }],
  ],
  renewMany: [
    (to) => to.renewMany({ leases: [REF] }),
    "POST /v1/renewals",
    { leases: [REF] },
    { results: [{ status: 200, ...LEASE }] },
    [
      { results: [] },
      ...OTHERS_LEASE.map((other) => ({ results: [{ status: 200, ...LEASE, ...other }] })),
      { results: [{ key: "b", ...toProblem(refuse("lease-lost"), "/v1/locks/b") }] },
    ],
  ],
  start: [
    (to) => to.start(REF),
    `PUT ${RUN}/leases/${REF.leaseId}`,
    {},
    { ...LEASE, state: "running", attempt: 1, takeover: false },
    OTHERS_LEASE,
  ],
  complete: [
    (to) => to.complete({ ...REF, outcome: { state: "succeeded" } }),
    `PUT ${RUN}/leases/${REF.leaseId}/outcome`,
    { state: "succeeded" },
  ],
  run: [
    (to) => to.run(REF),
    `GET ${RUN}`,
    undefined,
    { key: REF.key, version: 1, state: "running", attempt: 1, fencingToken: 7 },
    OTHERS_KEY,
  ],
  runs: [(to) => to.runs({ state: "failed" }), "GET /v1/runs?state=failed"],
  resetRun: [(to) => to.resetRun({ key: REF.key, reason: "stuck" }), `POST ${RUN}/reset`, { reason: "stuck" }],
  take: [(to) => to.take({ key: REF.key, rates: RATES, waitMs: 5 }), `POST ${LIMIT}/takes`, { rates: RATES, waitMs: 5 }],
  shutLimit: [
    (to) => to.shutLimit({ key: REF.key, rates: RATES, forMs: 5, reason: "stuck" }),
    `POST ${LIMIT}/shut`,
    { rates: RATES, forMs: 5, reason: "stuck" },
  ],
  limit: [(to) => to.limit({ key: REF.key }), `GET ${LIMIT}`],
  limits: [(to) => to.limits({}), "GET /v1/limits"],
  resetLimit: [(to) => to.resetLimit({ key: REF.key, reason: "stuck" }), `POST ${LIMIT}/reset`, { reason: "stuck" }],
  health: [(to) => to.health({ deep: "1", caller: "1" }), "GET /v1/health?deep=1&caller=1"],
};
const ROWS = Object.entries(OPERATIONS);

let server: StubServer;
/** A client without any history: one that meets strangers alone takes its URL for wrong after eight of them. */
const api = (): ServiceApi => httpApi({ url: server.url });
beforeAll(async () => {
  server = await startStubServer();
});
afterAll(() => server.close());
beforeEach(() => server.forget());

/** Expects that this is taken for no answer, and so may have happened. */
const noAnswer = (asked: Promise<unknown>, what?: unknown): Promise<void> =>
  expect(asked, JSON.stringify(what)).rejects.toThrow(NoResponse);

describe("an operation", () => {
  it.each(ROWS)("%s is one request, as the API has it", async (_name, [ask, request, body]) => {
    server.answer({ status: 500 });
    await ask(api()).catch(() => undefined);
    expect(server.received.map((sent) => [`${sent.method} ${sent.url}`, sent.body])).toEqual([[request, body ? JSON.stringify(body) : ""]]);
    expect(server.received[0]?.headers["content-type"]).toBe(body && "application/json");
  });

  it.each(ROWS.filter(([, [, , , right]]) => right))("%s takes no answer to another request", async (_name, [ask, , , right, others]) => {
    server.answer({ status: 200, body: right });
    expect(await ask(api())).toMatchObject({ ok: true });
    for (const other of others!) {
      server.answer({ status: 200, body: { ...right, ...other } });
      await noAnswer(ask(api()), other);
    }
  });

  it.each(ROWS.filter(([name]) => name !== "release"))("%s takes no answer without the members of its kind", async (_name, [ask]) => {
    const bodies = [
      {},
      [],
      { items: {} },
      { results: [null] },
      { states: { a: 1 } },
      { startInMs: 0, remaining: [1, 1] },
      "<html>",
      undefined,
    ];
    for (const body of bodies) {
      server.answer({ status: 200, body });
      await noAnswer(ask(api()), body);
    }
  });
});

describe("an answer", () => {
  it.each([
    [201, "granted"],
    [200, "replayed"],
  ])("%d to an acquire is a lease: %s", async (status, how) => {
    server.answer({ status, body: LEASE });
    expect(await api().acquire(REF)).toEqual({ ok: true, how, lease: LEASE });
  });

  it.each([200, 201, 202, 204])("%d that is not a lease is none", async (status) => {
    for (const body of [undefined, { ...LEASE, remainingMs: "2990" }, { ...LEASE, fencingToken: undefined }]) {
      server.answer({ status, ...(status !== 204 && { body }) });
      await noAnswer(api().acquire(REF), body);
    }
  });

  it.each([
    ["lost", { "lease-state": "lost" }],
    ["unknown", {}],
    // A word that this version doesn't know: the hold may have been lost.
    ["unknown", { "lease-state": "evicted" }],
  ])("to a release is in its header: %s of %j", async (state, headers) => {
    server.answer({ status: 204, headers: { ...headers } });
    expect(await api().release(REF)).toEqual({ ok: true, state });
  });

  it("with a place in the queue has times", async () => {
    server.answer({ status: 202, body: { state: "waiting", position: 1, retryAfterMs: "soon", pollWithinMs: 1 } });
    await noAnswer(api().acquire({ ...REF, waitMs: 1000 }));
  });

  it.each(["run", "inspect"] as const)("304 is one to a %s that named a state, and to no other", async (look) => {
    server.answer({ status: 304, headers: { etag: '"7"' } });
    await noAnswer(api()[look](REF));
    expect(await api()[look]({ ...REF, ifNoneMatch: '"7"' })).toEqual({ ok: true, tag: '"7"', unchanged: true });
    expect(server.received.at(-1)?.headers["if-none-match"]).toBe('"7"');
  });
});

describe("a problem", () => {
  it("is a refusal as it was made, whatever its status", async () => {
    const refusal = refuse("clock-skew", { retryAfterMs: 700, detail: "Apart" });
    server.answer({ status: 503, headers: PROBLEM, body: toProblem(refusal, undefined) });
    expect(await api().acquire(REF)).toEqual({ ...refusal, httpStatus: 503 });
  });

  it("that this version doesn't know keeps what it says of itself: no policy is inferred from its status", async () => {
    const says = { code: "queue-full", detail: "Full", definite: true, retry: "never" };
    server.answer({ status: 429, headers: PROBLEM, body: { type: "/problems/queue-full", title: "…", status: 429, ...says } });
    expect(await api().acquire(REF)).toMatchObject({ ok: false, ...says });
  });

  it("of another key is none", async () => {
    server.answer({ status: 410, headers: PROBLEM, body: toProblem(refuse("lease-lost"), `${LOCK}~`) });
    await noAnswer(api().acquire(REF));
  });

  it.each([
    { retryAfterMs: "soon" },
    { retryAfterMs: -1 },
    { leaseIdAboveMs: null },
    { holders: [{}] },
    { blocking: "a" },
    { lost: [1] },
    { reason: 1 },
  ])("with %j is none", async (wrong) => {
    server.answer({ status: 423, headers: PROBLEM, body: { ...toProblem(refuse("locked"), undefined), ...wrong } });
    await noAnswer(api().acquire(REF));
  });
});

describe("an answer without a problem document", () => {
  it.each([
    [401, "not-configured"],
    [403, "forbidden"],
    [404, "not-found"],
    [413, "too-large"],
    [429, "throttled"],
  ])("%d came from a gateway before the service, so it is definite: %s", async (status, code) => {
    for (const body of [undefined, { message: "Forbidden" }, "<html>"]) {
      server.answer({ status, body });
      expect(await api().acquire(REF)).toMatchObject({ ok: false, code, definite: true });
    }
  });

  it.each([400, 408, 409, 500, 502, 503, 504])("%d may have happened", async (status) => {
    for (const body of [undefined, { message: "No" }, "<html>", { code: "internal" }, { code: "internal", detail: "", retry: "same" }]) {
      server.answer({ status, body });
      await noAnswer(api().acquire(REF), body);
    }
  });
});

/** The ways to send a request: Node's own http, and a `fetch` that is given. */
const WAYS = [
  ["node:http", {}],
  ["fetch", { fetch: (...request: Parameters<typeof fetch>) => fetch(...request) }],
] as const;

describe.each(WAYS)("by %s,", (_way, sender) => {
  const open = (options: Partial<HttpOptions> = {}): LockApi => httpApi({ url: server.url, ...sender, ...options });

  it("a request has its method, its path, its body and its type, or neither of these", async () => {
    server.answer({ status: 500 });
    for (const name of ["acquire", "check", "release", "list"] as const) {
      const [ask, request, body] = OPERATIONS[name];
      await ask(open() as ServiceApi).catch(() => undefined);
      const { method, url, body: text, headers } = server.received.at(-1)!;
      expect([`${method} ${url}`, text, headers["content-type"]]).toEqual([
        request,
        body ? JSON.stringify(body) : "",
        body && "application/json",
      ]);
    }
  });

  it("a request is sent once, whatever becomes of it", async () => {
    for (const status of [500, 502, 503, 504, 429, 408, 301, 200, "broken", "cut"] as const) {
      server.answer({ status });
      const before = server.received.length;
      await open()
        .acquire(REF)
        .catch(() => undefined);
      expect(server.received.length - before, String(status)).toBe(1);
    }
  });

  it("a request certainly did not happen where nobody listens, and may be sent again: no outage, unless the service answered before", async () => {
    const left = await startStubServer();
    left.answer({ status: 200, body: LEASE });
    const [known, unknown] = [open({ url: left.url }), open({ url: left.url })];
    await known.acquire(REF);
    await left.close();
    await known.acquire(REF).catch(() => undefined); // The connection that was kept breaks.
    expect(await unknown.acquire(REF)).toMatchObject({ ok: false, code: "not-configured", definite: true, retry: "same" });
    expect(await known.acquire(REF)).toMatchObject({ ok: false, code: "unavailable", definite: true, retry: "same" });
  });

  it.each(["broken", "cut"] as const)(
    "a request is unanswered when the connection is %s, which tells no leaseId: it proves the hold",
    async (status) => {
      server.answer({ status });
      const error = await open()
        .acquire(REF)
        .catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(NoResponse);
      expect((error as Error).message).not.toContain(REF.leaseId);
    },
  );

  it("a gateway says when to come again, if it does so in seconds", async () => {
    for (const [after, retryAfterMs] of [
      ["7", 7000],
      ["0", 0],
      ["soon", undefined],
      ["-1", undefined],
      ["", undefined],
    ] as const) {
      const headers = { "retry-after": after };
      server.answer({ status: 429, headers });
      expect(await open().acquire(REF)).toEqual({
        ...refuseLocally("throttled", { undecided: true, httpStatus: 429 }),
        detail: expect.any(String),
        ...(retryAfterMs !== undefined && { retryAfterMs }),
      });
      server.answer({ status: 503, headers });
      await expect(open().acquire(REF)).rejects.toMatchObject({ name: "NoResponse", retryAfterMs });
    }
  });

  describe("a redirect", () => {
    it.each([301, 302, 307, 308])("%d is refused: credentials are for this URL", async (status) => {
      const elsewhere = await startStubServer();
      elsewhere.answer({ status: 201, body: LEASE });
      server.answer({ status, headers: { location: `${elsewhere.url}${AT}` } });
      await expect(open({ token: "secret" }).acquire(REF)).rejects.toThrow(NoResponse);
      expect(elsewhere.received).toEqual([]);
      await elsewhere.close();
    });
  });

  describe("headers", () => {
    it("are the caller's, the signer's and the token's", async () => {
      const signed: unknown[] = [];
      const sign = async (request: { readonly headers: Readonly<Record<string, string>> }) => {
        signed.push(request);
        return { ...request.headers, "x-signed": "yes" };
      };
      await open({ url: `${server.url}/stage/`, sign, headers: { "x-team": "shop" } })
        .renew({ ...REF, leaseMs: 3000 })
        .catch(() => undefined);
      const headers = { "x-team": "shop", "content-type": "application/json" };
      const body = '{"leaseMs":3000}';
      expect(signed).toEqual([{ method: "POST", url: `${server.url}/stage${AT}/renew`, headers, body }]);
      expect(server.received[0]).toMatchObject({ url: `/stage${AT}/renew`, headers: { ...headers, "x-signed": "yes" }, body });
    });

    it("carry a token, or a fresh one for each attempt", async () => {
      let issued = 0;
      const clients = [open({ token: "secret" }), open({ token: async () => `secret-${++issued}` })];
      for (const client of [clients[0]!, clients[1]!, clients[1]!]) await client.check(REF).catch(() => undefined);
      expect(server.received.map(({ headers }) => headers.authorization)).toEqual(["Bearer secret", "Bearer secret-1", "Bearer secret-2"]);
    });

    it.each(["sign", "token"])("that can't be made (%s): definitely nothing was sent, and it says why", async (option) => {
      const failing = () => Promise.reject(new Error("no credentials"));
      const answer = await open({ [option]: failing }).acquire(REF);
      expect(answer).toMatchObject({ ok: false, code: "unavailable", definite: true });
      expect((answer as { detail: string }).detail).toContain("no credentials");
      expect(server.received).toEqual([]);
    });
  });

  describe("an attempt", () => {
    it("is given up by its signal, and is unanswered then", async () => {
      const giveUp = new AbortController();
      let closed: Promise<unknown> | undefined;
      const silent = createServer((request) => {
        closed = once(request.socket, "close");
        giveUp.abort();
      }).listen(0, "127.0.0.1");
      await once(silent, "listening");
      const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
      await expect(open({ url }).acquire(REF, { signal: giveUp.signal })).rejects.toThrow(NoResponse);
      await closed; // The service sees it too.
      silent.close();
    });

    it("is not sent if its signal has aborted already", async () => {
      await expect(open().acquire(REF, { signal: AbortSignal.abort() })).rejects.toThrow(NoResponse);
      await open()
        .check(REF)
        .catch(() => undefined);
      expect(server.received).toMatchObject([{ method: "GET" }]);
    });
  });
});

describe("a request is sent", () => {
  afterEach(() => vi.unstubAllGlobals());
  beforeEach(() => server.answer({ status: 200, body: LEASE }));

  /** Sends a request, and returns the name of who sent it. */
  const senderOf = async (api: LockApi): Promise<string | undefined> => {
    await api.check(REF);
    return server.received.at(-1)?.headers["user-agent"];
  };

  it("by Node's own http, under the name of holdfast or of the caller", async () => {
    expect(await senderOf(httpApi({ url: server.url }))).toBe("holdfast");
    expect(await senderOf(httpApi({ url: server.url, headers: { "User-Agent": "shop" } }))).toBe("shop");
  });

  it("by the global fetch outside Node", async () => {
    vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
    expect(await senderOf(httpApi({ url: server.url }))).toBe("node");
    vi.stubGlobal("navigator", { userAgent: "Node.js/24" });
    expect(await senderOf(httpApi({ url: server.url }))).toBe("holdfast");
  });

  it("by the fetch that was given, or that replaced the global one", async () => {
    const urls: string[] = [];
    const original = fetch;
    const replaced: typeof fetch = (url, init) => {
      // A client of another file in this process may send a heartbeat through the global one.
      const address = url as string;
      if (address.startsWith(server.url)) urls.push(address);
      return original(url, init);
    };
    await httpApi({ url: server.url, fetch: replaced }).check(REF);
    const api = httpApi({ url: server.url });
    await api.check(REF);
    expect(urls).toEqual([server.url + AT]);
    vi.stubGlobal("fetch", replaced);
    await api.check(REF);
    expect(urls).toEqual([server.url + AT, server.url + AT]);
  });

  it("by fetch past the caches of a runtime that has them, and without the option where none is known", async () => {
    const caches: unknown[] = [];
    const noting: typeof fetch = (url, init) => (caches.push(init?.cache), fetch(url, init));
    const api = httpApi({ url: server.url, fetch: noting });
    await api.check(REF);
    // As in Workers of before November 2024.
    const before = Object.getOwnPropertyDescriptor(Request.prototype, "cache");
    Reflect.deleteProperty(Request.prototype, "cache");
    try {
      await api.check(REF);
    } finally {
      if (before) Object.defineProperty(Request.prototype, "cache", before);
    }
    expect(caches).toEqual(["no-store", undefined]);
  });

  it("by Node's own http, and an answer longer than any of the service's is not read to its end", async () => {
    let closed: Promise<unknown> | undefined;
    let sent = 0;
    const long = createServer((request, response) => {
      // A connection that is reset is closed too.
      request.socket.on("error", () => undefined);
      closed = new Promise((resolve) => request.socket.once("close", resolve));
      const more = (): void => void (++sent < 64 ? response.write("x".repeat(1 << 20), more) : response.end());
      more();
    }).listen(0, "127.0.0.1");
    await once(long, "listening");
    const url = `http://127.0.0.1:${(long.address() as AddressInfo).port}`;
    await expect(httpApi({ url }).check(REF)).rejects.toThrow(/RangeError/);
    await closed;
    expect(sent).toBeLessThan(64);
    long.close();
  });

  it("to this machine if the host is a name below localhost, which Node's resolver doesn't know", async () => {
    const url = server.url.replace("127.0.0.1", "abc123.execute-api.localhost");
    expect(await httpApi({ url }).check(REF)).toMatchObject({ ok: true });
    expect(server.received.at(-1)?.headers.host).toBe(new URL(url).host);
  });

  it("over TLS if the URL says so", async () => {
    const TLS_HANDSHAKE = 22;
    const firstBytes: (number | undefined)[] = [];
    const plain = createTcpServer((socket) => socket.once("data", ([first]) => socket.end(void firstBytes.push(first)))).listen(0);
    await once(plain, "listening");
    const url = `HTTPS://127.0.0.1:${(plain.address() as AddressInfo).port}`;
    await expect(httpApi({ url }).check(REF)).rejects.toThrow(NoResponse);
    expect(firstBytes).toEqual([TLS_HANDSHAKE]);
    plain.close();
  });

  it("and leaves no listener on a signal that lives on", async () => {
    const { signal } = new AbortController();
    for (let sent = 0; sent < 3; sent++) await httpApi({ url: server.url }).check(REF, { signal });
    await vi.waitFor(() => expect(getEventListeners(signal, "abort")).toEqual([]), PATIENCE);
  });
});
