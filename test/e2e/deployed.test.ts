/**
 * A deployment, held to the API and to what only a deployment can show. Runs where `HOLDFAST_URL` names one
 * (README.md says what else it takes); without, it is skipped.
 */
import { it } from "vitest";
import { conformance, declareOn } from "./conformance.js";
import { deployedFrom, lackOf, targetOf } from "./deployed.js";
import { declareDeployed } from "./only-deployed.js";
import type { DeployedNeed } from "./suite.js";

const deployed = deployedFrom(process.env);

if (deployed) {
  const target = () => Promise.resolve(targetOf(deployed));
  conformance(deployed.url, target);
  declareOn(
    "what only a deployment can show",
    target,
    (suite, calls) => declareDeployed(suite, calls, () => deployed),
    (need) => lackOf(deployed, need as DeployedNeed),
  );
} else {
  it.skip("needs a deployment: set HOLDFAST_URL (test/e2e/README.md)", () => undefined);
}
