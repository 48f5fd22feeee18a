/** Behaviour that only a deployment can show, over HTTP like everything here. */
import type { Calls } from "./calls.js";
import type { Deployed, OfDeployed } from "./deployed.js";
import { forgeries, rights, throttles } from "./deployed/callers.js";
import { clocks, connections, headers, keys, sizes, slashes, waits } from "./deployed/gateway.js";
import type { Suite } from "./suite.js";

const PARTS: readonly (readonly [name: string, declare: OfDeployed])[] = [
  ["headers", headers],
  ["keys in a path", keys],
  ["a slash at the end of a path", slashes],
  ["clocks", clocks],
  ["waiting", waits],
  ["connections", connections],
  ["sizes", sizes],
  ["signatures", forgeries],
  ["rights", rights],
  ["throttling", throttles],
];

/** Declares its tests in `suite`. */
export function declareDeployed(suite: Suite, calls: Calls, deployed: () => Deployed): void {
  for (const [name, declare] of PARTS) suite.describe(name, () => declare(suite, calls, deployed));
}
