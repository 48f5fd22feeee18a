/** The AWS SDK of the functions. In a bundle, a package that is imported on use has all its parts; imported so, those that are named. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { type Sdk, sdkOf } from "../lib/store/dynamo/sdk-access.js";

const documents = { DynamoDBDocumentClient, GetCommand, QueryCommand, TransactWriteCommand, UpdateCommand };

/** Returns the SDK. */
export const loadSdk = (): Promise<Sdk> => Promise.resolve(sdkOf({ DynamoDBClient }, documents));
