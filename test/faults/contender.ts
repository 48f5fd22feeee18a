/**
 * A process that wants one key repeatedly, directly on the table, and reports the times of its request, its place in
 * the queue, its grant and its release.
 */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createLockClient } from "../../lib/dynamodb.js";

/** The contender's instructions. It finds the table in its environment. */
export interface ContenderOrder {
  readonly key: string;
  /** Independent clients, each with its own place in the queue. */
  readonly clients: number;
  /** The callers of each client, who share its local queue. */
  readonly callers: number;
  /** The number of times that each caller acquires the key. */
  readonly rounds: number;
  /** The length of each hold. */
  readonly workMs: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  /** The name under which its leases are in the log. */
  readonly owner?: string;
  /** The time at which all start, by the machine's clock. */
  readonly startAtMs: number;
}

/** One hold, by the machine's clock, which all contenders share. */
export interface Hold {
  readonly fencingToken: number;
  readonly askedAtMs: number;
  readonly grantedAtMs: number;
  readonly releasedAtMs: number;
  /** The time of the answer that put it into the queue. Absent if it never was in the queue, or if callers share a local queue. */
  readonly queuedAtMs?: number;
}

const order = JSON.parse(process.argv[2] ?? "") as ContenderOrder;
const { key, rounds, workMs, leaseMs, waitMs, owner = "" } = order;
const holds: Hold[] = [];
const failed: string[] = [];
const lines: (readonly [event: string, fencingToken: number])[] = [];
/** The owners of the waiters to whom the key was offered, as far as this process offered it. */
const offeredTo: string[] = [];
let queued = 0;

function now(): number {
  return performance.timeOrigin + performance.now();
}

/** Writes in pieces, because a pipe has a limited buffer. */
function tell(report: object): void {
  const line = Buffer.from(`${JSON.stringify(report)}\n`);
  for (let sent = 0; sent < line.length;) {
    try {
      sent += writeSync(1, line, sent);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
}

/** Creates a client that is connected and knows the table's clock. */
async function contender() {
  let queuing: Pick<Hold, "queuedAtMs"> = {};
  const locks = createLockClient({
    log: ({ event, id, fencingToken, owner: whose }) => {
      if (!key.endsWith(id)) return;
      if (event === "offered") offeredTo.push(whose ?? "");
      if (fencingToken !== undefined) lines.push([event, fencingToken]);
      if (event !== "queued") return;
      if (order.callers === 1) queuing = { queuedAtMs: now() };
      if (++queued === order.clients) tell({ event: "all queued" });
    },
  });
  // Patient, since many processes start at the same time.
  await (await locks.acquire(`warm:${process.pid}:${Math.random()}`, { waitMs })).release();

  async function call(): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const askedAtMs = now();
      queuing = {};
      try {
        const lease = await locks.acquire(key, { leaseMs, waitMs, owner });
        const grantedAtMs = now();
        if (workMs > 0) await delay(workMs);
        lease.assertHeld();
        holds.push({ fencingToken: lease.fencingToken, askedAtMs, grantedAtMs, releasedAtMs: now(), ...queuing });
        await lease.release();
      } catch (error) {
        failed.push((error as { readonly code?: string }).code ?? String(error));
      }
    }
  }
  return {
    contend: () => Promise.all(Array.from({ length: order.callers }, call)),
    close: () => locks.close(),
  };
}

const contenders = await Promise.all(Array.from({ length: order.clients }, contender));
tell({ event: "ready" });
await delay(Math.max(0, order.startAtMs - now()));
await Promise.all(contenders.map(({ contend }) => contend()));
await Promise.all(contenders.map(({ close }) => close()));
tell({ event: "done", holds, failed, lines, offeredTo });
