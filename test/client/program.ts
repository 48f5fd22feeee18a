/** A program that uses a lock and has nothing else to do: what keeps it alive is what is tested. */
import { writeSync } from "node:fs";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { createLockClient } from "../../lib/index.js";

/** What the program is told; where the service or the table is, it finds in its environment. */
export interface ProgramOrder {
  readonly reaches: "service" | "table";
  /** `holds` a lease and forgets it; `waits` for one that another holds. */
  readonly does: "holds" | "waits";
  readonly key: string;
}

const { reaches, does, key } = JSON.parse(process.argv[2] ?? "") as ProgramOrder;
const locks = reaches === "service" ? createLockClient() : createTableClient();

const lease = await locks.acquire(key, { leaseMs: 60_000, waitMs: 60_000 });
writeSync(1, `${JSON.stringify({ event: "acquired", held: lease.isHeld() })}\n`);
if (does === "waits") await lease.release();
