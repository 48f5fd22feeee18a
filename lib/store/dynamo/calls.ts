/**
 * The port to DynamoDB: the operations that the store sends, with plain values, independent of the transport. Errors keep DynamoDB's
 * names. A refused condition has the item in wire form, as in the AWS SDK.
 */
import type { Item } from "./layout.js";

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
  readonly ReturnValues?: "ALL_OLD" | "ALL_NEW";
  readonly ReturnValuesOnConditionCheckFailure?: "ALL_OLD";
}

/** A conditional deletion of one item. */
export type DeleteInput = Pick<UpdateInput, "TableName" | "Key" | "ConditionExpression" | "ExpressionAttributeValues">;

/** A strongly consistent read of one item. */
export interface GetInput {
  readonly TableName: string;
  readonly Key: Item;
  readonly ConsistentRead: true;
}

/** A page of items. The read may be old. */
interface PageInput {
  readonly TableName: string;
  readonly FilterExpression: string;
  readonly ProjectionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues: Item;
  readonly Limit: number;
  readonly ExclusiveStartKey?: Item;
}

/** A page of one partition. */
export interface QueryInput extends PageInput {
  readonly KeyConditionExpression: string;
}

/** A page of one of several segments of a table. */
export interface ScanInput extends PageInput {
  readonly Segment: number;
  readonly TotalSegments: number;
}

/** The items of a page that pass its filter, and the key after which the next page begins; absent at the end. */
export interface PageOutput {
  readonly Items?: readonly Item[] | undefined;
  readonly LastEvaluatedKey?: Item | undefined;
}

/** Several conditional writes, all or none. */
export interface TransactInput {
  /** The same in every attempt, so a transaction that was carried out isn't carried out again. DynamoDB takes two with one token for one. */
  readonly ClientRequestToken: string;
  readonly TransactItems: readonly { readonly Update: UpdateInput }[];
}

/** The operations. Each rejects with an error with DynamoDB's name or the network's. */
export interface TableCalls {
  updateItem(input: UpdateInput): Promise<{ readonly Attributes?: Item | undefined }>;
  getItem(input: GetInput): Promise<{ readonly Item?: Item | undefined }>;
  query(input: QueryInput): Promise<PageOutput>;
  transactWriteItems(input: TransactInput): Promise<unknown>;
}

/** The same, and those that no service sends: the agent deletes sleepers, and a sweep what is over. */
export interface AllCalls extends TableCalls {
  scan(input: ScanInput): Promise<PageOutput>;
  deleteItem(input: DeleteInput): Promise<unknown>;
}

/** Returns what makes a transport with the first call, and returns it from then on. If that fails, the next call makes it again. */
export function madeOnce<Calls>(make: () => Promise<Calls>): () => Promise<Calls> {
  let made: Promise<Calls> | undefined;
  return () =>
    (made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    }));
}

/** Returns operations whose transport is made with the first request. If that fails, the next request makes it again. */
export function deferredCalls(make: () => Promise<TableCalls>): TableCalls {
  const transport = madeOnce(make);
  return {
    updateItem: async (input) => (await transport()).updateItem(input),
    getItem: async (input) => (await transport()).getItem(input),
    query: async (input) => (await transport()).query(input),
    transactWriteItems: async (input) => (await transport()).transactWriteItems(input),
  };
}

/** The reason why one part of a transaction refused it. `Code` is `None` for a part that didn't. */
export interface CancellationReason {
  readonly Code?: string | undefined;
  readonly Message?: string | undefined;
  readonly Item?: WireItem | undefined;
}

/** True if a condition was refused. The error has the item if the request asked for it. */
export function isConditionFailed(error: unknown): error is Error & { readonly Item?: WireItem } {
  return (error as Error | undefined)?.name === "ConditionalCheckFailedException";
}

/** Returns the reason of each part of a cancelled transaction; empty for other errors. */
export function cancellationReasons(error: unknown): readonly CancellationReason[] {
  const { name, CancellationReasons } = error as { readonly name?: string; readonly CancellationReasons?: readonly CancellationReason[] };
  return name === "TransactionCanceledException" && CancellationReasons ? CancellationReasons : [];
}
