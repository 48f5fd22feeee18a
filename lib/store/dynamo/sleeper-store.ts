/**
 * Sleepers and tied leases in DynamoDB, each in an item of its own: `s` has it as JSON, without a sleeper's targets. `w` is the set of the
 * targets, or of the one execution; `h` the hash of a sleeper's acquire; `a` the time at which it was stored; `o` the principal who stored
 * it; `x` the TTL; `fv` the format. They are in a partition in which no caller's key can be, since no namespace is empty. Only the agent reads
 * and deletes them.
 */
import { isA } from "../../core/brand.js";
import type { WakeTarget } from "../../core/api/locks.js";
import type { Refusal } from "../../core/errors.js";
import { LIMITS } from "../../core/limits.js";
import { type Address, type Sleeper, type SleeperStore, type TiedLease, keptTogether, UnreadableRecord } from "../port.js";
import { plainItem } from "./attribute-value.js";
import { type AllCalls, type TableCalls, isConditionFailed } from "./calls.js";
import { FORMAT_VERSION, readItem } from "./format.js";
import { type Item, at, jsonOf, mapOf } from "./layout.js";
import { TABLE } from "./table.js";
import { type TablePlace, isWriteConflict, readFrom, tableUnavailable } from "./unavailable.js";

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

function keptIn({ s, w }: Item): Sleeper | TiedLease {
  const kept = at("s", () => mapOf(jsonOf(s))) as unknown as Omit<Sleeper, "targets"> | TiedLease;
  at("s.address", () => mapOf(kept.address));
  return "executionArn" in kept
    ? kept
    : { ...kept, targets: at("w", () => Array.from(w as ReadonlySet<string>, (json) => jsonOf(json) as WakeTarget)) };
}

/** Returns what is kept, or why it can't be read: one item must not keep the agent from the others. */
function keptOrNot(item: Item): Sleeper | TiedLease | UnreadableRecord {
  try {
    return readItem(item, keptIn);
  } catch (error) {
    if (isA(error, UnreadableRecord)) return error;
    throw error;
  }
}

/** Returns the member of the set `w` that a request adds, what it may add it to, and the rest. */
function partsOf(kept: Sleeper | TiedLease) {
  if ("executionArn" in kept) return { member: kept.executionArn, hash: "", principal: kept.principal, membersMax: 1, rest: kept };
  const { targets, ...rest } = kept;
  const { requestHash: hash, principal } = kept.acquire;
  return { member: JSON.stringify(targets[0]), hash, principal, membersMax: LIMITS.targetsMax, rest };
}

/** Returns what a service needs: it stores sleepers, and sees none. */
export function sleeperPutter({ calls, ...place }: TablePlace & { readonly calls: TableCalls }): Pick<SleeperStore, "put"> {
  return {
    async put(kept) {
      const { member, hash, principal, membersMax, rest } = partsOf(kept);
      const input = {
        TableName: place.tableName,
        Key: placeOf(kept),
        // As keptTogether decides.
        ConditionExpression: "attribute_not_exists(a) OR (fv = :format AND o = :o AND h = :h AND (size(w) < :max OR contains(w, :m)))",
        UpdateExpression: `SET s = :s, a = :a, o = :o, h = :h, fv = :format, ${TABLE.ttlAttribute} = :x ADD w :w`,
        ExpressionAttributeValues: {
          ...{ ":s": JSON.stringify(rest), ":a": kept.putAtMs, ":o": principal, ":h": hash, ":x": kept.ttlAtSec },
          ...{ ":w": new Set([member]), ":m": member, ":max": membersMax, ":format": FORMAT_VERSION },
        },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      };
      try {
        await calls.updateItem(input);
        return undefined;
      } catch (error) {
        if (!isConditionFailed(error)) throw await tableUnavailable(withoutQuotes(error), place);
        return keptTogether(readItem(plainItem(error.Item ?? {}), keptIn), kept) as Refusal;
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
      const kept = Items.map(keptOrNot);
      const sleepers = kept.filter((one) => "acquire" in one);
      const ties = kept.filter((one) => "executionArn" in one);
      const unreadable = kept.filter((one) => isA(one, UnreadableRecord));
      return { sleepers, ties, unreadable, ...(LastEvaluatedKey && { next: LastEvaluatedKey[TABLE.sortKey] as string }) };
    },
    async read(address, leaseId) {
      const Key = keyOf(address, leaseId);
      return readFrom(place, async () => {
        const { Item: item } = await calls.getItem({ TableName, Key, ConsistentRead: true });
        return item && (readItem(item, keptIn) as Sleeper);
      });
    },
    async delete(kept) {
      const members = "targets" in kept ? kept.targets.length : 1;
      const stored = { ConditionExpression: "a = :a AND size(w) = :n", ExpressionAttributeValues: { ":a": kept.putAtMs, ":n": members } };
      try {
        await calls.deleteItem({ TableName, Key: placeOf(kept), ...stored });
      } catch (error) {
        // Stored anew meanwhile, or looked at by the agent of another Region too: what is still there, the next sweep finds.
        if (!isConditionFailed(error) && !isWriteConflict(error)) throw await tableUnavailable(error, place);
      }
    },
  };
}
