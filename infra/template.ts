/**
 * The CloudFormation templates for accounts without the CDK, and the functions' zip: made from the stack that `cdk synth` makes, so they are
 * never another service. What differs is listed at {@link plainTemplate}. `npm run template` writes all into `dist/template/`.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type CfnParameterProps, type Stack, Annotations, App, CfnParameter, Fn } from "aws-cdk-lib";
import { TableV2 } from "aws-cdk-lib/aws-dynamodb";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
import { Topic } from "aws-cdk-lib/aws-sns";
import { ADMIN_SCOPE } from "./api.js";
import { bundleFunction, FUNCTION_DIRECTORY } from "./bundle.js";
import { serviceName } from "./lock-service.js";
import type { LockServiceProps } from "./props.js";
import { HoldfastStack } from "./stack.js";
import { zipOf } from "./zip.js";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** The stack's name while it is synthesized, which is in some logical ids. In every name the user's own takes its place. */
export const STACK_NAME = "holdfast";

/** A part of a template. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
export interface PlainTemplate {
  readonly Description: Json;
  readonly Parameters: Readonly<Record<string, Json>>;
  readonly Rules: Readonly<Record<string, Json>>;
  readonly Conditions: Readonly<Record<string, Json>>;
  readonly Resources: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly Outputs: Readonly<Record<string, Json>>;
}

const JWT = { issuer: "JwtIssuer", audience: "JwtAudience", scope: "JwtScope", adminScope: "JwtAdminScope" } as const;
const TENANT = "Tenant";
const ALARM_TOPIC = "AlarmTopicArn";
const WAKE = "Wake";
const NOTHING = { Ref: "AWS::NoValue" };

/** The parameters that the stack's properties don't use. */
const OF_THE_CODE = {
  CodeBucket: { Type: "String", Description: "The bucket, in this Region, with function.zip", MinLength: 1 },
  CodeKey: { Type: "String", Description: "The key of function.zip; another version needs another key", MinLength: 1 },
};

type Parameterize = (name: string, props: Omit<CfnParameterProps, "type">) => string;

/** A part of the service that a parameter turns on. */
interface Part {
  /** The name of its condition. It is short, because each route has that of tokens. */
  readonly condition: string;
  readonly when: Json;
  /** The condition of the part that it is a part of. A rule must refuse it without that one. */
  readonly within?: string;
  /** Returns the options of a service with this part; `options` are those with the parts before it. */
  add(options: LockServiceProps, parameter: Parameterize, scope: Stack): LockServiceProps;
}

/** Returns the options of a service on its own table. */
export const ownTable: Part["add"] = (options) => options;

/** Returns the options of the service of one Region, on a table that is there in several: as `LockService.inRegion` makes it. */
export const givenTable: Part["add"] = (options, parameter, scope) => {
  const tableName = parameter("Table", {
    default: undefined,
    allowedPattern: "[A-Za-z0-9_.-]{3,255}",
    description: "The table: a global one with multi-Region strong consistency, and a replica in this Region",
  });
  const replicas = parameter("Replicas", {
    default: undefined,
    allowedPattern: "[a-z]+(-[a-z]+)+-[0-9](,[a-z]+(-[a-z]+)+-[0-9])?",
    description: "The other Regions with a replica of it, with a comma and no spaces",
  });
  // CloudFormation doesn't tell the stream of a replica that is there already.
  Annotations.of(scope).acknowledgeWarning("holdfast:wake");
  return { ...options, table: TableV2.fromTableName(scope, "Given", tableName), regions: { replicas: [replicas] } };
};

/** The parts that a user may turn on. Each makes a difference at places of its own, or inside of what another one adds. */
const PARTS: readonly Part[] = [
  {
    condition: "Jwt",
    when: isGiven(JWT.issuer),
    add(options, parameter) {
      const issuer = parameter(JWT.issuer, { description: "The issuer of the callers' tokens; empty: callers sign with IAM" });
      const audience = parameter(JWT.audience, {
        description: "The accepted audiences of the tokens, or client ids, with commas and no spaces",
        // An empty entry would accept a token with an empty audience.
        allowedPattern: "([^ ,]+(,[^ ,]+)*)?",
      });
      const description = "The scope for break, list and reset";
      const adminScope = parameter(JWT.adminScope, { default: ADMIN_SCOPE, minLength: 1, description });
      return { ...options, jwt: { issuer, audience: Fn.split(",", audience), adminScopes: [adminScope] } };
    },
  },
  {
    condition: "Scope",
    when: isGiven(JWT.scope),
    within: "Jwt",
    add({ jwt, ...options }, parameter) {
      const scope = parameter(JWT.scope, { description: "The scope for everything else; empty: none is required" });
      return { ...options, ...(jwt && { jwt: { ...jwt, scopes: [scope] } }) };
    },
  },
  {
    condition: "Tenants",
    when: isGiven(TENANT),
    add(options, parameter) {
      const tenant = parameter(TENANT, {
        description: "Tenants: account, role or claim:NAME of a token; empty: all callers share one namespace",
        allowedPattern: "(account|role|claim:.+)?",
      });
      return { ...options, tenant: tenant as LockServiceProps["tenant"] };
    },
  },
  {
    condition: "Notifies",
    when: isGiven(ALARM_TOPIC),
    add(options, parameter, scope) {
      const arn = parameter(ALARM_TOPIC, { description: "The topic that the alarms notify; empty: they notify nobody" });
      return { ...options, alarmTopic: Topic.fromTopicArn(scope, "Alarms", arn) };
    },
  },
  {
    condition: "Wakes",
    when: { "Fn::Equals": [{ Ref: WAKE }, "true"] },
    add(options, parameter) {
      parameter(WAKE, { default: "false", allowedValues: ["true", "false"], description: "true: an agent wakes waiters that sleep" });
      return { ...options, wake: true };
    },
  },
];

