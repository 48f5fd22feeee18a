/** The operations through the AWS SDK's client, with everything that the client carries. It is the reference for the built-in transport. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type * as Lib from "@aws-sdk/lib-dynamodb";
import type { TableCalls } from "./calls.js";

/** The SDK's package for documents, as far as it is used. */
export type Documents = Pick<
  typeof Lib,
  "DynamoDBDocumentClient" | "GetCommand" | "QueryCommand" | "TransactWriteCommand" | "UpdateCommand"
>;

/** Returns operations that send through `client`. */
export function sdkCalls(client: DynamoDBClient, documents: Documents): TableCalls {
  const { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } = documents;
  const sender = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  return {
    updateItem: (input) => sender.send(new UpdateCommand({ ...input, Key: { ...input.Key } })),
    getItem: (input) => sender.send(new GetCommand({ ...input, Key: { ...input.Key } })),
    query: (input) => sender.send(new QueryCommand(input)),
    transactWriteItems: ({ ClientRequestToken, TransactItems }) =>
      sender.send(
        new TransactWriteCommand({
          ClientRequestToken,
          TransactItems: TransactItems.map(({ Update }) => ({ Update: { ...Update, Key: { ...Update.Key } } })),
        }),
      ),
  };
}
