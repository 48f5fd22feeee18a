/** The templates without the CDK are the stack of `cdk synth`, but for what their header names; and their page says what they take. */
import { type Stack, Annotations } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { Topic } from "aws-cdk-lib/aws-sns";
import { describe, expect, it } from "vitest";
import type { LockServiceProps } from "../../infra/props.js";
import { serviceName } from "../../infra/lock-service.js";
import { HoldfastStack } from "../../infra/stack.js";
import { type Json, givenTable, ownTable, plainTemplate, STACK_NAME } from "../../infra/template.js";
import { zipOf } from "../../infra/zip.js";
import { dutyOf, ROUTE_KEYS } from "../../lambda/routes.js";
import { guide } from "../docs/snippets.js";
import { type PlainResource, type Values, refusalsOf, resourcesOf, unzipped } from "./plain-template.js";
import { arnLike, callOf } from "./resources.js";
import { newApp } from "./synthesize.js";

/** CloudFormation takes no larger template in a request. */
const INLINE_BYTES = 51_200;
const CODE: Values = { CodeBucket: "artifacts", CodeKey: "holdfast.zip" };

const template = plainTemplate(ownTable);
const regional = plainTemplate(givenTable);
const OF_A_REGION: Values = { Table: "locks", Replicas: "us-east-2" };

/** The stack of `cdk synth`: its resources without metadata, and the names that the plain template takes from the stack. */
function synthesized(
  props: (stack: Stack) => LockServiceProps = () => ({}),
  region?: string,
): {
  resources: Readonly<Record<string, PlainResource>>;
  values: Values;
} {
  const app = newApp();
  const stack = new HoldfastStack(app, STACK_NAME, region === undefined ? {} : { env: { region } }, props);
  Annotations.of(stack).acknowledgeWarning("holdfast:wake");
  app.synth();
  const { Resources } = Template.fromStack(stack).toJSON() as { readonly Resources: Readonly<Record<string, PlainResource>> };
  const resources = Object.entries(Resources).map(([id, { Metadata: _metadata, ...resource }]) => [id, resource] as const);
  return { resources: Object.fromEntries(resources), values: { ...CODE, "AWS::StackName": serviceName(stack.service) } };
}

/** The resources with the code of each function, and the name of the API, replaced: the template has its own. */
function withoutCode(resources: Readonly<Record<string, PlainResource>>): Json {
  const own: Readonly<Record<string, object>> = {
    "AWS::Lambda::Function": { Code: "…", Handler: "…" },
    "AWS::ApiGatewayV2::Api": { Name: "…" },
  };
  return Object.fromEntries(
    Object.entries(resources).map(([id, { Properties, ...rest }]) => [
      id,
      { ...rest, Properties: { ...(Properties as object), ...own[rest["Type"] as string] } },
    ]),
  );
}

/** The resources with these values in place of references to them, as the CDK puts in those of a stack whose Region is known. */
function withKnown(json: Json, known: Values): Json {
  if (Array.isArray(json)) return (json as readonly Json[]).map((item) => withKnown(item, known));
  if (typeof json !== "object" || json === null) return json;
  const { Ref: name, "Fn::Join": join } = json as Readonly<Record<string, Json>>;
  if (typeof name === "string" && name in known) return known[name]!;
  if (!join) return Object.fromEntries(Object.entries(json).map(([member, value]) => [member, withKnown(value, known)]));
  const [separator, parts] = withKnown(join, known) as readonly [string, readonly Json[]];
  const merged = parts.reduce<readonly Json[]>((before, part) => {
    const last = before.at(-1);
    const isText = separator === "" && typeof last === "string" && typeof part === "string";
    return isText ? [...before.slice(0, -1), last + part] : [...before, part];
  }, []);
  return merged.length === 1 ? merged[0]! : { "Fn::Join": [separator, merged] };
}

