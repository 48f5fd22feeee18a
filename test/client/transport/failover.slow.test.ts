/**
 * The service dies, or falls silent, under load while its clients hold 200 leases. It is a real process on a real engine, and time is real.
 * The clients go on straight on the table: no lease is lost, no key is held twice, every acquire is answered. Later a new service starts,
 * and the clients return to it by hand.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { afterAll, describe, expect, it } from "vitest";
import { engineClient } from "../../../infra/local/engine-client.js";
import type { ServiceOrder } from "../../chaos/service.js";
import type { Lease, LockClient } from "../../../lib/index.js";
import { createLockClient } from "../../../lib/dynamodb.js";
import type { LockClientEvent } from "../../../lib/index.js";
import { TABLE_CALLS } from "../../../lib/store/dynamo/table.js";
import type { Child } from "../../support/child.js";
import { startChild } from "../../support/child.js";
import { freshTable } from "../../support/engine.js";

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
  readonly client: DynamoDBClient;
  readonly tableName: string;
  restart(): Promise<void>;
}

async function deployed(): Promise<Deployment> {
  const { client: unused, tableName, endpoint } = await freshTable();
  unused.destroy();
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
    tableName,
    client: engineClient(endpoint, TABLE_CALLS),
    get process() {
      return child;
    },
    async restart() {
      [child, url] = await start(Number(new URL(url).port));
    },
  };
}

/** Acquires the leases, a few at a time. */
async function held(clients: readonly LockClient[]): Promise<readonly Lease[]> {
  const leases: Lease[] = [];
  while (leases.length < LEASES) {
    const some = clients.map((locks, index) => locks.acquire(`held:${leases.length + index}`, { leaseMs: LEASE_MS }));
    leases.push(...(await Promise.all(some)));
  }
  return leases;
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Work on a few keys that never stops: how many tasks are in each key's section, and what the acquires came to. */
interface Load {
  readonly doubles: string[];
  readonly failures: unknown[];
  done: number;
  stop(): Promise<void>;
}

function load(clients: readonly LockClient[]): Load {
  const inside = new Map<string, number>();
  let isOver = false;
  const report: Load = { doubles: [], failures: [], done: 0, stop: async () => ((isOver = true), void (await all)) };
  const work = async (index: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const key = `busy:${(index + turn) % KEYS}`;
      try {
        await clients[index % clients.length]!.withLock(key, { leaseMs: LEASE_MS, waitMs: WAIT_MS }, async () => {
          const count = (inside.get(key) ?? 0) + 1;
          inside.set(key, count);
          if (count > 1) report.doubles.push(key);
          await new Promise((resolve) => setImmediate(resolve));
          inside.set(key, count - 1);
        });
        report.done++;
        await pass(BREATH_MS);
      } catch (error) {
        report.failures.push(error);
      }
    }
  };
  const all = Promise.all(Array.from({ length: WORKERS }, (_, index) => work(index)));
  return report;
}

describe.each([
  ["dies", "SIGKILL"],
  ["is silent", "SIGSTOP"],
] as const)("200 leases under load, while their service %s", (_what, signal) => {
  it("are all held, none of them twice, and every acquire is answered; the clients return to a new service", async () => {
    const deployment = await deployed();
    const { client, tableName, url } = deployment;
    const events: LockClientEvent[] = [];
    const onEvent = (event: LockClientEvent): void => void events.push(event);
    const clients = [1, 2].map(() => createLockClient({ via: "auto", url, client, tableName, onEvent }));
    const leases = await held(clients);
    const busy = load(clients);
    await pass(1000);
    const doneBefore = busy.done;
    for (const locks of clients) expect((await locks.health()).failover?.state).toBe("ready");

    deployment.process.signal(signal);
    await pass(OUTAGE_MS);
    expect(events.filter(({ type }) => type === "failover")).toHaveLength(clients.length);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(leases.filter((lease) => !lease.isHeld())).toEqual([]);
    expect(busy.done).toBeGreaterThan(doneBefore);

    await deployment.process.kill();
    await deployment.restart();
    for (const locks of clients) await locks.use("auto");
    expect((await clients[0]!.health()).via).toBe("service");
    const rival = createLockClient({ client, tableName, owner: "rival" });
    for (const { key } of leases) expect(await rival.tryAcquire(key)).toBeNull();
    await pass(LEASE_MS);
    await busy.stop();
    expect([busy.doubles, busy.failures]).toEqual([[], []]);
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
    expect(leases.filter((lease) => !lease.isHeld())).toEqual([]);
    await Promise.all([...clients, rival].map((locks) => locks.close()));
    client.destroy();
  }, 180_000);

  it("and must be lost by a client that has the service alone", async () => {
    const { client, tableName, url, process: service } = await deployed();
    const locks = createLockClient({ via: "service", url, client, tableName });
    const leases = await held([locks]);
    service.signal(signal);
    await pass(LEASE_MS);
    expect(leases.filter((lease) => lease.isHeld())).toEqual([]);
    await expect(locks.tryAcquire("k")).rejects.toMatchObject({ code: "unavailable" });
    await service.kill();
    await locks.close();
    client.destroy();
  }, 120_000);
});
