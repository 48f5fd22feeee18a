/** The changes that a gateway makes to a request on its way to the service, and to the response on its way back. */
import { once } from "node:events";
import { type IncomingMessage, Agent as HttpAgent, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import { expect } from "vitest";
import { httpApi } from "../../../lib/client/wire/http.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { createLockClient, LockTimeoutError } from "../../../lib/index.js";
import { fromProblem } from "../../../lib/contract/problem.js";
import { told } from "../calls.js";
import { type Deployed, type OfDeployed, signerOf } from "../deployed.js";
import { signed } from "../signed.js";
import { ask } from "./asking.js";

/** The gateway's largest body. */
const GATEWAY_BODY_BYTES = 10 * 1024 * 1024;
/** `Date` has whole seconds, rounded down. */
const DATE_GRAIN_MS = 1_000;

/** A request in pieces, sent without changes to its headers' names and case. */
interface Raw {
  readonly method: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly agent?: HttpAgent | HttpsAgent;
}

async function sendRaw(deployed: Deployed, { method, path, headers = {}, body, agent }: Raw) {
  const url = new URL(deployed.url + path);
  const own = await signerOf(deployed)({ method, url: url.href, headers: {}, ...(body !== undefined && { body }) });
  const send = url.protocol === "https:" ? httpsRequest : httpRequest;
  const outgoing = send(url, { method, headers: { ...headers, ...own }, ...(agent && { agent }), timeout: 25_000 });
  outgoing.on("timeout", () => outgoing.destroy(new Error("no answer in 25 s")));
  outgoing.end(body);
  const [reply] = (await once(outgoing, "response")) as [IncomingMessage];
  return { status: reply.statusCode ?? 0, headers: reply.headers, body: await text(reply), isReused: outgoing.reusedSocket };
}

/** Names of headers, and their case. */
export const headers: OfDeployed = ({ it }, { send, put, hold, newId, freshKey }, deployed) => {
  it("keep their names on the way back, and none comes as x-amzn-remapped-…", async () => {
    const held = await hold();
    const again = await put(held.key, {}, held);
    const refused = await put(held.key);
    const released = await send("DELETE", held.url);
    const unknown = await send("PATCH", `/v1/locks/${held.key}`);
    expect(held.headers["etag"]).toBe(`"v${held.body.version}"`);
    expect(again.headers["idempotent-replayed"]).toBe("true");
    expect(refused.headers["retry-after"]).toBe(String(Math.ceil(refused.body.retryAfterMs / 1000)));
    expect(refused.headers["content-type"]).toBe("application/problem+json");
    expect(released.headers["lease-state"]).toBe("released");
    expect(unknown.headers["allow"]).toBe("GET");
    const names = [held, again, refused, released, unknown].flatMap((reply) => Object.keys(reply.headers));
    expect(names.filter((name) => name.includes("remapped"))).toEqual([]);
  });

  it("reach the service in whatever case they are written", async () => {
    const key = `/v1/locks/${freshKey()}`;
    const [lease, waiter] = [`${key}/leases/${newId()}`, `${key}/leases/${newId()}`];
    expect(
      (await sendRaw(deployed(), { method: "PUT", path: lease, headers: { "CONTENT-TYPE": "application/json" }, body: "{}" })).status,
    ).toBe(201);
    const { etag = "" } = (await sendRaw(deployed(), { method: "GET", path: key })).headers;
    expect((await sendRaw(deployed(), { method: "GET", path: key, headers: { "If-None-Match": etag } })).status).toBe(304);
    expect((await sendRaw(deployed(), { method: "PUT", path: waiter, headers: { PREFER: "wait=0" } })).status).toBe(202);
    for (const path of [waiter, lease]) expect((await sendRaw(deployed(), { method: "DELETE", path })).status).toBe(204);
  });
};

/** Percent-encoding, through the signature, the routes and the parameters. */
export const keys: OfDeployed = ({ it }, { freshKey, newId, send, get, release }, deployed) => {
  it("with : and ~ are one key, sent as they are or percent-encoded, and both are signed as the gateway checks it", async () => {
    const key = `${freshKey()}:a~b`;
    const leaseId = newId();
    const spellings = [key, encodeURIComponent(key), key.replace(":", "%3a").replace("~", "%7e"), key.replace("a~b", "%61~b")];
    const held = await send("PUT", `/v1/locks/${key}/leases/${leaseId}`, { body: {} });
    expect([held.status, held.body.key]).toEqual([201, key]);
    for (const spelling of spellings) {
      const looked = await get(`/v1/locks/${spelling}/leases/${leaseId}`);
      expect([looked.status, looked.body.key, looked.body.fencingToken], spelling).toEqual([200, key, held.body.fencingToken]);
    }
    expect(await release({ url: `/v1/locks/${encodeURIComponent(key)}/leases/${leaseId}` })).toBe("released");
  });

  it("are decoded once, and never to another key", async () => {
    const { url, carry } = deployed();
    const key = freshKey();
    for (const spelling of [`${key}%253Aa`, `${key}%2F..%2F${key}`, `${key}%3Fa`, `${key}%23`, `${key}%25`]) {
      const { status } = await ask(url, signed(signerOf(deployed()), carry), "PUT", `/v1/locks/${spelling}/leases/${newId()}`, {});
      expect([400, 404, 405], spelling).toContain(status);
    }
    expect((await get(`/v1/locks/${key}`)).body).toMatchObject({ fencingToken: 0, holders: [] });
    expect((await get(`/v1/locks/${key}:a`)).body).toMatchObject({ fencingToken: 0, holders: [] });
  });
};

/** Paths that end in a slash: a gateway may match the route without it, or take it for an empty key. */
export const slashes: OfDeployed = ({ it }, { hold, get, newId }, deployed) => {
  it("is another path, which the API doesn't have: the service's own 404, and nothing happens to the key", async () => {
    const { url, carry } = deployed();
    const held = await hold();
    const paths = [
      ["GET", "/v1/health"],
      ["GET", "/v1/openapi.json"],
      ["GET", "/v1/locks"],
      ["GET", `/v1/locks/${held.key}`],
      ["PUT", `/v1/locks/${held.key}/leases/${newId()}`],
      ["DELETE", held.url],
      ["POST", `${held.url}/renew`],
      ["PUT", `/v1/lock-sets/${newId()}`],
      ["GET", "/v1/runs"],
    ] as const;
    for (const [method, path] of paths) {
      const said = await ask(url, signed(signerOf(deployed()), carry), method, `${path}/`, method === "PUT" ? {} : undefined);
      expect([said.status, said.body?.code], `${method} ${path}/`).toEqual([404, "not-found"]);
    }
    const { body } = await get(`/v1/locks/${held.key}`);
    expect([body.fencingToken, body.holders.length]).toEqual([held.body.fencingToken, 1]);
  });
};

/** The two clocks of a request. */
export const clocks: OfDeployed = ({ it }, { get }) => {
  it("of function and gateway are epoch milliseconds that agree with the answer's Date within the guard", async () => {
    for (let time = 0; time < 5; time++) {
      const { headers, body } = await get("/v1/health");
      const apartMs = (body.serverTimeMs as number) - Date.parse(headers["date"] ?? "");
      expect(Math.abs(apartMs), `serverTimeMs ${body.serverTimeMs}, Date ${headers["date"]}`).toBeLessThan(
        DEFAULTS.clockGuardMs + DATE_GRAIN_MS,
      );
    }
  });
};

/** The gateway's timeout of 30 s, and a client's shorter one. */
export const waits: OfDeployed = ({ it }, { freshKey, hold, queue, put, get, begin, start }, deployed) => {
  it("ends by the service's word and never by the gateway's cut, however long a request would wait", async () => {
    const [held, run] = [await hold(undefined, { leaseMs: 60_000 }), await begin(undefined, { leaseMs: 60_000 })];
    const { leaseId } = await queue(held.key);
    const [waiting, other] = await Promise.all([
      put(held.key, {}, { leaseId, prefer: "wait=60" }),
      start(run.key, {}, { prefer: "wait=60" }),
    ]);
    expect([waiting.status, waiting.body.state]).toEqual([202, "waiting"]);
    expect(told(other)).toEqual([409, "run-in-progress"]);
  });

  it("ends by the client's own deadline, long before, and leaves nobody in the queue", async () => {
    const { url, carry } = deployed();
    const key = freshKey();
    await hold(key, { leaseMs: 60_000 });
    const locks = createLockClient({ url, sign: signerOf(deployed()), fetch: carry });
    await expect(locks.acquire(key, { waitMs: 1_500 })).rejects.toThrow(LockTimeoutError);
    expect((await get(`/v1/locks/${key}`)).body.waiters).toEqual([]);
    await locks.close();
  });
};

/** Connections that last longer than one request. */
export const connections: OfDeployed = ({ it }, { freshKey }, deployed) => {
  it("serve several requests, one after the other", async () => {
    const { url } = deployed();
    const agent = url.startsWith("https:")
      ? new HttpsAgent({ keepAlive: true, maxSockets: 1 })
      : new HttpAgent({ keepAlive: true, maxSockets: 1 });
    try {
      const reused: boolean[] = [];
      for (let time = 0; time < 3; time++) {
        const { status, isReused } = await sendRaw(deployed(), { method: "GET", path: `/v1/locks/${freshKey()}`, agent });
        expect(status).toBe(200);
        reused.push(isReused);
      }
      expect(reused).toEqual([false, true, true]);
    } finally {
      agent.destroy();
    }
  });
};

/** Bodies that never reach the service. */
export const sizes: OfDeployed = ({ it }, { freshKey, newId }, deployed) => {
  it("over the gateway's 10 MB are its own 413 without a problem, which a client takes as definite", async () => {
    const { url, carry } = deployed();
    const sign = signerOf(deployed());
    const path = `/v1/runs/${freshKey()}/leases/${newId()}/outcome`;
    const outcome = { state: "succeeded", result: "x".repeat(GATEWAY_BODY_BYTES) } as const;
    const said = await ask(url, signed(sign, carry), "PUT", path, outcome);
    // A function URL's front spells the name with a capital.
    expect([said.status, Object.keys(said.body as object)]).toEqual([413, [expect.stringMatching(/^[mM]essage$/)]]);
    expect(fromProblem(said.status, said.body)).toMatchObject({ code: "too-large", definite: true, retry: "never" });

    const api = httpApi({ url, sign, fetch: carry });
    expect(await api.complete({ kind: "runs", key: freshKey(), leaseId: newId(), outcome })).toMatchObject({
      code: "too-large",
      definite: true,
    });
  });
};
