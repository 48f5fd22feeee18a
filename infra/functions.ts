/**
 * The functions: the same code deployed three times. So a crowd of waiters (`acquire`) can't use up the concurrency of holders (`hold`),
 * and only the function that breaks, lists and resets (`admin`) may query. function-url.ts deploys it once more, and waking.ts has the agent
 * of sleepers.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { Duration, RemovalPolicy, Stack, Validations } from "aws-cdk-lib";
import { type IRole, type PolicyStatementProps, PolicyDocument, PolicyStatement, Role, ServicePrincipal } from "aws-cdk-lib/aws-iam";
import type { IKey } from "aws-cdk-lib/aws-kms";
import {
  ApplicationLogLevel,
  Architecture,
  Code,
  Function as LambdaFunction,
  LoggingFormat,
  Runtime,
  SystemLogLevel,
  Tracing,
} from "aws-cdk-lib/aws-lambda";
import { type RetentionDays, LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import type { Duty } from "../lib/contract/routes.js";
import here from "./here.cjs";
import type { LockTable } from "./table.js";
import { type Place, warnOfPolicy } from "./policy-warning.js";

/** The machine and the entry of every function. */
const MACHINE = { runtime: Runtime.NODEJS_24_X, architecture: Architecture.ARM_64, handler: "index.handler" };

/** The function of each duty. */
export type Functions = Readonly<Record<Duty, LambdaFunction>>;

export interface FunctionOptions {
  readonly table: LockTable;
  readonly encryptionKey: IKey | undefined;
  /** The key that encrypts the log, if it is a customer's. */
  readonly logKey: IKey | undefined;
  readonly logRetention: RetentionDays;
  readonly memorySizeMb: number;
  readonly tracing: boolean;
  readonly reservedConcurrency: Readonly<Partial<Record<Duty, number>>>;
  /** True if an agent wakes sleepers. */
  readonly hasAgent: boolean;
  /** Environment variables in addition to the table's name. */
  readonly environment: Readonly<Record<string, string>>;
}

const FUNCTION_OF: Readonly<Record<Duty, { readonly id: string; readonly description: string; readonly actions: readonly string[] }>> = {
  acquire: {
    id: "Acquire",
    description: "holdfast: acquire, inspect, start a run",
    actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"],
  },
  hold: {
    id: "Hold",
    description: "holdfast: renew, release, check, record an outcome",
    actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"],
  },
  admin: {
    id: "Admin",
    description: "holdfast: break, list and reset",
    actions: ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
  },
};

/** The actions that DynamoDB performs with a customer's key for a principal that reads and writes the table. */
export const KEY_ACTIONS = ["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey", "kms:ReEncryptFrom", "kms:ReEncryptTo"];

/** Creates the functions, their roles, and their common log, so that a single query finds a key's history. */
export function createFunctions(scope: Construct, options: FunctionOptions): { functions: Functions; log: LogGroup } {
  // The log is the record of all holders, so it outlives the stack too.
  const log = new LogGroup(scope, "Log", {
    retention: options.logRetention,
    removalPolicy: RemovalPolicy.RETAIN,
    ...(options.logKey && { encryptionKey: options.logKey }),
  });
  const create = (duty: Duty): LambdaFunction => {
    const environment = duty === "acquire" && options.hasAgent ? { HOLDFAST_WAKE: "1" } : {};
    return createServiceFunction(scope, log, options, {
      name: duty,
      ...FUNCTION_OF[duty],
      environment,
      reserved: options.reservedConcurrency[duty],
    });
  };
  return { functions: { acquire: create("acquire"), hold: create("hold"), admin: create("admin") }, log };
}

/** One deployment of the service's code. */
export interface ServiceFunction {
  /** Its name in the description of its role. */
  readonly name: string;
  readonly id: string;
  readonly description: string;
  /** The actions of DynamoDB that it may do on the table. */
  readonly actions: readonly string[];
  /** Environment variables besides those of all functions. */
  readonly environment: Readonly<Record<string, string>>;
  readonly reserved: number | undefined;
}

