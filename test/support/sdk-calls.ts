/** The operations through a client of the AWS SDK, which the product loads on use. */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import * as documents from "@aws-sdk/lib-dynamodb";
import type { Clock } from "../../lib/core/time.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { sdkCalls as callsWith } from "../../lib/store/dynamo/sdk-calls.js";

/** Returns operations that send through `client`. */
export const sdkCalls = (client: DynamoDBClient, clock?: Clock): TableCalls => callsWith(client, documents, clock);
