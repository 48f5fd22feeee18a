/**
 * A process that holds many leases with heartbeats, and takes turns on other keys. It takes a lost key again at once.
 * On SIGUSR2 it reports its figures since the start. On SIGTERM it releases everything.
 */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { engineLocation } from "../../infra/local/engine-client.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type Lease, type LockClient, createLockClient } from "../../lib/index.js";
import "../support/end-with-parent.js";

/** The holder's instructions. */
export interface HolderOrder {
  readonly name: string;
  /** The address of the locks: a service, or a table. */
  readonly locks: { readonly url: string } | { readonly endpoint: string; readonly tableName: string };
  readonly leases: number;
  readonly contenders: number;
  readonly leaseMs: number;
  /** False: the control, whose leases run out. */
  readonly heartbeat: boolean;
}

/** A lease that was lost: the times, by the machine's monotonic clock in ms. */
export interface Loss {
  readonly key: string;
  readonly toldAtMs: number;
  /** The last timer turn of the process before that. A process that has no turn can't be told. */
  readonly turnBeforeMs: number;
}

/** The figures of a holder. */
export interface Figures {
  /** The leases that are held now. */
  readonly held: number;
  /** All leases that were lost since the start. */
  readonly losses: readonly Loss[];
  /** The times of the contenders' acquires since the report before, in ms. */
  readonly acquiresMs: readonly number[];
  /** The acquires of contenders that failed, since the start, by code. */
  readonly failed: Readonly<Record<string, number>>;
  /** Resident memory, and heap in use after a collection, in bytes. */
  readonly rssBytes: number;
  readonly heapBytes: number;
}

/** The interval of timer turns that are recorded, in ms. */
const TURN_MS = 20;
/** Contenders for one key. */
const PER_KEY = 5;
/** The longest pause of a contender between two turns, in ms. */
const PAUSE_MS = 4000;
/** The acquires in flight while the leases are taken. */
const IN_FLIGHT = 32;
const FOREVER_MS = 2 ** 31;

const order = JSON.parse(process.argv[2] ?? "") as HolderOrder;
const held = new Map<string, Lease>();
const losses: Loss[] = [];
const failed: Record<string, number> = {};
let acquiresMs: number[] = [];
let reports = 0;
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
let isEnding = false;
let turnMs = monotonicMs();
setInterval(() => (turnMs = monotonicMs()), TURN_MS);
const locks = open();

process.on("SIGUSR2", () => {
  collect();
  const { rss, heapUsed } = process.memoryUsage();
  const held = countHeld();
  tell(`report ${++reports}`, { held, losses, acquiresMs, failed, rssBytes: rss, heapBytes: heapUsed } satisfies Figures);
  acquiresMs = [];
});
process.once("SIGTERM", () => {
  isEnding = true;
  void locks.close().then(() => process.exit());
});

let next = 0;
const fly = async (): Promise<void> => {
  for (let number = next++; number < order.leases; number = next++) await hold(`${order.name}-${number}`);
};
await Promise.all(Array.from({ length: IN_FLIGHT }, fly));
for (let number = 0; number < order.contenders; number++) void contend(`turns-${order.name}-${Math.floor(number / PER_KEY)}`);
tell("holding", { held: countHeld() });

function open(): LockClient {
  if ("url" in order.locks) return createLockClient({ url: order.locks.url, owner: order.name });
  const { endpoint, tableName } = order.locks;
  return createTableClient({ ...engineLocation(endpoint), tableName, owner: order.name });
}

/** Takes a key and keeps it. A lost one is taken again. */
async function hold(key: string): Promise<void> {
  const lease = await acquire(key);
  if (!lease) return;
  held.set(key, lease);
  lease.signal.addEventListener("abort", () => {
    if (isEnding) return;
    held.delete(key);
    losses.push({ key, toldAtMs: monotonicMs(), turnBeforeMs: turnMs });
    void hold(key);
  });
}

/** Acquires a key, however long the service is away. */
async function acquire(key: string): Promise<Lease | undefined> {
  while (!isEnding) {
    try {
      return await locks.acquire(key, { leaseMs: order.leaseMs, waitMs: FOREVER_MS, heartbeat: order.heartbeat });
    } catch (error) {
      note(error);
    }
  }
  return undefined;
}

async function contend(key: string): Promise<void> {
  while (!isEnding) {
    await delay(Math.random() * PAUSE_MS);
    const beganMs = performance.now();
    try {
      const lease = await locks.acquire(key, { leaseMs: order.leaseMs });
      acquiresMs.push(performance.now() - beganMs);
      await lease.release();
    } catch (error) {
      note(error);
    }
  }
}

function note(error: unknown): void {
  const { code } = error as { readonly code?: string };
  failed[code ?? String(error)] = (failed[code ?? String(error)] ?? 0) + 1;
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

function countHeld(): number {
  return [...held.values()].filter((lease) => lease.isHeld()).length;
}

/** Writes in pieces, because a pipe has a limited buffer. */
function tell(event: string, members: object): void {
  const line = Buffer.from(`${JSON.stringify({ event, ...members })}\n`);
  for (let sent = 0; sent < line.length;) {
    try {
      sent += writeSync(1, line, sent);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}
