/**
 * The loop that people write on the bare SDK: a conditional write of one attribute, again each 50 ms while it is refused. It has no order, no
 * fencing token and no lease, so its item is small. A crowd must not be slower or dearer than it.
 */
import { isConditionFailed } from "../../lib/store/dynamo/calls.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { TABLE_NAME } from "../../lib/testing/served-table.js";
import type { Arena } from "./arena.js";

const POLL_MS = 50;
/** The pause before a release that was throttled is sent again. */
const RELEASE_AGAIN_MS = 20;

/** Returns what holds one of the permits while it works. @throws Error if none is free within `waitMs` */
export function naiveCaller(arena: Arena, name: string, permits: number, waitMs: number): (work: () => Promise<void>) => Promise<void> {
  const calls = arena.calls();
  const item = { TableName: TABLE_NAME, Key: { [TABLE.partitionKey]: "naive", [TABLE.sortKey]: name } };
  const acquire = {
    ...item,
    UpdateExpression: "SET n = if_not_exists(n, :zero) + :one",
    ConditionExpression: "attribute_not_exists(n) OR n < :limit",
  };
  const release = { ...item, UpdateExpression: "SET n = n - :one", ConditionExpression: "n > :zero" };
  const values = { ":zero": 0, ":one": 1 };
  return async (work) => {
    const untilMs = arena.nowMs() + waitMs;
    for (;;) {
      try {
        await calls.updateItem({ ...acquire, ExpressionAttributeValues: { ...values, ":limit": permits } });
        break;
      } catch (error) {
        if (arena.nowMs() >= untilMs) throw error;
        await arena.sleep(POLL_MS * arena.random.between(0.5, 1.5));
      }
    }
    await work();
    for (;;) {
      try {
        await calls.updateItem({ ...release, ExpressionAttributeValues: values });
        return;
      } catch (error) {
        if (isConditionFailed(error)) throw error;
        await arena.sleep(RELEASE_AGAIN_MS);
      }
    }
  };
}