/**
 * Returns the stack's template without the CDK, of a service on this table:
 *
 * - no bootstrap: no `BootstrapVersion`, and the code is in `CodeBucket` at `CodeKey`;
 * - the stack's own name is in the names of the API, the alarms, the dashboard, the query and the metrics, so that two don't collide;
 * - parameters for the retention of the logs and the memory, and for each of the {@link PARTS};
 * - no metadata.
 */
export function plainTemplate(table: Part["add"] = ownTable): PlainTemplate {
  const synthesize = (parts: readonly Part[]): PlainTemplate => synthesized([{ add: table }, ...parts]);
  const whole = synthesize(PARTS);
  const { BootstrapVersion: _bootstrap, ...ours } = whole.Parameters;
  const Resources = PARTS.reduce((merged, part) => {
    const outside = PARTS.filter(({ within }) => within !== part.condition);
    const without = synthesize(outside.filter((other) => other !== part)).Resources;
    return eachIf(part.condition, { merged, whole: synthesize(outside).Resources, without });
  }, whole.Resources);
  return {
    Description: whole.Description,
    Parameters: { ...OF_THE_CODE, ...ours },
    Rules: {
      // An empty audience would ask for nothing of a token.
      TokensHaveAnAudience: ruleIf(isGiven(JWT.issuer), isGiven(JWT.audience), `${JWT.issuer} needs ${JWT.audience}`),
      ScopesAreOfTokens: ruleIf(isGiven(JWT.scope), isGiven(JWT.issuer), `${JWT.scope} needs ${JWT.issuer}`),
      ClaimsAreOfTokens: ruleIf(
        { "Fn::Not": [{ "Fn::Contains": [["", "account", "role"], { Ref: TENANT }] }] },
        isGiven(JWT.issuer),
        `${TENANT} claim:NAME needs ${JWT.issuer}`,
      ),
    },
    Conditions: Object.fromEntries(PARTS.map(({ condition, when }) => [condition, when])),
    Resources,
    Outputs: whole.Outputs,
  };
}

function ruleIf(RuleCondition: Json, Assert: Json, AssertDescription: string): Json {
  return { RuleCondition, Assertions: [{ Assert, AssertDescription }] };
}

/** The retentions that CloudWatch takes, without "for ever", which is the absence of one. */
const LOG_RETENTIONS = Object.values(RetentionDays).filter((days) => typeof days === "number" && days !== RetentionDays.INFINITE);

/** Synthesizes the stack with parameters for these parts, and returns its template with the names and the code of this one, and without metadata. */
function synthesized(parts: readonly Pick<Part, "add">[]): PlainTemplate {
  const { context } = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")) as { context: Record<string, unknown> };
  // What is checked is the merged template, by cfn-lint.
  const app = new App({ context, builtinCloudFormationValidation: false, treeMetadata: false, stackTraces: false });
  const stack = new HoldfastStack(app, STACK_NAME, {}, (scope) => {
    const retention = new CfnParameter(scope, "LogRetentionDays", {
      type: "Number",
      default: String(RetentionDays.THREE_MONTHS),
      allowedValues: LOG_RETENTIONS.map(String),
      description: "The retention of the logs, in days",
    });
    const memory = new CfnParameter(scope, "MemorySizeMb", {
      type: "Number",
      default: 512,
      minValue: 128,
      maxValue: 10_240,
      description: "The memory of each function, in MB",
    });
    const parameter: Parameterize = (name, props) => new CfnParameter(scope, name, { type: "String", default: "", ...props }).valueAsString;
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the parameter allows only the values of the enum
    const options: LockServiceProps = { logRetention: retention.valueAsNumber, memorySizeMb: memory.valueAsNumber };
    return parts.reduce((all, part) => part.add(all, parameter, scope), options);
  });
  const template = app.synth().getStackByName(STACK_NAME).template as PlainTemplate;
  const named = inShort(withStackName(template as unknown as Json, serviceName(stack.service))) as unknown as PlainTemplate;
  const resources = Object.entries(named.Resources).map(([id, { Metadata: _metadata, ...resource }]) => [id, withCode(resource)]);
  return { ...named, Resources: Object.fromEntries(resources) as PlainTemplate["Resources"] };
}

