/** The async context of heartbeats: a token that depends on the call chain, such as a tenant's, is that of the lease. */
import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it, vi } from "vitest";
import { createClient } from "../../../lib/client/client.js";
import type { LockClientEvent } from "../../../lib/client/wire/events.js";
import { systemRuntime } from "../../../lib/client/runtime.js";
import type { HttpOptions, Sign } from "../../../lib/client/wire/http-options.js";
import { callersOf, httpApi } from "../../../lib/client/wire/http.js";
import type { Lease } from "../../../lib/index.js";
import { VirtualClock } from "../../../lib/testing.js";
import { PATIENCE } from "../../support/patience.js";

const TENANTS = ["a", "b", "c"];
const LEASE_MS = 9000;
const tenant = new AsyncLocalStorage<string>();
const now = (): string => tenant.getStore() ?? "nobody";

/** A request for renewals: whose token it had, and the keys. */
type Renewal = readonly [by: string, keys: readonly string[]];

/** A service that agrees to everything, and a client of it whose clock a test turns. */
function agreeing(options: Partial<HttpOptions>) {
  const clock = new VirtualClock();
  const renewals: Renewal[] = [];
  const events: (readonly [type: string, key: string, by: string])[] = [];
  let isSilent = false;
  const leaseOf = (key = "", leaseId = ""): object => ({
    ...{ key, leaseId, owner: "", mode: "exclusive", permits: 1, holdCount: 1, fencingToken: 7, version: 1 },
    ...{ leaseMs: LEASE_MS, remainingMs: LEASE_MS, renewAfterMs: LEASE_MS / 3, serverTimeMs: clock.wallMs() },
  });
  const answer = (method: string, path: string, body: string, by: string): Response => {
    const [, key, leaseId] = /locks\/([^/]+)\/leases\/([^/]+)/.exec(path) ?? [];
    const { leases = [] } = JSON.parse(body || "{}") as { readonly leases?: readonly { readonly key: string; readonly leaseId: string }[] };
    if (key === undefined) expect([method, new URL(path).pathname]).toEqual(["POST", "/v1/renewals"]);
    if (method === "POST") renewals.push([by, key === undefined ? leases.map((lease) => lease.key).sort() : [key]]);
    if (method === "DELETE") return new Response(null, { status: 204, headers: { "lease-state": "released" } });
    if (key !== undefined) return Response.json(leaseOf(key, leaseId), { status: method === "PUT" ? 201 : 200 });
    return Response.json({ results: leases.map((lease) => ({ status: 200, ...leaseOf(lease.key, lease.leaseId) })) });
  };
  const http: HttpOptions = {
    url: "http://holdfast.test",
    fetch: async (url, { method = "", headers, body } = {}) => {
      if (isSilent) throw new TypeError("no network");
      return answer(method, url as string, (body ?? "") as string, (headers as Record<string, string>)["authorization"] ?? "");
    },
    ...options,
  };
  const onEvent = ({ type, key }: LockClientEvent): void => void events.push([type, key, now()]);
  const runtime = { ...systemRuntime(httpApi(http), clock), callers: callersOf(http), random: () => 0.5 };
  return { clock, renewals, events, locks: createClient(runtime, { onEvent }), silence: () => void (isSilent = true) };
}

type Agreeing = ReturnType<typeof agreeing>;

/** Two leases of each tenant, acquired in its own context, one tenant after the other. */
async function hold({ locks }: Agreeing): Promise<readonly Lease[]> {
  const acquired = [1, 2].flatMap((turn) =>
    TENANTS.map((one) => tenant.run(one, () => locks.acquire(`${one}${turn}`, { leaseMs: LEASE_MS }))),
  );
  return Promise.all(acquired);
}

/** Turns the clock until so many leases have been renewed. */
async function until(count: number, { clock, renewals }: Agreeing): Promise<readonly Renewal[]> {
  await clock.advance(LEASE_MS / 3);
  await vi.waitFor(() => expect(renewals.flatMap(([, keys]) => keys).length).toBe(count), PATIENCE);
  return renewals.splice(0).sort();
}

const EACH = [
  ["Bearer a", ["a1", "a2"]],
  ["Bearer b", ["b1", "b2"]],
  ["Bearer c", ["c1", "c2"]],
];
const ONE_BY_ONE = TENANTS.flatMap((one) => [1, 2].map((turn) => [`Bearer ${one}`, [`${one}${turn}`]]));
const ALL = TENANTS.flatMap((one) => [`${one}1`, `${one}2`]).sort();
const signed =
  (by: () => string): Sign =>
  async () => ({ authorization: `Bearer ${by()}` });

describe("heartbeats of leases that callers with different tokens hold", () => {
  const TOKENS: readonly (readonly [name: string, options: Partial<HttpOptions>, expected: unknown])[] = [
    ["each caller's together, with its own token", { token: now }, EACH],
    ["each caller's together, with its own token that takes a while", { token: async () => (await Promise.resolve(), now()) }, EACH],
    ["one by one, as signed for each", { sign: signed(now) }, ONE_BY_ONE],
  ];
  it.each(TOKENS)("go %s, time after time", async (_name, options, expected) => {
    const service = agreeing(options);
    await hold(service);
    for (let beats = 0; beats < 7; beats++) expect(await until(6, service)).toEqual(expected);
    await service.locks.close();
  });
});

describe("heartbeats of one caller", () => {
  const ONE_CALLER: readonly (readonly [name: string, options: Partial<HttpOptions>])[] = [
    ["a token", { token: "t" }],
    ["a token that is fetched", { token: async () => Promise.resolve("t") }],
    [
      "a signer for one caller",
      {
        sign: Object.assign(
          signed(() => "t"),
          { oneCaller: true as const },
        ),
      },
    ],
  ];
  it.each(ONE_CALLER)("go together with %s", async (_name, options) => {
    const service = agreeing(options);
    await hold(service);
    const [[by, keys] = ["", []], ...more] = await until(6, service);
    expect([by, keys, more]).toEqual(["Bearer t", ALL, []]);
    await service.locks.close();
  });

  it("are sent where the token can't be fetched at first", async () => {
    let fails = 0;
    const service = agreeing({ token: () => (fails-- > 0 ? Promise.reject(new Error("no token")) : "t") });
    const [lease] = await hold(service);
    fails = 6;
    await service.clock.advance(LEASE_MS / 3);
    await vi.waitFor(() => expect(fails).toBeLessThanOrEqual(0), PATIENCE);
    await vi.waitFor(async () => {
      await service.clock.advance(100);
      expect(service.renewals.flatMap(([, keys]) => keys).sort()).toEqual(ALL);
    }, PATIENCE);
    expect(lease?.state).toBe("held");
    await service.locks.close();
  });
});

describe("the end of a lease", () => {
  it("is told in the context of its acquire", async () => {
    const service = agreeing({ token: "t" });
    const leases = await hold(service);
    const told: string[] = [];
    leases.forEach(({ signal, key }) => signal.addEventListener("abort", () => told.push(`${key} to ${now()}`)));
    service.silence();
    await vi.waitFor(async () => {
      await service.clock.advance(LEASE_MS / 3);
      expect(told.length).toBe(6);
    }, PATIENCE);
    expect(told.sort()).toEqual(TENANTS.flatMap((one) => [`${one}1 to ${one}`, `${one}2 to ${one}`]));
    expect(
      service.events
        .filter(([type]) => type === "lost")
        .map(([, key, by]) => `${key} to ${by}`)
        .sort(),
    ).toEqual(told);
    await service.locks.close();
  });
});
