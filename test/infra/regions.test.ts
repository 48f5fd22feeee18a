/** A table in several Regions: its rules, the service of each Region on it, and their rights. The recorded templates have the rest. */
import { type Stack as CdkStack, Annotations, CfnOutput, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { AttributeType, MultiRegionConsistency, StreamViewType, Table, TableEncryptionV2, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, it } from "vitest";
import { LockService } from "../../infra/lock-service.js";
import type { LockServiceProps } from "../../infra/props.js";
import type { RegionsOptions } from "../../infra/regions.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { addStacks } from "../../examples/two-regions/stacks.js";
import { type Statement, all, functionOf, grantedStatements, only, statementsOf } from "./resources.js";
import { newApp, synthesizeOwn, warningsOf } from "./synthesize.js";

const KEYS = {
  partitionKey: { name: TABLE.partitionKey, type: AttributeType.STRING },
  sortKey: { name: TABLE.sortKey, type: AttributeType.STRING },
};
const US: RegionsOptions = { replicas: ["us-east-2"], witness: "us-west-2" };
const STRONG = {
  ...KEYS,
  multiRegionConsistency: MultiRegionConsistency.STRONG,
  replicas: [{ region: "us-east-2" }],
  witnessRegion: "us-west-2",
};

const synthesizeIn = (region: string | undefined, propsFor: (stack: CdkStack) => LockServiceProps): Template =>
  synthesizeOwn(propsFor, () => undefined, region);

/** Makes the stacks of two Regions on one table. */
function inBoth(props: LockServiceProps = {}, others: (first: LockService, second: LockService, stack: CdkStack) => unknown = () => 0) {
  const app = newApp();
  const [east, ohio] = ["us-east-1", "us-east-2"].map((region) => new Stack(app, `locks-${region}`, { env: { region } })) as [Stack, Stack];
  const first = new LockService(east, "Locks", { ...props, regions: US, wake: true });
  const second = LockService.inRegion(ohio, "Locks", first, props);
  others(first, second, east);
  app.synth();
  return { east: Template.fromStack(east), ohio: Template.fromStack(ohio), stacks: [east, ohio] as const };
}

const globalTable = (template: Template): Readonly<Record<string, unknown>> => only(template, "AWS::DynamoDB::GlobalTable")[1].Properties;

describe("the Regions of a table", () => {
  it.each<[what: string, regions: RegionsOptions, replicas: readonly string[], witness: unknown]>([
    ["two replicas and a witness", US, ["us-east-1", "us-east-2"], [{ Region: "us-west-2" }]],
    ["three replicas", { replicas: ["us-east-2", "us-west-2"] }, ["us-east-1", "us-east-2", "us-west-2"], undefined],
  ])("make a strongly consistent table without TTL in %s", (_what, regions, replicas, witness) => {
    const made = globalTable(synthesizeIn("us-east-1", () => ({ regions })));
    expect(made).toMatchObject({ MultiRegionConsistency: "STRONG", TableName: expect.stringMatching(/^shop-?Locks/) as string });
    expect((made["Replicas"] as { Region: string }[]).map(({ Region }) => Region).toSorted()).toEqual(replicas);
    for (const replica of made["Replicas"] as object[])
      expect(replica).toMatchObject({
        DeletionProtectionEnabled: true,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
      });
    expect(made["GlobalTableWitnesses"]).toEqual(witness);
    expect(made).not.toHaveProperty("TimeToLiveSpecification");
  });

  it.each<[what: string, region: string | undefined, regions: unknown, message: RegExp]>([
    [
      "one replica and no witness",
      "us-east-1",
      { replicas: ["us-east-2"] },
      /^regions: must be three different Regions.*us-east-1.*us-east-2/,
    ],
    [
      "a witness beside three",
      "us-east-1",
      { replicas: ["us-east-2", "us-west-2"], witness: "us-west-1" },
      /must be three different Regions/,
    ],
    ["the stack's own Region again", "us-east-1", { replicas: ["us-east-1"], witness: "us-west-2" }, /must be three different Regions/],
    [
      "Regions of two sets",
      "us-east-1",
      { replicas: ["eu-west-1"], witness: "us-west-2" },
      /^regions: AWS allows Regions of one of these sets: us-/,
    ],
    ["a Region of no set", "us-west-1", US, /one of these sets/],
    ["a stack without a Region", undefined, US, /^regions: the stack must say its own Region/],
    ["a list", "us-east-1", ["us-east-2"], /^0: is not an option of regions; these are: replicas, witness/],
    ["a name", "us-east-1", { replicas: "us-east-2" }, /^regions.replicas: "us-east-2" given; it must be a list/],
  ])("are refused if they are %s", (_what, region, regions, message) => {
    expect(() => synthesizeIn(region, () => ({ regions }) as LockServiceProps)).toThrow(message);
  });

  it.each([
    ["eu-central-1", "eu-west-1", "eu-west-3"],
    ["ap-northeast-1", "ap-northeast-2", "ap-northeast-3"],
  ])("may be %s, %s and %s", (region, other, witness) => {
    const made = globalTable(synthesizeIn(region, () => ({ regions: { replicas: [other], witness } })));
    expect(made["MultiRegionConsistency"]).toBe("STRONG");
  });

  it("go without a customer's key: each Region needs one", () => {
    const props = (stack: CdkStack) => ({ regions: US, encryptionKey: new Key(stack, "Key") });
    expect(() => synthesizeIn("us-east-1", props)).toThrow(/^encryptionKey: a table in several Regions needs a key in each/);
  });
});

describe("a table in several Regions that is there already", () => {
  it("serves in place of one's own", () => {
    const template = synthesizeIn("us-east-1", (stack) => ({ regions: US, table: new TableV2(stack, "Mine", STRONG) }));
    expect(functionOf(template, "hold")[1].Properties.Environment.Variables).toMatchObject({
      HOLDFAST_TABLE: { Ref: only(template, "AWS::DynamoDB::GlobalTable")[0] },
      HOLDFAST_REGIONS: "us-east-1,us-east-2",
    });
  });

  it("may be of another app, named by its name", () => {
    const template = synthesizeIn("us-east-2", (stack) => ({
      regions: { replicas: ["us-east-1"], witness: "us-west-2" },
      table: TableV2.fromTableName(stack, "Mine", "locks"),
    }));
    expect(functionOf(template, "hold")[1].Properties.Environment.Variables).toMatchObject({
      HOLDFAST_TABLE: "locks",
      HOLDFAST_REGIONS: "us-east-2,us-east-1",
    });
  });

  it.each<[what: string, table: (stack: CdkStack) => Table | TableV2, message: string]>([
    [
      "EVENTUAL, by name",
      (stack) =>
        new TableV2(stack, "Mine", {
          ...KEYS,
          replicas: [{ region: "us-east-2" }],
          multiRegionConsistency: MultiRegionConsistency.EVENTUAL,
        }),
      "With EVENTUAL (MREC)",
    ],
    [
      "EVENTUAL by default",
      (stack) => new TableV2(stack, "Mine", { ...KEYS, replicas: [{ region: "us-east-2" }] }),
      "With EVENTUAL (MREC)",
    ],
    [
      "in one Region",
      (stack) => new Table(stack, "Mine", { ...KEYS, timeToLiveAttribute: "x" }),
      "regions: given, and the table is a plain",
    ],
    [
      "in other Regions",
      (stack) => new TableV2(stack, "Mine", { ...STRONG, replicas: [{ region: "us-west-2" }], witnessRegion: "us-east-2" }),
      "regions: the table has replicas in us-east-1, us-west-2, and not in us-east-1, us-east-2",
    ],
    [
      "with a TTL attribute",
      (stack) => new TableV2(stack, "Mine", { ...STRONG, timeToLiveAttribute: "x" }),
      "table: must have no TTL attribute",
    ],
    [
      "with other keys",
      (stack) => new TableV2(stack, "Mine", { ...STRONG, sortKey: { name: "id", type: AttributeType.STRING } }),
      "table: must have the string keys p (partition) and k (sort)",
    ],
    [
      "with an index",
      (stack) => new TableV2(stack, "Mine", { ...STRONG, globalSecondaryIndexes: [{ indexName: "i", partitionKey: KEYS.sortKey }] }),
      "table: must have no index",
    ],
  ])("is refused if it is %s", (_what, table, message) => {
    expect(() => synthesizeIn("us-east-1", (stack) => ({ regions: US, table: table(stack) }))).toThrow(message);
  });

  it("is refused without the option regions: its sets would fail, and it would grow", () => {
    expect(() => synthesizeIn("us-east-1", (stack) => ({ table: new TableV2(stack, "Mine", STRONG) }))).toThrow(
      /regions: must be given with/,
    );
  });
});

describe("the services of two Regions on one table", () => {
  const { east, ohio, stacks } = inBoth({}, (first, second, stack) => {
    for (const one of [first, second])
      one.grantDirect(new Role(stack, `Direct${one.node.path.replaceAll("/", "")}`, { assumedBy: new AccountRootPrincipal() }));
  });
  const name = globalTable(east)["TableName"] as string;

  it("have functions, doors, log, alarms and a sweep each, and one table", () => {
    expect(all(ohio, "AWS::DynamoDB::GlobalTable")).toEqual([]);
    const count = (template: Template, type: string): number => all(template, type).length;
    const ofTheAgent = { "AWS::Lambda::Function": 1, "AWS::CloudWatch::Alarm": 1, "AWS::Events::Rule": 1 };
    for (const [type, more] of Object.entries({ ...ofTheAgent, "AWS::ApiGatewayV2::Api": 0, "AWS::Logs::LogGroup": 0 }))
      expect([type, count(ohio, type) + more]).toEqual([type, count(east, type)]);
    expect(stacks[1].dependencies).toEqual([stacks[0]]);
  });

  it.each([
    ["the first", east, "us-east-1,us-east-2"],
    ["the second", ohio, "us-east-2,us-east-1"],
  ])("tell the functions of %s the table, its Regions and their own URL", (_which, template, regions) => {
    for (const duty of ["acquire", "hold", "admin"]) {
      const { Variables } = functionOf(template, duty)[1].Properties.Environment;
      expect(Variables).toMatchObject({
        HOLDFAST_REGIONS: regions,
        HOLDFAST_OWN_URL: { "Fn::GetAtt": [expect.stringMatching(/^LocksApi/) as string, "ApiEndpoint"] },
      });
    }
    const table = template === east ? { Ref: only(east, "AWS::DynamoDB::GlobalTable")[0] } : name;
    expect(functionOf(template, "hold")[1].Properties.Environment.Variables.HOLDFAST_TABLE).toEqual(table);
  });

  it.each([
    ["the first", east],
    ["the second", ohio],
  ])("let only the sweep of %s scan the table and delete of all its items, on its own replica", (_which, template) => {
    const isSweeps = ({ Action }: Statement): boolean => /Scan|DeleteItem/.test(JSON.stringify(Action));
    const unbound = all(template, "AWS::IAM::Role").flatMap(([id, role]) =>
      statementsOf(role)
        .filter((one) => isSweeps(one) && !one.Condition)
        .map((one) => [id.replace(/Role.*/, ""), one] as const),
    );
    expect(unbound.map(([id]) => id)).toEqual(["LocksTableSweep"]);
    const [, { Action, Resource }] = unbound[0]!;
    expect(Action).toEqual(["dynamodb:DeleteItem", "dynamodb:Scan"]);
    if (template === east) expect(Resource).toEqual({ "Fn::GetAtt": [only(east, "AWS::DynamoDB::GlobalTable")[0], "Arn"] });
    else expect(JSON.stringify(Resource)).toMatch(new RegExp(`:dynamodb:us-east-2:.*:table/${name}"`));
  });

  it("let the agent of each Region tell and ask in both, and are refused elsewhere", () => {
    const arn = (kind: string, region: string) => `arn:aws:${kind.replace(/:.*/, "")}:${region}:111122223333:${kind.replace(/^\w+:/, "")}`;
    const wakeIn = (stack: CdkStack, regions: readonly string[]) => ({
      functions: regions.map((region) => LambdaFunction.fromFunctionArn(stack, `F${region}`, arn("lambda:function:pay", region))),
      stateMachines: regions.map((region) => StateMachine.fromStateMachineArn(stack, `M${region}`, arn("states:stateMachine:pay", region))),
    });
    const make = (...regions: readonly string[]) => {
      const app = newApp();
      const [east, ohio] = ["us-east-1", "us-east-2"].map((region) => new Stack(app, `locks-${region}`, { env: { region } })) as [
        Stack,
        Stack,
      ];
      const first = new LockService(east, "Locks", { regions: US, wake: wakeIn(east, regions) });
      LockService.inRegion(ohio, "Locks", first, { wake: wakeIn(ohio, regions) });
      return [east, ohio].map((stack) => Template.fromStack(stack));
    };
    for (const template of make("us-east-1", "us-east-2")) {
      const text = JSON.stringify(all(template, "AWS::IAM::Role").find(([id]) => id.startsWith("LocksAgent")));
      for (const region of ["us-east-1", "us-east-2"])
        for (const kind of ["lambda:function:pay:*", "states:execution:pay/*"]) expect(text).toContain(arn(kind, region));
      expect(functionOf(template, "agent")[1].Properties.Environment.Variables.HOLDFAST_REGIONS).toMatch(/us-east-\d,us-east-\d/);
    }
    expect(() => make("us-west-2")).toThrow("wake.functions: is in us-west-2, and the stack in us-east-1; it must be in the same Region");
  });

  it("let a client straight on the table use each of its replicas, whichever service grants it", () => {
    const resources = grantedStatements(east)
      .filter(({ Action }) => JSON.stringify(Action).includes("dynamodb:"))
      .map(({ Resource }) => JSON.stringify(Resource));
    expect(resources.length).toBeGreaterThanOrEqual(4);
    for (const one of resources) expect([one, one.split("dynamodb:us-east-2").length]).toEqual([one, 2]);
  });

  it("read the stream of the first Region's replica", () => {
    const [, mapping] = only(east, "AWS::Lambda::EventSourceMapping");
    expect(mapping.Properties.EventSourceArn).toEqual({ "Fn::GetAtt": [only(east, "AWS::DynamoDB::GlobalTable")[0], "StreamArn"] });
    expect(globalTable(east)["StreamSpecification"]).toEqual({ StreamViewType: StreamViewType.NEW_AND_OLD_IMAGES });
  });

  const byName = (scope: Stack) => TableV2.fromTableName(scope, "Mine", "locks");
  it.each<[says: string, of: string, props: (scope: Stack) => LockServiceProps]>([
    ["don't warn", "has an agent and the table's stream", () => ({ wake: true })],
    ["warn", "has an agent, and a table whose stream isn't known", (scope) => ({ wake: true, table: byName(scope) })],
    ["warn", "has no agent", () => ({})],
  ])("%s that the stream of the second Region's replica isn't known, if the first one %s", (says, _of, props) => {
    const [first, second] = ["us-east-1", "us-east-2"].map((region) => new Stack(newApp(), "locks", { env: { region } })) as [Stack, Stack];
    LockService.inRegion(second, "Locks", new LockService(first, "Locks", { regions: US, ...props(first) }), { wake: true });
    const ofTheStream = warningsOf(second).filter((text) => text.startsWith("wake: the table has no stream"));
    expect(ofTheStream).toHaveLength(says === "warn" ? 1 : 0);
  });

  it("give a client that both grant the URLs of both, the nearest first", () => {
    const { east: template } = inBoth({}, (first, second, stack) => {
      const code = Code.fromInline("exports.handler = async () => {}");
      const shop = new LambdaFunction(stack, "Shop", { runtime: Runtime.NODEJS_24_X, handler: "index.handler", code });
      const elsewhere = { value: "https://b.example.com" };
      Object.defineProperty(second, "url", elsewhere);
      first.grantClient(shop);
      second.api.arnForExecuteApi = (method, path) => `arn:aws:execute-api:us-east-2:111122223333:b/*/${method}${path}`;
      second.grantClient(shop);
    });
    const [, shop] = all(template, "AWS::Lambda::Function").find(([id]) => id.startsWith("Shop"))!;
    expect(JSON.stringify(shop.Properties.Environment.Variables.HOLDFAST_URL)).toMatch(/ApiEndpoint.*,https:\/\/b\.example\.com/);
  });

  it("give a client that both grant function URLs those of both, as the outputs of their stacks have them", () => {
    const app = newApp();
    const stackIn = (region: string) => new Stack(app, `locks-${region}`, { env: { region }, crossRegionReferences: true });
    const [east, ohio] = [stackIn("us-east-1"), stackIn("us-east-2")];
    const props = { functionUrl: { reservedConcurrency: 20 } };
    const first = new LockService(east, "Locks", { ...props, regions: US });
    const both = [first, LockService.inRegion(ohio, "Locks", first, props)];
    const shopStack = stackIn("us-west-2");
    const code = Code.fromInline("exports.handler = async () => {}");
    const shop = new LambdaFunction(shopStack, "Shop", { runtime: Runtime.NODEJS_24_X, handler: "index.handler", code });
    for (const service of both) {
      service.grantClient(shop, { via: "function-url" });
      new CfnOutput(Stack.of(service), "FunctionUrl", { value: service.functionUrlFor() });
    }
    Annotations.of(app).acknowledgeWarning("holdfast:grantClient:regions");
    app.synth();
    for (const template of [east, ohio].map((stack) => Template.fromStack(stack))) {
      const host = (template.toJSON() as { Outputs: Record<string, { Value: unknown }> }).Outputs["FunctionUrl"]!.Value;
      const [url] = Object.keys(template.findResources("AWS::Lambda::Url"));
      expect(JSON.stringify(host)).toContain(`{"Fn::GetAtt":["${url}","FunctionUrl"]}`);
      expect(functionOf(template, "url")[1].Properties.Environment.Variables).toMatchObject({
        HOLDFAST_MOUNT: "function-url",
        HOLDFAST_REGIONS: expect.stringMatching(/^us-east-\d,us-east-\d$/) as string,
      });
    }
    const [, { Properties }] = all(Template.fromStack(shopStack), "AWS::Lambda::Function").find(([id]) => id.startsWith("Shop"))!;
    const list = JSON.stringify(Properties.Environment.Variables.HOLDFAST_URL);
    expect(list).toMatch(/us-?east-?1.*UrlAlias.*FunctionUrl.*,.*us-?east-?2.*UrlAlias.*FunctionUrl/i);
  });

  it.each<[which: string, regions: RegionsOptions | undefined, count: number]>([
    ["in several Regions", US, 1],
    ["in one Region", undefined, 0],
  ])("warn of a grant by function URLs of a table %s: it doesn't list them", (_which, regions, count) => {
    const stack = new Stack(newApp(), "locks", { env: { region: "us-east-1" } });
    const service = new LockService(stack, "Locks", { regions, functionUrl: { reservedConcurrency: 20 } });
    for (const name of ["One", "Two"])
      service.grantClient(new Role(stack, name, { assumedBy: new AccountRootPrincipal() }), { via: "function-url" });
    expect(warningsOf(stack).filter((text) => text.startsWith("grantClient: the table lists no function URLs"))).toHaveLength(count);
  });

  const keyIn = (stack: Stack): Key => new Key(stack, "Key");
  it.each<[which: string, isEncrypted: boolean, keyFor: (stack: Stack) => Key | undefined, count: number]>([
    ["and the second knows none", true, () => undefined, 1],
    ["and the second knows its Region's", true, keyIn, 0],
    ["but none does", false, () => undefined, 0],
  ])("warn if a customer's key encrypts the table, %s", (_which, isEncrypted, keyFor, count) => {
    const app = newApp();
    const [east, ohio] = ["us-east-1", "us-east-2"].map((region) => new Stack(app, `locks-${region}`, { env: { region } })) as [
      Stack,
      Stack,
    ];
    const arn = "arn:aws:kms:us-east-2:111122223333:key/k";
    const encryption = isEncrypted && { encryption: TableEncryptionV2.customerManagedKey(keyIn(east), { "us-east-2": arn }) };
    const first = new LockService(east, "Locks", {
      regions: US,
      table: new TableV2(east, "Mine", { ...STRONG, tableName: "locks", ...encryption }),
    });
    LockService.inRegion(ohio, "Locks", first, { encryptionKey: keyFor(ohio) });
    expect(warningsOf(ohio).filter((text) => text.startsWith("inRegion: the first service knows a customer's key"))).toHaveLength(count);
    Annotations.of(app).acknowledgeWarning("holdfast:inRegion:encryptionKey");
    const rights = JSON.stringify(all(Template.fromStack(ohio), "AWS::IAM::Role"));
    expect(rights.includes("kms:Decrypt")).toBe(keyFor === keyIn);
  });

  it.each<[what: string, region: string, regions: RegionsOptions | undefined, message: RegExp]>([
    ["a service without regions", "us-east-2", undefined, /^inRegion: the first service must have the option regions/],
    [
      "the Region of the first service",
      "us-east-1",
      US,
      /^inRegion: the stack is in us-east-1; it must be in another Region.*: us-east-2$/,
    ],
    ["the Region of the witness", "us-west-2", US, /^inRegion: the stack is in us-west-2/],
  ])("are not made in %s", (_what, region, regions, message) => {
    const app = newApp();
    const first = new LockService(new Stack(app, "first", { env: { region: "us-east-1" } }), "Locks", { regions });
    expect(() => LockService.inRegion(new Stack(app, "second", { env: { region } }), "Locks", first)).toThrow(message);
  });
});

it("examples/two-regions has a service in each Region, and a function with the URLs of both", () => {
  const app = newApp();
  app.node.setContext("aws:cdk:bundling-stacks", []);
  const [home, away, shop] = addStacks(app);
  app.synth();
  expect([home, away, shop].map((stack) => stack!.dependencies.map(({ stackName }) => stackName).toSorted())).toEqual([
    [],
    ["locks-us-east-1"],
    ["locks-us-east-1", "locks-us-east-2"],
  ]);
  const [, { Properties }] = all(Template.fromStack(shop!), "AWS::Lambda::Function").find(([id]) => id.startsWith("Shop"))!;
  const url = JSON.stringify(Properties.Environment.Variables.HOLDFAST_URL);
  expect(url).toMatch(/locks-?us-?east-?1.*",",.*locks-?us-?east-?2/i);
});
