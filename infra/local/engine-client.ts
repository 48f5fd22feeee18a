/**
 * The DynamoDB client for local engines. They check no signature, but DynamoDB Local keeps separate tables for each access key and region,
 * so all clients of an engine must use the same ones.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";

/** Returns a client for the engine at `endpoint`. Not for AWS: its credentials are fake. */
export function engineClient(endpoint: string, config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({ endpoint, region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" }, ...config });
}
