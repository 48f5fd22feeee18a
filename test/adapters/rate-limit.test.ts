/** Limits in front of routes: what a request takes in each framework, and how the headers and the keys of a limit are made. */
import { describe, expect, it } from "vitest";
import type { RateLimitOptions } from "../../lib/express.js";
import type { LockClientEvent } from "../../lib/index.js";
import { limitRequests } from "../../lib/adapters/rate-limit.js";
import { KeyContended } from "../../lib/store/port.js";
import { type TestLockClient, createLockClient } from "../../lib/testing.js";
import { answered, closingAfterEach } from "./app-server.js";
import { type Framework, type LevelOptions, type Options, FRAMEWORKS, ORIGIN } from "./servers.js";

const open = closingAfterEach();

const TWO_A_MINUTE = [{ count: 2, perMs: 60_000, burst: 2 }];
const POLICY = '"orders";q=2;w=60';

/** Serves an application that counts the calls of its route. */
async function served({ serve }: Framework, limits: readonly LevelOptions[], options: Partial<Options> = {}) {
  const events: LockClientEvent[] = [];
  const locks = createLockClient({ onEvent: (event) => events.push(event) });
  let calls = 0;
  const partner = locks.limiter("partner", { rates: [{ count: 1, perMs: 1500 }] });
  const application = async (name: string) => {
    calls++;
    if (name === "partner") await partner.take();
    return { body: "found" };
  };
  const server = open(await serve({ locks, service: "shop", caller: "header", limits, ...options }, application));
  const post = (user = "ann", path = "limited/order") =>
    fetch(`${server.url}/${path}`, { method: "POST", headers: { "x-user": user, origin: ORIGIN } });
  return { locks, events, post, calls: () => calls };
}

const told = ({ headers }: Response) => ["ratelimit-policy", "ratelimit", "retry-after"].map((name) => headers.get(name));
const exposed = ({ headers }: Response): string | null => headers.get("access-control-expose-headers");
const codeOf = async (answer: Response) => ((await answer.json()) as { readonly code: string }).code;

describe.each(FRAMEWORKS)("$name", (framework) => {
  it("serves what has room, answers 429 before the route runs to what has none, and serves again when it said", async () => {
    const { locks, post, calls } = await served(framework, [{ name: "orders", rates: TWO_A_MINUTE }]);
    const [first, second, refused] = [await post(), await post(), await post()];
    expect([first, second].map(told)).toEqual([1, 0].map((left) => [POLICY, `"orders";r=${left};t=30`, null]));
    expect([first.status < 300, await first.text(), exposed(first)]).toEqual([true, "found", "X-Page, RateLimit, RateLimit-Policy"]);
    expect([refused.status, ...told(refused)]).toEqual([429, POLICY, '"orders";r=0;t=30', "30"]);
    expect(refused.headers.get("content-type")?.split(";")[0]).toBe("application/problem+json");
    expect(await refused.json()).toMatchObject({ code: "rate-limited", definite: true, retry: "later", retryAfterMs: 30_000 });
    const { headers } = refused;
    expect([headers.get("access-control-allow-origin"), exposed(refused)?.split(", ").toSorted()]).toEqual([
      ORIGIN,
      ["RateLimit", "RateLimit-Policy", "Retry-After", "X-Page"],
    ]);
    await locks.clock.advance(29_999);
    expect((await post()).status).toBe(429);
    expect(calls()).toBe(2);
    await locks.clock.advance(1);
    expect((await post()).status).toBeLessThan(300);
  });

  it("takes from several levels, the most specific first, and tells each", async () => {
    const total = { name: "total", rates: [{ count: 3, perMs: 60_000, burst: 3 }], caller: "none" } as const;
    const { post } = await served(framework, [{ name: "orders", rates: TWO_A_MINUTE }, total]);
    const policies = `${POLICY}, "total";q=3;w=60`;
    expect(told(await post("ann"))).toEqual([policies, '"orders";r=1;t=30, "total";r=2;t=20', null]);
    await post("ann");
    // The first level refuses: nothing is taken from the total.
    expect([(await post("ann")).status, ...told(await post("ann"))]).toEqual([429, POLICY, '"orders";r=0;t=30', "30"]);
    expect((await post("bob")).status).toBeLessThan(300);
    expect(told(await post("cat"))).toEqual([policies, '"orders";r=1;t=30, "total";r=0;t=20', "20"]);
  });

  it.each(["throw", "proceed"] as const)("when the locks can't be reached: %s", async (whenUnavailable) => {
    const { locks, events, post, calls } = await served(framework, [{ name: "orders", rates: TWO_A_MINUTE, whenUnavailable }]);
    for (let times = 0; times < 100; times++) locks.faults.loseNextRequest("take");
    const answer = await answered(locks, post());
    const isServed = whenUnavailable === "proceed";
    if (isServed) expect(await answer.text()).toBe("found");
    else expect([answer.status, Number(answer.headers.get("retry-after")) >= 1, await codeOf(answer)]).toEqual([503, true, "unavailable"]);
    expect(calls()).toBe(isServed ? 1 : 0);
    expect(events.map(({ type }) => type)).toEqual([isServed ? "proceeded" : "unavailable"]);
  });

  it("fails, and runs nothing, if the caller has no name", async () => {
    const { post, calls } = await served(framework, [{ name: "orders", rates: TWO_A_MINUTE }], { caller: "nobody" });
    expect([(await post()).status, calls()]).toEqual([500, 0]);
  });

  it("answers 429 to a request whose route met a limit without room, which scripts of other origins can read", async () => {
    const { post } = await served(framework, []);
    await post("ann", "free/partner");
    const refused = await post("ann", "free/partner");
    expect([refused.status, refused.headers.get("retry-after"), await codeOf(refused)]).toEqual([429, "2", "rate-limited"]);
    expect([refused.headers.get("access-control-allow-origin"), exposed(refused)]).toEqual([ORIGIN, "X-Page, Retry-After"]);
  });
});

