/** A program that uses a lock and does nothing else. The tests check what keeps it alive. */
import { writeSync } from "node:fs";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";

/** The program's instructions. It finds the service or the table in its environment. */
export interface ProgramOrder {
  readonly reaches: "service" | "table";
  /** `holds` a lease and forgets it; `waits` for a lease that another process holds; `serves` under a lease until a signal. */
  readonly does: "holds" | "waits" | "serves";
  /** The client's option. */
  readonly closeOnSigterm?: boolean;
  /** True if it has two more clients, which hold nothing and so close at once. */
  readonly hasIdleClients?: boolean;
  /** If set, the program has its own listener, which exits with this status half a second after the signal. */
  readonly ownStatus?: number;
  readonly key: string;
}

const { reaches, does, key, closeOnSigterm, hasIdleClients, ownStatus } = JSON.parse(process.argv[2] ?? "") as ProgramOrder;
const create = (): LockClient => (reaches === "service" ? createLockClient({ closeOnSigterm }) : createTableClient({ closeOnSigterm }));
if (hasIdleClients) create();
const locks = create();
if (hasIdleClients) create();
if (does === "serves") setInterval(() => undefined, 1000);
if (ownStatus !== undefined) process.on("SIGTERM", () => setTimeout(() => process.exit(ownStatus), 500));

const lease = await locks.acquire(key, { leaseMs: 60_000, waitMs: 60_000 });
writeSync(1, `${JSON.stringify({ event: "acquired", held: lease.isHeld() })}\n`);
if (does === "waits") await lease.release();
