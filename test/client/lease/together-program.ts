/** A program that holds leases with batched heartbeats and does nothing else. The tests check what keeps it alive. */
import { writeSync } from "node:fs";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { createLockClient } from "../../../lib/index.js";

/** The program's instructions. It finds the service or the table in its environment. */
export interface TogetherOrder {
  readonly reaches: "service" | "table";
  readonly keys: readonly string[];
  /** True if it stays until every lease was renewed at least twice. */
  readonly staysForBeats: boolean;
}

/** Long enough for a loaded machine to acquire all of them before the first expires. */
const LEASE_MS = 6000;
const LOOK_MS = 20;
const MOST_LOOKS = 1500;

const { reaches, keys, staysForBeats } = JSON.parse(process.argv[2] ?? "") as TogetherOrder;
const locks = reaches === "service" ? createLockClient() : createTableClient();
const report = (event: string, more: object): void => void writeSync(1, `${JSON.stringify({ event, ...more })}\n`);

const leases = await Promise.all(keys.map((key) => locks.acquire(key, { leaseMs: LEASE_MS })));
const areHeld = (): boolean => leases.every((lease) => lease.isHeld());
report("acquired", { held: areHeld() });

if (staysForBeats) {
  const beats = leases.map((lease) => ({ lease, lastMs: lease.remainingMs(), count: 0 }));
  let looks = 0;
  const watch = setInterval(() => {
    for (const beat of beats) {
      const nowMs = beat.lease.remainingMs();
      if (nowMs > beat.lastMs) beat.count++;
      beat.lastMs = nowMs;
    }
    if (++looks < MOST_LOOKS && beats.some(({ count }) => count < 2)) return;
    clearInterval(watch);
    report("renewed", { held: areHeld(), least: Math.min(...beats.map(({ count }) => count)) });
  }, LOOK_MS);
}
