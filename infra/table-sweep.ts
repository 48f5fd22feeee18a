/**
 * The sweep of a table in several Regions, which has no TTL: a function that a schedule invokes once an hour, and that alone may scan the
 * table and delete of all items. The deletion has a condition (decision 105), so sweeps of two Regions at once do no harm.
 */
import { Duration } from "aws-cdk-lib";
import { Rule, Schedule } from "aws-cdk-lib/aws-events";
import { LambdaFunction as InvokeFunction } from "aws-cdk-lib/aws-events-targets";
import { PolicyStatement } from "aws-cdk-lib/aws-iam";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import type { LogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { type FunctionOptions, acknowledge, codeIn, createRole, settingsOf, TRACED_ON_REQUEST } from "./functions.js";

const INTERVAL = Duration.hours(1);
/** A run reads no further page after 3 minutes, and a page takes less than 2. */
const TIMEOUT = Duration.minutes(5);

const NEXT_RUN = "What a run doesn't delete, the next one does: nothing depends on its time";

/** Creates the function and its schedule. */
export function createTableSweep(scope: Construct, log: LogGroup, options: FunctionOptions): LambdaFunction {
  const table = [new PolicyStatement({ actions: ["dynamodb:DeleteItem", "dynamodb:Scan"], resources: [options.table.tableArn] })];
  const made = new LambdaFunction(scope, "TableSweep", {
    ...settingsOf(log, options),
    description: "holdfast: delete what is over",
    code: codeIn("function"),
    handler: "agent/index.sweepTable",
    timeout: TIMEOUT,
    role: createRole(scope, { name: "table-sweep", id: "TableSweep", log, ...options }, { table }),
    // Instead of a retry there is the next run.
    retryAttempts: 0,
    maxEventAge: INTERVAL,
  });
  for (const finding of ["DLQ", "AsyncFailureDestination"]) acknowledge(made, `Serverless::Serverless-Lambda${finding}`, NEXT_RUN);
  if (!options.tracing) acknowledge(made, "Serverless::Serverless-LambdaTracing", TRACED_ON_REQUEST);
  const rule = new Rule(scope, "TableSweepSchedule", {
    description: "holdfast: the sweep of the table, in place of TTL",
    schedule: Schedule.rate(INTERVAL),
    targets: [new InvokeFunction(made, { retryAttempts: 0, maxEventAge: INTERVAL })],
  });
  acknowledge(rule, "Serverless::Serverless-EventBusDLQ", NEXT_RUN);
  return made;
}
