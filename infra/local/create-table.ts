/** Creates the table on a local engine, with the definition of the deployed stack. Safe to repeat. */
import {
  CreateTableCommand,
  DescribeTimeToLiveCommand,
  ResourceInUseException,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { TABLE } from "../../lib/store/dynamo/table.js";

/** The time until a new table must be usable, in seconds. */
const ACTIVE_WITHIN_SEC = 60;

/** Creates `tableName` unless it exists, waits until it is usable, and enables TTL. */
export async function createTable(client: DynamoDBClient, tableName: string): Promise<void> {
  try {
    await client.send(
      new CreateTableCommand({
        TableName: tableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: [
          { AttributeName: TABLE.partitionKey, AttributeType: "S" },
          { AttributeName: TABLE.sortKey, AttributeType: "S" },
        ],
        KeySchema: [
          { AttributeName: TABLE.partitionKey, KeyType: "HASH" },
          { AttributeName: TABLE.sortKey, KeyType: "RANGE" },
        ],
      }),
    );
  } catch (error) {
    if (!(error instanceof ResourceInUseException)) throw error;
  }
  await waitUntilTableExists({ client, maxWaitTime: ACTIVE_WITHIN_SEC }, { TableName: tableName });
  await collectGarbage(client, tableName);
}

/** Enables TTL. An engine without TTL only keeps its garbage: correctness never depends on it. */
async function collectGarbage(client: DynamoDBClient, tableName: string): Promise<void> {
  try {
    const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName: tableName }));
    if (ttl?.TimeToLiveStatus === "ENABLED" || ttl?.TimeToLiveStatus === "ENABLING") return;
    const TimeToLiveSpecification = { AttributeName: TABLE.ttlAttribute, Enabled: true };
    await client.send(new UpdateTimeToLiveCommand({ TableName: tableName, TimeToLiveSpecification }));
  } catch (error) {
    if ((error as Error).name !== "UnknownOperationException") throw error;
  }
}
