/** What the template must say for the locks to be safe, and for nobody but its callers to reach them. */
import { readFileSync } from "node:fs";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, it } from "vitest";
import { PATHS, ROUTES } from "../../lambda/routes.js";
import { LIMITS } from "../../lib/core/limits.js";
import { TABLE, TABLE_CALLS } from "../../lib/store/table.js";
import { cdkContext, synthesize } from "./synthesize.js";

/** After a wait, a call to the table that is answered at its second attempt. */
const ANSWER_MS = 2 * TABLE_CALLS.requestHandler.requestTimeout;
/** For how long an HTTP API waits for a function. */
const GATEWAY_TIMEOUT_MS = 30_000;

interface Resource {
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly [attribute: string]: unknown;
}

const stack = synthesize();
const template = Template.fromStack(stack);

function all(type: string): [logicalId: string, resource: Resource][] {
  return Object.entries(template.findResources(type) as Record<string, Resource>);
}

function only(type: string): [logicalId: string, resource: Resource] {
  const found = all(type);
  expect(found, type).toHaveLength(1);
  return found[0] as [string, Resource];
}

describe("the table", () => {
  const [logicalId, table] = only("AWS::DynamoDB::Table");

  it("has the keys and the TTL attribute that the store writes, and is on demand", () => {
    expect(table.Properties).toMatchObject({
      KeySchema: [
        { AttributeName: TABLE.partitionKey, KeyType: "HASH" },
        { AttributeName: TABLE.sortKey, KeyType: "RANGE" },
      ],
      AttributeDefinitions: [
        { AttributeName: TABLE.partitionKey, AttributeType: "S" },
        { AttributeName: TABLE.sortKey, AttributeType: "S" },
      ],
      TimeToLiveSpecification: { AttributeName: TABLE.ttlAttribute, Enabled: true },
      BillingMode: "PAY_PER_REQUEST",
    });
  });

  it("survives the stack, a deletion by mistake, and a bad write", () => {
    expect(table).toMatchObject({ DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" });
    expect(table.Properties).toMatchObject({
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
  });

  it("is in one region, without a stream or an index, under a name that no other stage can have", () => {
    for (const property of [
      "StreamSpecification",
      "KinesisStreamSpecification",
      "GlobalSecondaryIndexes",
      "LocalSecondaryIndexes",
      "TableName",
    ]) {
      expect(table.Properties).not.toHaveProperty(property);
    }
    expect(all("AWS::DynamoDB::GlobalTable")).toEqual([]);
    expect(all("Custom::DynamoDBReplica")).toEqual([]);
  });

  it("keeps its logical id: under another one a deploy would make a new, empty table, and grant what others hold", () => {
    expect(logicalId).toBe("LocksTable84FB9352");
  });
});

describe("the function", () => {
  const [, lambda] = only("AWS::Lambda::Function");
  const [tableId] = only("AWS::DynamoDB::Table");
  const [logId, log] = only("AWS::Logs::LogGroup");
  const [roleId, role] = only("AWS::IAM::Role");

  it("runs on Node 24 and arm64, and knows its table", () => {
    expect(lambda.Properties).toMatchObject({
      Runtime: "nodejs24.x",
      Architectures: ["arm64"],
      Handler: "index.handler",
      Timeout: 15,
      Environment: { Variables: { HOLDFAST_TABLE: { Ref: tableId } } },
      LoggingConfig: { LogGroup: { Ref: logId } },
      Role: { "Fn::GetAtt": [roleId, "Arn"] },
    });
  });

  it("has time for a request that waits as long as one may, and for what it does before and after", () => {
    const timeoutMs = 1_000 * (lambda.Properties.Timeout as number);
    expect(timeoutMs).toBeGreaterThanOrEqual(LIMITS.serverWaitMs + ANSWER_MS);
    expect(timeoutMs).toBeLessThan(GATEWAY_TIMEOUT_MS);
  });

  it("may read and update items of its table and write its own log, and nothing else", () => {
    const statement = (actions: string[], resourceId: string) => ({
      Effect: "Allow",
      Action: actions,
      Resource: { "Fn::GetAtt": [resourceId, "Arn"] },
    });
    const policies = role.Properties.Policies as { PolicyDocument: { Statement: unknown[] } }[];
    expect(policies.flatMap((policy) => policy.PolicyDocument.Statement)).toEqual([
      statement(["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"], tableId),
      statement(["logs:CreateLogStream", "logs:PutLogEvents"], logId),
    ]);
    expect(role.Properties).not.toHaveProperty("ManagedPolicyArns");
    expect(all("AWS::IAM::Policy")).toEqual([]);
    expect(all("AWS::IAM::ManagedPolicy")).toEqual([]);
  });

  it("keeps its log for a while, also after the stack", () => {
    expect(log).toMatchObject({ DeletionPolicy: "Retain", Properties: { RetentionInDays: 90 } });
  });
});

describe("the API", () => {
  const routes = all("AWS::ApiGatewayV2::Route").map(([, route]) => route.Properties);
  const [integrationId, integration] = only("AWS::ApiGatewayV2::Integration");

  it("asks for IAM on every route", () => {
    expect(routes.filter((route) => route.AuthorizationType !== "AWS_IAM")).toEqual([]);
  });

  it("has every route of the service, ANY for each path, and $default", () => {
    const expected = [...Object.keys(ROUTES), ...PATHS.map((path) => `ANY ${path}`), "$default"];
    expect(routes.map((route) => route.RouteKey).sort()).toEqual(expected.sort());
  });

  it("has the routes of locks, of runs and of the service, none of them without the authorizer", () => {
    const authorized = routes.filter((route) => route.AuthorizationType === "AWS_IAM").map((route) => route.RouteKey as string);
    expect(authorized).toEqual(
      expect.arrayContaining([
        "PUT /v1/locks/{key}/leases/{leaseId}",
        "PUT /v1/runs/{key}/leases/{leaseId}",
        "GET /v1/runs/{key}/leases/{leaseId}",
        "DELETE /v1/runs/{key}/leases/{leaseId}",
        "POST /v1/runs/{key}/leases/{leaseId}/renew",
        "PUT /v1/runs/{key}/leases/{leaseId}/outcome",
        "GET /v1/runs/{key}",
        "POST /v1/runs/{key}/reset",
        "GET /v1/runs",
        "ANY /v1/runs/{key}/leases/{leaseId}/outcome",
        "GET /v1/health",
      ]),
    );
  });

  it("sends all of it to the function, in payload format 2.0, and answers no browser", () => {
    const target = { "Fn::Join": ["", ["integrations/", { Ref: integrationId }]] };
    expect(routes.map((route) => route.Target)).toEqual(routes.map(() => target));
    expect(integration.Properties).toMatchObject({ IntegrationType: "AWS_PROXY", PayloadFormatVersion: "2.0" });
    expect(only("AWS::ApiGatewayV2::Api")[1].Properties).not.toHaveProperty("CorsConfiguration");
  });

  it("may invoke the function from every route; from $default too, which `*/*/*` leaves out", () => {
    const allowed = all("AWS::Lambda::Permission").map(([, permission]) => sourceOf(permission));
    expect(allowed.sort()).toEqual(["/*/$default", "/*/*/*"]);
    for (const { RouteKey } of routes) {
      const caller = invocationSource(RouteKey as string);
      expect(
        allowed.filter((pattern) => arnLike(pattern, caller)),
        caller,
      ).toHaveLength(1);
    }
    expect(arnLike("/*/*/*", invocationSource("$default"))).toBe(false);
  });
});

describe("the stack", () => {
  it("says where the API and the table are", () => {
    const outputs = template.findOutputs("*") as Record<string, { Value: unknown }>;
    expect(outputs.Url?.Value).toEqual({ "Fn::GetAtt": [only("AWS::ApiGatewayV2::Api")[0], "ApiEndpoint"] });
    expect(outputs.TableName?.Value).toEqual({ Ref: only("AWS::DynamoDB::Table")[0] });
  });

  it("is made without a warning", () => {
    expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
    expect(Annotations.fromStack(stack).findError("*", Match.anyValue())).toEqual([]);
  });

  it("answers every feature flag of the installed CDK in cdk.json, which is silent only then", () => {
    const flags = new URL("../../node_modules/aws-cdk-lib/recommended-feature-flags.json", import.meta.url);
    expect(cdkContext()).toMatchObject(JSON.parse(readFileSync(flags, "utf8")) as object);
  });
});

/** The part of a permission's source ARN behind the API's id. */
function sourceOf(permission: Resource): string {
  const joined = (permission.Properties.SourceArn as { "Fn::Join": [string, unknown[]] })["Fn::Join"][1];
  return joined.at(-1) as string;
}

/** What the gateway names as source when it invokes for a route: stage, method and path, or stage and `$default`. */
function invocationSource(routeKey: string): string {
  const [method, path] = routeKey.split(" ");
  return path === undefined ? `/$default/${routeKey}` : `/$default/${method === "ANY" ? "*" : method}${path}`;
}

/** IAM's ArnLike within one part of an ARN: `*` is any run of characters, slashes too. */
function arnLike(pattern: string, source: string): boolean {
  const literals = pattern.split("*").map((literal) => literal.replace(/[$.{}/]/g, "\\$&"));
  return new RegExp(`^${literals.join(".*")}$`).test(source);
}
