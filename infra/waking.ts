/**
 * The agent that wakes sleepers: a fourth function, which a schedule invokes once a minute, and the table's stream within a second of an offer
 * to a sleeper. It alone may tell the targets of sleepers, ask whether an execution runs that a lease is tied to, and read and delete their
 * items.
 */
import { Annotations, Arn, ArnFormat, Duration, Stack } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction as InvokeFunction } from "aws-cdk-lib/aws-events-targets";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { EventSourceMapping, FilterCriteria, FilterRule, Function as LambdaFunction, StartingPosition } from "aws-cdk-lib/aws-lambda";
import type { LogGroup } from "aws-cdk-lib/aws-logs";
import type { IStateMachine } from "aws-cdk-lib/aws-stepfunctions";
import type { Construct } from "constructs";
import { SLEEPERS } from "../lib/store/dynamo/sleeper-store.js";
import { type FunctionOptions, acknowledge, codeIn, createRole, onAllResources, settingsOf, TRACED_ON_REQUEST } from "./functions.js";
import { streamOf } from "./table.js";

/** Options of the agent that wakes sleepers. */
export interface WakeOptions {
  /**
   * The durable functions whose callbacks the agent may complete, and to whose executions leases may be tied. A function of a stack that
   * depends on this one is named by its ARN (`Function.fromFunctionArn`), or the stacks would depend on each other. With `regions`, they may be in
   * any Region with a replica: give each Region's agent those of all. @default none: only tasks of Step Functions are woken
   */
  readonly functions?: readonly IFunction[] | undefined;
  /**
   * The state machines to whose executions leases may be tied. One that has sections under a lock of this service is named by its ARN or its
   * name (`StateMachine.fromStateMachineName`), since the service comes first. Those of other Regions as for `functions`. @default none
   */
  readonly stateMachines?: readonly IStateMachine[] | undefined;
}

/** The marker of a record with an unclaimed offer to a sleeper. No other write passes the filter, so heartbeats invoke nothing. */
export const OFFERED = { dynamodb: { NewImage: { dl: { S: FilterRule.exists() } } } };

const BATCH_RECORDS = 10;
/** Older records say nothing that a sweep hasn't seen. */
const RECORD_AGE_MAX = Duration.minutes(5);
const RECORD_RETRIES = 2;
/** The sweep looks at no further sleeper after 45 s, and ends with those whose targets it is asking. */
const TIMEOUT = Duration.minutes(2);
const SWEEP_INTERVAL = Duration.minutes(1);

/** The warning that the table has no stream that the agent could read. */
export const NO_STREAM_WARNING = "holdfast:wake";
const NO_STREAM = "wake: the table has no stream with new images, so a sleeper learns of a release by the next sweep, up to a minute later";
const NEXT_SWEEP = "A record or an invocation that is lost says nothing that the table doesn't, and the next sweep reads the table";
const PARTS =
  "The versions of a function that is named, and the executions of a state machine that is; the streams of the table, which are only listed";
const TOKENS_ARE_THE_RIGHT =
  "A task's token is the right to answer it, and callers' state machines are unknown here; all other statements name the table, its stream, " +
  "the log or functions";

/** Creates the agent, its schedule, and the mapping of the table's stream, if the table has one. */
export function createAgent(scope: Construct, log: LogGroup, options: FunctionOptions, wake: WakeOptions): LambdaFunction {
  const { tableArn } = options.table;
  const streamArn = streamOf(options.table);
  if (streamArn === undefined) Annotations.of(scope).addWarningV2(NO_STREAM_WARNING, NO_STREAM);
  const own = {
    table: [new PolicyStatement({ actions: ["dynamodb:GetItem", "dynamodb:UpdateItem"], resources: [tableArn] })],
    sleepers: [ofSleepers(tableArn)],
    targets: ofTargets(wake),
    ...(streamArn !== undefined && { stream: ofStream(tableArn, streamArn) }),
  };
  const wild = Object.values(own).flatMap((statements) =>
    statements.flatMap(({ resources }) => resources.filter((one) => one.endsWith(":*") || one.endsWith("/*"))),
  );
  const accepted = {
    ...onAllResources(TOKENS_ARE_THE_RIGHT),
    ...Object.fromEntries(wild.map((resource) => [`AwsSolutions::AwsSolutions-IAM5[Resource::${nameIn(scope, resource)}]`, PARTS])),
  };
  const agent = new LambdaFunction(scope, "Agent", {
    ...settingsOf(log, options),
    description: "holdfast: wake sleepers",
    code: codeIn("function"),
    handler: "agent/index.handler",
    timeout: TIMEOUT,
    role: createRole(scope, { name: "agent", id: "Agent", log, ...options, accepted }, own),
    // Instead of a retry there is the next sweep.
    retryAttempts: 0,
    maxEventAge: SWEEP_INTERVAL,
  });
  for (const finding of ["DLQ", "AsyncFailureDestination"]) acknowledge(agent, `Serverless::Serverless-Lambda${finding}`, NEXT_SWEEP);
  if (!options.tracing) acknowledge(agent, "Serverless::Serverless-LambdaTracing", TRACED_ON_REQUEST);
  const rule = new Rule(scope, "Sweep", {
    description: "holdfast: the sweep over all sleepers",
    schedule: Schedule.rate(SWEEP_INTERVAL),
    targets: [new InvokeFunction(agent, { retryAttempts: 0, maxEventAge: SWEEP_INTERVAL })],
  });
  acknowledge(rule, "Serverless::Serverless-EventBusDLQ", NEXT_SWEEP);
  if (streamArn !== undefined) mapStream(scope, agent, streamArn);
  return agent;
}

