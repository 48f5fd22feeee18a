/**
 * The process of the benchmark "leases": it holds leases in the way that its first argument names, or does cycles, and
 * prints what it took as JSON. It needs `--expose-gc`.
 */
import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { randomUUID } from "node:crypto";
import { setImmediate as nextTurn, setTimeout as delay } from "node:timers/promises";
import { engineClient, engineLocation } from "../../infra/local/engine-client.js";
import { createClient } from "../../lib/client/client.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { systemRuntime } from "../../lib/client/runtime.js";
import type { AcquireRequest } from "../../lib/core/api/locks.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import type { Held } from "../../lib/core/commands.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { type Clock, type Timer, systemClock } from "../../lib/core/time.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { createLockClient as createHttpClient } from "../../lib/index.js";
import { BASE_ID, LOCKS_TABLE, PLAIN_TABLE } from "./arena.js";
import type { Hold } from "./leases.js";
import { acquisition, renewal } from "./plain-lock.js";

const IN_FLIGHT = 64;
/** The time limit for getting the leases. */
const GETTING_MS = 12_000;
/** The time that is measured, in intervals of heartbeats. */
const MEASURED_BEATS = 1.1;

const [, , way = "", address = "", countText = "", leaseText = ""] = process.argv;
const count = Number(countText);
const leaseMs = Number(leaseText);
/** The interval of heartbeats: a third of the lease. */
const everyMs = leaseMs / 3;

/** A way to hold a key with heartbeats. */
interface Way {
  /** Takes the key and returns true as long as it is held. */
  readonly hold: (key: string) => Promise<() => boolean>;
  /** The number of timers that are set; undefined if it is not counted. */
  readonly timers?: () => number;
  readonly end: () => Promise<void> | void;
}

async function measure({ hold, timers, end }: Way): Promise<Hold> {
  const heapBefore = await heapBytes();
  const holds: (() => boolean)[] = [];
  let next = 0;
  const beganMs = performance.now();
  const fly = async (): Promise<void> => {
    for (let order = next++; order < count && performance.now() - beganMs < GETTING_MS; order = next++)
      holds.push(await hold(`${way}-${order}`));
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, fly));
  const gotMs = performance.now() - beganMs;
  const before = process.cpuUsage();
  const fromMs = performance.now();
  // Each sends a heartbeat meanwhile, so that the heap has what a heartbeat leaves behind.
  await delay(MEASURED_BEATS * everyMs);
  const { user, system } = process.cpuUsage(before);
  const cpuShare = (user + system) / 1000 / (performance.now() - fromMs);
  const timersSet = timers?.();
  const bytesEach = ((await heapBytes()) - heapBefore) / holds.length;
  const held = holds.filter((isHeld) => isHeld()).length;
  await end();
  return { gotMs, got: holds.length, cpuShare, timersSet, bytesEach, held };
}

/** Returns the CPU of an acquire and a release with a service that answers at once, in µs. */
async function cycleMicros(): Promise<number> {
  const locks = createClient(systemRuntime(serviceThatAgrees()));
  const cycles = async (): Promise<void> => {
    for (let cycle = 0; cycle < count; cycle++) await (await locks.acquire(`ORDER_${cycle}`)).release();
  };
  await cycles();
  const before = process.cpuUsage();
  await cycles();
  const { user, system } = process.cpuUsage(before);
  await locks.close();
  return (user + system) / count;
}

/** One conditional update for each lease, and one for each of its heartbeats. */
function bareSdk(endpoint: string): Way {
  const client = engineClient(endpoint);
  const timers = new Set<NodeJS.Timeout>();
  return {
    async hold(key) {
      const lock = { tableName: PLAIN_TABLE, key, owner: randomUUID() };
      await client.send(new UpdateItemCommand(acquisition(lock, systemClock.wallMs())));
      let heldUntilMs = performance.now() + leaseMs;
      const beat = async (): Promise<void> => {
        const sentMs = performance.now();
        await client.send(new UpdateItemCommand(renewal(lock, systemClock.wallMs())));
        heldUntilMs = sentMs + leaseMs;
      };
      timers.add(setInterval(() => void beat().catch(() => undefined), everyMs).unref());
      return () => performance.now() < heldUntilMs;
    },
    timers: () => timers.size,
    end() {
      for (const timer of timers) clearInterval(timer);
      client.destroy();
    },
  };
}

function locksBy(locks: LockClient): Way {
  const hold = async (key: string): Promise<() => boolean> => {
    const lease = await locks.acquire(key, { leaseMs });
    return () => lease.isHeld();
  };
  return { hold, end: () => locks.close() };
}

/** The client with a service that answers at once, on a clock that counts timers. */
function ownCost(): Way {
  const pending = new Set<Timer>();
  const counted =
    (set: Clock["after"]): Clock["after"] =>
    (delayMs, task) => {
      const timer = set(delayMs, () => {
        pending.delete(timer);
        task();
      });
      pending.add(timer);
      return {
        cancel() {
          pending.delete(timer);
          timer.cancel();
        },
      };
    };
  const clock = { ...systemClock, after: counted(systemClock.after), inBackground: counted(systemClock.inBackground) };
  const locks = createClient(systemRuntime(serviceThatAgrees(), clock));
  return { ...locksBy(locks), timers: () => pending.size };
}

/** A service that grants, renews and releases whatever it is asked. */
function serviceThatAgrees(): ServiceApi {
  const held = ({ key, leaseId, leaseMs: asked = leaseMs, owner = "" }: AcquireRequest): Held => ({
    ok: true,
    how: "granted",
    lease: {
      key,
      leaseId,
      owner,
      mode: "exclusive",
      permits: 1,
      holdCount: 1,
      fencingToken: 1,
      leaseMs: asked,
      remainingMs: asked,
      renewAfterMs: renewAfterMs(asked),
      version: 1,
      serverTimeMs: systemClock.wallMs(),
    },
  });
  const api: Pick<ServiceApi, "acquire" | "renew" | "renewMany" | "release"> = {
    acquire: async (request) => held(request),
    renew: async (request) => held(request),
    renewMany: async ({ leases }) => ({ ok: true, results: leases.map(held) }),
    release: async () => ({ ok: true, state: "released" }),
  };
  return api as ServiceApi;
}

/** The bytes in use after a full garbage collection: the process runs with `--expose-gc`. */
async function heapBytes(): Promise<number> {
  for (let turn = 0; turn < 5; turn++) {
    globalThis.gc?.();
    await nextTurn();
  }
  return process.memoryUsage().heapUsed;
}

const WAYS: Readonly<Record<string, (address: string) => Way>> = {
  [BASE_ID]: bareSdk,
  alone: ownCost,
  table: (endpoint) => locksBy(createTableClient({ tableName: LOCKS_TABLE, ...engineLocation(endpoint) })),
  service: (url) => locksBy(createHttpClient({ url })),
};

const measured = way === "cycle" ? cycleMicros() : measure(WAYS[way]!(address));
void measured.then((figures) => {
  console.log(JSON.stringify(figures));
  process.exit();
});
