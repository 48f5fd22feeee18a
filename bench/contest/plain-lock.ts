/**
 * A lock as most programs write it, as the least to compare with: one item for each key, with the owner and the end of
 * the lease. Each change is one conditional update.
 */
import type { UpdateItemCommandInput } from "@aws-sdk/client-dynamodb";
import { TABLE } from "../../lib/store/dynamo/table.js";

/** The length of its leases, in ms. */
export const PLAIN_LEASE_MS = 60_000;

/** A key of a table, and the owner that wants or has it. */
export interface PlainLock {
  readonly tableName: string;
  readonly key: string;
  readonly owner: string;
}

/** Takes the key if it is free or its lease has ended. */
export function acquisition(lock: PlainLock, nowMs: number): UpdateItemCommandInput {
  return {
    ...itemOf(lock),
    ConditionExpression: "attribute_not_exists(o) OR e < :now",
    UpdateExpression: "SET o = :owner, e = :end",
    ExpressionAttributeValues: { ":owner": { S: lock.owner }, ":now": { N: String(nowMs) }, ":end": { N: String(nowMs + PLAIN_LEASE_MS) } },
  };
}

/** Makes the lease as long again. */
export function renewal(lock: PlainLock, nowMs: number): UpdateItemCommandInput {
  return {
    ...itemOf(lock),
    ConditionExpression: "o = :owner",
    UpdateExpression: "SET e = :end",
    ExpressionAttributeValues: { ":owner": { S: lock.owner }, ":end": { N: String(nowMs + PLAIN_LEASE_MS) } },
  };
}

/** Gives the key back. */
export function surrender(lock: PlainLock): UpdateItemCommandInput {
  return {
    ...itemOf(lock),
    ConditionExpression: "o = :owner",
    UpdateExpression: "REMOVE o, e",
    ExpressionAttributeValues: { ":owner": { S: lock.owner } },
  };
}

function itemOf({ tableName, key }: PlainLock): Pick<UpdateItemCommandInput, "TableName" | "Key"> {
  return { TableName: tableName, Key: { [TABLE.partitionKey]: { S: "locks" }, [TABLE.sortKey]: { S: key } } };
}
