/** A single attempt over HTTP, by each way to send it: the request, and the meaning of each kind of response or of none. */
import { getEventListeners, once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { HttpOptions } from "../../../lib/client/wire/http-options.js";
import { httpApi } from "../../../lib/client/wire/http.js";
import { refuse, refuseLocally } from "../../../lib/core/errors.js";
import type { LockApi } from "../../../lib/core/api/locks.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { NoResponse } from "../../../lib/core/api/locks.js";
import { toProblem } from "../../../lib/contract/problem.js";
import { type StubServer, startStubServer } from "./stub-server.js";
import { PATIENCE } from "../../support/patience.js";

const REF = { key: "refund:42~x", leaseId: "01a2ce8b-d400-7145-b733-952723412670" };
const PATH = `/v1/locks/${REF.key}/leases/${REF.leaseId}`;
const LEASE = {
  ...REF,
  owner: "",
  mode: "exclusive",
  permits: 1,
  holdCount: 1,
  fencingToken: 7,
  leaseMs: 3000,
  remainingMs: 2990,
  renewAfterMs: 1000,
  version: 4,
  serverTimeMs: 1,
};

let server: StubServer;

beforeEach(async () => {
  server = await startStubServer();
});
afterEach(() => server.close());

type Asked = readonly [ask: (api: LockApi) => Promise<unknown>, method: string, path: string, body: object | undefined];

/** Every operation: without a row, a new one is an error of the compiler. */
const OPERATIONS: Readonly<Record<keyof LockApi | "list of all" | "deep health" | "health and the caller", Asked>> = {
  acquire: [(to) => to.acquire({ ...REF, leaseMs: 3000, owner: "me" }), "PUT", PATH, { leaseMs: 3000, owner: "me" }],
  renew: [(to) => to.renew({ ...REF, leaseMs: 3000 }), "POST", `${PATH}/renew`, { leaseMs: 3000 }],
  check: [(to) => to.check(REF), "GET", PATH, undefined],
  release: [(to) => to.release(REF), "DELETE", PATH, undefined],
  changeMode: [
    (to) => to.changeMode({ ...REF, mode: "shared", fencingToken: 7 }),
    "POST",
    `${PATH}/mode`,
    { mode: "shared", fencingToken: 7 },
  ],
  transfer: [
    (to) => to.transfer({ ...REF, to: { leaseId: "x", owner: "you" } }),
    "POST",
    `${PATH}/transfer`,
    { leaseId: "x", owner: "you" },
  ],
  waitForCondition: [
    (to) => to.waitForCondition({ ...REF, condition: "ready", to: { leaseId: "x", leaseMs: 3000 } }),
    "POST",
    `${PATH}/wait`,
    { condition: "ready", leaseId: "x", leaseMs: 3000 },
  ],
  notify: [
    (to) => to.notify({ ...REF, condition: "ready", sequence: 1, all: true }),
    "POST",
    `${PATH}/notify`,
    { condition: "ready", sequence: 1, all: true },
  ],
  breakHold: [
    (to) => to.breakHold({ key: REF.key, fencingToken: 7, reason: "stuck" }),
    "POST",
    `/v1/locks/${REF.key}/break`,
    { fencingToken: 7, reason: "stuck" },
  ],
  inspect: [(to) => to.inspect({ key: REF.key }), "GET", `/v1/locks/${REF.key}`, undefined],
  list: [
    (to) => to.list({ prefix: "a:", owner: "one & two+three", max: 5 }),
    "GET",
    "/v1/locks?prefix=a%3A&owner=one%20%26%20two%2Bthree&max=5",
    undefined,
  ],
  "list of all": [(to) => to.list({}), "GET", "/v1/locks", undefined],
  health: [(to) => to.health({}), "GET", "/v1/health", undefined],
  "deep health": [(to) => to.health({ deep: "1" }), "GET", "/v1/health?deep=1", undefined],
  "health and the caller": [(to) => to.health({ caller: "1" }), "GET", "/v1/health?caller=1", undefined],
};
const ROWS = Object.entries(OPERATIONS).map(([name, asked]) => [name, ...asked] as const);

/** The ways to send a request: Node's own http, and a `fetch` that is given. */
const WAYS = [
  ["node:http", {}],
  ["fetch", { fetch: (...request: Parameters<typeof fetch>) => fetch(...request) }],
] as const;

describe.each(WAYS)("by %s,", (_way, sender) => {
  let api: LockApi;
  const open = (options: Partial<HttpOptions> = {}): LockApi => httpApi({ url: server.url, ...sender, ...options });
  beforeEach(() => void (api = open()));

  describe("every operation", () => {
    it.each(ROWS)("%s is one request, as the API has it", async (_name, ask, method, path, body) => {
      server.answer({ status: 200, body: LEASE });
      await ask(api).catch(() => undefined);
      expect(server.received).toMatchObject([{ method, url: path, body: body ? JSON.stringify(body) : "" }]);
      expect(server.received[0]?.headers["content-type"]).toBe(body && "application/json");
    });

    it("is sent once, whatever becomes of it", async () => {
      for (const status of [500, 502, 503, 504, 429, 408, 301, 200, "broken", "cut"] as const) {
        server.answer({ status });
        const before = server.received.length;
        await api.acquire(REF).catch(() => undefined);
        expect(server.received.length - before, String(status)).toBe(1);
      }
    });

    it("brings back a refusal as it was made, whatever its status", async () => {
      const refusal = refuse("clock-skew", { retryAfterMs: 700, detail: "Apart" });
      server.answer({ status: 503, headers: { "content-type": "application/problem+json" }, body: toProblem(refusal, undefined) });
      expect(await api.acquire(REF)).toEqual(refusal);
    });

    it("certainly did not happen where nobody listens, and may be sent again: no outage, unless the service answered before", async () => {
      server.answer({ status: 200, body: LEASE });
      const known = open();
      await known.acquire(REF);
      await server.close();
      await known.acquire(REF).catch(() => undefined); // The connection that was kept breaks.
      expect(await api.acquire(REF)).toMatchObject({ ok: false, code: "not-configured", definite: true, retry: "same" });
      expect(await known.acquire(REF)).toMatchObject({ ok: false, code: "unavailable", definite: true, retry: "same" });
      server = await startStubServer();
    });

    it.each(["broken", "cut"] as const)(
      "is unanswered when the connection is %s, which tells no leaseId: it proves the hold",
      async (status) => {
        server.answer({ status });
        const error = await api.acquire(REF).catch((reason: unknown) => reason);
        expect(error).toBeInstanceOf(NoResponse);
        expect((error as Error).message).not.toContain(REF.leaseId);
      },
    );
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
        expect(await api.acquire(REF)).toMatchObject({ ok: false, code, definite: true });
      }
    });

    it.each([400, 408, 409, 500, 502, 503, 504])("%d may have happened", async (status) => {
      for (const body of [
        undefined,
        { message: "Internal Server Error" },
        "<html>",
        { code: "internal" },
        { code: "internal", detail: "", retry: "same" },
      ]) {
        server.answer({ status, body });
        await expect(api.acquire(REF)).rejects.toThrow(NoResponse);
      }
    });

    it("says when to come again, if it does so in seconds", async () => {
      for (const [after, retryAfterMs] of [
        ["7", 7000],
        ["0", 0],
        ["soon", undefined],
        ["-1", undefined],
        ["", undefined],
      ] as const) {
        const headers = { "retry-after": after };
        server.answer({ status: 429, headers });
        expect(await api.acquire(REF)).toEqual({
          ...refuseLocally("throttled", { undecided: true }),
          detail: expect.any(String),
          ...(retryAfterMs !== undefined && { retryAfterMs }),
        });
        server.answer({ status: 503, headers });
        await expect(api.acquire(REF)).rejects.toMatchObject({ name: "NoResponse", retryAfterMs });
      }
    });

    it.each([200, 201, 202, 204])("%d that is not a lease is no answer", async (status) => {
      for (const body of [undefined, {}, "<html>", [], { ...LEASE, remainingMs: "2990" }, { ...LEASE, fencingToken: undefined }]) {
        server.answer({ status, ...(status !== 204 && { body }) });
        await expect(api.acquire(REF)).rejects.toThrow(NoResponse);
      }
    });
  });

  describe("an answer to another request is none:", () => {
    const OTHER = { ...REF, key: "b", leaseId: "01a2ce8b-d400-7145-b733-952723412671" };
    const SET = { leaseId: REF.leaseId, fencingTokens: { a: 1, b: 2 }, leaseMs: 1, remainingMs: 1, renewAfterMs: 1, serverTimeMs: 1 };
    const RUN = { ...LEASE, state: "running", attempt: 1, takeover: false };
    const VIEW = { key: REF.key, version: 1, state: "running", attempt: 1, fencingToken: 7 };
    const SEEN = { key: REF.key, version: 1, mode: "exclusive", fencingToken: 7, holders: [], waiters: [] };
    const set = { leaseId: REF.leaseId, keys: ["a", "b"] };
    const to = { leaseId: REF.leaseId };
    const asks: Readonly<Record<string, readonly [ask: (to: ServiceApi) => Promise<unknown>, right: object, wrong: readonly object[]]>> = {
      acquire: [(of) => of.acquire(REF), LEASE, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      renew: [(of) => of.renew(REF), LEASE, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      check: [(of) => of.check(REF), LEASE, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      changeMode: [(of) => of.changeMode({ ...REF, mode: "shared", fencingToken: 7 }), LEASE, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      transfer: [(of) => of.transfer({ ...OTHER, key: REF.key, to }), LEASE, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      start: [(of) => of.start(REF), RUN, [{ key: "b" }, { leaseId: OTHER.leaseId }]],
      inspect: [(of) => of.inspect(REF), SEEN, [{ key: "b" }]],
      run: [(of) => of.run(REF), VIEW, [{ key: "b" }]],
      acquireSet: [
        (of) => of.acquireSet({ leaseId: REF.leaseId, locks: [{ key: "a" }, { key: "b" }] }),
        SET,
        [{ leaseId: OTHER.leaseId }, { fencingTokens: { a: 1 } }],
      ],
      renewSet: [(of) => of.renewSet(set), SET, [{ leaseId: OTHER.leaseId }, { fencingTokens: { a: 1 } }]],
      releaseSet: [(of) => of.releaseSet(set), { states: { a: "released", b: "lost" } }, [{ states: { a: "released" } }]],
      renewMany: [
        (of) => of.renewMany({ leases: [REF] }),
        { results: [{ status: 200, ...LEASE }] },
        [
          { results: [] },
          { results: [{ status: 200, ...LEASE, key: "b" }] },
          { results: [{ status: 200, ...LEASE, leaseId: OTHER.leaseId }] },
          { results: [{ key: "b", ...toProblem(refuse("lease-lost"), "/v1/locks/b") }] },
        ],
      ],
    };

    it.each(Object.entries(asks))("%s", async (_name, [ask, right, wrong]) => {
      const service = httpApi({ url: server.url, ...sender });
      server.answer({ status: 200, body: right });
      expect(await ask(service)).toMatchObject({ ok: true });
      for (const other of wrong) {
        server.answer({ status: 200, body: { ...right, ...other } });
        await expect(ask(service), JSON.stringify(other)).rejects.toThrow(NoResponse);
      }
    });

    it("a refusal of another key", async () => {
      const body = toProblem(refuse("lease-lost"), `/v1/locks/${REF.key}~`);
      server.answer({ status: 410, headers: { "content-type": "application/problem+json" }, body });
      await expect(api.acquire(REF)).rejects.toThrow(NoResponse);
    });
  });

  describe("an answer without the members of its kind is none:", () => {
    const service = (): ServiceApi => httpApi({ url: server.url, ...sender });
    const set = { leaseId: REF.leaseId, keys: ["a"] };
    it.each<[what: string, ask: (of: ServiceApi) => Promise<unknown>]>([
      ["inspect", (of) => of.inspect(REF)],
      ["list", (of) => of.list({})],
      ["health", (of) => of.health({})],
      ["breakHold", (of) => of.breakHold({ key: "a", fencingToken: 7, reason: "stuck" })],
      ["notify", (of) => of.notify({ ...REF, condition: "ready" })],
      ["runs", (of) => of.runs({})],
      ["run", (of) => of.run(REF)],
      ["resetRun", (of) => of.resetRun({ key: "a", reason: "stuck" })],
      ["take", (of) => of.take({ key: "a", rates: [{ count: 1, perMs: 1000 }] })],
      ["limit", (of) => of.limit({ key: "a" })],
      ["limits", (of) => of.limits({})],
      ["resetLimit", (of) => of.resetLimit({ key: "a", reason: "stuck" })],
      ["complete", (of) => of.complete({ ...REF, outcome: { state: "succeeded" } })],
      ["releaseSet", (of) => of.releaseSet(set)],
      ["renewMany", (of) => of.renewMany({ leases: [REF] })],
    ])("%s", async (_what, ask) => {
      for (const body of [
        {},
        [],
        { items: {} },
        { results: [null] },
        { states: { a: 1 } },
        { startInMs: 0, remaining: [1, 1] },
        "<html>",
      ]) {
        server.answer({ status: 200, body });
        await expect(ask(service()), JSON.stringify(body)).rejects.toThrow(NoResponse);
      }
    });

    it("a 304 without a question", async () => {
      server.answer({ status: 304, headers: { etag: '"7"' } });
      await expect(service().run(REF)).rejects.toThrow(NoResponse);
      await expect(service().inspect(REF)).rejects.toThrow(NoResponse);
      for (const look of ["run", "inspect"] as const) {
        expect(await service()[look]({ ...REF, ifNoneMatch: '"7"' })).toEqual({ ok: true, tag: '"7"', unchanged: true });
        expect(server.received.at(-1)?.headers["if-none-match"]).toBe('"7"');
      }
    });

    it.each([
      { retryAfterMs: "soon" },
      { retryAfterMs: -1 },
      { leaseIdAboveMs: null },
      { holders: [{}] },
      { blocking: "a" },
      { lost: [1] },
      { reason: 1 },
    ])("a problem with %j", async (wrong) => {
      const body = { ...toProblem(refuse("locked"), undefined), ...wrong };
      server.answer({ status: 423, headers: { "content-type": "application/problem+json" }, body });
      await expect(service().acquire(REF)).rejects.toThrow(NoResponse);
    });

    it("a place in the queue with a time that is none", async () => {
      const place = { state: "waiting", position: 1, retryAfterMs: 1, pollWithinMs: 1 };
      server.answer({ status: 202, body: { ...place, retryAfterMs: "soon" } });
      await expect(service().acquire({ ...REF, waitMs: 1000 })).rejects.toThrow(NoResponse);
    });
  });

  describe("a problem that this version doesn't know", () => {
    it("keeps what it says of itself: no policy is inferred from its status", async () => {
      const problem = {
        type: "/problems/queue-full",
        title: "…",
        status: 429,
        code: "queue-full",
        detail: "Full",
        definite: true,
        retry: "never",
      };
      server.answer({ status: 429, headers: { "content-type": "application/problem+json" }, body: problem });
      expect(await api.acquire(REF)).toMatchObject({ ok: false, code: "queue-full", definite: true, retry: "never", detail: "Full" });
    });
  });

  describe("what an answer says", () => {
    it.each([
      [201, "granted"],
      [200, "replayed"],
    ])("%d to an acquire is a lease: %s", async (status, how) => {
      server.answer({ status, body: LEASE });
      expect(await api.acquire(REF)).toEqual({ ok: true, how, lease: LEASE });
    });

    it.each([
      ["lost", { "lease-state": "lost" }],
      ["unknown", {}],
      // A word that this version doesn't know: the hold may have been lost.
      ["unknown", { "lease-state": "evicted" }],
    ])("to a release is in its header: %s of %j", async (state, headers) => {
      server.answer({ status: 204, headers: { ...headers } });
      expect(await api.release(REF)).toEqual({ ok: true, state });
    });
  });

  describe("a redirect", () => {
    it.each([301, 302, 307, 308])("%d is refused: credentials are for this URL", async (status) => {
      const elsewhere = await startStubServer();
      elsewhere.answer({ status: 201, body: LEASE });
      server.answer({ status, headers: { location: `${elsewhere.url}${PATH}` } });
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
      expect(signed).toEqual([{ method: "POST", url: `${server.url}/stage${PATH}/renew`, headers, body }]);
      expect(server.received[0]).toMatchObject({ url: `/stage${PATH}/renew`, headers: { ...headers, "x-signed": "yes" }, body });
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
      await expect(api.acquire(REF, { signal: AbortSignal.abort() })).rejects.toThrow(NoResponse);
      await api.check(REF).catch(() => undefined);
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
    expect(urls).toEqual([server.url + PATH]);
    vi.stubGlobal("fetch", replaced);
    await api.check(REF);
    expect(urls).toEqual([server.url + PATH, server.url + PATH]);
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
    server.answer({ status: 200, body: LEASE });
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