describe("the template without the CDK", () => {
  it("makes the resources of cdk synth", () => {
    const { resources, values } = synthesized();
    expect(Object.keys(resources).length).toBeGreaterThan(60);
    expect(withoutCode(resourcesOf(template, values))).toEqual(withoutCode(resources));
  });

  const issuer = "https://issuer.example";
  const topic = "arn:aws:sns:eu-west-1:111122223333:on-call";
  it.each<[what: string, given: Values, props: (stack: Stack) => LockServiceProps]>([
    [
      "memory and retention",
      { MemorySizeMb: "1024", LogRetentionDays: "7" },
      () => ({ memorySizeMb: 1024, logRetention: RetentionDays.ONE_WEEK }),
    ],
    [
      "tokens",
      { JwtIssuer: issuer, JwtAudience: "locks", JwtAdminScope: "admin" },
      () => ({ jwt: { issuer, audience: ["locks"], adminScopes: ["admin"] } }),
    ],
    [
      "tokens of two clients, a scope for their use, and tenants by a claim",
      { JwtIssuer: issuer, JwtAudience: "orders,billing", JwtScope: "locks/use", Tenant: "claim:team" },
      () => ({ jwt: { issuer, audience: ["orders", "billing"], scopes: ["locks/use"] }, tenant: "claim:team" }),
    ],
    ["accounts as tenants", { Tenant: "account" }, () => ({ tenant: "account" })],
    ["alarms that notify a topic", { AlarmTopicArn: topic }, (stack) => ({ alarmTopic: Topic.fromTopicArn(stack, "Topic", topic) })],
    ["an agent", { Wake: "true" }, () => ({ wake: true })],
    [
      "all of that",
      { JwtIssuer: issuer, JwtAudience: "a,b", JwtScope: "use", Tenant: "role", AlarmTopicArn: topic, Wake: "true" },
      (stack) => ({
        jwt: { issuer, audience: ["a", "b"], scopes: ["use"] },
        tenant: "role",
        alarmTopic: Topic.fromTopicArn(stack, "Topic", topic),
        wake: true,
      }),
    ],
  ])("makes those of a service with %s, if the parameters say so", (_what, given, props) => {
    const { resources, values } = synthesized(props);
    expect(refusalsOf(template, given)).toEqual([]);
    expect(withoutCode(resourcesOf(template, { ...values, ...given }))).toEqual(withoutCode(resources));
  });

  it.each<[what: string, given: Values, props: LockServiceProps]>([
    ["a service", {}, {}],
    ["an agent and tenants", { Wake: "true", Tenant: "role" }, { wake: true, tenant: "role" }],
  ])("in the one for a Region, makes those of %s on a table that is there in several Regions", (_what, given, props) => {
    const region = "us-east-1";
    const { resources, values } = synthesized(
      (stack) => ({
        ...props,
        table: TableV2.fromTableName(stack, "Mine", "locks"),
        regions: { replicas: ["us-east-2"], witness: "us-west-2" },
      }),
      region,
    );
    const made = resourcesOf(regional, { ...values, ...OF_A_REGION, ...given });
    const here = { "AWS::Region": region, "AWS::Partition": "aws" };
    expect(withKnown(withoutCode(made), here)).toEqual(withKnown(withoutCode(resources), here));
    expect(JSON.stringify(made)).not.toMatch(/AWS::DynamoDB::/);
  });

  it("takes its code from the bucket and key that are given, the agent's from a directory of the same zip", () => {
    const codes = Object.values(resourcesOf(template, { ...CODE, Wake: "true" })).flatMap(({ Type, Properties }) => {
      const { Code, Handler } = Properties as { readonly Code: unknown; readonly Handler: unknown };
      return Type === "AWS::Lambda::Function" ? [{ Code, Handler }] : [];
    });
    const Code = { S3Bucket: CODE["CodeBucket"], S3Key: CODE["CodeKey"] };
    const handlers = ["index.handler", "index.handler", "index.handler", "agent/index.handler"];
    expect(codes).toEqual(handlers.map((Handler) => ({ Code, Handler })));
  });

  it.each([
    ["the template", template],
    ["the one for a Region", regional],
  ])("in %s, fits into a request with a fourteenth to spare for what users add, and needs nothing of the CDK", (_which, made) => {
    const text = JSON.stringify(made);
    expect(Buffer.byteLength(text)).toBeLessThan((13 / 14) * INLINE_BYTES);
    expect(text).not.toMatch(/cdk|Bootstrap|"Metadata"|assets/i);
  });

  it("gives no name that another stack gives", () => {
    const namesOf = (stack: string): readonly string[] =>
      Object.values(resourcesOf(template, { ...CODE, "AWS::StackName": stack })).flatMap(({ Type, Properties = {} }) =>
        Object.entries(Properties as object)
          .filter(([name]) => /Name$|^MetricTransformations$/.test(name) && !/^(?:Metric|Parameter|Attribute)Name$/.test(name))
          .map(([name, value]) => `${Type as string} ${name} ${JSON.stringify(value)}`),
      );
    const [one, other] = [namesOf("one"), namesOf("other")];
    expect(one.length).toBeGreaterThan(15);
    // A reference to another resource has the name that CloudFormation makes for it.
    expect(one.filter((name) => other.includes(name) && !/\{"(?:Ref|Fn::GetAtt)":"?(?!AWS::)/.test(name))).toEqual([
      'AWS::ApiGatewayV2::Stage StageName "$default"',
    ]);
  });

  it.each<[given: Values, says: string]>([
    [{ JwtIssuer: issuer }, "JwtIssuer needs JwtAudience"], // It would accept every token of the issuer.
    [{ JwtScope: "use" }, "JwtScope needs JwtIssuer"],
    [{ Tenant: "claim:team" }, "Tenant claim:NAME needs JwtIssuer"],
  ])("refuses %j", (given, says) => {
    expect(refusalsOf(template, given)).toEqual([says]);
  });

  it.each([
    ["JwtAudience", ["orders", "orders,billing", ""], ["orders,", "orders,,billing", "orders, billing", ","]],
    ["Tenant", ["", "account", "role", "claim:https://id.example/team"], ["accounts", "claim:", "team"]],
    ["Replicas", ["us-east-2", "ap-northeast-2,ap-northeast-3"], ["", "us-east-2, us-west-2", "ohio", "a-b-1,a-b-2,a-b-3"]],
    ["Table", ["locks", "locks-eu_1.x"], ["", "lo", "arn:aws:dynamodb:us-east-1:111122223333:table/locks"]],
  ])("takes for %s only what the construct takes", (name, right, wrong) => {
    const { AllowedPattern } = regional.Parameters[name] as unknown as { readonly AllowedPattern: string };
    const isAllowed = (value: string): boolean => new RegExp(`^(?:${AllowedPattern})$`).test(value);
    expect([right.filter(isAllowed), wrong.filter(isAllowed)]).toEqual([right, []]);
  });
});

describe("the page about it", () => {
  const page = guide("without-the-cdk");

  it("has every parameter with its default", () => {
    const rows = [...page.text.matchAll(/\| `(\w+)` +\| (?:`([^`]*)`)? *\|/g)].map(([, name = "", value = ""]) => [name, value]);
    const own = Object.keys(regional.Parameters).filter((name) => !(name in template.Parameters));
    expect(own).toEqual(Object.keys(OF_A_REGION));
    const parameters = Object.entries({ ...template.Parameters, ...regional.Parameters }) as [
      string,
      { readonly Default?: string | number },
    ][];
    expect(rows).toEqual(parameters.map(([name, { Default = "" }]) => [name, String(Default)]));
  });

  it("names outputs that the template has", () => {
    expect(Object.keys(template.Outputs)).toEqual(expect.arrayContaining(["Url", "ApiArn"]));
  });

  it.each([
    ["SAM", "yaml", "AWS::Serverless::Function"],
    ["Serverless Framework", "yml", "handler: dist/checkout.handler"],
  ])("grants the function of the example for the %s what that policy grants, and no break, list or reset", (_tool, language, marks) => {
    const [json = ""] = page.blocks("json");
    const { Statement } = JSON.parse(json) as { readonly Statement: readonly [{ readonly Resource: readonly string[] }] };
    const example = page.blocks(language).find((block) => block.includes(marks)) ?? "";
    const [, granted = ""] = /"(\$\{Api\}[^"]*)"/.exec(example) ?? [];
    const api = /^.*\/\$default/.exec(Statement[0].Resource[0] ?? "")?.[0] ?? "";
    expect(granted.replaceAll("${Api}", () => api).split(",")).toEqual(Statement[0].Resource);
    expect(example).not.toMatch(/Resource: !GetAtt .*ApiArn/);
  });

  it("has a policy that allows a client's calls for its keys, and no others", () => {
    const [json = ""] = page.blocks("json");
    const { Statement } = JSON.parse(json) as { readonly Statement: readonly { readonly Resource: readonly string[] }[] };
    const patterns = Statement.flatMap(({ Resource }) => Resource).map((arn) => arn.replace(/^arn:aws:execute-api:[^/]*/, ""));
    const may = (routeKey: string, key: string): boolean => patterns.some((pattern) => arnLike(pattern, callOf(routeKey, key)));
    const ofKeys = ROUTE_KEYS.filter((routeKey) => routeKey.includes("{key}"));
    for (const routeKey of ROUTE_KEYS.filter((one) => !/[{]|lock-sets|renewals/.test(one) && dutyOf(one) !== "admin"))
      expect(may(routeKey, ""), routeKey).toBe(true);
    for (const routeKey of ofKeys) {
      expect(may(routeKey, "ORDER_1"), routeKey).toBe(dutyOf(routeKey) !== "admin");
      expect(may(routeKey, "PAYMENT_1"), routeKey).toBe(false);
    }
  });
});

describe("a zip file", () => {
  const files = { "b.txt": Buffer.from("b".repeat(1000)), "a/ä.txt": Buffer.from("a"), empty: Buffer.alloc(0) };

  it("has the files that it was made from", () => {
    expect(unzipped(zipOf(files))).toEqual(files);
  });

  it("has the same bytes, whatever their order", () => {
    const turned = Object.fromEntries(Object.entries(files).toReversed());
    expect(zipOf(turned).equals(zipOf(files))).toBe(true);
    expect(zipOf({ ...files, empty: Buffer.from("not") }).equals(zipOf(files))).toBe(false);
  });
});
