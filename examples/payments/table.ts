/** The application's own table: an item by its `id`. The locks and runs are in another table. */
import { type DynamoDBClient, CreateTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";

/** A table and the client to reach it. */
export interface Table {
  readonly documents: DynamoDBDocumentClient;
  readonly TableName: string;
}

const ACTIVE_WITHIN_SEC = 30;

/** Creates the table and waits until it can be used. */
export async function createTableOfOurs(client: DynamoDBClient, TableName: string): Promise<Table> {
  await client.send(
    new CreateTableCommand({
      TableName,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: [{ AttributeName: "id", AttributeType: "S" }],
      KeySchema: [{ AttributeName: "id", KeyType: "HASH" }],
    }),
  );
  await waitUntilTableExists({ client, maxWaitTime: ACTIVE_WITHIN_SEC }, { TableName });
  return { documents: DynamoDBDocumentClient.from(client), TableName };
}

/** Returns the current item, or undefined if there is none. */
export async function read({ documents, TableName }: Table, id: string): Promise<Record<string, unknown> | undefined> {
  const { Item } = await documents.send(new GetCommand({ TableName, Key: { id }, ConsistentRead: true }));
  return Item;
}
