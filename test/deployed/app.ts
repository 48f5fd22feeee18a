/** The CDK app of the run: a stack for each row of variants.ts. */
import { App, Stack } from "aws-cdk-lib";
import { make, VARIANTS } from "./variants.js";

const app = new App();
for (const [name, variant] of Object.entries(VARIANTS)) make(new Stack(app, name), variant);
