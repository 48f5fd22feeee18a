/**
 * The table of the locks, and the checks that a table is fit for them. It outlives the stack (RETAIN) and refuses deletion, because it
 * contains every lease and every fencing counter: a new, empty table would grant keys that are still held.
 */
import { Names, RemovalPolicy, Stack } from "aws-cdk-lib";
import {
  type ITable,
  AttributeType,
  BillingMode,
  CfnGlobalTable,
  CfnTable,
  MultiRegionConsistency,
  StreamViewType,
  Table,
  TableEncryption,
  TableV2,
} from "aws-cdk-lib/aws-dynamodb";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import { LAST_WRITER_WINS, unfitness } from "../lib/store/dynamo/fit-table.js";
import { TABLE } from "../lib/store/dynamo/table.js";

/** A table of this stack or another. (The CDK's types don't let a `Table` be an `ITable` under exactOptionalPropertyTypes.) */
export type LockTable = ITable | Table | TableV2;

const ONE_OR_STRONG =
  "table: must be a plain Table without replicas, or a TableV2 with multiRegionConsistency: MultiRegionConsistency.STRONG and the option regions. " +
  `EVENTUAL is what a TableV2 has by default. ${LAST_WRITER_WINS}`;
const NO_REGIONS =
  "regions: must be given with a table that is strongly consistent in several Regions: it has neither TTL nor transactions, so the service sweeps it, " +
  "and acquires sets in parts";
const ONE_REGION = "regions: given, and the table is a plain Table of one Region: make it a TableV2 with MultiRegionConsistency.STRONG";

const NEW_IMAGES: readonly string[] = [StreamViewType.NEW_IMAGE, StreamViewType.NEW_AND_OLD_IMAGES];

const STRONG = "STRONG" satisfies `${MultiRegionConsistency}`;

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

/** The longest name of a table that is known to all its stacks. DynamoDB allows 255 characters. */
const NAME_MAX_CHARS = 200;

/**
 * Creates a table that is strongly consistent in these Regions, the stack's own first. It has no TTL, which AWS doesn't allow: a sweep
 * deletes what is over. Its name is fixed by the construct's path, since the stacks of other Regions have to know it.
 */
export function createRegionalTable(scope: Construct, [, ...others]: readonly string[], witnessRegion: string | undefined): TableV2 {
  return new TableV2(scope, "Table", {
    tableName: Names.uniqueResourceName(scope, { separator: "-", maxLength: NAME_MAX_CHARS, allowedSpecialCharacters: "_-" }),
    partitionKey: { name: TABLE.partitionKey, type: AttributeType.STRING },
    sortKey: { name: TABLE.sortKey, type: AttributeType.STRING },
    multiRegionConsistency: MultiRegionConsistency.STRONG,
    replicas: others.map((region) => ({ region })),
    ...(witnessRegion !== undefined && { witnessRegion }),
    // As for a table of one Region, at each replica. The CDK gives it a stream of new and old images.
    pointInTimeRecoverySpecification: { pointInTimeRecoveryEnabled: true },
    deletionProtection: true,
    removalPolicy: RemovalPolicy.RETAIN,
  });
}

/** Returns the ARN of the table's stream, if it has one with new images, as far as that is known here. */
export function streamOf(table: LockTable): string | undefined {
  const resource = table.node.defaultChild;
  const isKnown = resource instanceof CfnTable || resource instanceof CfnGlobalTable;
  const { streamViewType } = (isKnown ? (Stack.of(resource).resolve(resource.streamSpecification) ?? {}) : {}) as {
    readonly streamViewType?: string;
  };
  return streamViewType === undefined || NEW_IMAGES.includes(streamViewType) ? table.tableStreamArn : undefined;
}

/** The properties of a table's resource that decide if it is fit. */
interface Declared {
  readonly keySchema?: readonly { readonly attributeName: string }[];
  readonly attributeDefinitions?: readonly { readonly attributeName: string; readonly attributeType: string }[];
  readonly timeToLiveSpecification?: { readonly attributeName?: string; readonly enabled?: boolean };
  readonly indexes: readonly (readonly unknown[] | undefined)[];
  readonly multiRegionConsistency?: string;
  readonly replicas?: readonly { readonly region: string }[];
}

/**
 * Returns the reasons why `table` can't be used for locks, a sentence each. The properties of another stack's table are unknown.
 * @param regions the Regions with a replica of it, as they were given; undefined for a table of one Region
 */
export function unfitnessOf(table: LockTable, regions: readonly string[] | undefined): readonly string[] {
  const resource = table.node.defaultChild;
  const isGlobal = resource instanceof CfnGlobalTable;
  if (!isGlobal && table.node.children.some(({ node }) => node.id.startsWith("Replica"))) return [ONE_OR_STRONG];
  if (!isGlobal && !(resource instanceof CfnTable)) return [];
  const declared = Stack.of(resource).resolve({
    keySchema: resource.keySchema,
    attributeDefinitions: resource.attributeDefinitions,
    timeToLiveSpecification: resource.timeToLiveSpecification,
    indexes: [resource.globalSecondaryIndexes, resource.localSecondaryIndexes],
    ...(isGlobal && { multiRegionConsistency: resource.multiRegionConsistency, replicas: resource.replicas }),
  }) as Declared;
  const isStrong = declared.multiRegionConsistency === STRONG;
  if (isGlobal && !isStrong) return [ONE_OR_STRONG];
  const { keySchema = [], attributeDefinitions = [], timeToLiveSpecification: ttl, indexes, replicas = [] } = declared;
  const typeOf = (name: string): string => attributeDefinitions.find(({ attributeName }) => attributeName === name)?.attributeType ?? "";
  return [
    ...unfitness({
      keys: keySchema.map(({ attributeName }) => `${attributeName}:${typeOf(attributeName)}`),
      ttlAttribute: ttl?.enabled === true ? ttl.attributeName : undefined,
      hasIndex: indexes.some((some) => some && some.length > 0),
      consistency: isStrong ? STRONG : undefined,
    }),
    ...(isStrong ? otherRegions(replicas, regions) : regions ? [ONE_REGION] : []),
  ];
}

function otherRegions(replicas: NonNullable<Declared["replicas"]>, regions: readonly string[] | undefined): string[] {
  if (!regions) return [NO_REGIONS];
  const own = replicas.map(({ region }) => region).toSorted();
  const isSame = regions.length === own.length && own.every((region) => regions.includes(region));
  return isSame ? [] : [`regions: the table has replicas in ${own.join(", ")}, and not in ${regions.join(", ")}`];
}
