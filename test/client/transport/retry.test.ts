/** Requests that go again, and their times: a request whose kept connection had been closed at once, and a gateway's as late as it says. */
import { once } from "node:events";
import { type Server, createServer } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { CALL_BUDGET_MS } from "../../../lib/client/calls/session.js";
import { createClient } from "../../../lib/client/client.js";
import { httpApi } from "../../../lib/client/wire/http.js";
import { type RetryBounds, retry } from "../../../lib/client/wire/retry.js";
import { type CallOptions, NoResponse } from "../../../lib/core/api/locks.js";
import type { Refusal } from "../../../lib/core/errors.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { createLockClient } from "../../../lib/index.js";
import { VirtualClock } from "../../../lib/testing.js";
import { type Scripted, startStubServer } from "./stub-server.js";

const BOUNDS = { attemptMs: 3000, budgetMs: 10_000 };
const HEALTH = JSON.stringify({ status: "ok", version: "1", serverTimeMs: 1 });

let server: Server;
let api: ServiceApi;
/** True for a connection that is to break when its next request arrives. */
let isBroken: (requestsBefore: number) => boolean;
let answered: number;
const requestsOf = new WeakMap<Socket, number>();

beforeAll(async () => {
  server = createServer((request, response) => {
    const before = requestsOf.get(request.socket) ?? 0;
    requestsOf.set(request.socket, before + 1);
    if (isBroken(before)) return void request.socket.destroy();
    answered++;
    response.end(HEALTH);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  api = httpApi({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  isBroken = () => false;
  answered = 0;
});

/** Retries `attempt` on a clock that stands still. */
async function retried<A extends { readonly ok: boolean }>(
  attempt: (options: CallOptions) => Promise<A | Refusal>,
  more: Partial<RetryBounds> = {},
) {
  const failed: string[] = [];
  const onFailedAttempt = ({ detail }: Refusal): void => void failed.push(detail);
  const { answer, ambiguous } = await retry(
    attempt,
    { ...BOUNDS, onFailedAttempt, ...more },
    { clock: new VirtualClock(), random: () => 1 },
  );
  return { answer, ambiguous, failed };
}

describe("a request on a kept connection that the other side had closed", () => {
  it("goes again at once, on another, and is no failure; but it may have arrived", async () => {
    await api.health({});
    isBroken = (before) => before > 0;
    expect(await retried((options) => api.health({}, options))).toMatchObject({ answer: { ok: true }, ambiguous: true, failed: [] });
    expect(answered).toBe(2);
  });

  it("goes again for each of many such connections", async () => {
    let waiting: (() => void)[] = [];
    const together = createServer((request, response) => {
      const before = requestsOf.get(request.socket) ?? 0;
      requestsOf.set(request.socket, before + 1);
      if (before > 0) return void request.socket.destroy();
      waiting.push(() => response.end(HEALTH));
      if (waiting.length === 5) waiting.forEach((respond) => respond());
      if (waiting.length > 5) response.end(HEALTH);
    }).listen(0, "127.0.0.1");
    await once(together, "listening");
    const many = httpApi({ url: `http://127.0.0.1:${(together.address() as AddressInfo).port}` });
    await Promise.all(Array.from({ length: 5 }, () => many.health({})));
    waiting = waiting.slice(0, 5);
    const all = await Promise.all(Array.from({ length: 5 }, () => retried((options) => many.health({}, options))));
    expect(all.map(({ answer, failed }) => [answer.ok, failed])).toEqual(all.map(() => [true, []]));
    together.closeAllConnections();
    together.close();
  });

  it("goes again a limited number of times", async () => {
    let sent = 0;
    const stale = (): Promise<Refusal> => Promise.reject(new NoResponse(`broken ${++sent}`, { isStale: true }));
    const { answer, failed } = await retried(stale, { budgetMs: 0 });
    expect([answer, sent, failed]).toEqual([expect.objectContaining({ ok: false, code: "unavailable", definite: false }), 9, ["broken 9"]]);
  });

  it("control: a new connection that breaks is a failure", async () => {
    isBroken = () => true;
    server.closeAllConnections();
    const { answer, failed } = await retried((options) => api.health({}, options), { budgetMs: 0 });
    expect([answer.ok, failed.length]).toEqual([false, 1]);
    await expect(api.health({})).rejects.toMatchObject({ isStale: false });
  });
});

describe("a read of a client that doesn't retry reads", () => {
  const PAGE = { headers: { "content-type": "text/html" }, body: "<p>Hello</p>" };
  const FAILURES: readonly (readonly [code: string, scripted: Scripted])[] = [
    ["unavailable", { status: 503 }],
    ["unavailable", { status: "broken" }],
    ["throttled", { status: 429 }],
    ["not-configured", { status: 200, ...PAGE }],
  ];

  it.each(FAILURES)("is sent once, and fails at once: %s, %j; control: by default it goes again", async (code, scripted) => {
    const stub = await startStubServer();
    const { url, received } = stub;
    const failsFirst = (): void => stub.answer(() => (received.length > 1 ? { status: 200, body: HEALTH } : scripted));
    failsFirst();
    await expect(createLockClient({ url, retryReads: false }).health()).rejects.toMatchObject({ code, definite: true });
    expect(received).toHaveLength(1);
    stub.forget();
    expect(await createLockClient({ url }).health()).toMatchObject({ status: "ok" });
    expect(received).toHaveLength(2);
    await stub.close();
  });

  it("has all the time of a call for its one attempt", async () => {
    const clock = new VirtualClock();
    const beganMs = clock.monotonicMs();
    const health = vi.fn(() => new Promise<never>(() => undefined));
    const deps = { clock, api: { health } as unknown as ServiceApi, random: () => 0, ids: undefined as never };
    const asked = createClient(deps, { retryReads: false }).health();
    await expect(clock.settle(asked)).rejects.toMatchObject({ code: "unavailable" });
    expect([health.mock.calls.length, clock.monotonicMs() - beganMs]).toEqual([1, CALL_BUDGET_MS]);
  });
});

describe("an attempt that a gateway asks to send later", () => {
  it("goes again then, and no sooner", async () => {
    const clock = new VirtualClock();
    const sentMs: number[] = [];
    const attempt = (): Promise<{ readonly ok: true }> => {
      sentMs.push(clock.monotonicMs());
      return sentMs.length > 1 ? Promise.resolve({ ok: true }) : Promise.reject(new NoResponse("busy", { retryAfterMs: 4000 }));
    };
    await clock.settle(retry(attempt, BOUNDS, { clock, random: () => 0 }));
    expect(sentMs.map((ms) => ms - sentMs[0]!)).toEqual([0, 4000]);
  });

  it("is given up at once if that is after all of its time", async () => {
    let sent = 0;
    const busy = (): Promise<Refusal> => Promise.reject(new NoResponse(`busy ${++sent}`, { retryAfterMs: 60_000 }));
    const { answer } = await retried(busy);
    expect([answer, sent]).toEqual([expect.objectContaining({ code: "unavailable", definite: false, retryAfterMs: 60_000 }), 1]);
  });
});
