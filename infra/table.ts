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
import { TABLE } from "../lib/store/table.js";

/** A table of one's own or of another stack. (The CDK's types don't let a `Table` be an `ITable` where optional means absent.) */
export type LockTable = ITable | Table | TableV2;

const LAST_WRITER_WINS =
  'table: must be in one Region. A global table settles concurrent writes by "last writer wins", so two Regions would both grant ' +
  "the same lock; its strongly consistent kind has neither TTL nor transactions, which holdfast needs. Use a plain Table without replicas.";

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
  const { keySchema, timeToLiveSpecification, globalSecondaryIndexes } = Stack.of(table).resolve({
    keySchema: resource.keySchema,
    timeToLiveSpecification: resource.timeToLiveSpecification,
    globalSecondaryIndexes: resource.globalSecondaryIndexes,
  }) as Pick<CfnTable, "keySchema" | "timeToLiveSpecification" | "globalSecondaryIndexes">;
  const keys = (keySchema as { attributeName: string }[] | undefined)?.map(({ attributeName }) => attributeName).join(", ");
  const ttl = timeToLiveSpecification as { attributeName?: string; enabled?: boolean } | undefined;
  return [
    ...(keys === `${TABLE.partitionKey}, ${TABLE.sortKey}`
      ? []
      : [`table: must have the string keys ${TABLE.partitionKey} (partition) and ${TABLE.sortKey} (sort)`]),
    ...(ttl?.enabled === true && ttl.attributeName === TABLE.ttlAttribute
      ? []
      : [`table: must have the TTL attribute ${TABLE.ttlAttribute}: without it nothing is ever collected`]),
    ...(globalSecondaryIndexes ? ["table: must have no index: every heartbeat would be written to it too"] : []),
  ];
}
