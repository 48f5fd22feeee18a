/**
 * The service dies, or falls silent, under load while its clients hold 200 leases: of locks, of permits and of sets. It is a real process
 * on a real engine, and time is real. The clients go on straight on the table: no lease is lost, no key is held twice, no run is done twice,
 * every acquire and every wait for a condition is answered. Later a new service starts, and the clients return to it by hand.
 */
import { afterAll, describe, expect, it } from "vitest";
import type { ServiceOrder } from "../../chaos/service.js";
import type { Lease, LeaseSet, LockClient } from "../../../lib/index.js";
import { createLockClient } from "../../../lib/dynamodb.js";
import type { LockClientEvent } from "../../../lib/index.js";
import { type Child, startChild } from "../../support/child.js";
import { type FreshTable, freshTable } from "../../support/engine.js";

const LEASES = 200;
const LEASE_MS = 12_000;
const WORKERS = 10;
const KEYS = 5;
/** The pause of a worker between two tasks: the test measures no throughput. */
const BREATH_MS = 50;
const WAIT_MS = 60_000;
/** Long enough that every lease would have ended without a renewal. */
const OUTAGE_MS = 2 * LEASE_MS;

const children: Child[] = [];
afterAll(async () => {
  await Promise.all(children.map((child) => child.kill()));
});

/** A service process on a table of its own. The next process has the same address. */
interface Deployment {
  readonly url: string;
  readonly process: Child;
  /** The options of a client on the table. */
  readonly place: FreshTable["place"];
  restart(): Promise<void>;
}

async function deployed(): Promise<Deployment> {
  const { tableName, endpoint, place } = await freshTable();
  const start = async (port?: number): Promise<readonly [Child, string]> => {
    const machineStartMs = Date.now() - Number(process.hrtime.bigint()) / 1e6;
    const order: ServiceOrder = { endpoint, tableName, machineStartMs, ...(port !== undefined && { port }) };
    const child = startChild("../../chaos/service.ts", import.meta.url, order);
    children.push(child);
    return [child, (await child.reported("ready"))["url"] as string];
  };
  let [child, url] = await start();
  return {
    url,
    place,
    get process() {
      return child;
    },
    async restart() {
      [child, url] = await start(Number(new URL(url).port));
    },
  };
}

