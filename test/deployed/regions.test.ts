/**
 * The template for a Region, deployed in two of them onto one table, as docs/without-the-cdk.md says. The emulator has the Regions in one process and
 * copies each write to the other replica at once, so no two writes meet, and no Region is cut off: here is what CloudFormation, IAM and the
 * functions make of it.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { sigv4 } from "../../lib/sigv4.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { call, inXml, putStack, query, upload } from "./aws.js";
import { ROOT } from "./emulator.js";
import { TEMPLATE_DIRECTORY } from "./setup.js";

const [HERE, THERE] = ["us-east-1", "us-east-2"] as const;
const TableName = "locks-in-two-regions";
/** The emulator makes a role's name of the stack's and knows one for both Regions, so the stacks have different names. */
const stackIn = (region: string): string => `locks-in-${region}`;
const urls: string[] = [];

const clientOf = (url: string, region: string) => createLockClient({ url, sign: sigv4({ region, credentials: ROOT }), leaseMs: 10_000 });

beforeAll(async () => {
  await call("dynamodb", "CreateTable", {
    ...{ TableName, BillingMode: "PAY_PER_REQUEST" },
    AttributeDefinitions: [TABLE.partitionKey, TABLE.sortKey].map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: [
      { AttributeName: TABLE.partitionKey, KeyType: "HASH" },
      { AttributeName: TABLE.sortKey, KeyType: "RANGE" },
    ],
  });
  await call("dynamodb", "UpdateTable", {
    TableName,
    MultiRegionConsistency: "STRONG",
    ReplicaUpdates: [{ Create: { RegionName: THERE } }],
  });
  const template = readFileSync(join(TEMPLATE_DIRECTORY, "holdfast-in-region.template.json"), "utf8");
  const zip = { "function.zip": readFileSync(join(TEMPLATE_DIRECTORY, "function.zip")) };
  for (const [region, Replicas] of [
    [HERE, THERE],
    [THERE, HERE],
  ] as const) {
    // Lambda takes code from a bucket of its own Region.
    const CodeBucket = `artifacts-${region}`;
    await upload(CodeBucket, zip, region);
    const parameters = { CodeBucket, CodeKey: "function.zip", Table: TableName, Replicas };
    const { Url = "" } = await putStack("CreateStack", { name: stackIn(region), template, parameters, region });
    urls.push(Url);
  }
}, 180_000);

describe("a service in each of two Regions", () => {
  it("serves one table: what one granted, the other knows, with rising tokens", async () => {
    const [here, there] = [clientOf(urls[0]!, HERE), clientOf(urls[1]!, THERE)];
    const lease = await here.acquire("BOTH_1");
    expect(await there.tryAcquire("BOTH_1")).toBeNull();
    await lease.release();
    const next = await there.acquire("BOTH_1");
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await there.withLocks(["BOTH_2", "BOTH_3"], () => undefined);
  });

  it("is deployed with functions of its own", async () => {
    const idIn = async (region: string): Promise<string> =>
      inXml(await query("cloudformation", "DescribeStacks", { StackName: stackIn(region) }, region), "StackId");
    expect(await idIn(HERE)).toContain(`:${HERE}:`);
    expect(await idIn(THERE)).toContain(`:${THERE}:`);
    expect(new Set(urls).size).toBe(2);
  });
});
