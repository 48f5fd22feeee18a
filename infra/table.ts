/**
 * The table of the locks, and the checks that a table is fit for them. It outlives the stack (RETAIN) and refuses deletion, because it
 * contains every lease and every fencing counter: a new, empty table would grant keys that are still held.
 */
import { RemovalPolicy, Stack } from "aws-cdk-lib";
import type { ITable, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AttributeType, BillingMode, CfnGlobalTable, CfnTable, StreamViewType, Table, TableEncryption } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import { TABLE } from "../lib/store/dynamo/table.js";

/** A table of this stack or another. (The CDK's types don't let a `Table` be an `ITable` under exactOptionalPropertyTypes.) */
export type LockTable = ITable | Table | TableV2;

const LAST_WRITER_WINS =
  'table: must be in one Region. A global table settles concurrent writes by "last writer wins", so two Regions would both grant ' +
  "the same lock; its strongly consistent kind has neither TTL nor transactions, which holdfast needs. Use a plain Table without replicas.";

const NEW_IMAGES: readonly string[] = [StreamViewType.NEW_IMAGE, StreamViewType.NEW_AND_OLD_IMAGES];

/** CloudFormation's type of a string attribute. */
const STRING: string = AttributeType.STRING;

/**
 * Creates a table for the locks.
 *
 * It is a plain `Table`, not a `TableV2`, so that a replica can't be added in one line. It has a stream only for an agent of sleepers, which
 * filters for the records of offers.
 */
export function createTable(scope: Construct, encryptionKey: IKey | undefined, hasAgent: boolean): Table {
  return new Table(scope, "Table", {
    partitionKey: { name: TABLE.partitionKey, type: AttributeType.STRING },
    sortKey: { name: TABLE.sortKey, type: AttributeType.STRING },
    timeToLiveAttribute: TABLE.ttlAttribute,
    billingMode: BillingMode.PAY_PER_REQUEST,
    // Safe for locks too: tokens are never below the clock, so they keep rising after a restore.
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
    ...(hasAgent && { stream: StreamViewType.NEW_IMAGE }),
    ...(encryptionKey && { encryption: TableEncryption.CUSTOMER_MANAGED, encryptionKey }),
  });
}

/** Returns the ARN of the table's stream, if it has one with new images, as far as that is known here. */
export function streamOf(table: LockTable): string | undefined {
  const resource = table.node.defaultChild;
  const { streamViewType } = (resource instanceof CfnTable ? (Stack.of(resource).resolve(resource.streamSpecification) ?? {}) : {}) as {
    readonly streamViewType?: string;
  };
  return streamViewType === undefined || NEW_IMAGES.includes(streamViewType) ? table.tableStreamArn : undefined;
}

/** Returns the reasons why `table` can't be used for locks, a sentence each. The properties of another stack's table are unknown. */
export function unfitness(table: LockTable): string[] {
  const resource = table.node.defaultChild;
  if (resource instanceof CfnGlobalTable || table.node.children.some(({ node }) => node.id.startsWith("Replica")))
    return [LAST_WRITER_WINS];
  if (!(resource instanceof CfnTable)) return [];
  const declared = Stack.of(resource).resolve({
    keySchema: resource.keySchema,
    attributeDefinitions: resource.attributeDefinitions,
    timeToLiveSpecification: resource.timeToLiveSpecification,
    indexes: [resource.globalSecondaryIndexes, resource.localSecondaryIndexes],
  }) as {
    readonly keySchema?: readonly { readonly attributeName: string }[];
    readonly attributeDefinitions?: readonly { readonly attributeName: string; readonly attributeType: string }[];
    readonly timeToLiveSpecification?: { readonly attributeName?: string; readonly enabled?: boolean };
    readonly indexes: readonly (readonly unknown[] | undefined)[];
  };
  const { keySchema = [], attributeDefinitions = [], timeToLiveSpecification: ttl, indexes } = declared;
  const typeOf = (name: string): string => attributeDefinitions.find(({ attributeName }) => attributeName === name)?.attributeType ?? "";
  const keys = keySchema.map(({ attributeName }) => `${attributeName}:${typeOf(attributeName)}`).join(", ");
  return [
    ...(keys === `${TABLE.partitionKey}:${STRING}, ${TABLE.sortKey}:${STRING}`
      ? []
      : [`table: must have the string keys ${TABLE.partitionKey} (partition) and ${TABLE.sortKey} (sort)`]),
    ...(ttl?.enabled === true && ttl.attributeName === TABLE.ttlAttribute
      ? []
      : [`table: must have the TTL attribute ${TABLE.ttlAttribute}: without it nothing is ever collected`]),
    ...(indexes.some((some) => some && some.length > 0) ? ["table: must have no index: every heartbeat would be written to it too"] : []),
  ];
}
