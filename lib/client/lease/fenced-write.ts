/** The other half of a fencing token: a resource that refuses what an older grant writes. */

/** Parts of a DynamoDB write (lib-dynamodb's plain values), to be spread into an UpdateCommand or merged into one. */
export interface FencedWrite {
  readonly ConditionExpression: string;
  readonly UpdateExpression: string;
  readonly ExpressionAttributeNames: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues: Readonly<Record<string, number>>;
}

/**
 * A write that succeeds only if no later grant has written yet, and leaves the token behind: spread it
 * into an UpdateCommand and add your own assignments after `UpdateExpression`. A stale holder's write
 * fails with ConditionalCheckFailedException. The idea is Kleppmann's (2016).
 * @param attribute where the item keeps the largest token; @default "fencingToken"
 */
export function fencedWrite(fencingToken: number, { attribute = "fencingToken" }: { readonly attribute?: string } = {}): FencedWrite {
  if (!Number.isSafeInteger(fencingToken) || fencingToken < 0) throw new TypeError(`fencedWrite: ${fencingToken} is not a fencing token`);
  return {
    ConditionExpression: "(attribute_not_exists(#fence) OR #fence <= :fence)",
    UpdateExpression: "SET #fence = :fence",
    ExpressionAttributeNames: { "#fence": attribute },
    ExpressionAttributeValues: { ":fence": fencingToken },
  };
}
