/** The operations through the AWS SDK's client, with all that the client carries: the reference that the built-in transport is held to. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { TableCalls } from "./calls.js";

/** Sends through `client`. */
export function sdkCalls(client: DynamoDBClient): TableCalls {
  const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  return {
    updateItem: (input) => documents.send(new UpdateCommand({ ...input, Key: { ...input.Key } })),
    getItem: (input) => documents.send(new GetCommand({ ...input, Key: { ...input.Key } })),
    query: (input) => documents.send(new QueryCommand(input)),
    transactWriteItems: ({ TransactItems }) =>
      documents.send(
        new TransactWriteCommand({ TransactItems: TransactItems.map(({ Update }) => ({ Update: { ...Update, Key: { ...Update.Key } } })) }),
      ),
  };
}
