/** The deployed stack: the keys that the store writes, and no warning. The recorded template has the rest of the table (templates.test.ts). */
import { readFileSync } from "node:fs";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import { describe, expect, it } from "vitest";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { only } from "./resources.js";
import { cdkContext, synthesize } from "./synthesize.js";

const stack = synthesize();
const template = Template.fromStack(stack);

describe("the table", () => {
  const [, table] = only(template, "AWS::DynamoDB::Table");

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
});

describe("the stack", () => {
  it("is made without a warning", () => {
    expect(Annotations.fromStack(stack).findWarning("*", Match.anyValue())).toEqual([]);
    expect(Annotations.fromStack(stack).findError("*", Match.anyValue())).toEqual([]);
  });

  it("answers every feature flag of the installed CDK in cdk.json, which is silent only then", () => {
    const flags = new URL("../../node_modules/aws-cdk-lib/recommended-feature-flags.json", import.meta.url);
    expect(cdkContext()).toMatchObject(JSON.parse(readFileSync(flags, "utf8")) as object);
  });
});
