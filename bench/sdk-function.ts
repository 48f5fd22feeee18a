/**
 * A function that locks by two conditional updates through the bare AWS SDK and does nothing else: the measure of the
 * deployed function. It takes the same events.
 */
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { HttpEvent } from "../lambda/http.js";
import { systemClock } from "../lib/core/time.js";
import { TABLE } from "../lib/store/dynamo/table.js";

const LEASE_MS = 30_000;
const client = new DynamoDBClient({});

/** Acquires or releases, and answers with the status alone. */
export async function handler({ routeKey, pathParameters }: HttpEvent): Promise<{ readonly statusCode: number }> {
  const { key = "", leaseId = "" } = pathParameters ?? {};
  const item = {
    TableName: process.env["HOLDFAST_TABLE"],
    Key: { [TABLE.partitionKey]: { S: "bare" }, [TABLE.sortKey]: { S: key } },
  };
  const nowMs = systemClock.wallMs();
  const owner = { ":owner": { S: leaseId } };
  const isAcquire = routeKey.startsWith("PUT ");
  await client.send(
    new UpdateItemCommand(
      isAcquire
        ? {
            ...item,
            ConditionExpression: "attribute_not_exists(o) OR e < :now",
            UpdateExpression: "SET o = :owner, e = :end",
            ExpressionAttributeValues: { ...owner, ":now": { N: String(nowMs) }, ":end": { N: String(nowMs + LEASE_MS) } },
          }
        : { ...item, ConditionExpression: "o = :owner", UpdateExpression: "REMOVE o, e", ExpressionAttributeValues: owner },
    ),
  );
  return { statusCode: isAcquire ? 201 : 200 };
}
