/**
 * A program that does the work of a run: it saves a checkpoint, calls an engine that charges a customer, and reports in
 * lines of JSON. On request it hangs between the engine's response and its outcome, to be killed there.
 */
import { writeSync } from "node:fs";
import { engineLocation } from "../../infra/local/engine-client.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, type Run, createLockClient } from "../../lib/index.js";

/** The program's instructions. */
export interface RunnerOrder {
  /** The address of the locks: a service, or a table. */
  readonly locks: { readonly url: string } | { readonly endpoint: string; readonly tableName: string };
  readonly key: string;
  readonly leaseMs: number;
  /** The URL of the engine, which charges once for each idempotency key. */
  readonly engine: string;
  /** `forgetful`: sends the engine a key of this attempt's own, and ignores the checkpoint. */
  readonly manner: "careful" | "forgetful";
  /** The program's action after the engine has answered. */
  readonly then: "hang" | "finish";
}

const order = JSON.parse(process.argv[2] ?? "") as RunnerOrder;
/** The run's leaseId, taken from the wire because the API doesn't expose it. */
let leaseId: string | undefined;
const locks = open();

// The first request of a process is slow, and a short lease leaves no time for that.
await Promise.all([locks.health(), fetch(order.engine).then((response) => response.text())]);

const { key, leaseMs } = order;
const outcome = await locks.runOnce(key, { leaseMs, waitMs: 60_000 }, work).then(
  (result) => ({ ...result }),
  (error: unknown) => ({ error: (error as Error).name, message: (error as Error).message }),
);
report("ended", outcome);
await locks.close();

async function work(run: Run): Promise<string> {
  const { attempt, takeover, idempotencyKey, fencingToken, checkpoint } = run;
  report("started", { attempt, takeover, idempotencyKey, fencingToken, checkpoint, leaseId });
  const isCareful = order.manner === "careful";
  const done = isCareful ? (checkpoint as { receipt?: string } | undefined)?.receipt : undefined;
  if (done !== undefined) return done;
  await run.saveCheckpoint({ step: "charging", attempt });
  const receipt = await charge(isCareful ? idempotencyKey : `${idempotencyKey}:${attempt}:${fencingToken}`);
  report("charged", { receipt });
  if (order.then === "hang") await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
  return receipt;
}

async function charge(idempotencyKey: string): Promise<string> {
  const response = await fetch(order.engine, { method: "POST", headers: { "idempotency-key": idempotencyKey } });
  return response.text();
}

function open(): LockClient {
  if (!("url" in order.locks)) {
    const { endpoint, tableName } = order.locks;
    return createTableClient({ ...engineLocation(endpoint), tableName, owner: "runner" });
  }
  const noting: typeof fetch = (url, init) => {
    leaseId = /\/leases\/([^/]+)$/.exec(url as string)?.[1] ?? leaseId;
    return fetch(url, init);
  };
  return createLockClient({ url: order.locks.url, owner: "runner", fetch: noting });
}

/** Writes synchronously and completely, because it may be killed right after. */
function report(event: string, members: object): void {
  writeSync(1, `${JSON.stringify({ event, ...members })}\n`);
}
