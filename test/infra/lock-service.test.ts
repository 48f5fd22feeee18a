/** The construct's options: the tables that are suitable for locks, and the separation of two services. */
import { App, NestedStack, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { AttributeType, StreamViewType, Table, TableEncryption, TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { AccountRootPrincipal, Role } from "aws-cdk-lib/aws-iam";
import { type IKey, Alias, Key } from "aws-cdk-lib/aws-kms";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { Topic } from "aws-cdk-lib/aws-sns";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { Construct } from "constructs";
import { readFileSync } from "node:fs";
import { describe, expect, it, vi } from "vitest";
import type { LockServiceProps } from "../../infra/props.js";
import { LockService } from "../../infra/lock-service.js";
import { HoldfastStack } from "../../infra/stack.js";
import { type Statement, all, functionOf, grantedStatements, only, statementsOf } from "./resources.js";
import { newApp, synthesizeOwn, warningsOf } from "./synthesize.js";

const JWT = { issuer: "https://id.example.com/", audience: ["locks"] };
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
    expect(() => synthesizeIn("us-east-1", table)).toThrow(/table: must be a plain Table without replicas.*EVENTUAL.*last writer wins/s);
  });

  it("is refused when it becomes a global one after the service was made", () => {
    const app = newApp();
    const stack = new Stack(app, "shop", { env: { region: "us-east-1" } });
    const table = new TableV2(stack, "Mine", FIT);
    new LockService(stack, "Locks", { table });
    table.addReplica({ region: "eu-west-1" });
    expect(() => app.synth()).toThrow("table: must be a plain Table without replicas");
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
    [
      "a local index",
      (stack) => {
        const table = new Table(stack, "Mine", FIT);
        table.addLocalSecondaryIndex({ indexName: "i", sortKey: { name: "v", type: STRING } });
        return table;
      },
      "table: must have no index",
    ],
    [
      "a number as its partition key",
      (stack) => new Table(stack, "Mine", { ...FIT, partitionKey: { name: "p", type: AttributeType.NUMBER } }),
      "table: must have the string keys p (partition) and k (sort)",
    ],
    [
      "bytes as its sort key",
      (stack) => new Table(stack, "Mine", { ...FIT, sortKey: { name: "k", type: AttributeType.BINARY } }),
      "table: must have the string keys p (partition) and k (sort)",
    ],
  ])("is refused with %s", (_what, table, message) => {
    expect(() => synthesizeIn("us-east-1", table)).toThrow(message);
  });
});

describe("a table of one's own with a customer's key", () => {
  const template = synthesizeOwn(
    (stack) => ({ table: new Table(stack, "Mine", { ...FIT, encryption: TableEncryption.CUSTOMER_MANAGED }) }),
    (service, stack) => void service.grantDirect(new Role(stack, "Task", { assumedBy: new AccountRootPrincipal() })),
  );
  const keyArn = { "Fn::GetAtt": [only(template, "AWS::KMS::Key")[0], "Arn"] };
  const uses = (statements: readonly Statement[]): unknown[] =>
    statements.filter(({ Action }) => String(Action).includes("kms:")).map(({ Resource }) => Resource);

  it("lets every function use that key, though only the table names it", () => {
    const roles = all(template, "AWS::IAM::Role").filter(([id]) => id.startsWith("Locks"));
    expect(roles).toHaveLength(3);
    for (const [id, role] of roles) expect([id, uses(statementsOf(role))]).toEqual([id, [keyArn]]);
  });

  it("lets a client straight on the table use it too", () => {
    expect(uses(grantedStatements(template))).toEqual([keyArn]);
  });
});