/** Creates a function of the service's code, which gateways invoke and wait for, with its role. */
export function createServiceFunction(scope: Construct, log: LogGroup, options: FunctionOptions, of: ServiceFunction): LambdaFunction {
  const { environment, ...settings } = settingsOf(log, options);
  const table = [new PolicyStatement({ actions: [...of.actions], resources: [options.table.tableArn] })];
  const made = new LambdaFunction(scope, of.id, {
    description: of.description,
    ...settings,
    code: codeIn("function"),
    // Longer than the longest wait for a run's outcome plus all attempts of the table call after it; far below the gateway's 30 s.
    timeout: Duration.seconds(15),
    environment: { ...environment, ...of.environment },
    role: createRole(scope, { name: of.name, id: of.id, log, ...options }, { table }),
    ...(of.reserved !== undefined && { reservedConcurrentExecutions: of.reserved }),
  });
  acknowledge(made, "Serverless::Serverless-LambdaDLQ", NO_DEAD_LETTERS);
  if (!options.tracing) acknowledge(made, "Serverless::Serverless-LambdaTracing", TRACED_ON_REQUEST);
  return made;
}

/** Returns the settings of every function that uses the table. */
export function settingsOf(log: LogGroup, options: FunctionOptions) {
  return {
    ...MACHINE,
    memorySize: options.memorySizeMb,
    // Source maps are read only for stack traces, so a refusal, which is an exception of the SDK, costs no more with them.
    environment: { HOLDFAST_TABLE: options.table.tableName, NODE_OPTIONS: "--enable-source-maps", ...options.environment },
    logGroup: log,
    // Only with this format has Lambda's own log a level. `WARN` leaves out the lines at the start and end of every request, and keeps
    // those of failures and timeouts. The service's lines are JSON already, on the standard output, and Lambda takes them as they are.
    // https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-logformat.html
    loggingFormat: LoggingFormat.JSON,
    systemLogLevelV2: SystemLogLevel.WARN,
    // A line without a level counts as `INFO`: a higher level would drop the whole history.
    applicationLogLevelV2: ApplicationLogLevel.INFO,
    tracing: options.tracing ? Tracing.ACTIVE : Tracing.DISABLED,
  };
}

/** The function of a role, and its log. */
export interface RoleOptions extends FunctionOptions {
  readonly name: string;
  readonly id: string;
  readonly log: LogGroup;
  /** The findings of validation plugins that are accepted, each with the reason. */
  readonly accepted?: Readonly<Record<string, string>>;
}

/**
 * Creates a function's role explicitly: the grants of the CDK (`grantReadWriteData`, the basic execution role) allow far more. There is no
 * PutItem. Of the functions that a caller or a sleeper reaches, none may Scan, and none may delete a lock, which would forget its fencing token:
 * only the sweep of a table without TTL may, which has no callers (table-sweep.ts).
 */
export function createRole(scope: Construct, options: RoleOptions, own: Readonly<Record<string, PolicyStatement[]>>): IRole {
  const { name, id, log, encryptionKey, tracing, accepted = {} } = options;
  const policy = (...statements: PolicyStatement[]) => new PolicyDocument({ statements });
  const role = new Role(scope, `${id}Role`, {
    description: `holdfast: what the ${name} function may do`,
    assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    inlinePolicies: {
      ...Object.fromEntries(Object.entries(own).map(([of, statements]) => [of, policy(...statements)])),
      log: policy(new PolicyStatement({ actions: ["logs:CreateLogStream", "logs:PutLogEvents"], resources: [log.logGroupArn] })),
      ...(encryptionKey && { key: policy(keyStatement(scope, encryptionKey)) }),
      ...(tracing && { trace: policy(new PolicyStatement({ actions: TRACE_ACTIONS, resources: ["*"] })) }),
    },
  });
  const findings = { ...(tracing && onAllResources(TRACES_HAVE_NO_RESOURCE)), ...accepted };
  for (const [finding, reason] of Object.entries(findings)) acknowledge(role, finding, reason);
  // Keep the role as it is here: the CDK would otherwise add policies, for example for tracing.
  return role.withoutPolicyUpdates();
}

/** Returns the findings about a statement on all resources, with the reason for it. */
export function onAllResources(reason: string): Readonly<Record<string, string>> {
  return { "AwsSolutions::AwsSolutions-IAM5[Resource::*]": reason, "Serverless::Serverless-LambdaStarPermissions": reason };
}

