/**
 * A function that locks through the bare AWS SDK and does nothing else: the measure of the deployed function. It takes
 * the same events.
 */
import { DynamoDBClient, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import type { HttpEvent } from "../../lambda/http.js";
import { systemClock } from "../../lib/core/time.js";
import { acquisition, surrender } from "../contest/plain-lock.js";

const client = new DynamoDBClient({});

/** Acquires or releases, and answers with the status alone. */
export async function handler({ routeKey, pathParameters }: HttpEvent): Promise<{ readonly statusCode: number }> {
  const lock = {
    tableName: process.env["HOLDFAST_TABLE"] ?? "",
    key: pathParameters?.["key"] ?? "",
    owner: pathParameters?.["leaseId"] ?? "",
  };
  const isAcquire = routeKey.startsWith("PUT ");
  await client.send(new UpdateItemCommand(isAcquire ? acquisition(lock, systemClock.wallMs()) : surrender(lock)));
  return { statusCode: isAcquire ? 201 : 200 };
}
