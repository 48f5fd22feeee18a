/**
 * Two doors of one table on loopback, and the first of them fails: two services over HTTP, each with its own way to the table, or the table itself in
 * two Regions. A client of both keeps its lease, its place, its run and its limit; a client of the first alone, as a control, loses them. Time is
 * real, and nothing here asserts one.
 */
import { type TestContext, afterEach, describe, it, vi } from "vitest";
import { startGateway } from "../../../infra/local/gateway.js";
import { engineLocation } from "../../../infra/local/engine-client.js";
import { compose } from "../../../lambda/compose.js";
import { CLOCKS_APART_MS } from "../../../lib/core/rate.js";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { createLockClient as createHttpClient } from "../../../lib/index.js";
import type { LockClient, LockClientEvent } from "../../../lib/index.js";
import { freshTable } from "../../support/engine.js";
import { type Plug, type PlugState, startPlug } from "../../support/plug.js";

const LEASE_MS = 3000;
const WAIT_MS = 60_000;
const REGIONS = ["us-east-1", "us-east-2"] as const;

/** Is called with what closes a part of a world, the last part first. */
type Closing = (close: () => Promise<unknown>) => void;

type Listener = (event: LockClientEvent) => void;

/** Two doors of one table. */
interface World {
  /** The names of the doors, as a client tells them. */
  readonly doors: readonly [string, string];
  /** Lets the first door fail. */
  fail(state: PlugState): Promise<void>;
  /** Returns a client of these doors, by their indexes. */
  client(at: readonly number[], onEvent?: Listener): LockClient;
}

async function plugged(target: string, closing: Closing): Promise<Plug> {
  const plug = await startPlug(target);
  closing(() => plug.close());
  return plug;
}

/** Two services. The plug of the first one is in front of it, or between it and the table. */
async function services(isAtTable: boolean, closing: Closing): Promise<World> {
  const { env, endpoint } = await freshTable();
  const start = async (): Promise<readonly [atTable: Plug, atService: Plug]> => {
    const atTable = await plugged(endpoint, closing);
    // The service is asked by the URL of its plug, which is known once it runs.
    const own = { ...env, AWS_ENDPOINT_URL_DYNAMODB: atTable.url };
    const gateway = await startGateway({ handler: (...event) => handler(...event), port: 0, onError: () => undefined });
    closing(() => gateway.close());
    const atService = await plugged(gateway.url, closing);
    const handler = compose({ ...own, HOLDFAST_OWN_URL: atService.url }, { log: () => undefined, print: () => undefined });
    return [atTable, atService];
  };
  const [first, second] = [await start(), await start()];
  const urls = [first[1].url, second[1].url] as const;
  // Each has carried out a request, as those of a deployment have.
  for (const url of urls) await createHttpClient({ url }).withLock("warm", () => undefined);
  return {
    doors: urls,
    fail: (state) => first[isAtTable ? 0 : 1].set(state),
    client: (at, onEvent) => kept(createHttpClient({ url: at.map((index) => urls[index]!), onEvent }), closing),
  };
}

/** The table in two Regions. */
async function regions(closing: Closing): Promise<World> {
  const { tableName, endpoint } = await freshTable();
  const { credentials } = engineLocation(endpoint);
  const plugs = [await plugged(endpoint, closing), await plugged(endpoint, closing)] as const;
  const client = (at: readonly number[], onEvent?: Listener): LockClient => {
    const endpoints = Object.fromEntries(at.map((index) => [REGIONS[index]!, plugs[index]!.url]));
    return kept(createTableClient({ tableName, credentials, regions: Object.keys(endpoints), endpoint: endpoints, onEvent }), closing);
  };
  for (const index of [0, 1]) await client([index]).withLock("warm", () => undefined);
  return { doors: REGIONS, fail: (state) => plugs[0].set(state), client };
}

function kept(client: LockClient, closing: Closing): LockClient {
  closing(() => client.close());
  return client;
}

