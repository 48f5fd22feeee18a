/** The operations through an AWS SDK's client that is loaded with the first request: a function that needs none never loads it. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { TableCalls } from "./calls.js";
import type { TransportOption } from "./choose-transport.js";

/** Sends through `client`, or through one for the environment, once the SDK is there. */
export function lazyCalls(client: DynamoDBClient | undefined, wanted: TransportOption): TableCalls {
  let loading: Promise<TableCalls> | undefined;
  const loaded = (): Promise<TableCalls> =>
    (loading ??= import("./default-client.js").then(({ callsOfDefaultClient }) => callsOfDefaultClient(client, wanted)));
  return {
    updateItem: async (input) => (await loaded()).updateItem(input),
    getItem: async (input) => (await loaded()).getItem(input),
    query: async (input) => (await loaded()).query(input),
    transactWriteItems: async (input) => (await loaded()).transactWriteItems(input),
  };
}
