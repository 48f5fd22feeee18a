/** `holdfast doctor`: says whether a table is fit for locks, as far as the caller may know, or of services what they serve. It changes nothing. */
import type { TableDescription } from "@aws-sdk/client-dynamodb";
import { plain, plainJson } from "../../console/text/plain-text.js";
import { type TableShape, unfitness } from "../../lib/store/dynamo/fit-table.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { CliError } from "../cli-error.js";
import { type ConnectionOptions, AWS_SETTINGS, needing, silenceNodeWarning, whereOf } from "../connection.js";
import type { ProcessContext } from "../context.js";
import { doctorOfServices } from "./services.js";

/** Its answer to a caller without the right to ask. */
const DENIED = "AccessDeniedException";

/** Prints what the table is, or the services are. @throws CliError if the table is unfit, with the reasons, or neither is given or there is no table */
export async function doctor(at: ConnectionOptions, context: ProcessContext): Promise<number> {
  const { table: tableName, url } = whereOf(at, context.env);
  if (tableName === undefined) return doctorOfServices(url, at, context);
  silenceNodeWarning();
  const sdk = await needing(() => import("@aws-sdk/client-dynamodb"), ["@aws-sdk/client-dynamodb"]);
  const client = new sdk.DynamoDBClient(at.region === undefined ? {} : { region: at.region });
  const asked = await known(client.send(new sdk.DescribeTableCommand({ TableName: tableName })), tableName);
  const ttl = asked && (await known(client.send(new sdk.DescribeTimeToLiveCommand({ TableName: tableName })), tableName));
  client.destroy();
  if (!asked?.Table)
    return tell({}, "nothing is known of it: the right dynamodb:DescribeTable is missing", { ...context, table: tableName });
  const { AttributeName: attribute, TimeToLiveStatus: status } = ttl?.TimeToLiveDescription ?? {};
  const shape = shapeOf(asked.Table, ttl && { ttlAttribute: status === "ENABLED" || status === "ENABLING" ? attribute : undefined });
  const problems = unfitness(shape);
  if (problems.length > 0)
    throw new CliError("config", `${tableName}: ${problems.join("; ")}`, { next: "docs/on-the-table.md has how it is made." });
  const regions = (asked.Table.Replicas ?? []).flatMap(({ RegionName }) => RegionName ?? []);
  const where = shape.consistency ? `, strongly consistent in several Regions: ${regions.join(", ")}` : "";
  return tell({ isFit: true, ...(shape.consistency && { consistency: shape.consistency, regions }) }, `is fit for locks${where}`, {
    ...context,
    table: tableName,
  });
}

/** Returns the answer; undefined if the caller may not ask, or an engine doesn't know the question. @throws CliError if there is no such table */
async function known<Answer>(asking: Promise<Answer>, tableName: string): Promise<Answer | undefined> {
  try {
    return await asking;
  } catch (error) {
    const { name, message } = error as Error;
    if (name === DENIED || name === "UnknownOperationException") return undefined;
    if (name === "ResourceNotFoundException") throw new CliError("config", `there is no table ${tableName} in this account and Region`);
    throw new CliError(name === "TimeoutError" ? "unavailable" : "config", `the table can't be asked for: ${name}: ${message}`, {
      next: AWS_SETTINGS,
    });
  }
}

/** Returns the shape of a described table. A TTL that isn't known is taken for right. */
function shapeOf(described: TableDescription, ttl: Pick<TableShape, "ttlAttribute"> | undefined): TableShape {
  const { KeySchema = [], AttributeDefinitions = [], Replicas = [], MultiRegionConsistency: consistency } = described;
  const typeOf = (name = ""): string => AttributeDefinitions.find(({ AttributeName }) => AttributeName === name)?.AttributeType ?? "";
  const isStrong = consistency === "STRONG";
  return {
    keys: KeySchema.map(({ AttributeName: name = "" }) => `${name}:${typeOf(name)}`),
    hasIndex: [described.GlobalSecondaryIndexes, described.LocalSecondaryIndexes].some((some) => some && some.length > 0),
    consistency: isStrong ? "STRONG" : Replicas.length > 0 ? "EVENTUAL" : undefined,
    ...(ttl ?? { ttlAttribute: isStrong ? undefined : TABLE.ttlAttribute }),
  };
}

async function tell(asJson: object, said: string, { table, ...context }: ProcessContext & { readonly table: string }): Promise<number> {
  await context.print(context.asJson ? `${plainJson({ table, ...asJson })}\n` : `${plain(`${table}: ${said}`)}\n`);
  return 0;
}
