/**
 * The table under the locks, and what makes a table unfit for them. It outlives the stack (RETAIN) and
 * refuses deletion, because every lease and every fencing counter of every caller is in it: a new, empty
 * table would grant what others still hold.
 */
import { RemovalPolicy, Stack } from "aws-cdk-lib";
import type { ITable, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AttributeType, BillingMode, CfnGlobalTable, CfnTable, Table, TableEncryption } from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import { TABLE } from "../lib/store/dynamo/table.js";

/** A table of one's own or of another stack. (The CDK's types don't let a `Table` be an `ITable` where optional means absent.) */
export type LockTable = ITable | Table | TableV2;

const LAST_WRITER_WINS =
  'table: must be in one Region. A global table settles concurrent writes by "last writer wins", so two Regions would both grant ' +
  "the same lock; its strongly consistent kind has neither TTL nor transactions, which holdfast needs. Use a plain Table without replicas.";

/** A string, as CloudFormation writes it. */
const STRING: string = AttributeType.STRING;

/**
 * A table for the locks.
 *
 * A plain `Table`, not `TableV2`, so that adding a replica is no one-line change. No stream: nothing reads
 * one, and every heartbeat would be a record in it.
 */
export function createTable(scope: Construct, encryptionKey: IKey | undefined): Table {
  return new Table(scope, "Table", {
    partitionKey: { name: TABLE.partitionKey, type: AttributeType.STRING },
    sortKey: { name: TABLE.sortKey, type: AttributeType.STRING },
    timeToLiveAttribute: TABLE.ttlAttribute,
    billingMode: BillingMode.PAY_PER_REQUEST,
    // Safe for locks too: tokens are never below the clock, so they keep rising after a restore.
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
    ...(encryptionKey && { encryption: TableEncryption.CUSTOMER_MANAGED, encryptionKey }),
  });
}

/** What keeps `table` from being used for locks, a sentence each. Of a table that another stack made, nothing can be told. */
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