/** Resolves when `look` returns true. */
async function until(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await new Promise((resolve) => setTimeout(resolve, 20));
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const isReady = async (locks: LockClient): Promise<boolean> => {
  await locks.withLock(`of-${Math.random()}`, () => undefined);
  return (await locks.health()).failover?.state === "ready";
};

const LIMIT = { rates: [{ count: 5, perMs: 3_600_000, burst: 5 }] };

/** Returns the closing of what a test started, at its end. */
function closingOf({ onTestFinished }: TestContext): Closing {
  const closes: (() => Promise<unknown>)[] = [];
  onTestFinished(async () => {
    for (const close of closes.reverse()) await close();
  });
  return (close) => void closes.push(close);
}

const WORLDS: readonly [what: string, start: (closing: Closing) => Promise<World>][] = [
  ["two services, of which the first", (closing) => services(false, closing)],
  ["two services, of which the first one's table", (closing) => services(true, closing)],
  ["a table in two Regions, of which the first", regions],
];
const STATES: readonly PlugState[] = ["refuses", "errors", "silent"];

// They mostly wait.
describe.concurrent.each(WORLDS)("%s", (_what, start) => {
  describe.each(STATES.map((state) => [state] as const))("%s", (state) => {
    it("keeps lease, place, run and limit at the second, and serves who begins", async (context) => {
      const { expect } = context;
      const world = await start(closingOf(context));
      const events: LockClientEvent[] = [];
      const clients = Array.from({ length: 4 }, () => world.client([0, 1], (event) => void events.push(event)));
      const [holder, waiter, runner, taker] = clients as [LockClient, LockClient, LockClient, LockClient];
      const other = world.client([1]);
      for (const locks of clients) await until(() => isReady(locks));
      expect((await holder.health()).door).toBe(world.doors[0]);

      const lease = await holder.acquire("key", { leaseMs: LEASE_MS });
      const order: string[] = [];
      const queued = (locks: LockClient, name: string): Promise<void> =>
        locks.withLock("key", { leaseMs: LEASE_MS, waitMs: WAIT_MS }, () => void order.push(name));
      const inQueue = (count: number) => async () => (await other.inspect("key")).waiters.length === count;
      const first = queued(waiter, "first");
      await until(inQueue(1));
      const later = queued(other, "later");
      await until(inQueue(2));
      let finish: (value: string) => void = () => undefined;
      const works: number[] = [];
      const running = runner.runOnce("run", { leaseMs: LEASE_MS }, ({ fencingToken }) => {
        works.push(fencingToken);
        return new Promise<string>((resolve) => (finish = resolve));
      });
      await until(async () => works.length === 1);
      for (let takes = 0; takes < 2; takes++) await taker.limiter("limit", LIMIT).take();
      const before = await holder.withLock("token", (one) => one.fencingToken);

      await world.fail(state);
      const born = world.client([0, 1]);
      const token = await born.withLock("token", { waitMs: WAIT_MS }, (one) => one.fencingToken);
      expect(token).toBeGreaterThan(before);
      await until(async () => (await born.withLock("token", () => undefined), (await born.health()).door === world.doors[1]));
      // The clocks of the two doors may be so far apart.
      const waitMs = CLOCKS_APART_MS;
      for (let more = 0; more < 3; more++) await taker.limiter("limit", LIMIT).take({ waitMs });
      await expect(taker.limiter("limit", LIMIT).take({ waitMs })).rejects.toMatchObject({ code: "rate-limited" });
      await pass(2 * LEASE_MS);
      finish("done");
      expect((await running).value).toBe("done");
      expect((await other.runOnce("run", () => "again")).value).toBe("done");
      expect(works).toHaveLength(1);

      expect([lease.isHeld(), order, await other.tryAcquire("key")]).toEqual([true, [], null]);
      expect(await lease.release()).toBe("released");
      await Promise.all([first, later]);
      expect(order).toEqual(["first", "later"]);
      expect(events.filter(({ type }) => type === "lost" || type === "failover-refused")).toEqual([]);
      for (const locks of clients) await until(async () => (await isReady(locks), (await locks.health()).door === world.doors[1]));
    });

    it("and must lose them with a client of the first alone", async (context) => {
      const { expect } = context;
      const world = await start(closingOf(context));
      const alone = world.client([0]);
      const lease = await alone.acquire("key", { leaseMs: LEASE_MS });
      await world.fail(state);
      await pass(LEASE_MS);
      expect(lease.isHeld()).toBe(false);
      await expect(alone.tryAcquire("other")).rejects.toMatchObject({ code: "unavailable" });
      const born = world.client([0]).acquire("born", { waitMs: 2000 });
      await expect(born).rejects.toMatchObject({ code: expect.stringMatching(/^(unavailable|not-configured)$/) });
    });
  });
});

describe("the Regions of a table", { concurrent: false }, () => {
  afterEach(() => void vi.unstubAllEnvs());

  it("are those of HOLDFAST_REGIONS, as the construct gives them to whom it grants the table", async ({ expect }) => {
    const { tableName, endpoint } = await freshTable();
    const { credentials } = engineLocation(endpoint);
    vi.stubEnv("HOLDFAST_REGIONS", REGIONS.join(","));
    vi.stubEnv("AWS_REGION", REGIONS[1]);
    const door = async (options: object): Promise<string | undefined> => {
      await using locks = createTableClient({ tableName, credentials, endpoint, ...options });
      await locks.withLocks(["a", "b"], () => undefined);
      return (await locks.health()).door;
    };
    expect([await door({}), await door({ region: REGIONS[0] })]).toEqual([REGIONS[1], undefined]);
  });
});