/** A place in the template: as it is merged so far, with the part that is merged now, and without it. */
interface Merge {
  readonly merged: Json;
  readonly whole: Json;
  readonly without: Json;
}

/** Returns the merged resources, with a condition where the part makes a difference. */
function eachIf(condition: string, of: { readonly [state in keyof Merge]: PlainTemplate["Resources"] }): PlainTemplate["Resources"] {
  return Object.fromEntries(
    Object.entries(of.merged).map(([id, merged]) => {
      const [whole, without] = [of.whole[id] ?? merged, of.without[id]];
      return [id, without ? (eitherOf(condition, { merged, whole, without }) as typeof merged) : { Condition: condition, ...merged }];
    }),
  );
}

/** Returns what is merged, with a choice at each property that is another without the part, or isn't there. */
function eitherOf(condition: string, { merged, whole, without }: Merge): Json {
  if (JSON.stringify(whole) === JSON.stringify(without)) return merged;
  if (!isPlain(merged) || !isPlain(whole) || !isPlain(without)) return { "Fn::If": [condition, merged, without] };
  const names = [...new Set([...Object.keys(merged), ...Object.keys(without)])];
  return Object.fromEntries(
    names.map((name) => {
      const place = { merged: merged[name] ?? NOTHING, whole: whole[name] ?? NOTHING, without: without[name] ?? NOTHING };
      return [name, eitherOf(condition, place)];
    }),
  );
}

function isGiven(parameter: string): Json {
  return { "Fn::Not": [{ "Fn::Equals": [{ Ref: parameter }, ""] }] };
}

/** Puts the name of the user's stack where the service's name is, or the name of this stack. */
function withStackName(json: Json, service: string): Json {
  if (json === STACK_NAME) return { Ref: "AWS::StackName" };
  if (typeof json === "string" && json.includes(service)) {
    if (json.includes("${")) throw new Error(`Not to be substituted: ${json}`);
    return { "Fn::Sub": json.replaceAll(service, "${AWS::StackName}") };
  }
  if (Array.isArray(json)) return (json as readonly Json[]).map((item) => withStackName(item, service));
  if (!isObject(json)) return json;
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, withStackName(value, service)]));
}

/** Writes each join of texts and references as one text, which is shorter: there are as many as routes. */
function inShort(json: Json): Json {
  if (Array.isArray(json)) return (json as readonly Json[]).map(inShort);
  if (!isObject(json)) return json;
  const [separator, parts = []] = (json["Fn::Join"] ?? []) as readonly [string?, (readonly Json[])?];
  const texts = parts.map(textOf);
  if (separator === "" && !texts.includes(undefined)) return { "Fn::Sub": texts.join("") };
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, inShort(value)]));
}

/** Returns a part of a join as text to substitute in, or undefined if it can't be one. */
function textOf(part: Json): string | undefined {
  if (typeof part === "string") return part.includes("${") ? undefined : part;
  const { Ref: name, "Fn::GetAtt": attribute, "Fn::Sub": text } = part as Readonly<Record<string, Json>>;
  if (name !== undefined) return `\${${name as string}}`;
  if (attribute !== undefined) return `\${${(attribute as readonly string[]).join(".")}}`;
  return text as string | undefined;
}

function withCode(resource: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  if (resource["Type"] !== "AWS::Lambda::Function") return resource;
  const properties = resource["Properties"] as Readonly<Record<string, Json>>;
  const Code = { S3Bucket: { Ref: "CodeBucket" }, S3Key: { Ref: "CodeKey" } };
  return { ...resource, Properties: { ...properties, Code } };
}

function isObject(json: Json | undefined): json is Readonly<Record<string, Json>> {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** True for an object whose members can be merged one by one: not for an intrinsic function of CloudFormation. */
function isPlain(json: Json): json is Readonly<Record<string, Json>> {
  return isObject(json) && !Object.keys(json).some((name) => name === "Ref" || name.startsWith("Fn::"));
}

/** The files in {@link writeTemplate}'s directory. */
export const TEMPLATE_FILE = "holdfast.template.json";
/** The service of one Region, on a table that is there in several. */
export const REGION_TEMPLATE_FILE = "holdfast-in-region.template.json";
/** The functions' code. */
export const ZIP_FILE = "function.zip";

/** Writes the templates and the zip into `directory`. Built twice from the same sources, they have the same bytes. */
export async function writeTemplate(directory: string): Promise<void> {
  await bundleFunction();
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, ZIP_FILE), zipOf(filesIn(FUNCTION_DIRECTORY)));
  for (const [file, table] of [
    [TEMPLATE_FILE, ownTable],
    [REGION_TEMPLATE_FILE, givenTable],
  ] as const)
    writeFileSync(join(directory, file), `${JSON.stringify(plainTemplate(table))}\n`);
}

/** Returns the files of a bundle, by their paths in the zip. */
export function filesIn(directory: string): Readonly<Record<string, Buffer>> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(paths.map((path) => [relative(directory, path).replaceAll("\\", "/"), readFileSync(path)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeTemplate(process.argv[2] ?? join(ROOT, "dist/template"));
