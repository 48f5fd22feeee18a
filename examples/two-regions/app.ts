/** The CDK app. It needs no context: the README has the command. */
import { App } from "aws-cdk-lib";
import { addStacks } from "./stacks.js";

addStacks(new App());
