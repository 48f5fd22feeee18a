/**
 * A program that works under a lock and is frozen while it does. What it finds after it wakes it reports
 * in lines of JSON: asked at its very first statements, or by its signal alone; and what its writes came to.
 */
import { UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { writeSync } from "node:fs";
import { engineClient } from "../../infra/local/engine-client.js";
import type { Lease } from "../../lib/index.js";
import { createLockClient, fencedWrite } from "../../lib/index.js";

/** The program's instructions. */
export interface HolderOrder {
  readonly url: string;
  readonly key: string;
  readonly leaseMs: number;
  /** `asks` at its first statements whether it still holds; `listens` to the signal, and asks nothing. */
  readonly manner: "asks" | "listens";
  /** A table that two holders write to, and its item: its key and where an unprotected copy is. */
  readonly resource: { readonly endpoint: string; readonly tableName: string; readonly item: object; readonly unprotected: object };
}

/** A gap this long between two looks at the clock is no scheduling hiccup: the process stood still. */
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
  // Taken before anybody is told: it may be stopped right after.
  const sinceMs = Date.now();
  report("held", { fencingToken: lease.fencingToken });
  if (order.manner === "asks") {
    spinUntilFrozen(sinceMs);
    const held = [lease.isHeld(), lease.isHeld(), lease.isHeld()];
    report("woke", { held, remainingMs: lease.remainingMs(), state: lease.state, asserted: thrownBy(() => lease.assertHeld()) });
  } else {
    await sleepUntilFrozen(sinceMs);
    // It may have been stopped within a timer turn, whose time is from before: the first one after that counts.
    const aborted = await new Promise((resolve) => setTimeout(() => resolve(lease.signal.aborted), 0));
    report("woke", { aborted, reason: (lease.signal.reason as { name?: string } | undefined)?.name });
  }
  report("wrote", {
    fenced: await write(lease.fencingToken, order.resource.item),
    plain: await write(undefined, order.resource.unprotected),
  });
  return "done";
}

/** Busy until the process was stopped: the next statement is the first after it wakes. */
function spinUntilFrozen(sinceMs: number): void {
  for (let before = sinceMs, now = Date.now(); now - before < FROZEN_MS; now = Date.now()) before = now;
}

/** Asleep until the process was stopped, heartbeats and all; resolves in the timer turn that it wakes in. */
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

/** Writes to the resource: with the token, so that a later holder's write is never undone; or without. */
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

/** At once and whole, whatever the event loop does. */
function report(event: string, members: object): void {
  writeSync(1, `${JSON.stringify({ event, ...members })}\n`);
}
