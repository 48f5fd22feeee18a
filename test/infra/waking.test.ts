/** A service with an agent that wakes sleepers: its rights, what invokes it, and its alarm. Without `wake` there is nothing of it. */
import type { Template } from "aws-cdk-lib/assertions";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, it } from "vitest";
import type { LockServiceProps } from "../../infra/props.js";
import { all, functionOf, only, statementsOf } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

const DURABLE = "arn:aws:lambda:eu-west-1:111122223333:function:durable";
const ORDERS = "arn:aws:states:eu-west-1:111122223333:stateMachine:orders";
const template = synthesizeOwn((stack) => ({
  wake: {
    functions: [LambdaFunction.fromFunctionArn(stack, "Durable", DURABLE)],
    stateMachines: [StateMachine.fromStateMachineArn(stack, "Orders", ORDERS)],
  },
}));
const [tableId, table] = only(template, "AWS::DynamoDB::Table");
const toTable = { "Fn::GetAtt": [tableId, "Arn"] };
const toStream = { "Fn::GetAtt": [tableId, "StreamArn"] };
const [agentId, agent] = functionOf(template, "agent");

/** The statements of the agent's role, without those that every function has. */
function statementsOfAgent(made: Template) {
  const { Role } = functionOf(made, "agent")[1].Properties as { Role: { "Fn::GetAtt": [string] } };
  const [, role] = all(made, "AWS::IAM::Role").find(([id]) => id === Role["Fn::GetAtt"][0])!;
  return statementsOf(role).filter(({ Action }) => !String(Action).startsWith("logs:"));
}

describe("the agent's role", () => {
  it("claims keys, deletes and lists sleepers alone, answers tasks and callbacks, asks about executions, and reads the stream", () => {
    expect(statementsOfAgent(template)).toEqual([
      { Effect: "Allow", Action: ["dynamodb:GetItem", "dynamodb:UpdateItem"], Resource: toTable },
      {
        Effect: "Allow",
        Action: ["dynamodb:DeleteItem", "dynamodb:Query"],
        Resource: toTable,
        Condition: { "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": ["/sleepers"] }, Null: { "dynamodb:LeadingKeys": "false" } },
      },
      { Effect: "Allow", Action: ["states:SendTaskFailure", "states:SendTaskSuccess"], Resource: "*" },
      {
        Effect: "Allow",
        Action: ["lambda:GetDurableExecution", "lambda:SendDurableExecutionCallbackFailure", "lambda:SendDurableExecutionCallbackSuccess"],
        Resource: [DURABLE, `${DURABLE}:*`],
      },
      {
        Effect: "Allow",
        Action: "states:DescribeExecution",
        Resource: ["/*", ":*"].map((all) => ORDERS.replace("stateMachine", "execution") + all),
      },
      { Effect: "Allow", Action: ["dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator"], Resource: toStream },
      { Effect: "Allow", Action: "dynamodb:ListStreams", Resource: { "Fn::Join": ["", [toTable, "/stream/*"]] } },
    ]);
  });

  it("completes no callback of a function that isn't named, and asks about no execution", () => {
    expect(JSON.stringify(statementsOfAgent(synthesizeOwn(() => ({ wake: true }))))).not.toMatch(/lambda:|Describe(?!Stream)/);
  });

  it("is the only one with these rights", () => {
    const others = all(template, "AWS::IAM::Role").filter(([id]) => !id.startsWith("LocksAgent"));
    expect(JSON.stringify(others)).not.toMatch(/DeleteItem|states:|SendDurable|(?<!Log)Streams?"/);
  });
});

describe("the agent", () => {
  it("sweeps each minute, without a repeat of one that failed: the next one sees the same", () => {
    expect(only(template, "AWS::Events::Rule")[1].Properties).toMatchObject({
      ScheduleExpression: "rate(1 minute)",
      State: "ENABLED",
      Targets: [{ Arn: { "Fn::GetAtt": [agentId, "Arn"] }, RetryPolicy: { MaximumRetryAttempts: 0 } }],
    });
    expect(only(template, "AWS::Lambda::EventInvokeConfig")[1].Properties).toMatchObject({
      FunctionName: { Ref: agentId },
      MaximumRetryAttempts: 0,
    });
  });

  it("hears of offers to sleepers from the table's stream", () => {
    expect(table.Properties.StreamSpecification).toEqual({ StreamViewType: "NEW_IMAGE" });
    expect(only(template, "AWS::Lambda::EventSourceMapping")[1].Properties).toEqual({
      EventSourceArn: toStream,
      FunctionName: { Ref: agentId },
      StartingPosition: "LATEST",
      FilterCriteria: { Filters: [{ Pattern: '{"dynamodb":{"NewImage":{"dl":{"S":[{"exists":true}]}}}}' }] },
      BatchSize: 10,
      FunctionResponseTypes: ["ReportBatchItemFailures"],
      BisectBatchOnFunctionError: true,
      MaximumRetryAttempts: 2,
      MaximumRecordAgeInSeconds: 300,
    });
  });

  it("is there for the function that acquires, and for no other", () => {
    const wakes = (duty: string): unknown => functionOf(template, duty)[1].Properties.Environment.Variables.HOLDFAST_WAKE;
    expect(["acquire", "hold", "admin", "agent"].map(wakes)).toEqual(["1", undefined, undefined, undefined]);
    expect(agent.Properties).not.toHaveProperty("ReservedConcurrentExecutions");
  });

  it("raises an alarm where a sweep fails, and where nobody sweeps", () => {
    const alarms = all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => Properties);
    expect(alarms.filter(({ AlarmName }) => (AlarmName as string).endsWith(": SweepFailed"))).toMatchObject([
      {
        Namespace: "AWS/Lambda",
        MetricName: "Errors",
        Dimensions: [{ Name: "FunctionName", Value: { Ref: agentId } }],
        Threshold: 0,
        ComparisonOperator: "GreaterThanThreshold",
        TreatMissingData: "breaching",
      },
    ]);
  });

  it("isn't there, nor a stream, unless it is asked for", () => {
    for (const without of [devTemplate(), synthesizeOwn(() => ({ wake: false }))]) {
      for (const type of ["AWS::Events::Rule", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::EventInvokeConfig"])
        expect(all(without, type)).toEqual([]);
      expect(JSON.stringify(without.toJSON())).not.toMatch(/StreamSpecification|HOLDFAST_WAKE|sleepers/);
    }
  });
});

it("refuses options of the agent that there are not", () => {
  const props = { wake: { lambdas: [] } } as LockServiceProps;
  expect(() => synthesizeOwn(() => props)).toThrow("lambdas: is not an option of wake; these are: functions");
});
