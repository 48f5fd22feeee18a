/**
 * The table by a user's own tools, on the page "Straight on the table": each form is the table of the stack, locks work on it, and the
 * policy is what grantDirect gives.
 */
import type { AttributeDefinition, CreateTableCommandInput, KeySchemaElement, TableDescription } from "@aws-sdk/client-dynamodb";
import { CreateTableCommand, DeleteTableCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import { Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { transform } from "esbuild";
import { parseToObject } from "hcl2-parser";
import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { tableRights } from "../../infra/access.js";
import { createLockClient } from "../../lib/dynamodb.js";
import { only } from "../infra/resources.js";
import { devTemplate, newApp, synthesizeOwn } from "../infra/synthesize.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { readPage } from "./generated.js";
import { guide, workshop } from "./snippets.js";

const [, SECTION = ""] = readPage("docs/on-the-table.md").split("## The table by your own tools\n");
const [, SCRIPT = ""] = /```sh\n([\s\S]*?)```/.exec(SECTION) ?? [];
const [TERRAFORM = "", TERRAFORM_POLICY = ""] = [...SECTION.matchAll(/```hcl\n([\s\S]*?)```/g)].map(([, text]) => text!);
const [CLOUDFORMATION, POLICY] = [...SECTION.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text]) => JSON.parse(text!) as unknown) as [
  { Resources: { Holdfast: { Properties: Record<string, unknown> } } },
  { Statement: readonly object[] },
];
const COMMANDS = SCRIPT.replaceAll(/\\\n\s*/g, "")
  .trim()
  .split("\n");

/** Parses the command line's `A=1,B=2` into an object. */
const shorthand = (text: string): Record<string, string> => Object.fromEntries(text.split(",").map((pair) => pair.split("=")));

/** Returns the words after `--option` in the command. @throws Error if the page has no such command. */
function optionOf(command: string, option: string): readonly string[] {
  const line = COMMANDS.find((one) => one.startsWith(`aws dynamodb ${command} `));
  const [, rest] = line?.split(` --${option}`) ?? [];
  if (rest === undefined) throw new Error(`the page has no ${command} --${option}`);
  return rest.split(" --")[0]!.trim().split(" ");
}

const keys = {
  AttributeDefinitions: optionOf("create-table", "attribute-definitions").map(shorthand) as unknown as AttributeDefinition[],
  KeySchema: optionOf("create-table", "key-schema").map(shorthand) as unknown as KeySchemaElement[],
};
const [BillingMode = ""] = optionOf("create-table", "billing-mode");
const ttl = shorthand(optionOf("update-time-to-live", "time-to-live-specification")[0]!);
const backups = shorthand(optionOf("update-continuous-backups", "point-in-time-recovery-specification")[0]!);

/** The properties of the stack's table. */
function ofStack(): object {
  const [, table] = only(devTemplate(), "AWS::DynamoDB::Table");
  const { Tags: _tags, ...properties } = table.Properties as Record<string, unknown>;
  return properties;
}