/** Acquires leases of each kind by turns, a few at a time. */
async function held(clients: readonly LockClient[]): Promise<readonly (Lease | LeaseSet)[]> {
  const acquire = (locks: LockClient, index: number): Promise<Lease | LeaseSet> => {
    const [key, options] = [`held:${index}`, { leaseMs: LEASE_MS }];
    if (index % 4 === 0) return locks.acquireAll([key, `${key}:too`], options);
    return locks.acquire(key, index % 4 === 1 ? { ...options, limit: 2, permits: 2 } : options);
  };
  const leases: (Lease | LeaseSet)[] = [];
  while (leases.length < LEASES) leases.push(...(await Promise.all(clients.map((locks, at) => acquire(locks, leases.length + at)))));
  return leases;
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Work on a few keys that never stops: what was done twice at once, and what the acquires came to. */
interface Load {
  readonly doubles: string[];
  readonly failures: unknown[];
  /** The number of tasks done, of each kind. */
  readonly done: number[];
  stop(): Promise<void>;
}

/** Starts workers. Every kind of task has as many. */
// Over 60 lines: the kinds of tasks share what they count.
function load(clients: readonly LockClient[]): Load {
  const inside = new Map<string, number>();
  let isOver = false;
  /** Is in the section of `key` for a moment, together with fewer than `most` others. */
  const enter = async (key: string, most = 1): Promise<void> => {
    inside.set(key, (inside.get(key) ?? 0) + 1);
    if (inside.get(key)! > most) report.doubles.push(key);
    await new Promise((resolve) => setImmediate(resolve));
    inside.set(key, inside.get(key)! - 1);
  };
  const options = { leaseMs: LEASE_MS, waitMs: WAIT_MS };
  const ran = new Set<string>();
  const tasks: readonly ((locks: LockClient, turn: number) => Promise<unknown>)[] = [
    (locks, turn) => locks.withLock(`busy:${turn % KEYS}`, options, () => enter(`busy:${turn % KEYS}`)),
    (locks, turn) => {
      const keys = [`busy:${turn % KEYS}`, `busy:${(turn + 1) % KEYS}`];
      return locks.withLocks(keys, options, () => Promise.all(keys.map((key) => enter(key))));
    },
    (locks, turn) =>
      locks.runOnce(`run:${turn}`, options, async ({ takeover }) => {
        if (ran.has(`run:${turn}`) && !takeover) report.doubles.push(`run:${turn}`);
        ran.add(`run:${turn}`);
        await pass(BREATH_MS);
      }),
    (locks) => locks.withLock("permits", { ...options, limit: 2 }, () => enter("permits", 2)),
    (locks) =>
      locks.withLock("waited-for", options, async (lease) => {
        await lease.wait("ready", { waitMs: WAIT_MS });
        await enter("waited-for");
      }),
  ];
  const report: Load = {
    doubles: [],
    failures: [],
    done: tasks.map(() => 0),
    stop: async () => ((isOver = true), void (await all)),
  };
  const work = async (index: number): Promise<void> => {
    const kind = index % tasks.length;
    for (let turn = 0; !isOver; turn++) {
      try {
        await tasks[kind]!(clients[index % clients.length]!, turn);
        report.done[kind]! += 1;
        await pass(BREATH_MS);
      } catch (error) {
        report.failures.push(error);
      }
    }
  };
  let working = 0;
  const worker = async (index: number): Promise<void> => {
    working++;
    await work(index);
    working--;
  };
  const all = Promise.all([...Array.from({ length: WORKERS }, (_, index) => worker(index)), notifying()]);
  return report;

  /** Wakes the waiters until all work has ended, so that none is left waiting. */
  async function notifying(): Promise<void> {
    while (working > 0) {
      await clients[0]!
        .withLock("waited-for", options, (lease) => lease.notify("ready"))
        .catch((error: unknown) => report.failures.push(error));
      await pass(BREATH_MS);
    }
  }
}

describe.each([
  ["dies", "SIGKILL"],
  ["is silent", "SIGSTOP"],
] as const)("200 leases under load, while their service %s", (_what, signal) => {
  it("are all held, none of them twice, and every acquire is answered; the clients return to a new service", async () => {
    const deployment = await deployed();
    const { place, url } = deployment;
    const events: LockClientEvent[] = [];
    const onEvent = (event: LockClientEvent): void => void events.push(event);
    const clients = [1, 2].map(() => createLockClient({ via: "auto", url, ...place, onEvent }));
    const leases = await held(clients);
    const busy = load(clients);
    await pass(1000);
    const doneBefore = [...busy.done];
    for (const locks of clients) expect((await locks.health()).failover?.state).toBe("ready");

    deployment.process.signal(signal);
    await pass(OUTAGE_MS);
    expect(events.filter(({ type }) => type === "failover")).toHaveLength(clients.length);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(leases.filter((lease) => !lease.isHeld())).toEqual([]);
    expect(busy.done.map((done, kind) => done > doneBefore[kind]!)).toEqual([true, true, true, true, true]);

    await deployment.process.kill();
    await deployment.restart();
    for (const locks of clients) await locks.use("auto");
    expect((await clients[0]!.health()).via).toBe("service");
    const rival = createLockClient({ ...place, owner: "rival" });
    for (const lease of leases) {
      const [key, options] = "key" in lease ? [lease.key, { limit: lease.permits }] : [lease.keys[0]!, {}];
      expect(await rival.tryAcquire(key, options)).toBeNull();
    }
    await pass(LEASE_MS);
    await busy.stop();
    expect([busy.doubles, busy.failures]).toEqual([[], []]);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(leases.filter((lease) => !lease.isHeld())).toEqual([]);
    await Promise.all([...clients, rival].map((locks) => locks.close()));
  });

  it("and must be lost by a client that has the service alone", async () => {
    const { place, url, process: service } = await deployed();
    const locks = createLockClient({ via: "service", url, ...place });
    const leases = await held([locks]);
    service.signal(signal);
    await pass(LEASE_MS);
    expect(leases.filter((lease) => lease.isHeld())).toEqual([]);
    await expect(locks.tryAcquire("k")).rejects.toMatchObject({ code: "unavailable" });
    await service.kill();
    await locks.close();
  });
});

describe("a client that only takes from limits, while its service is dead", () => {
  it("goes on straight on the table within the same limit, and returns; control: with the service alone it is refused", async () => {
    const deployment = await deployed();
    const { place, url } = deployment;
    const events: LockClientEvent[] = [];
    const [both, alone] = (["auto", "service"] as const).map((via) =>
      createLockClient({ via, url, ...place, onEvent: (event) => void events.push(event) }),
    ) as [LockClient, LockClient];
    const take = (locks: LockClient) => locks.limiter("partner", { rates: [{ count: 3, perMs: 3_600_000, burst: 3 }] }).take();
    expect((await take(both)).remaining).toEqual([2]);
    while ((await both.health()).failover?.state !== "ready") await pass(BREATH_MS);

    await deployment.process.kill();
    // One attempt failed, and was repeated on the table.
    expect((await take(both)).remaining).toEqual([1]);
    expect(events).toEqual([]);
    // It never had an answer, so its URL may be wrong.
    await expect(take(alone)).rejects.toMatchObject({ code: "not-configured" });

    await deployment.restart();
    await both.use("auto");
    expect((await take(both)).remaining).toEqual([0]);
    expect((await both.health()).via).toBe("service");
    await expect(take(alone)).rejects.toMatchObject({ code: "rate-limited" });
    await Promise.all([both.close(), alone.close()]);
  });
});
