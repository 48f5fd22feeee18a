/** Functions of an app beside the service. They find it by HOLDFAST_URL, and sign as their roles. */
import { withDurableExecution } from "@aws/durable-execution-sdk-js";
import { withDurableLock, withDurableRun } from "../../lib/durable.js";
import { createLockClient } from "../../lib/index.js";
import { sigv4 } from "../../lib/sigv4.js";

const locks = createLockClient({ sign: sigv4() });

/** Returns the fencing token under which it held the key, or the code of the refusal. */
export async function checkout({ key }: { readonly key: string }): Promise<{ readonly token?: number; readonly refused?: string }> {
  try {
    return { token: await locks.withLock(key, async ({ fencingToken }) => fencingToken) };
  } catch (error) {
    return { refused: (error as { readonly code?: string }).code ?? String(error) };
  }
}

interface Order {
  readonly key: string;
  readonly seconds?: number;
  readonly waitMs?: number;
}

/** Two steps and a pause under a lock. Returns the tokens of the steps. */
export const locked = withDurableExecution((order: Order, context) =>
  withDurableLock(context, locks, order.key, { waitMs: order.waitMs ?? 3_600_000 }, async (lock) => {
    const first = await lock.step("first", async ({ fencingToken }) => fencingToken);
    await lock.wait("pause", { seconds: order.seconds ?? 1 });
    return [first, await lock.step("second", async ({ fencingToken }) => fencingToken)];
  }),
);

/** A run of a pause and a step. */
export const once = withDurableExecution(async (order: Order, context) => {
  const { value, replayed } = await withDurableRun(context, locks, order.key, { payload: { key: order.key } }, async (run) => {
    await run.wait("pause", { seconds: order.seconds ?? 1 });
    return run.step("second", async () => run.idempotencyKey);
  });
  return { value, replayed };
});
