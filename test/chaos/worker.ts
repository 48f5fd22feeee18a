/**
 * A process that takes locks and does guarded work: it reads a counter, and writes it one higher. Each line of its
 * history has the time of the machine's monotonic clock, which all processes share, and says if the hold was still
 * treated as held then. Lines are written synchronously, because the process may be killed right after.
 */
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { engineLocation } from "../../infra/local/engine-client.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { Random } from "../simulation/random.js";
import "../support/end-with-parent.js";
import type { CommonOrder } from "./arena.js";
import type { Access } from "./resource.js";

/** The worker's instructions. */
export interface WorkerOrder extends CommonOrder {
  readonly keys: readonly string[];
  /** False: it goes in without a lock. */
  readonly takesLock: boolean;
}

/** A line of a history. */
export interface Line {
  /** The time, in µs of the monotonic clock. */
  readonly at: number;
  readonly event: "granted" | "writing" | "wrote" | "refused" | "unknown" | "ended" | "lost" | "failed";
  readonly hold: string;
  readonly key: string;
  readonly isHeld: boolean;
  readonly token?: number;
  /** The value that is being written. */
  readonly value?: number;
  /** The code of an error. */
  readonly code?: string;
}

/** A hold on one key or two, with or without a lock. */
interface Hold {
  readonly tokens: Readonly<Record<string, number | undefined>>;
  isHeld(): boolean;
  release(): Promise<unknown>;
}

/** Callers of one process wait for each other, so that keys pass by handoff too. */
const CALLERS = 2;
const LEASE_MS = [1000, 2500] as const;
const WAIT_MS = 5000;
const RESOURCE_MS = 1500;

const order = JSON.parse(process.argv[2] ?? "") as WorkerOrder;
const random = new Random(order.seed);
const file = openSync(order.history, "a");
let isEnding = false;
let holds = 0;
process.once("SIGTERM", () => (isEnding = true));

const locks = open();
await Promise.all(Array.from({ length: CALLERS }, call));
await locks.close();

function open(): LockClient {
  const owner = order.name;
  if ("url" in order.locks) {
    const { url, other } = order.locks;
    return createLockClient({ url: other === undefined ? url : [url, other], owner });
  }
  const { endpoint, tableName } = order.locks;
  return createTableClient({ ...engineLocation(endpoint), tableName, owner });
}

async function call(): Promise<void> {
  while (!isEnding) {
    const name = `${order.name}-${++holds}`;
    const first = random.pick(order.keys);
    const second = random.pick(order.keys);
    // One hold in sixteen is a set, whose keys are granted in one transaction.
    const keys = random.chance(1 / 16) && second !== first ? [first, second] : [first];
    const hold = await take(name, keys);
    if (!hold) continue;
    for (const key of keys) await work(name, key, hold);
    await hold.release().catch((error: unknown) => tell("failed", name, first, hold, { code: codeOf(error) }));
    await delay(random.whole(0, 20));
  }
}

async function take(name: string, keys: readonly string[]): Promise<Hold | undefined> {
  const [key = ""] = keys;
  // One lease in eight has no heartbeats.
  const options = { leaseMs: random.whole(...LEASE_MS), waitMs: WAIT_MS, heartbeat: !random.chance(1 / 8) };
  const none = { tokens: {}, isHeld: () => true, release: () => Promise.resolve() };
  try {
    const lock = async (): Promise<Hold> => lockOf(await locks.acquire(key, options));
    const set = async (): Promise<Hold> => setOf(await locks.acquireAll(keys, options));
    const hold = await (!order.takesLock ? none : keys.length > 1 ? set() : lock());
    for (const one of keys) tell("granted", name, one, hold);
    return hold;
  } catch (error) {
    tell("failed", name, key, { tokens: {}, isHeld: () => false }, { code: codeOf(error) });
    return undefined;
  }
}

function lockOf(lease: Awaited<ReturnType<LockClient["acquire"]>>): Hold {
  return { tokens: { [lease.key]: lease.fencingToken }, isHeld: () => lease.isHeld(), release: () => lease.release() };
}

function setOf(set: Awaited<ReturnType<LockClient["acquireAll"]>>): Hold {
  return { tokens: set.fencingTokens, isHeld: () => set.isHeld(), release: () => set.release() };
}

async function work(name: string, key: string, hold: Hold): Promise<void> {
  const access = { key, hold: name, ...(hold.tokens[key] !== undefined && { token: hold.tokens[key] }) };
  const count = await send(access);
  // Mostly short work, and some that is longer than a lease.
  await delay(random.chance(1 / 40) ? random.whole(0, 4000) : random.whole(0, 15));
  if (typeof count !== "number" || !hold.isHeld()) {
    tell(hold.isHeld() ? "ended" : "lost", name, key, hold);
    return;
  }
  tell("writing", name, key, hold, { value: count + 1 });
  const written = await send({ ...access, value: count + 1 });
  tell(typeof written === "number" ? "wrote" : written, name, key, hold, { value: count + 1 });
}

/** Sends a request to the resource, once. Returns the count, or says that it was refused or that the outcome is unknown. */
async function send(access: Access): Promise<number | "refused" | "unknown"> {
  try {
    const response = await fetch(order.resource, {
      method: "POST",
      body: JSON.stringify(access),
      signal: AbortSignal.timeout(RESOURCE_MS),
    });
    if (response.status === 409) return "refused";
    return response.status === 200 ? ((await response.json()) as { count: number }).count : "unknown";
  } catch {
    return "unknown";
  }
}

/** Writes a line. The time is read first: whoever still holds at the later reading of `isHeld` held at that time too. */
function tell(event: Line["event"], hold: string, key: string, held: Pick<Hold, "isHeld" | "tokens">, more: Partial<Line> = {}): void {
  const at = Number(process.hrtime.bigint() / 1000n);
  const token = held.tokens[key];
  const line: Line = { at, event, hold, key, isHeld: held.isHeld(), ...(token !== undefined && { token }), ...more };
  writeSync(file, `${JSON.stringify(line)}\n`);
}

function codeOf(error: unknown): string {
  return (error as { readonly code?: string }).code ?? String(error);
}
