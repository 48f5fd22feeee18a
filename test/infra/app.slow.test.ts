/** The CDK app as `cdk` runs it: a stack for each stage, and a line when it is made. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runApp } from "./synthesize.js";

describe("the CDK app", () => {
  it.each([
    ["dev, if none is named", {}, "holdfast-dev"],
    ["the one that is named", { stage: "prod-eu" }, "holdfast-prod-eu"],
  ])("makes the stack of one stage: %s", (_which, context, stackName) => {
    const run = runApp({ context });
    const template = `${stackName}.template.json`;
    const said = [`${stackName}: bundled the functions, checking the template`, `${stackName}: ${join(run.directory, template)}`];
    expect(run).toMatchObject({ status: 0, stderr: `${said.join("\n")}\n` });
    expect(readdirSync(run.directory).filter((file) => file.endsWith(".template.json"))).toEqual([template]);
  });

  it.each(["", "Prod", "a_b", 7])("refuses the stage %j in one line", (stage) => {
    const run = runApp({ context: { stage } });
    expect(run.status).toBe(1);
    expect(run.stderr).toMatch(/^stage must be .*\n$/);
    expect(existsSync(join(run.directory, "manifest.json"))).toBe(false);
  });
});
