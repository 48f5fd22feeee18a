/**
 * The port to DynamoDB: the four operations that the store sends, with plain values, and nothing of how they travel.
 * Errors keep the names that DynamoDB gives them. A refused condition brings the item in wire form, as the AWS SDK does.
 */
import type { Item } from "./item.js";

/** A value in DynamoDB's wire form: one member, named by the value's type. */
export type WireValue = Readonly<Record<string, unknown>>;
/** An item in wire form. */
export type WireItem = Readonly<Record<string, WireValue>>;

/** A conditional write of one item. */
export interface UpdateInput {
  readonly TableName: string;
  readonly Key: Item;
  readonly ConditionExpression: string;
  readonly UpdateExpression: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues: Item;
  readonly ReturnValues?: "ALL_OLD";
  readonly ReturnValuesOnConditionCheckFailure?: "ALL_OLD";
}

/** A strongly consistent read of one item. */
export interface GetInput {
  readonly TableName: string;
  readonly Key: Item;
  readonly ConsistentRead: true;
}

/** A page of one partition. */
export interface QueryInput {
  readonly TableName: string;
  readonly KeyConditionExpression: string;
  readonly FilterExpression: string;
  readonly ExpressionAttributeNames: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues: Item;
  readonly Limit: number;
}

/** Several conditional writes, all or none. */
export interface TransactInput {
  readonly TransactItems: readonly { readonly Update: UpdateInput }[];
}

/** The operations. Each rejects with an error that has DynamoDB's name for it, or the network's. */
export interface TableCalls {
  updateItem(input: UpdateInput): Promise<{ readonly Attributes?: Item | undefined }>;
  getItem(input: GetInput): Promise<{ readonly Item?: Item | undefined }>;
  query(input: QueryInput): Promise<{ readonly Items?: readonly Item[] | undefined; readonly LastEvaluatedKey?: Item | undefined }>;
  transactWriteItems(input: TransactInput): Promise<unknown>;
}

/** A reason for one part of a transaction to refuse it; `Code` is `None` where it did not. */
export interface CancellationReason {
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly Item?: WireItem | undefined;
}

/** Tells a refused condition, which brings the item where it was asked for, from every other error. */
export function isConditionFailed(error: unknown): error is Error & { readonly Item?: WireItem } {
  return (error as Error | undefined)?.name === "ConditionalCheckFailedException";
}

/** Tells why each part of a transaction refused it; empty where the error is another one. */
export function cancellationReasons(error: unknown): readonly CancellationReason[] {
  const { name, CancellationReasons } = error as { readonly name?: string; readonly CancellationReasons?: readonly CancellationReason[] };
  return name === "TransactionCanceledException" && CancellationReasons ? CancellationReasons : [];
}
