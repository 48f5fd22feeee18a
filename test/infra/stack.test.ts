/** The deployed stack: the properties of its table that safety needs, and its outputs. */
import { readFileSync } from "node:fs";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, it } from "vitest";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { all, only } from "./resources.js";
import { cdkContext, synthesize } from "./synthesize.js";

const stack = synthesize();
const template = Template.fromStack(stack);

describe("the table", () => {
  const [logicalId, table] = only(template, "AWS::DynamoDB::Table");

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
    expect(all(template, "AWS::DynamoDB::GlobalTable")).toEqual([]);
    expect(all(template, "Custom::DynamoDBReplica")).toEqual([]);
  });

  it("keeps its logical id: under another one a deploy would make a new, empty table, and grant what others hold", () => {
    expect(logicalId).toBe("LocksTable84FB9352");
  });
});

describe("the stack", () => {
  it("says where the API, the table, the functions and the dashboard are, for people and for policies", () => {
    const outputs = template.findOutputs("*") as Record<string, { Value: unknown }>;
    expect(Object.keys(outputs).sort()).toEqual(
      [
        "AcquireFunctionArn",
        "AdminFunctionArn",
        "ApiArn",
        "DashboardName",
        "HoldFunctionArn",
        "LogGroupName",
        "TableArn",
        "TableName",
        "Url",
      ].sort(),
    );
    expect(outputs.Url?.Value).toEqual({ "Fn::GetAtt": [only(template, "AWS::ApiGatewayV2::Api")[0], "ApiEndpoint"] });
    expect(outputs.TableName?.Value).toEqual({ Ref: only(template, "AWS::DynamoDB::Table")[0] });
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
