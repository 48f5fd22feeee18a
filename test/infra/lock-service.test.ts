/** The construct's options: which tables are fit for locks, and that two services never share anything. */
import { App, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { AttributeType, Table, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { describe, expect, it } from "vitest";
import { LockService } from "../../infra/lock-service.js";
import { HoldfastStack } from "../../infra/stack.js";
import { all, functionOf, only } from "./resources.js";
import { newApp, synthesizeOwn } from "./synthesize.js";

const STRING = AttributeType.STRING;
const FIT = {
  partitionKey: { name: "p", type: STRING },
  sortKey: { name: "k", type: STRING },
  timeToLiveAttribute: "x",
};

describe("a table that is there already", () => {
  it("serves in place of one's own", () => {
    const template = synthesizeOwn((stack) => ({ table: new Table(stack, "Mine", FIT) }));
    const [tableId] = only(template, "AWS::DynamoDB::Table");
    expect(tableId).toMatch(/^Mine/);
    expect(functionOf(template, "hold")[1].Properties.Environment).toMatchObject({ Variables: { HOLDFAST_TABLE: { Ref: tableId } } });
  });

  it("may be of another stack, of which nothing is known", () => {
    const arn = "arn:aws:dynamodb:eu-west-1:111122223333:table/locks";
    expect(
      all(
        synthesizeOwn((stack) => ({ table: Table.fromTableArn(stack, "Mine", arn) })),
        "AWS::DynamoDB::Table",
      ),
    ).toEqual([]);
  });

  it.each<[why: string, table: (stack: Stack) => Table | TableV2]>([
    ["a global table", (stack) => new TableV2(stack, "Mine", { ...FIT, replicas: [{ region: "eu-west-1" }] })],
    ["a kind of table to which a replica is a line", (stack) => new TableV2(stack, "Mine", FIT)],
    ["a table with replicas of the older kind", (stack) => new Table(stack, "Mine", { ...FIT, replicationRegions: ["eu-west-1"] })],
  ])("is refused as %s, and told why", (_why, table) => {
    expect(() => synthesizeIn("us-east-1", table)).toThrow(/table: must be in one Region.*last writer wins/s);
  });

  it("is refused when it becomes a global one after the service was made", () => {
    const app = newApp();
    const stack = new Stack(app, "shop", { env: { region: "us-east-1" } });
    const table = new TableV2(stack, "Mine", FIT);
    new LockService(stack, "Locks", { table });
    table.addReplica({ region: "eu-west-1" });
    expect(() => app.synth()).toThrow("table: must be in one Region");
  });

  it.each<[what: string, table: (stack: Stack) => Table, message: string]>([
    [
      "other keys",
      (stack) => new Table(stack, "Mine", { ...FIT, partitionKey: { name: "id", type: STRING } }),
      "table: must have the string keys p (partition) and k (sort)",
    ],
    [
      "no TTL attribute",
      (stack) => new Table(stack, "Mine", { partitionKey: FIT.partitionKey, sortKey: FIT.sortKey }),
      "table: must have the TTL attribute x",
    ],
    [
      "an index",
      (stack) => {
        const table = new Table(stack, "Mine", FIT);
        table.addGlobalSecondaryIndex({ indexName: "i", partitionKey: { name: "k", type: STRING } });
        return table;
      },
      "table: must have no index",
    ],
  ])("is refused with %s", (_what, table, message) => {
    expect(() => synthesizeIn("us-east-1", table)).toThrow(message);
  });
});

describe("two services", () => {
  it("of two stages never share a table, a function, a log or a metric", () => {
    const app = newApp();
    const [dev, prod] = ["dev", "prod"].map((stage) => new HoldfastStack(app, `holdfast-${stage}`));
    app.synth();
    for (const stack of [dev!, prod!]) {
      const named = JSON.stringify(Template.fromStack(stack).toJSON()).match(/"(?:TableName|FunctionName|LogGroupName|RoleName)":"/g);
      expect(named).toBeNull(); // Without a name of its own CloudFormation makes one, of the stack's.
    }
    expect([dev, prod].map((stack) => serviceOf(Template.fromStack(stack!)))).toEqual(["holdfast-dev-Locks", "holdfast-prod-Locks"]);
  });

  it("may be in one stack", () => {
    const app = newApp();
    const stack = new Stack(app, "shop");
    new LockService(stack, "Orders");
    new LockService(stack, "Payments");
    app.synth();
    const template = Template.fromStack(stack);
    expect(all(template, "AWS::DynamoDB::Table")).toHaveLength(2);
    const alarms = all(template, "AWS::CloudWatch::Alarm").map(([, alarm]) => alarm.Properties.AlarmName as string);
    expect(new Set(alarms).size).toBe(alarms.length);
  });
});

describe("options that make no sense", () => {
  it.each([
    [{ metricPrefixes: Array.from({ length: 11 }, (_, index) => `P${index}_`) }, "metricPrefixes: at most 10"],
    [{ metricPrefixes: ["a,b"] }, 'metricPrefixes: "a,b" is how no key begins'],
    [{ tenant: "claim:t" as const }, "tenant: a claim is in a token"],
  ])("%j", (props, message) => {
    expect(() => new LockService(new Stack(new App(), "shop"), "Locks", props)).toThrow(message);
  });
});

function synthesizeIn(region: string, tableFor: (stack: Stack) => Table | TableV2): void {
  const app = newApp();
  const stack = new Stack(app, "shop", { env: { region } });
  new LockService(stack, "Locks", { table: tableFor(stack) });
  app.synth();
}

function serviceOf(template: Template): unknown {
  return (functionOf(template, "hold")[1].Properties.Environment as { Variables: Record<string, unknown> }).Variables["HOLDFAST_SERVICE"];
}
