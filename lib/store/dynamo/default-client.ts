/**
 * An AWS SDK client for the environment, with this package's time-outs and retries. It is a separate file, so that it can be loaded on
 * demand.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { TABLE_CALLS } from "./table.js";
import type { TableCalls } from "./calls.js";
import type { TransportOption } from "./choose-transport.js";
import { callsThrough } from "./choose-transport.js";

/** Returns the operations through `client`, or through a new one for the environment. */
export function callsOfDefaultClient(client: DynamoDBClient | undefined, option: TransportOption): TableCalls {
  return callsThrough(client ?? new DynamoDBClient(TABLE_CALLS), option);
}
