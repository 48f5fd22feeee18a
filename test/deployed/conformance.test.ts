/** The conformance, and the tests that need a deployment, against each stack of variants.ts that conforms: by each door, with all callers. */
import { conformance, declareOn } from "../e2e/conformance.js";
import { type Deployed, lackOf, targetOf } from "../e2e/deployed.js";
import { declareDeployed } from "../e2e/only-deployed.js";
import type { DeployedNeed } from "../e2e/suite.js";
import { deployedBy } from "./callers.js";
import { VARIANTS } from "./variants.js";

const ways = Object.entries(VARIANTS).flatMap(([stack, { conforms }]) => conforms.map((door) => [stack, door] as const));
for (const [stack, door] of ways) {
  let deployed: Deployed;
  const start = async () => targetOf((deployed = await deployedBy(door, stack, VARIANTS[stack]!)));
  conformance(`the stack ${stack} by ${door}`, start);
  declareOn(
    `what only a deployment can show: ${stack} by ${door}`,
    start,
    (suite, calls) => declareDeployed(suite, calls, () => deployed),
    (need) => lackOf(deployed, need as DeployedNeed),
  );
}
