/**
 * How everything local talks to an engine. Local engines check no signature, but AWS's keeps a set of
 * tables for each access key and region: all that share an engine must sign alike.
 */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";

/** A client for the engine at `endpoint`. Never for AWS: its credentials are made up. */
export function engineClient(endpoint: string, config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({ endpoint, region: "us-east-1", credentials: { accessKeyId: "local", secretAccessKey: "local" }, ...config });
}