interface Asked {
  readonly user?: string;
  readonly tokens?: number;
}

describe("a limit in front of routes", () => {
  function limit(locks: TestLockClient, options: Partial<RateLimitOptions<Asked>> = {}) {
    const caller = ({ user = "ann" }: Asked): string => user;
    return limitRequests<Asked>({ locks, service: "shop", name: "orders", caller, rates: TWO_A_MINUTE, ...options });
  }

  it("has a key that begins with its service and names it, its rates and the caller", async () => {
    const locks = createLockClient();
    const rates = [...TWO_A_MINUTE, { count: 5, perMs: 1000, burst: 2 }];
    await limit(locks, { rates })({});
    await limit(locks, { caller: "none" })({});
    const take = (key: string, of: RateLimitOptions<Asked>["rates"]) => locks.limiter(key, { rates: of }).remaining();
    expect(await take("shop_~limit_orders_2:60000:2-5:1000:2_ann", rates)).toEqual([1, 1]);
    expect(await take("shop_~limit_orders_2:60000:2", TWO_A_MINUTE)).toEqual([1]);
  });

  it.each<[what: string, options: Partial<RateLimitOptions<Asked>>]>([
    ["another service", { service: "stock" }],
    ["another name", { name: "refunds" }],
    ["other rates", { rates: [{ count: 3, perMs: 60_000, burst: 3 }] }],
    ["another caller", { caller: () => "bob" }],
    ["all callers together", { caller: "none" }],
  ])("has nothing in common with that of %s; control: the same one has", async (_what, options) => {
    const locks = createLockClient();
    const rates = options.rates ?? TWO_A_MINUTE;
    const full = (left: number) => expect.stringContaining(`;r=${left};`) as string;
    await limit(locks)({});
    expect((await limit(locks, options)({})).headers).toMatchObject({ RateLimit: full(rates[0]!.count - 1) });
    expect((await limit(locks)({})).headers).toMatchObject({ RateLimit: full(0) });
  });

  it.each<[state: string, bring: (locks: TestLockClient) => unknown]>([
    ["its client is closed", (locks) => locks.close()],
    ["others keep changing it", ({ store }) => Object.assign(store.limits, { take: () => Promise.reject(new KeyContended("changed")) })],
  ])("answers 503 while %s", async (_state, bring) => {
    const locks = createLockClient();
    await bring(locks);
    expect((await locks.clock.settle(limit(locks)({}))).refused?.answer).toMatchObject({
      statusCode: 503,
      headers: { "retry-after": "1" },
    });
  });

  it("refuses a caller that is a credential, and doesn't repeat it", async () => {
    const refused = limit(createLockClient())({ user: "Bearer secret-1" });
    await expect(refused).rejects.toThrow("caller: returned an Authorization header for this request");
    await expect(refused).rejects.not.toThrow("secret-1");
  });

  it("takes the cost of the request: a number, or what a function makes of it; nothing for 0", async () => {
    const rates = [{ count: 100, perMs: 60_000, burst: 100 }];
    const left = async (options: Partial<RateLimitOptions<Asked>>, asked: Asked = {}) =>
      (await limit(createLockClient(), { rates, ...options })(asked)).headers;
    expect(await left({ cost: 10 })).toMatchObject({ RateLimit: '"orders";r=90;t=1' });
    const cost = ({ tokens = 0 }: Asked): number => tokens;
    expect(await left({ cost }, { tokens: 40 })).toMatchObject({ RateLimit: '"orders";r=60;t=1' });
    expect(await left({ cost })).toEqual({});
  });

  it.each([101, Number.NaN, -1, 1.5, Number.POSITIVE_INFINITY, "3"])(
    "answers 400 to a request whose cost is %s, and takes nothing",
    async (tokens) => {
      const locks = createLockClient();
      const rates = [{ count: 100, perMs: 60_000, burst: 100 }];
      const limiting = limit(locks, { rates, cost: ({ tokens: cost = 0 }) => cost });
      const { refused } = await limiting({ tokens: tokens as number });
      expect(refused?.answer.statusCode).toBe(400);
      expect(JSON.parse(refused?.answer.body ?? "")).toMatchObject({ code: "invalid-request", definite: true, retry: "never" });
      expect((await limiting({ tokens: 1 })).headers).toMatchObject({ RateLimit: '"orders";r=99;t=1' });
    },
  );

  it("holds up a request for a second at most in an outage, and those of the next seconds not at all", async () => {
    const locks = createLockClient();
    for (let times = 0; times < 100; times++) locks.faults.loseNextRequest("take");
    const limiting = limit(locks, { whenUnavailable: "proceed" });
    const heldMs: number[] = [];
    for (let request = 0; request < 4; request++) {
      const beganMs = locks.clock.monotonicMs();
      expect(await locks.clock.settle(limiting({}))).toEqual({ headers: {} });
      heldMs.push(locks.clock.monotonicMs() - beganMs);
    }
    expect(heldMs[0]).toBeLessThanOrEqual(1000);
    expect(heldMs.slice(1)).toEqual([0, 0, 0]);
  });

  it.each<[what: string, rates: RateLimitOptions<Asked>["rates"], policy: string, state: string]>([
    ["a day", [{ count: 1000, perMs: 86_400_000, burst: 1000 }], '"orders";q=1000;w=86400', '"orders";r=999;t=87'],
    ["a second and a half, rounded up to whole seconds", [{ count: 3, perMs: 1500, burst: 3 }], '"orders";q=4;w=2', '"orders";r=2;t=1'],
    [
      "two times",
      [...TWO_A_MINUTE, { count: 5, perMs: 1000, burst: 3 }],
      '"orders-1";q=2;w=60, "orders-2";q=5;w=1',
      '"orders-1";r=1;t=30, "orders-2";r=2;t=1',
    ],
  ])("tells a rate for %s in the headers", async (_what, rates, policy, state) => {
    const { headers } = await limit(createLockClient(), { rates })({});
    expect(headers).toEqual({ "RateLimit-Policy": policy, RateLimit: state });
  });
});
