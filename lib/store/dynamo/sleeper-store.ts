/**
 * Sleepers and tied leases in DynamoDB, each in an item of its own: `s` has it as JSON, `a` the time at which it was stored, `o` the
 * principal who stored it, `x` the TTL. They are in a partition in which no caller's key can be, since no namespace is empty. Only the agent
 * reads and deletes them.
 */
import { type Address, type Sleeper, type SleeperStore, type TiedLease, principalOf } from "../port.js";
import { type AllCalls, type TableCalls, isConditionFailed } from "./calls.js";
import type { Item } from "./layout.js";
import { TABLE } from "./table.js";
import { type TablePlace, readFrom, tableUnavailable } from "./unavailable.js";

/** The partition of all sleepers and tied leases. */
export const SLEEPERS = "/sleepers";
/** Sleepers that one query reads: with the longest targets, and full meta, they take less than a query's 1 MB. */
const QUERY_LIMIT = 100;
/** Comes before every key: a namespace has no character below it. */
const BEFORE_ALL = " ";

function keyOf({ namespace, kind, key }: Address, leaseId: string): Item {
  return { [TABLE.partitionKey]: SLEEPERS, [TABLE.sortKey]: `${namespace}/${kind}/${key}/${leaseId}` };
}

function placeOf(kept: Sleeper | TiedLease): Item {
  return "acquire" in kept ? keyOf(kept.address, kept.acquire.leaseId) : keyOf(kept.address, `${kept.leaseId}/tie`);
}

function keptIn(item: Item): Sleeper | TiedLease {
  return JSON.parse(item["s"] as string) as Sleeper | TiedLease;
}

/** Returns what a service needs: it stores sleepers, and sees none. */
export function sleeperPutter({ calls, ...place }: TablePlace & { readonly calls: TableCalls }): Pick<SleeperStore, "put"> {
  return {
    async put(kept) {
      const { ttlAtSec, putAtMs } = kept;
      const input = {
        TableName: place.tableName,
        Key: placeOf(kept),
        // A late duplicate of an earlier request doesn't bring the earlier target back. Another principal's request is refused after this.
        ConditionExpression: "attribute_not_exists(a) OR (a <= :a AND (attribute_not_exists(o) OR o = :o))",
        UpdateExpression: `SET s = :s, a = :a, o = :o, ${TABLE.ttlAttribute} = :x`,
        ExpressionAttributeValues: { ":s": JSON.stringify(kept), ":a": putAtMs, ":o": principalOf(kept), ":x": ttlAtSec },
      };
      try {
        await calls.updateItem(input);
      } catch (error) {
        if (!isConditionFailed(error)) throw await tableUnavailable(withoutQuotes(error), place);
      }
    },
  };
}

/** Returns the error without its message, in which an engine may quote the target. */
function withoutQuotes(error: unknown): Error {
  const { name, $metadata } = error as Error & { readonly $metadata?: object };
  return Object.assign(new Error("the sleeper could not be stored"), { name, ...($metadata && { $metadata }) });
}

/** Returns the sleepers of a table, as the agent uses them. */
export function createSleeperStore({ calls, ...place }: TablePlace & { readonly calls: AllCalls }): SleeperStore {
  const TableName = place.tableName;
  return {
    ...sleeperPutter({ calls, ...place }),
    async list(after = BEFORE_ALL) {
      const input = {
        TableName,
        KeyConditionExpression: "#p = :p AND #k > :after",
        FilterExpression: "attribute_exists(s)",
        ExpressionAttributeNames: { "#p": TABLE.partitionKey, "#k": TABLE.sortKey },
        ExpressionAttributeValues: { ":p": SLEEPERS, ":after": after },
        Limit: QUERY_LIMIT,
      };
      const { Items = [], LastEvaluatedKey } = await readFrom(place, () => calls.query(input));
      const kept = Items.map(keptIn);
      const [sleepers, ties] = [kept.filter((one) => "acquire" in one), kept.filter((one) => "executionArn" in one)];
      return { sleepers, ties, ...(LastEvaluatedKey && { next: LastEvaluatedKey[TABLE.sortKey] as string }) };
    },
    async read(address, leaseId) {
      const Key = keyOf(address, leaseId);
      const { Item: item } = await readFrom(place, () => calls.getItem({ TableName, Key, ConsistentRead: true }));
      return item && (keptIn(item) as Sleeper);
    },
    async delete(kept) {
      const stored = { ConditionExpression: "a = :a", ExpressionAttributeValues: { ":a": kept.putAtMs } };
      try {
        await calls.deleteItem({ TableName, Key: placeOf(kept), ...stored });
      } catch (error) {
        if (!isConditionFailed(error)) throw await tableUnavailable(error, place);
      }
    },
  };
}
