/**
 * The CDK app, started by `cdk` through cdk.json: one stack per stage, dev by default, or for example `-c stage=prod`. Account and region
 * come from the credentials in use, so synth needs neither them nor a network.
 */
import { App } from "aws-cdk-lib";
import { HoldfastStack } from "./stack.js";

const STAGE = /^[a-z][a-z0-9-]{0,31}$/;

const app = new App();
const stage: unknown = app.node.tryGetContext("stage") ?? "dev";
if (typeof stage === "string" && STAGE.test(stage)) {
  new HoldfastStack(app, `holdfast-${stage}`);
} else {
  console.error(`stage must be 1-32 lower-case letters, digits or hyphens, starting with a letter; got ${JSON.stringify(stage)}`);
  process.exit(1);
}
