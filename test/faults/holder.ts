/**
 * A program that works under a lock and is frozen meanwhile. After it wakes up, it reports in lines of JSON: the
 * lease's state in its first statements or from its signal, and the results of its writes.
 */
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { writeSync } from "node:fs";
import { engineClient } from "../../infra/local/engine-client.js";
import { type Lease, createLockClient, fencedWrite } from "../../lib/index.js";

/** The program's instructions. */
export interface HolderOrder {
  readonly url: string;
  readonly key: string;
  readonly leaseMs: number;
  /** `asks`: checks in its first statements if it still holds. `listens`: only listens to the signal. */
  readonly manner: "asks" | "listens";
  /** A table that two holders write to, and the keys of its item and of an unprotected copy. */
  readonly resource: { readonly endpoint: string; readonly tableName: string; readonly item: object; readonly unprotected: object };
}

/** A gap this long between two clock readings isn't a scheduling delay: the process was stopped. */
const FROZEN_MS = 1500;

const order = JSON.parse(process.argv[2] ?? "") as HolderOrder;
const locks = createLockClient({ url: order.url, owner: "holder" });
const dynamo = engineClient(order.resource.endpoint);

const outcome = await locks.withLock(order.key, { leaseMs: order.leaseMs }, work).then(
  (value) => ({ value }),
  (error: unknown) => ({ error: (error as Error).name, reason: (error as { reason?: string }).reason }),
);
report("ended", outcome);
await locks.close();

async function work(lease: Lease): Promise<string> {
  // Read before the report, because the process may be stopped right after it.
  const sinceMs = Date.now();
  report("held", { fencingToken: lease.fencingToken });
  if (order.manner === "asks") {
    spinUntilFrozen(sinceMs);
    const held = [lease.isHeld(), lease.isHeld(), lease.isHeld()];
    report("woke", { held, remainingMs: lease.remainingMs(), state: lease.state, asserted: thrownBy(() => lease.assertHeld()) });
  } else {
    await sleepUntilFrozen(sinceMs);
    // It may have been stopped within a timer turn, whose time is from before. The first turn after that counts.
    const aborted = await new Promise((resolve) => setTimeout(() => resolve(lease.signal.aborted), 0));
    report("woke", { aborted, reason: (lease.signal.reason as { name?: string } | undefined)?.name });
  }
  report("wrote", {
    fenced: await write(lease.fencingToken, order.resource.item),
    plain: await write(undefined, order.resource.unprotected),
  });
  return "done";
}

/** Busy-waits until the process was stopped. The next statement is the first after it wakes up. */
function spinUntilFrozen(sinceMs: number): void {
  for (let before = sinceMs, now = Date.now(); now - before < FROZEN_MS; now = Date.now()) before = now;
}

/** Sleeps until the process was stopped, with its heartbeats. Resolves in the timer turn in which it wakes up. */
async function sleepUntilFrozen(sinceMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let before = sinceMs;
    const timer = setInterval(() => {
      const now = Date.now();
      if (now - before >= FROZEN_MS) {
        clearInterval(timer);
        resolve();
      }
      before = now;
    }, 5);
  });
}

/** Writes to the resource: with the token, so that a later holder's write is never undone, or without it. */
async function write(fencingToken: number | undefined, Key: object): Promise<string> {
  const fence = fencingToken === undefined ? undefined : fencedWrite(fencingToken);
  const command = new UpdateCommand({
    TableName: order.resource.tableName,
    Key: Key as Record<string, string>,
    ...fence,
    UpdateExpression: `${fence ? `${fence.UpdateExpression},` : "SET"} writer = :writer`,
    ExpressionAttributeValues: { ...fence?.ExpressionAttributeValues, ":writer": "holder" },
  });
  return dynamo.send(command).then(
    () => "written",
    (error: unknown) => (error as Error).name,
  );
}

function thrownBy(task: () => void): string | undefined {
  try {
    task();
    return undefined;
  } catch (error) {
    return (error as Error).name;
  }
}

/** Writes synchronously and completely, regardless of the event loop. */
function report(event: string, members: object): void {
  writeSync(1, `${JSON.stringify({ event, ...members })}\n`);
}