describe("the table by a user's own tools", () => {
  it("is the stack's by commands: keys, types, TTL, on demand, with point-in-time recovery and deletion protection, and nothing more", () => {
    expect(optionOf("create-table", "deletion-protection-enabled")).toEqual([""]);
    expect(ofStack()).toEqual({
      ...keys,
      BillingMode,
      DeletionProtectionEnabled: true,
      TimeToLiveSpecification: { AttributeName: ttl["AttributeName"], Enabled: ttl["Enabled"] === "true" },
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: backups["PointInTimeRecoveryEnabled"] === "true" },
    });
  });

  it("is made by four commands about one table, the name that a client takes by default aside", () => {
    expect(COMMANDS).toHaveLength(4);
    for (const command of COMMANDS) expect(command).toMatch(/^aws dynamodb [\w- ]+ --table-name holdfast\b/);
  });

  it("is the stack's by Terraform", () => {
    const [parsed] = parseToObject(TERRAFORM) as [{ resource: { aws_dynamodb_table: { holdfast: readonly [TerraformTable] } } }];
    const [table] = parsed.resource.aws_dynamodb_table.holdfast;
    const of = (name: string): string => table.attribute.find((one) => one.name === name)!.type;
    expect(ofStack()).toEqual({
      AttributeDefinitions: [table.hash_key, table.range_key].map((name) => ({ AttributeName: name, AttributeType: of(name) })),
      KeySchema: [
        { AttributeName: table.hash_key, KeyType: "HASH" },
        { AttributeName: table.range_key, KeyType: "RANGE" },
      ],
      BillingMode: table.billing_mode,
      DeletionProtectionEnabled: table.deletion_protection_enabled,
      TimeToLiveSpecification: { AttributeName: table.ttl[0].attribute_name, Enabled: table.ttl[0].enabled },
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: table.point_in_time_recovery[0].enabled },
    });
    expect(table.attribute).toHaveLength(2);
  });

  it("is the stack's by CloudFormation and by the CDK", async () => {
    const { TableName, ...byTemplate } = CLOUDFORMATION.Resources.Holdfast.Properties;
    expect(byTemplate).toEqual(ofStack());
    expect(TableName).toBe("holdfast");
    expect(only(await byCdk(), "AWS::DynamoDB::Table")[1].Properties).toEqual({ TableName, ...byTemplate });
  });

  it("lets a client do what grantDirect gives, and nothing else", () => {
    const tableArn = "arn:aws:dynamodb:eu-west-1:123456789012:table/holdfast";
    const given = rightsTo(tableArn).map(({ actions, conditions }) => ({
      Effect: "Allow",
      Action: actions,
      Resource: tableArn,
      Condition: conditions,
    }));
    expect(POLICY.Statement).toEqual(given);
  });

  it("lets a client do the same by Terraform", () => {
    const [{ data, resource }] = parseToObject(TERRAFORM_POLICY) as [TerraformPolicy];
    // The name that Terraform gives to the ARN of the table above.
    const given = rightsTo("${aws_dynamodb_table.holdfast.arn}").map(({ actions, resourceArns, conditions = {} }) => ({
      actions,
      resources: resourceArns,
      condition: Object.entries(conditions).flatMap(([test, keys]) =>
        Object.entries(keys).map(([variable, values]) => ({ test, variable, values: [values].flat() })),
      ),
    }));
    expect(data.aws_iam_policy_document.holdfast_client).toEqual([{ statement: given }]);
    expect(resource.aws_iam_policy.holdfast_client[0].policy).toBe("${data.aws_iam_policy_document.holdfast_client.json}");
  });
});

describe("the table in several Regions by a user's own tools", () => {
  const [, section = ""] = SECTION.split("## The table in several Regions\n");
  const template = synthesizeOwn(() => ({ regions: { replicas: ["us-east-2"], witness: "us-west-2" } }), undefined, "us-east-1");
  const { TableName: _, ...ofConstruct } = only(template, "AWS::DynamoDB::GlobalTable")[1].Properties as Record<string, unknown>;
  const Replicas = (ofConstruct["Replicas"] as { readonly Region: string }[]).toSorted((a, b) => a.Region.localeCompare(b.Region));
  const protectedIn = (Region: string): object => ({
    Region,
    DeletionProtectionEnabled: true,
    PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
  });

  it("is the construct's by commands", () => {
    const scripts = [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text]) => text!.replaceAll(/\\\n\s*/g, "").trim());
    const [[create = "", , update = ""] = [], each = ""] = [scripts[0]?.split("\n"), scripts[1]];
    const json = (option: string): unknown => JSON.parse(new RegExp(`--${option} '(.*?)'`).exec(update)![1]!);
    for (const option of ["attribute-definitions", "key-schema"])
      expect(create).toContain(` --${option} ${optionOf("create-table", option).join(" ")} --`);
    expect(create).toMatch(/--region us-east-1 .*--billing-mode PAY_PER_REQUEST --deletion-protection-enabled$/);
    expect(ofConstruct).toMatchObject({
      ...keys,
      BillingMode,
      MultiRegionConsistency: /--multi-region-consistency (\w+)/.exec(update)![1],
    });
    expect(json("replica-updates")).toEqual([{ Create: { RegionName: "us-east-2" } }]);
    expect(json("global-table-witness-updates")).toEqual([{ Create: { RegionName: "us-west-2" } }]);
    expect(ofConstruct["GlobalTableWitnesses"]).toEqual([{ Region: "us-west-2" }]);
    expect(each.match(/--region \$REGION /g)).toHaveLength(2);
    expect(each).toMatch(/PointInTimeRecoveryEnabled=true[\s\S]*--deletion-protection-enabled$/);
    expect(Replicas).toEqual([protectedIn("us-east-1"), protectedIn("us-east-2")]);
    expect(section).not.toMatch(/time-to-live|ttl \{/);
  });

  it("is the construct's by Terraform", () => {
    const [, hcl = ""] = /```hcl\n([\s\S]*?)```/.exec(section) ?? [];
    const [parsed] = parseToObject(hcl) as [{ resource: { aws_dynamodb_table: { holdfast: readonly [TerraformRegionalTable] } } }];
    const [table] = parsed.resource.aws_dynamodb_table.holdfast;
    const of = (name: string): string => table.attribute.find((one) => one.name === name)!.type;
    const replicaOf = (Region: string, isProtected: boolean, PointInTimeRecoveryEnabled: boolean): object => ({
      Region,
      DeletionProtectionEnabled: isProtected,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled },
    });
    expect(table.replica.map((one) => one.consistency_mode)).toEqual(["STRONG"]);
    expect({ ...ofConstruct, Replicas }).toEqual({
      AttributeDefinitions: [table.hash_key, table.range_key].map((name) => ({ AttributeName: name, AttributeType: of(name) })),
      KeySchema: [
        { AttributeName: table.hash_key, KeyType: "HASH" },
        { AttributeName: table.range_key, KeyType: "RANGE" },
      ],
      BillingMode: table.billing_mode,
      MultiRegionConsistency: "STRONG",
      GlobalTableWitnesses: table.global_table_witness.map(({ region_name }) => ({ Region: region_name })),
      StreamSpecification: { StreamViewType: table.stream_view_type },
      Replicas: [
        replicaOf("us-east-1", table.deletion_protection_enabled, table.point_in_time_recovery[0].enabled),
        ...table.replica.map((one) => replicaOf(one.region_name, one.deletion_protection_enabled, one.point_in_time_recovery)),
      ],
    });
  });
});

