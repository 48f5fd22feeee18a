/** cdk-nag's packs and CloudFormation's own rules on the stack: no findings except acknowledged ones, and each acknowledgement has its reason. */
import { App, Stack, Validations } from "aws-cdk-lib";
import { AttributeType, Table } from "aws-cdk-lib/aws-dynamodb";
import { Function as LambdaFunction } from "aws-cdk-lib/aws-lambda";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { AwsSolutionsChecks, ServerlessChecks } from "cdk-nag";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { bundleHosted } from "../../console/bundle.js";
import { HoldfastStack } from "../../infra/stack.js";
import { cdkContext } from "./synthesize.js";

const DURABLE = "arn:aws:lambda:eu-west-1:111122223333:function:durable";
const outdir = mkdtempSync(join(tmpdir(), "holdfast-nag-"));
afterAll(() => rmSync(outdir, { recursive: true }));

/** Checks the app and returns the findings. */
function findings(fill: (app: App) => unknown): string {
  const app = new App({ outdir: mkdtempSync(join(outdir, "app-")), context: cdkContext() });
  fill(app);
  Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
  try {
    app.synth();
    return "";
  } catch {
    const report = join(app.outdir, "validation-report.json");
    return existsSync(report) ? readFileSync(report, "utf8") : "synth failed without a report";
  }
}

describe("AwsSolutions and Serverless", () => {
  it("find nothing in the stack", () => {
    expect(findings((app) => new HoldfastStack(app, "holdfast-dev"))).toBe("");
  });

  it("find nothing in a stack with a console", async () => {
    await bundleHosted(fileURLToPath(new URL("../../infra/console", import.meta.url)));
    const jwt = { issuer: "https://id.example.com/", audience: ["locks"] };
    expect(findings((app) => new HoldfastStack(app, "holdfast-dev", {}, () => ({ jwt, console: true })))).toBe("");
  });

  it("find nothing in a stack with an agent of sleepers, traced or not", () => {
    const found = (tracing: boolean): string =>
      findings((app) => {
        const named = (stack: Stack) => ({
          functions: [LambdaFunction.fromFunctionArn(stack, "Durable", DURABLE)],
          stateMachines: [StateMachine.fromStateMachineName(stack, "Orders", "orders")],
        });
        return new HoldfastStack(app, "holdfast-dev", {}, (stack) => ({ wake: named(stack), tracing }));
      });
    expect([found(false), found(true)]).toEqual(["", ""]);
  });

  it("control: find a table that can't be restored", () => {
    const found = findings(
      (app) => new Table(new Stack(app, "bare"), "Table", { partitionKey: { name: "p", type: AttributeType.STRING } }),
    );
    expect(found).toContain("AwsSolutions-DDB3");
  });
});
