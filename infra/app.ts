/**
 * The CDK app, started by `cdk` through cdk.json: one stack per stage, dev by default, or for example `-c stage=prod`. Account and region
 * come from the credentials in use, so synth needs neither them nor a network.
 */
import { join } from "node:path";
import { App } from "aws-cdk-lib";
import { HoldfastStack } from "./stack.js";

const STAGE = /^[a-z][a-z0-9-]{0,31}$/;

const app = new App();
const stage: unknown = app.node.tryGetContext("stage") ?? "dev";
if (typeof stage === "string" && STAGE.test(stage)) {
  const { stackName, templateFile } = new HoldfastStack(app, `holdfast-${stage}`);
  // On stderr: the CDK keeps stdout for itself. Bundling and the checks take a while.
  console.error(`${stackName}: bundled the functions, checking the template`);
  const { directory } = app.synth();
  console.error(`${stackName}: ${join(directory, templateFile)}`);
} else {
  console.error(`stage must be 1-32 lower-case letters, digits or hyphens, starting with a letter; got ${JSON.stringify(stage)}`);
  process.exit(1);
}
