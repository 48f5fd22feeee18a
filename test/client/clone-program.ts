/**
 * A program that uses clients, is saved as an image of its memory, and goes on in each process that is restored from the image. Node runs it
 * with `--build-snapshot`, as one file.
 */
import { writeSync } from "node:fs";
import { startupSnapshot } from "node:v8";
import { createLockClient } from "../../lib/index.js";
import { createLockClient as createInMemory } from "../../lib/testing.js";
import { randomToken } from "../../lib/core/random.js";

/** A client that draws an id before the image, and holds a lease in it. */
const before = createInMemory();
const kept = before.acquire("kept", { leaseMs: 60_000 });
randomToken();

startupSnapshot.setDeserializeMainFunction(() => void restored());

/** Asks for the keys at the time that the arguments name: clones ask in the same millisecond. */
async function restored(): Promise<void> {
  const [url, nowMs] = process.argv.slice(-2) as [string, string];
  Date.now = () => Number(nowMs);
  const token = randomToken();
  const locks = createLockClient({ url });
  const lease = await locks.tryAcquire("lock");
  const run = await locks
    .runOnce("run", { waitMs: 0 }, () => process.pid)
    .catch((error: unknown) => (error as { readonly code: string }).code);
  const { signal } = await kept;
  const { reason } = signal as { readonly reason?: { readonly reason: string } };
  const report = { holds: lease?.isHeld() ?? false, run, token, kept: (await kept).isHeld(), lostBy: reason?.reason };
  writeSync(1, JSON.stringify(report));
  process.exit(0);
}
