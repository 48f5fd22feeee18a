/** An AWS SDK's client for the environment, with this package's bounds. By itself, so that it can be loaded when it is needed. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { TABLE_CALLS } from "./table.js";
import type { TableCalls } from "./calls.js";
import type { TransportOption } from "./choose-transport.js";
import { callsThrough } from "./choose-transport.js";

/** The operations through `client`, or one for the environment. */
export function callsOfDefaultClient(client: DynamoDBClient | undefined, wanted: TransportOption): TableCalls {
  return callsThrough(client ?? new DynamoDBClient(TABLE_CALLS), wanted);
}
