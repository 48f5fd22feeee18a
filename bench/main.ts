/**
 * `npm run bench`: all benchmarks, or the named ones (`npm run bench -- locks`). Each prints a table with the date and
 * the machine. No benchmark fails for being slow: the figures are for comparison.
 */
import { locks } from "./locks.js";
import { schemas } from "./schemas.js";
import { provenance } from "./table.js";
import { transports } from "./transports.js";
import { weight } from "./weight.js";

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

const BENCHES = new Map([
  ["schemas", schemas],
  ["locks", locks],
  ["transports", transports],
  ["weight", weight],
  // The CDK is slow to load, so it is imported on demand.
  ["costs", async () => (await import("./costs.js")).costs()],
  ["crowd", async () => (await import("./crowd.js")).crowd()],
  ["memory", async () => (await import("./memory.js")).memory()],
  ["leases", async () => (await import("./leases.js")).leases()],
]);

async function main(names: readonly string[]): Promise<void> {
  for (const name of names) {
    const bench = BENCHES.get(name);
    if (bench) console.log(`\n${name}, ${provenance()}\n\n${await bench()}`);
  }
}

const known = [...BENCHES.keys()];
const asked = process.argv.slice(2);
const unknown = asked.find((name) => !BENCHES.has(name));
if (unknown === undefined) {
  try {
    await main(asked.length > 0 ? asked : known);
  } catch (error) {
    console.error(`bench: ${(error instanceof Error ? error.message : String(error)).split("\n", 1)[0]}`);
    process.exitCode = 1;
  }
} else {
  console.error(`bench: there is no ${JSON.stringify(unknown)}, only ${known.join(" and ")}`);
  process.exitCode = 2;
}
