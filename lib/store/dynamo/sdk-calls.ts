/** The operations through the AWS SDK's client, with everything that the client carries. It is the reference for the built-in transport. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import type { TableCalls } from "./calls.js";

/** Returns operations that send through `client`. */
export function sdkCalls(client: DynamoDBClient): TableCalls {
  const documents = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  return {
    updateItem: (input) => documents.send(new UpdateCommand({ ...input, Key: { ...input.Key } })),
    getItem: (input) => documents.send(new GetCommand({ ...input, Key: { ...input.Key } })),
    query: (input) => documents.send(new QueryCommand(input)),
    transactWriteItems: ({ ClientRequestToken, TransactItems }) =>
      documents.send(
        new TransactWriteCommand({
          ClientRequestToken,
          TransactItems: TransactItems.map(({ Update }) => ({ Update: { ...Update, Key: { ...Update.Key } } })),
        }),
      ),
  };
}
