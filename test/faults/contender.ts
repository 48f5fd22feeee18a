/** A process that wants one key again and again, straight on the table, and tells when it asked, queued, had it and let it go. */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createLockClient } from "../../lib/dynamodb.js";

/** The contender's instructions. It finds the table in its environment. */
export interface ContenderOrder {
  readonly key: string;
  /** Clients that know nothing of each other, each with a place of its own in the queue. */
  readonly clients: number;
  /** Callers of each client, who stand in one line. */
  readonly callers: number;
  /** The number of times that each caller acquires the key. */
  readonly rounds: number;
  /** The length of each hold. */
  readonly workMs: number;
  readonly leaseMs: number;
  readonly waitMs: number;
  /** When all begin, by the machine's clock. */
  readonly startAtMs: number;
}

/** One hold, by the machine's clock, which all contenders share. */
export interface Hold {
  readonly fencingToken: number;
  readonly askedAtMs: number;
  readonly grantedAtMs: number;
  readonly releasedAtMs: number;
  /** When the answer said that it was in the queue; absent where it never was, or where callers stand in line. */
  readonly queuedAtMs?: number;
}

const order = JSON.parse(process.argv[2] ?? "") as ContenderOrder;
const { key, rounds, workMs, leaseMs, waitMs } = order;
const holds: Hold[] = [];
const failed: string[] = [];
const lines: (readonly [event: string, fencingToken: number])[] = [];
let queued = 0;

function now(): number {
  return performance.timeOrigin + performance.now();
}

/** A pipe takes only so much at once. */
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

/** A client, connected and with a clock that it knows. */
async function contender() {
  let queuing: Pick<Hold, "queuedAtMs"> = {};
  const locks = createLockClient({
    log: ({ event, id, fencingToken }) => {
      if (!key.endsWith(id)) return;
      if (fencingToken !== undefined) lines.push([event, fencingToken]);
      if (event !== "queued") return;
      if (order.callers === 1) queuing = { queuedAtMs: now() };
      if (++queued === order.clients) tell({ event: "all queued" });
    },
  });
  await (await locks.tryAcquire(`warm:${process.pid}:${Math.random()}`))?.release();

  async function call(): Promise<void> {
    for (let round = 0; round < rounds; round++) {
      const askedAtMs = now();
      queuing = {};
      try {
        const lease = await locks.acquire(key, { leaseMs, waitMs });
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
tell({ event: "done", holds, failed, lines });
