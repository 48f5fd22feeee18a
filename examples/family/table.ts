/** The application's own table: an item by its `id`, with a `value`. The locks are in another table. */
import { type DynamoDBClient, CreateTableCommand, waitUntilTableExists } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { fencedWrite } from "../../lib/index.js";

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

/** Returns the item's current `value`, or undefined if there is none. */
export async function valueOf(table: Table, id: string): Promise<unknown> {
  return (await read(table, id))?.["value"];
}

/** An update that sets the item's `value` unless a later token has written it: for use alone or in a transaction. */
export function fencedValue({ TableName }: Pick<Table, "TableName">, id: string, value: unknown, fencingToken: number) {
  const fence = fencedWrite(fencingToken);
  return {
    ...fence,
    TableName,
    Key: { id },
    UpdateExpression: `${fence.UpdateExpression}, #value = :value`,
    ExpressionAttributeNames: { ...fence.ExpressionAttributeNames, "#value": "value" },
    ExpressionAttributeValues: { ...fence.ExpressionAttributeValues, ":value": value },
  };
}

/** Sends that update. @throws ConditionalCheckFailedException if a later token has written the item. */
export async function write(table: Table, id: string, value: unknown, fencingToken: number): Promise<void> {
  await table.documents.send(new UpdateCommand(fencedValue(table, id, value, fencingToken)));
}
