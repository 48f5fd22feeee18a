/**
 * The table from `aws dynamodb` commands, on the page "Into your account": it equals the table of the stack and of `npm
 * start`, and locks work on it.
 */
import type { AttributeDefinition, CreateTableCommandInput, KeySchemaElement, TableDescription } from "@aws-sdk/client-dynamodb";
import { CreateTableCommand, DeleteTableCommand, DescribeTableCommand } from "@aws-sdk/client-dynamodb";
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { tableRights } from "../../infra/access.js";
import { createLockClient } from "../../lib/dynamodb.js";
import { only } from "../infra/resources.js";
import { devTemplate } from "../infra/synthesize.js";
import { type FreshTable, freshTable } from "../support/engine.js";
import { readPage } from "./generated.js";

const [, SECTION = ""] = readPage("docs/into-your-account.md").split("### The table without the CDK\n");
const [, SCRIPT = ""] = /```sh\n([\s\S]*?)```/.exec(SECTION) ?? [];
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

describe("the table by commands", () => {
  it("is the stack's: keys, types, TTL, on demand, with point-in-time recovery and deletion protection, and nothing more", () => {
    const [, table] = only(devTemplate(), "AWS::DynamoDB::Table");
    const { Tags: _tags, ...properties } = table.Properties as Record<string, unknown>;
    expect(optionOf("create-table", "deletion-protection-enabled")).toEqual([""]);
    expect(properties).toEqual({
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

  it("gives direct clients the rights that grantDirect gives", () => {
    const named = [...SECTION.split("\n## ")[0]!.matchAll(/`(dynamodb:\w+)`/g)].map(([, action]) => action);
    expect(named).toEqual(tableRights({ tableArn: "arn" } as Parameters<typeof tableRights>[0], "default")[0].actions);
  });
});

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
