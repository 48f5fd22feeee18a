/**
 * The ways to reach local engines. They check no signature, but DynamoDB Local keeps separate tables for each access key and region,
 * so all callers of an engine must use the same ones. Not for AWS: the credentials are fake.
 */
import { type DynamoDBClientConfig, DynamoDBClient } from "@aws-sdk/client-dynamodb";

const REGION = "us-east-1";
const CREDENTIALS = { accessKeyId: "local", secretAccessKey: "local" };

/** Returns the options with which a lock client on the table reaches the engine at `endpoint`. */
export function engineLocation(endpoint: string) {
  return { endpoint, region: REGION, credentials: CREDENTIALS };
}

/** Returns the environment with which a function, or any program of the AWS SDK, reaches the engine at `endpoint`. */
export function engineEnvironment(endpoint: string) {
  const { accessKeyId: AWS_ACCESS_KEY_ID, secretAccessKey: AWS_SECRET_ACCESS_KEY } = CREDENTIALS;
  return { AWS_ENDPOINT_URL_DYNAMODB: endpoint, AWS_REGION: REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY };
}

/** Returns a client for the engine at `endpoint`. */
export function engineClient(endpoint: string, config: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({ ...engineLocation(endpoint), ...config });
}
