/**
 * The CloudFormation template for accounts without the CDK, and the functions' zip: made from the stack that `cdk synth` makes, so they are
 * never another service. What differs is listed at {@link plainTemplate}. `npm run template` writes both into `dist/template/`.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
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
/** A template. */
export interface PlainTemplate {
  readonly Description: Json;
  readonly Parameters: Readonly<Record<string, Json>>;
  readonly Rules: Readonly<Record<string, Json>>;
  readonly Conditions: Readonly<Record<string, Json>>;
  readonly Resources: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly Outputs: Readonly<Record<string, Json>>;
}

const JWT = { issuer: "JwtIssuer", audience: "JwtAudience", adminScope: "JwtAdminScope" } as const;
const USES_JWT = "UsesJwt";
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
 * - parameters for the retention of the logs, the memory, and callers with tokens;
 * - no metadata.
 */
export function plainTemplate(): PlainTemplate {
  const iam = synthesize(() => ({}));
  const jwt = synthesize((parameter) => ({
    jwt: {
      issuer: parameter(JWT.issuer, { default: "", description: "The issuer of the callers' tokens; empty: callers sign with IAM" }),
      audience: [parameter(JWT.audience, { default: "", description: "The accepted audience of the tokens" })],
      adminScopes: [parameter(JWT.adminScope, { default: ADMIN_SCOPE, minLength: 1, description: "The scope for break, list and reset" })],
    },
  }));
  const { Parameters, Resources, Outputs, Description } = jwt.template;
  const { BootstrapVersion: _bootstrap, ...ours } = Parameters;
  const named = (json: Json): Json => withStackName(json, jwt.service);
  const merged = Object.entries(Resources).map(([id, { Metadata: _metadata, ...resource }]) => {
    const { Metadata: _same, ...without } = iam.template.Resources[id] ?? {};
    const either = id in iam.template.Resources ? eitherOf(resource, without) : { Condition: USES_JWT, ...resource };
    return [id, withCode(named(either) as typeof resource)] as const;
  });
  return {
    Description,
    Parameters: { ...OF_THE_CODE, ...ours },
    Rules: {
      // An empty audience would ask for nothing of a token.
      TokensHaveAnAudience: {
        RuleCondition: isGiven(JWT.issuer),
        Assertions: [{ Assert: isGiven(JWT.audience), AssertDescription: `${JWT.issuer} needs ${JWT.audience}` }],
      },
    },
    Conditions: { [USES_JWT]: isGiven(JWT.issuer) },
    Resources: Object.fromEntries(merged),
    Outputs: named(Outputs) as PlainTemplate["Outputs"],
  };
}

/** The retentions that CloudWatch takes, without "for ever", which is the absence of one. */
const LOG_RETENTIONS = Object.values(RetentionDays).filter((days) => typeof days === "number" && days !== RetentionDays.INFINITE);

type Parameterize = (
  name: string,
  props: { readonly default: string; readonly description: string; readonly minLength?: number },
) => string;

/** Synthesizes the stack with parameters, and returns its template and the service's name in it. */
function synthesize(locksFor: (parameter: Parameterize) => LockServiceProps): { template: PlainTemplate; service: string } {
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
  return { template, service: serviceName(stack.service) };
}

/** Returns `jwt` with a choice at each property where `iam` differs, or has none. */
function eitherOf(jwt: Json, iam: Json): Json {
  if (JSON.stringify(jwt) === JSON.stringify(iam)) return jwt;
  if (!isObject(jwt) || !isObject(iam) || isFunction(jwt) || isFunction(iam)) return choice(jwt, iam);
  const names = [...new Set([...Object.keys(jwt), ...Object.keys(iam)])];
  return Object.fromEntries(names.map((name) => [name, eitherOf(jwt[name] ?? NOTHING, iam[name] ?? NOTHING)]));
}

function isGiven(parameter: string): Json {
  return { "Fn::Not": [{ "Fn::Equals": [{ Ref: parameter }, ""] }] };
}

function choice(jwt: Json, iam: Json): Json {
  return { "Fn::If": [USES_JWT, jwt, iam] };
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

function withCode(resource: Readonly<Record<string, Json>>): Readonly<Record<string, Json>> {
  if (resource["Type"] !== "AWS::Lambda::Function") return resource;
  const Code = { S3Bucket: { Ref: "CodeBucket" }, S3Key: { Ref: "CodeKey" } };
  return { ...resource, Properties: { ...(resource["Properties"] as object), Code } };
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
  const files = readdirSync(FUNCTION_DIRECTORY).filter((file) => !file.startsWith("."));
  mkdirSync(directory, { recursive: true });
  writeFileSync(
    join(directory, ZIP_FILE),
    zipOf(Object.fromEntries(files.map((file) => [file, readFileSync(join(FUNCTION_DIRECTORY, file))]))),
  );
  writeFileSync(join(directory, TEMPLATE_FILE), `${JSON.stringify(plainTemplate())}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await writeTemplate(process.argv[2] ?? join(ROOT, "dist/template"));
