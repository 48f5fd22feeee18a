/** The conformance, and the tests that need a deployment, against each stack of variants.ts that conforms, with all its callers. */
import { conformance, declareOn } from "../e2e/conformance.js";
import { type Deployed, lackOf, targetOf } from "../e2e/deployed.js";
import { declareDeployed } from "../e2e/only-deployed.js";
import type { DeployedNeed } from "../e2e/suite.js";
import { deployedOf } from "./callers.js";
import { VARIANTS } from "./variants.js";

for (const [stack, variant] of Object.entries(VARIANTS)) {
  if (!variant.conforms) continue;
  let deployed: Deployed;
  const start = async () => targetOf((deployed = await deployedOf(stack, variant)));
  conformance(`the stack ${stack}`, start);
  declareOn(
    `what only a deployment can show: ${stack}`,
    start,
    (suite, calls) => declareDeployed(suite, calls, () => deployed),
    (need) => lackOf(deployed, need as DeployedNeed),
  );
}