/**
 * Tells validation plugins such as cdk-nag why a finding is accepted. It changes nothing in the template, so a CDK that doesn't know
 * acknowledgements (below 2.252), or not this id (below 2.268), goes without.
 */
export function acknowledge(construct: Construct, id: string, reason: string): void {
  try {
    Validations.of(construct).acknowledge({ id, reason });
  } catch {
    // An older CDK.
  }
}

const TRACE_ACTIONS = ["xray:PutTraceSegments", "xray:PutTelemetryRecords"];
const TRACES_HAVE_NO_RESOURCE = "X-Ray's two actions to write traces know no resources; all else in the role names the table or the log";
/** The reason why a function isn't traced. */
export const TRACED_ON_REQUEST = "Each trace is charged; the log and the metrics say what happened, and `tracing` turns traces on";
const NO_DEAD_LETTERS =
  "A dead-letter queue is for asynchronous invocations; only a gateway invokes this function, and waits for the answer";

/** Returns the permission to use a customer's key, only through DynamoDB. */
export function keyStatement(scope: Construct, key: IKey): PolicyStatement {
  return new PolicyStatement({
    actions: KEY_ACTIONS,
    resources: [key.keyArn],
    conditions: { StringEquals: { "kms:ViaService": `dynamodb.${Stack.of(scope).region}.${Stack.of(scope).urlSuffix}` } },
  });
}

/**
 * Lets CloudWatch Logs use `key` for the log groups of this account and Region. The groups themselves can't be named: they depend on the key.
 * A key of another app is left as it is, with a warning: its owner must do so.
 */
export function letLogsUse(scope: Construct, key: IKey): void {
  const { statementAdded } = key.addToResourcePolicy(new PolicyStatement(logsMayUse(Stack.of(scope))));
  if (statementAdded) return;
  const message = "encryptionKey: the policy of this key must let CloudWatch Logs use it, or the stack can't make its logs";
  warnOfPolicy(scope, key, message, logsMayUse);
}

function logsMayUse({ partition, region, account }: Place): PolicyStatementProps {
  return {
    principals: [new ServicePrincipal(`logs.${region}.amazonaws.com`)],
    actions: ["kms:Decrypt*", "kms:Describe*", "kms:Encrypt*", "kms:GenerateDataKey*", "kms:ReEncrypt*"],
    resources: ["*"],
    conditions: { ArnLike: { "kms:EncryptionContext:aws:logs:arn": `arn:${partition}:logs:${region}:${account}:log-group:*` } },
  };
}

/** Returns the bundle: in a clone a directory next to this file, in the package a zip file. @throws Error if it has not been built. */
export function codeIn(name: "function" | "console"): Code {
  const [directory, zip] = [join(here, name), join(here, "../../template", `${name}.zip`)];
  if (existsSync(`${directory}/index.mjs`)) return Code.fromAsset(directory);
  if (existsSync(zip)) return Code.fromAsset(zip);
  const maker = name === "console" ? "console/bundle.ts" : "infra/bundle.ts";
  throw new Error(`The code of the ${name} is not there: npx tsx ${maker} makes it`);
}

/**
 * Creates the function that serves the console's files to anybody who asks. It may do nothing, not even log, because a line of its own in
 * the log would count as history.
 */
export function createPageFunction(scope: Construct, log: LogGroup): LambdaFunction {
  const made = new LambdaFunction(scope, "Page", {
    description: "holdfast: the files of the console, which hold no data",
    ...MACHINE,
    code: codeIn("console"),
    memorySize: 128,
    timeout: Duration.seconds(3),
    // Without a group of its own, the CDK would make one, or the default role would.
    logGroup: log,
    role: new Role(scope, "PageRole", {
      description: "holdfast: nothing; the console's files need no right",
      assumedBy: new ServicePrincipal("lambda.amazonaws.com"),
    }).withoutPolicyUpdates(),
  });
  acknowledge(made, "Serverless::Serverless-LambdaDLQ", NO_DEAD_LETTERS);
  acknowledge(made, "Serverless::Serverless-LambdaTracing", TRACED_ON_REQUEST);
  return made;
}