describe("a customer's key that is given", () => {
  it("and that is another app's is named in a warning: its policy can't be changed here", () => {
    const stack = new Stack(newApp(), "shop");
    const encryptionKey = Key.fromKeyArn(stack, "Key", "arn:aws:kms:eu-west-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab");
    new LockService(stack, "Locks", { encryptionKey });
    const [warning = ""] = warningsOf(stack);
    expect(warning).toMatch(/^encryptionKey: the policy of this key must let CloudWatch Logs use it/);
    const statement = {
      Effect: "Allow",
      Principal: { Service: "logs.eu-west-1.amazonaws.com" },
      Action: ["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
      Resource: "*",
      Condition: { ArnLike: { "kms:EncryptionContext:aws:logs:arn": "arn:aws:logs:eu-west-1:111122223333:log-group:*" } },
    };
    expect(JSON.parse(/\{.*\}/.exec(warning)![0])).toEqual(statement);
    expect(readFileSync("docs/into-your-account.md", "utf8")).toContain(JSON.stringify(statement, null, 2));
  });
});

describe("a resource that is given", () => {
  const env = { account: "111122223333", region: "eu-west-1" };
  const arn = (service: string, rest: string, { account, region } = env) => `arn:aws:${service}:${region}:${account}:${rest}`;
  type Given = (scope: Stack, place: typeof env) => LockServiceProps;
  const GIVEN: Readonly<Record<string, Given>> = {
    table: (scope, place) => ({ table: Table.fromTableArn(scope, "T", arn("dynamodb", "table/locks", place)) }),
    encryptionKey: (scope, place) => ({ encryptionKey: Key.fromKeyArn(scope, "K", arn("kms", "key/1234", place)) }),
    alarmTopic: (scope, place) => ({ alarmTopic: Topic.fromTopicArn(scope, "A", arn("sns", "alarms", place)) }),
    "wake.functions": (scope, place) => ({
      wake: { functions: [LambdaFunction.fromFunctionArn(scope, "F", arn("lambda", "function:pay", place))] },
    }),
    "wake.stateMachines": (scope, place) => ({
      wake: { stateMachines: [StateMachine.fromStateMachineArn(scope, "M", arn("states", "stateMachine:pay", place))] },
    }),
  };
  const make = (given: Given, place: typeof env): Stack => {
    const stack = new Stack(newApp(), "shop", { env });
    new LockService(stack, "Locks", given(stack, place));
    return stack;
  };

  it.each(Object.entries(GIVEN))("as %s is in the stack's Region", (name, given) => {
    make(given, env);
    expect(() => make(given, { ...env, region: "us-east-1" })).toThrow(
      `${name}: is in us-east-1, and the stack in eu-west-1; it must be in the same Region`,
    );
  });

  it.each(Object.entries(GIVEN).filter(([name]) => name !== "alarmTopic"))("as %s is in the stack's account", (name, given) => {
    expect(() => make(given, { ...env, account: "444455556666" })).toThrow(
      `${name}: is of the account 444455556666, and the stack of 111122223333; it must be of the same account`,
    );
  });

  it("as alarmTopic may be another account's, whose policy must let the alarms publish: the synthesis says by which statement", () => {
    const [warning = "", ...others] = warningsOf(make(GIVEN["alarmTopic"]!, { ...env, account: "444455556666" }));
    expect(others).toEqual([]);
    expect(warning).toMatch(/^alarmTopic: the policy of this topic must let CloudWatch publish/);
    const statement = {
      Effect: "Allow",
      Principal: { Service: "cloudwatch.amazonaws.com" },
      Action: "sns:Publish",
      Resource: "arn:aws:sns:eu-west-1:444455556666:alarms",
      Condition: { ArnLike: { "aws:SourceArn": "arn:aws:cloudwatch:eu-west-1:111122223333:alarm:*" } },
    };
    expect(JSON.parse(/\{.*\}/.exec(warning)![0])).toEqual(statement);
  });

  it("is taken where the stack's place isn't known yet", () => {
    for (const given of Object.values(GIVEN)) {
      const stack = new Stack(newApp(), "shop");
      expect(() => new LockService(stack, "Locks", given(stack, env))).not.toThrow();
    }
  });

  it.each<[props: object, refused: string]>([
    [{ encryptionKey: "alias/x" }, 'encryptionKey: "alias/x" given; it must be a key, such as Key.fromKeyArn gives'],
    [{ table: "locks" }, 'table: "locks" given; it must be a table, such as Table.fromTableName gives'],
    [{ alarmTopic: "alarms" }, 'alarmTopic: "alarms" given; it must be a topic, such as Topic.fromTopicArn gives'],
    [{ wake: { functions: ["pay"] } }, 'wake.functions: "pay" given; it must be a function, such as Function.fromFunctionArn gives'],
    [
      { wake: { stateMachines: [{}] } },
      "wake.stateMachines: {} given; it must be a state machine, such as StateMachine.fromStateMachineArn gives",
    ],
  ])("is one, and no name: %j", (props, refused) => {
    expect(() => new LockService(new Stack(newApp(), "shop"), "Locks", props as LockServiceProps)).toThrow(refused);
  });

  it.each<[what: string, keyOf: (stack: Stack) => IKey]>([
    ["an alias of another app's", (stack) => Alias.fromAliasName(stack, "Alias", "alias/x")],
    ["an alias of this app", (stack) => new Alias(stack, "Alias", { aliasName: "alias/x", targetKey: new Key(stack, "Key") })],
  ])("as encryptionKey is the key itself, and not %s: IAM's rights are about keys", (_what, keyOf) => {
    const stack = new Stack(newApp(), "shop");
    expect(() => new LockService(stack, "Locks", { encryptionKey: keyOf(stack) })).toThrow(
      "encryptionKey: an alias given; it must be the key",
    );
  });
});

describe("an agent of sleepers on a table of one's own", () => {
  it.each<[StreamViewType | undefined, mappings: number, warnings: object]>([
    [StreamViewType.NEW_AND_OLD_IMAGES, 1, []],
    [undefined, 0, [expect.stringMatching(/^wake: the table has no stream with new images/)]],
    [StreamViewType.KEYS_ONLY, 0, [expect.stringMatching(/^wake: the table has no stream with new images/)]],
  ])("hears of offers by the stream %s, or the synthesis warns that only the sweep wakes", (stream, mappings, warnings) => {
    const stack = new Stack(newApp(), "shop");
    new LockService(stack, "Locks", { table: new Table(stack, "Mine", { ...FIT, ...(stream && { stream }) }), wake: true });
    expect(warningsOf(stack)).toEqual(warnings);
    // The CDK prints warnings.
    const printing = vi.spyOn(console, "error").mockReturnValue();
    const template = Template.fromStack(stack);
    printing.mockRestore();
    expect(all(template, "AWS::Lambda::EventSourceMapping")).toHaveLength(mappings);
  });
});

describe("a prefix without a separator at its end", () => {
  it("is warned of: it covers other keys too", () => {
    const stack = new Stack(newApp(), "shop");
    const service = new LockService(stack, "Locks", { metricPrefixes: ["REFUND"] });
    service.grantClient(new Role(stack, "Task", { assumedBy: new AccountRootPrincipal() }), { prefix: "ORDER" });
    expect(warningsOf(stack)).toEqual([
      'metricPrefixes: "REFUND" also covers keys such as "REFUNDS_1" and "REFUND2_1": end it with a separator, as in "REFUND_"',
      'prefix: "ORDER" also covers keys such as "ORDERS_1" and "ORDER2_1": end it with a separator, as in "ORDER_"',
    ]);
  });
});

describe("another construct id", () => {
  it("makes another table, and leaves the former one behind", () => {
    const tableIn = (id: string) => {
      const stack = new Stack(newApp(), "shop");
      new LockService(stack, id);
      return only(Template.fromStack(stack), "AWS::DynamoDB::Table");
    };
    const [before, after] = [tableIn("Locks"), tableIn("OrderLocks")];
    expect(before[0]).not.toBe(after[0]);
    expect(before[1]).toMatchObject({ DeletionPolicy: "Retain", Properties: { DeletionProtectionEnabled: true } });
  });
});

describe("two services", () => {
  it("of two stages never share a table, a function, a log or a metric", () => {
    const app = newApp();
    const [dev, prod] = ["dev", "prod"].map((stage) => new HoldfastStack(app, `holdfast-${stage}`));
    app.synth();
    for (const stack of [dev!, prod!]) {
      const named = JSON.stringify(Template.fromStack(stack).toJSON()).match(/"(?:TableName|FunctionName|LogGroupName|RoleName)":"/g);
      expect(named).toBeNull(); // Without a name, CloudFormation derives one from the stack's.
    }
    expect([dev, prod].map((stack) => serviceOf(Template.fromStack(stack!)))).toEqual([
      expect.stringMatching(/^holdfast\/holdfast-dev-Locks-[0-9A-F]{8}$/),
      expect.stringMatching(/^holdfast\/holdfast-prod-Locks-[0-9A-F]{8}$/),
    ]);
  });

  it.each<[where: string, scopesIn: (stack: Stack) => [first: Construct, second: Construct], ids: [string, string]]>([
    ["side by side", (stack) => [stack, stack], ["Orders", "Payments"]],
    ["under different parents", (stack) => [new Construct(stack, "Orders"), new Construct(stack, "Payments")], ["Locks", "Locks"]],
    ["whose paths read alike", (stack) => [new Construct(stack, "A"), new Construct(stack, "A-B")], ["B-Locks", "Locks"]],
    ["in nested stacks", (stack) => [new NestedStack(stack, "Orders"), new NestedStack(stack, "Payments")], ["Locks", "Locks"]],
  ])("may be in one stack, %s, and share no alarm, dashboard, query or metric", (_where, scopesIn, ids) => {
    const app = newApp();
    const stack = new Stack(app, "shop");
    const scopes = scopesIn(stack);
    scopes.forEach((scope, index) => new LockService(scope, ids[index]!));
    app.synth();
    const templates = [...new Set([stack, ...scopes.map((scope) => Stack.of(scope))])].map((one) => Template.fromStack(one));
    const everyOne = (type: string, property: string): unknown[] =>
      templates.flatMap((template) => all(template, type).map(([, { Properties }]) => Properties[property] as unknown));
    expect(templates.flatMap((template) => all(template, "AWS::DynamoDB::Table"))).toHaveLength(2);
    for (const [type, property, count] of [
      ["AWS::CloudWatch::Alarm", "AlarmName", 12],
      ["AWS::CloudWatch::Dashboard", "DashboardName", 2],
      ["AWS::Logs::QueryDefinition", "Name", 2],
    ] as const) {
      const names = everyOne(type, property).map((name) => JSON.stringify(name));
      expect([type, names.length, new Set(names).size]).toEqual([type, count, count]);
    }
    const namespaces = everyOne("AWS::Logs::MetricFilter", "MetricTransformations").map(
      (made) => (made as [{ MetricNamespace: string }])[0].MetricNamespace,
    );
    expect(new Set(namespaces).size).toBe(2);
  });
});

/** Options as a program without types gives them. */
const untyped = (props: object): LockServiceProps => props;

describe("options that make no sense", () => {
  it.each([
    [{ metricPrefixes: Array.from({ length: 11 }, (_, index) => `P${index}_`) }, "metricPrefixes: at most 10"],
    [{ metricPrefixes: ["a,b"] }, 'metricPrefixes: no key can begin with "a,b"'],
    [{ tenant: "claim:t" as const }, "tenant: a claim is in a token"],
    [{ tenant: "claim:" as const, jwt: JWT }, 'tenant: "claim:" is not account, role or claim:NAME'],
    [{ tenant: "claim:sub" as const, jwt: JWT }, 'tenant: "claim:sub" names one user: that is "role"'],
    [{ tenant: "claim:iss" as const, jwt: JWT }, 'tenant: "claim:iss" names the issuer of a token: that is "account"'],
    [{ tenant: "claim:aud" as const, jwt: JWT }, 'tenant: "claim:aud" names the service that a token is for'],
    [{ tenant: "claim:jti" as const, jwt: JWT }, 'tenant: "claim:jti" differs from token to token'],
    [untyped({ tenant: "team" }), 'tenant: "team" is not account, role or claim:NAME'],
    [untyped({ throttle: -1 }), "throttle: -1 given; it must be an object of rateLimit, burstLimit"],
    [untyped({ throttle: 100 }), "throttle: 100 given; it must be an object of rateLimit, burstLimit"],
    [{ throttle: { rateLimit: -1, burstLimit: 10 } }, "throttle.rateLimit: -1 given; it must be an integer of at least 1"],
    [untyped({ acquireThrottle: { rateLimit: 10 } }), "acquireThrottle.burstLimit: undefined given; it must be an integer of at least 1"],
    [
      untyped({ acquireThrottle: { rateLimit: 1, burst: 1 } }),
      "burst: is not an option of acquireThrottle; these are: rateLimit, burstLimit",
    ],
    [untyped({ reservedConcurrency: 50 }), "reservedConcurrency: 50 given; it must be an object of acquire, hold, admin"],
    [untyped({ reservedConcurrency: { holders: 5 } }), "holders: is not an option of reservedConcurrency; these are: acquire, hold, admin"],
    [{ reservedConcurrency: { hold: 0 } }, "reservedConcurrency.hold: 0 given; it must be an integer of at least 1"],
    [untyped({ wake: { lambdas: [] } }), "lambdas: is not an option of wake; these are: functions"],
    [untyped({ memorySize: 1024 }), "memorySize: is not an option of LockService; these are: table, "],
    [{ memorySizeMb: 64 }, "memorySizeMb: 64 given; it must be an integer from 128 to 10240"],
    [untyped({ jwt: { ...JWT, scope: ["locks"] } }), "scope: is not an option of jwt; these are: issuer, audience, scopes, adminScopes"],
    [{ jwt: { ...JWT, adminScopes: [] } }, "jwt.adminScopes: [] given; it must name at least one"],
    [{ jwt: { ...JWT, adminScopes: [""] } }, 'jwt.adminScopes: [""] given; it must name at least one'],
    [{ jwt: { ...JWT, scopes: [] } }, "jwt.scopes: [] given; it must name at least one"],
    [{ jwt: { ...JWT, audience: [] } }, "jwt.audience: [] given; it must name at least one"],
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
  return all(template, "AWS::Logs::MetricFilter")[0]![1].Properties.MetricTransformations[0].MetricNamespace;
}
