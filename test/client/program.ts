/** A program that uses a lock and does nothing else. The tests check what keeps it alive. */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";

/** The program's instructions. It finds the service or the table in its environment. */
export interface ProgramOrder {
  readonly reaches: "service" | "table";
  /**
   * `holds` a lease and forgets it; `waits` for a lease that another process holds; `serves` under a lease until a signal; `works` under a lock
   * for a second, while a server listens.
   */
  readonly does: "holds" | "waits" | "serves" | "works";
  /** The client's options. */
  readonly closeOnSigterm?: boolean;
  readonly drainMs?: number;
  /** True if it has two more clients, which hold nothing and so close at once. */
  readonly hasIdleClients?: boolean;
  /** If set, the program has its own listener, which exits with this status half a second after the signal. */
  readonly ownStatus?: number;
  readonly key: string;
}

const { reaches, does, key, closeOnSigterm, drainMs, hasIdleClients, ownStatus } = JSON.parse(process.argv[2] ?? "") as ProgramOrder;
const options = { closeOnSigterm, drainMs };
const create = (): LockClient => (reaches === "service" ? createLockClient(options) : createTableClient(options));
const tell = (event: string, told: object = {}): void => void writeSync(1, `${JSON.stringify({ event, ...told })}\n`);
if (hasIdleClients) create();
const locks = create();
if (hasIdleClients) create();
if (does === "serves" || does === "works") setInterval(() => undefined, 1000);
if (ownStatus !== undefined) process.on("SIGTERM", () => setTimeout(() => process.exit(ownStatus), 500));

if (does === "works") {
  await locks.withLock(key, { leaseMs: 60_000 }, async (lease) => {
    tell("acquired", { held: lease.isHeld() });
    await delay(1000);
    tell("worked", { held: lease.isHeld() });
  });
} else {
  const lease = await locks.acquire(key, { leaseMs: 60_000, waitMs: 60_000 });
  tell("acquired", { held: lease.isHeld() });
  if (does === "waits") await lease.release();
}