/** Returns the name that cdk-nag has for a resource of a policy. */
function nameIn(scope: Construct, resource: string): string {
  const flat = (json: unknown): string => {
    if (typeof json === "string") return json;
    const { Ref: id, "Fn::GetAtt": attribute, "Fn::Join": joined } = json as Readonly<Record<string, readonly unknown[]>>;
    if (joined) return (joined[1] as readonly unknown[]).map(flat).join("");
    return `<${attribute ? attribute.join(".") : String(id)}>`;
  };
  return flat(Stack.of(scope).resolve(resource));
}

/** Returns the permission to list the sleepers and to delete them, and no other item: a deleted lock would forget its fencing token. */
function ofSleepers(tableArn: string): PolicyStatement {
  return new PolicyStatement({
    actions: ["dynamodb:DeleteItem", "dynamodb:Query"],
    resources: [tableArn],
    conditions: {
      "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": [SLEEPERS] },
      Null: { "dynamodb:LeadingKeys": "false" },
    },
  });
}

/** Returns the permissions to tell targets, and to ask about executions. */
function ofTargets({ functions = [], stateMachines = [] }: WakeOptions): PolicyStatement[] {
  const allow = (actions: string[], resources: string[]): PolicyStatement[] =>
    resources.length === 0 ? [] : [new PolicyStatement({ actions, resources })];
  const ofFunctions = ["GetDurableExecution", "SendDurableExecutionCallbackFailure", "SendDurableExecutionCallbackSuccess"];
  return [
    ...allow(["states:SendTaskFailure", "states:SendTaskSuccess"], ["*"]),
    ...allow(
      ofFunctions.map((action) => `lambda:${action}`),
      functions.flatMap((one) => one.resourceArnsForGrantInvoke),
    ),
    ...allow(["states:DescribeExecution"], stateMachines.flatMap(executionsOf)),
  ];
}

/** Returns the ARNs of a state machine's executions, and of those that its distributed maps start. */
function executionsOf({ stateMachineArn }: IStateMachine): string[] {
  const arn = Arn.format({ ...Arn.split(stateMachineArn, ArnFormat.COLON_RESOURCE_NAME), resource: "execution" });
  return [`${arn}/*`, `${arn}:*`];
}

/** Returns the permissions that Lambda needs to read the stream for the agent. */
function ofStream(tableArn: string, streamArn: string): PolicyStatement[] {
  return [
    new PolicyStatement({
      actions: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"],
      resources: [streamArn],
    }),
    new PolicyStatement({ actions: ["dynamodb:ListStreams"], resources: [`${tableArn}/stream/*`] }),
  ];
}

function mapStream(scope: Construct, agent: LambdaFunction, streamArn: string): void {
  const mapping = new EventSourceMapping(scope, "Offers", {
    target: agent,
    eventSourceArn: streamArn,
    startingPosition: StartingPosition.LATEST,
    filters: [FilterCriteria.filter(OFFERED)],
    batchSize: BATCH_RECORDS,
    reportBatchItemFailures: true,
    bisectBatchOnError: true,
    retryAttempts: RECORD_RETRIES,
    maxRecordAge: RECORD_AGE_MAX,
  });
  acknowledge(mapping, "Serverless::Serverless-LambdaEventSourceMappingDestination", NEXT_SWEEP);
}
