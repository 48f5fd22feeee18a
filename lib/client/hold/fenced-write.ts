/** Fenced writes: the resource refuses writes of holders with an older fencing token. */

import { InvalidRequestError } from "../wire/errors.js";

/** Parts of a DynamoDB write (lib-dynamodb's plain values), to spread into an UpdateCommand or merge with one. */
export interface FencedWrite {
  readonly ConditionExpression: string;
  readonly UpdateExpression: string;
  readonly ExpressionAttributeNames: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues: Readonly<Record<string, number>>;
}

/**
 * Returns a write that succeeds only if no later grant has written yet, and that stores the token. Spread it into an UpdateCommand and
 * append your own assignments to `UpdateExpression`. A stale holder's write fails with ConditionalCheckFailedException. The idea is
 * Kleppmann's (2016).
 * @param attribute the item's attribute for the largest token; @default "fencingToken"
 */
export function fencedWrite(fencingToken: number, { attribute = "fencingToken" }: { readonly attribute?: string } = {}): FencedWrite {
  if (!Number.isSafeInteger(fencingToken) || fencingToken < 0)
    throw new InvalidRequestError(`fencingToken: ${fencingToken} is not a token`, "fencingToken");
  return {
    ConditionExpression: "(attribute_not_exists(#fence) OR #fence <= :fence)",
    UpdateExpression: "SET #fence = :fence",
    ExpressionAttributeNames: { "#fence": attribute },
    ExpressionAttributeValues: { ":fence": fencingToken },
  };
}
