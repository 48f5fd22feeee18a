/** Calls that wait for runs, and the heartbeats that need a socket meanwhile. */
import { globalAgent } from "node:http";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { httpApi } from "../../../lib/client/wire/http.js";
import { LazyAbort } from "../../../lib/client/wire/lazy-abort.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { refuse } from "../../../lib/core/errors.js";
import { toProblem } from "../../../lib/contract/problem.js";
import { type Received, type StubServer, startStubServer } from "./stub-server.js";
import { PATIENCE } from "../../support/patience.js";

const LEASE_ID = "01a2ce8b-d400-7145-b733-952723412670";
const LEASE = {
  ...{ key: "k", leaseId: LEASE_ID, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7 },
  ...{ leaseMs: 3000, remainingMs: 2990, renewAfterMs: 1000, version: 4, serverTimeMs: 1 },
};
const WAITING = 20;

let server: StubServer;
const { maxSockets } = globalAgent;
/** A request that is held gets no answer here, as long as a run may take. */
const held = (): readonly Received[] => server.received.filter(({ headers }) => headers.prefer !== undefined);
const isRenewal = ({ url }: Received): boolean => url.endsWith("/renew");

beforeEach(async () => {
  server = await startStubServer();
  const body = toProblem(refuse("run-in-progress", { retryAfterMs: 40 }), "/v1/runs/k");
  server.answer((received) => {
    if (isRenewal(received)) return { status: 200, body: LEASE };
    return received.headers.prefer === undefined ? { status: body.status, body } : { status: "silent" };
  });
});
afterEach(async () => {
  globalAgent.maxSockets = maxSockets;
  await server.close();
});

/** Starts of runs that others carry out. They end with the test. */
function starts(of: readonly ServiceApi[], most = WAITING) {
  const end = new LazyAbort();
  const ask = (api: ServiceApi, key: string): Promise<unknown> => api.start({ key, leaseId: LEASE_ID, waitMs: 5000 }, end);
  const all = Array.from({ length: most }, (_, index) => ask(of[index % of.length]!, `k${index}`).catch(() => undefined));
  return { all, end: () => end.abort() };
}

const CLIENTS: readonly (readonly [name: string, by: () => Parameters<typeof httpApi>[0], most: number, share: number])[] = [
  ["one client on 10 sockets of the global agent", () => ({ url: server.url }), 10, 5],
  ["one client on 3 sockets", () => ({ url: server.url }), 3, 1],
  ["one client on one socket", () => ({ url: server.url }), 1, 0],
  ["a client with a fetch of its own", () => ({ url: server.url, fetch: (...asked) => fetch(...asked) }), Number.POSITIVE_INFINITY, 3],
];

describe("runs that many callers wait for", () => {
  it.each(CLIENTS)("leave sockets to the heartbeats of %s", async (_name, by, most, share) => {
    globalAgent.maxSockets = most;
    const api = httpApi(by());
    const waiting = starts([api]);
    await vi.waitFor(() => expect(server.received.length).toBe(WAITING), PATIENCE);
    expect(await api.renew({ key: "k", leaseId: LEASE_ID, leaseMs: 3000 })).toMatchObject({ ok: true });
    expect(held().length).toBe(share);
    waiting.end();
    await Promise.all(waiting.all);
    // All sockets are given back.
    const again = starts([api], 1);
    await vi.waitFor(() => expect(server.received.length).toBe(WAITING + 2), PATIENCE);
    expect(held().length).toBe(share + Math.min(share, 1));
    again.end();
    await Promise.all(again.all);
  });

  it("share the sockets with those of other clients", async () => {
    globalAgent.maxSockets = 10;
    const waiting = starts([httpApi({ url: server.url }), httpApi({ url: server.url })]);
    await vi.waitFor(() => expect(server.received.length).toBe(WAITING), PATIENCE);
    expect(held().length).toBe(5);
    waiting.end();
    await Promise.all(waiting.all);
  });

  it("are all held where there is no limit", async () => {
    const waiting = starts([httpApi({ url: server.url })]);
    await vi.waitFor(() => expect(held().length).toBe(WAITING), PATIENCE);
    waiting.end();
    await Promise.all(waiting.all);
  });
});