/** The rights that grantDirect gives to a client in the namespace `default`. */
const rightsTo = (tableArn: string): ReturnType<typeof tableRights> => tableRights([tableArn], "default");

/** Returns the template that the page's code makes with the CDK. */
async function byCdk(): Promise<Template> {
  const directory = await workshop();
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "table.mjs");
  await writeFile(file, (await transform(guide("on-the-table").forms[0]!, { loader: "ts" })).code);
  const { holdfastTable } = (await import(file)) as { readonly holdfastTable: (scope: Stack) => object };
  const stack = new Stack(newApp(), "own");
  holdfastTable(stack);
  return Template.fromStack(stack);
}

/** The members of Terraform's table that the page sets. */
interface TerraformTable {
  readonly billing_mode: string;
  readonly hash_key: string;
  readonly range_key: string;
  readonly deletion_protection_enabled: boolean;
  readonly attribute: readonly { readonly name: string; readonly type: string }[];
  readonly ttl: readonly [{ readonly attribute_name: string; readonly enabled: boolean }];
  readonly point_in_time_recovery: readonly [{ readonly enabled: boolean }];
}

interface TerraformRegionalTable extends TerraformTable {
  readonly stream_view_type: string;
  readonly replica: readonly {
    readonly region_name: string;
    readonly consistency_mode: string;
    readonly point_in_time_recovery: boolean;
    readonly deletion_protection_enabled: boolean;
  }[];
  readonly global_table_witness: readonly { readonly region_name: string }[];
}

/** The page's policy for Terraform. */
interface TerraformPolicy {
  readonly data: { readonly aws_iam_policy_document: { readonly holdfast_client: readonly unknown[] } };
  readonly resource: { readonly aws_iam_policy: { readonly holdfast_client: readonly [{ readonly policy: string }] } };
}

describe("on an engine, the table by commands", () => {
  const tableName = `by-commands-${randomUUID()}`;
  let fresh: FreshTable;

  async function described(name: string): Promise<Partial<TableDescription>> {
    const { Table } = await fresh.client.send(new DescribeTableCommand({ TableName: name }));
    const byName = (one: AttributeDefinition, other: AttributeDefinition): number => one.AttributeName!.localeCompare(other.AttributeName!);
    return { KeySchema: Table!.KeySchema!, AttributeDefinitions: Table!.AttributeDefinitions!.toSorted(byName) };
  }

  beforeAll(async () => {
    fresh = await freshTable();
    const input = { TableName: tableName, BillingMode, ...keys } as CreateTableCommandInput;
    await fresh.client.send(new CreateTableCommand(input));
  });
  afterAll(async () => {
    await fresh.client.send(new DeleteTableCommand({ TableName: tableName }));
    fresh.client.destroy();
  });

  it("has the keys of npm start's", async () => {
    expect(await described(tableName)).toEqual(await described(fresh.tableName));
  });

  it("takes locks", async () => {
    const locks = createLockClient({ ...fresh.place, tableName });
    expect(await locks.withLock("key", (lease) => lease.isHeld())).toBe(true);
  });
});
