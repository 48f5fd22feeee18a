/**
 * The conformance tests, and the tests that need a deployment, against a deployment. They run if `HOLDFAST_URL` names
 * one (README.md lists the other variables), and are skipped otherwise.
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
