/** The operations through an AWS SDK client that is loaded with the first request. A function that sends no request never loads it. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { TableCalls } from "./calls.js";
import { deferredCalls } from "./calls.js";
import type { TransportOption } from "./choose-transport.js";

/** Returns operations that send through `client`, or through a new one for the environment, once the SDK is loaded. */
export function lazyCalls(client: DynamoDBClient | undefined, option: TransportOption): TableCalls {
  let loading: Promise<TableCalls> | undefined;
  return deferredCalls(
    () => (loading ??= import("./default-client.js").then(({ callsOfDefaultClient }) => callsOfDefaultClient(client, option))),
  );
}
