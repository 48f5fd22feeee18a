/**
 * The CloudFormation template for accounts without the CDK, and the functions' zip: made from the stack that `cdk synth` makes, so they are
 * never another service. What differs is listed at {@link plainTemplate}. `npm run template` writes both into `dist/template/`.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { App, CfnParameter } from "aws-cdk-lib";
import { RetentionDays } from "aws-cdk-lib/aws-logs";
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

const JWT = { issuer: "JwtIssuer", audience: "JwtAudience", adminScope: "JwtAdminScope" } as const;
const USES_JWT = "Jwt"; // Short, because each route has it twice.
const WAKE = "Wake";
const WAKES = "Wakes";
const NOTHING = { Ref: "AWS::NoValue" };

/** The parameters that the stack's properties don't use. */
const OF_THE_CODE = {
  CodeBucket: { Type: "String", Description: "The bucket, in this Region, with function.zip", MinLength: 1 },
  CodeKey: { Type: "String", Description: "The key of function.zip; another version needs another key", MinLength: 1 },
};

/**
 * Returns the stack's template without the CDK:
 *
 * - no bootstrap: no `BootstrapVersion`, and the code is in `CodeBucket` at `CodeKey`;
 * - the stack's own name is in the names of the API, the alarms, the dashboard, the query and the metrics, so that two don't collide;
 * - parameters for the retention of the logs, the memory, callers with tokens, and the agent that wakes sleepers;
 * - no metadata.
 */
export function plainTemplate(): PlainTemplate {
  const [without, waking] = [merged(false), merged(true)];
  const { Outputs, Description, Resources, ...parts } = waking;
  const { BootstrapVersion: _bootstrap, ...ours } = parts.Parameters;
  return {
    Description,
    Parameters: {
      ...OF_THE_CODE,
      ...ours,
      [WAKE]: {
        Type: "String",
        Default: "false",
        AllowedValues: ["true", "false"],
        Description: "true: an agent wakes waiters that sleep",
      },
    },
    Rules: {
      // An empty audience would ask for nothing of a token.
      TokensHaveAnAudience: {
        RuleCondition: isGiven(JWT.issuer),
        Assertions: [{ Assert: isGiven(JWT.audience), AssertDescription: `${JWT.issuer} needs ${JWT.audience}` }],
      },
    },
    Conditions: { [USES_JWT]: isGiven(JWT.issuer), [WAKES]: { "Fn::Equals": [{ Ref: WAKE }, "true"] } },
    Resources: eachIf(WAKES, Resources, without.Resources),
    Outputs,
  };
}

/** Returns the stack's template for callers of both kinds, with or without the agent. */
function merged(wake: boolean): PlainTemplate {
  const iam = synthesize(() => ({ wake }));
  const jwt = synthesize((parameter) => ({
    wake,
    jwt: {
      issuer: parameter(JWT.issuer, { default: "", description: "The issuer of the callers' tokens; empty: callers sign with IAM" }),
      audience: [parameter(JWT.audience, { default: "", description: "The accepted audience of the tokens" })],
      adminScopes: [parameter(JWT.adminScope, { default: ADMIN_SCOPE, minLength: 1, description: "The scope for break, list and reset" })],
    },
  }));
  return { ...jwt, Resources: eachIf(USES_JWT, jwt.Resources, iam.Resources) };
}

/** The retentions that CloudWatch takes, without "for ever", which is the absence of one. */
const LOG_RETENTIONS = Object.values(RetentionDays).filter((days) => typeof days === "number" && days !== RetentionDays.INFINITE);

type Parameterize = (
  name: string,
  props: { readonly default: string; readonly description: string; readonly minLength?: number },
) => string;

/** Synthesizes the stack with parameters, and returns its template with the names and the code of this one, and without metadata. */
function synthesize(locksFor: (parameter: Parameterize) => LockServiceProps): PlainTemplate {
  const { context } = JSON.parse(readFileSync(join(ROOT, "cdk.json"), "utf8")) as { context: Record<string, unknown> };
  const app = new App({ context });
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
    const own = locksFor((name, props) => new CfnParameter(scope, name, { type: "String", ...props }).valueAsString);
    // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- the parameter allows only the values of the enum
    return { logRetention: retention.valueAsNumber, memorySizeMb: memory.valueAsNumber, ...own };
  });
  const template = app.synth().getStackByName(STACK_NAME).template as PlainTemplate;
  const named = inShort(withStackName(template as unknown as Json, serviceName(stack.service))) as unknown as PlainTemplate;
  const resources = Object.entries(named.Resources).map(([id, { Metadata: _metadata, ...resource }]) => [id, withCode(resource)]);
  return { ...named, Resources: Object.fromEntries(resources) as PlainTemplate["Resources"] };
}

/** Returns the resources of `yes`, with a condition where `no` has another or none. */
function eachIf(condition: string, yes: PlainTemplate["Resources"], no: PlainTemplate["Resources"]): PlainTemplate["Resources"] {
  return Object.fromEntries(
    Object.entries(yes).map(([id, resource]) => {
      const other = no[id];
      return [id, other ? (eitherOf(condition, resource, other) as typeof resource) : { Condition: condition, ...resource }];
    }),
  );
}

/** Returns `yes` with a choice at each property where `no` differs, or has none. */
function eitherOf(condition: string, yes: Json, no: Json): Json {
  if (JSON.stringify(yes) === JSON.stringify(no)) return yes;
  if (!isObject(yes) || !isObject(no) || isFunction(yes) || isFunction(no)) return { "Fn::If": [condition, yes, no] };
  const names = [...new Set([...Object.keys(yes), ...Object.keys(no)])];
  return Object.fromEntries(names.map((name) => [name, eitherOf(condition, yes[name] ?? NOTHING, no[name] ?? NOTHING)]));
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

/** True for an intrinsic function of CloudFormation, which can't be merged member by member. */
function isFunction(json: object): boolean {
  return Object.keys(json).some((name) => name === "Ref" || name.startsWith("Fn::"));
}

/** The files in {@link writeTemplate}'s directory. */
export const TEMPLATE_FILE = "holdfast.template.json";
/** The functions' code. */
export const ZIP_FILE = "function.zip";

/** Writes the template and the zip into `directory`. Built twice from the same sources, they have the same bytes. */
export async function writeTemplate(directory: string): Promise<void> {
  await bundleFunction();
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, ZIP_FILE), zipOf(filesIn(FUNCTION_DIRECTORY)));
  writeFileSync(join(directory, TEMPLATE_FILE), `${JSON.stringify(plainTemplate())}\n`);
}

/** Returns the files of a bundle, by their paths in the zip. */
export function filesIn(directory: string): Readonly<Record<string, Buffer>> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map(({ parentPath, name }) => join(parentPath, name));
  return Object.fromEntries(paths.map((path) => [relative(directory, path).replaceAll("\\", "/"), readFileSync(path)]));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeTemplate(process.argv[2] ?? join(ROOT, "dist/template"));
