/**
 * `npm run chaos -- --minutes M [--seed S] [--without-lock | --without-token]`: real processes under faults. Prints what
 * happened, and exits 1 with the key's log if a property was broken. Without the lock, or without the comparison of
 * tokens at the resource, one must be.
 */
import { parseArgs } from "node:util";
import type { ChaosOptions } from "./chaos.js";
import { chaos } from "./chaos.js";

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

/** The time without faults at the end, in ms: a lease, its margin, the offers to dead waiters, and a freeze. */
const HEALED_MS = 15_000;
/** The entries of a key's log that are printed. */
const LAST = 40;

function options(): ChaosOptions {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: "string", default: "1" },
        seed: { type: "string", default: "1" },
        "without-lock": { type: "boolean", default: false },
        "without-token": { type: "boolean", default: false },
      },
    });
    const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
    if (!(minutes > 0)) throw new Error("--minutes takes a number above 0");
    if (!Number.isSafeInteger(seed) || seed < 0) throw new Error("--seed takes a whole number from 0");
    const without = values["without-lock"] ? "lock" : values["without-token"] ? "token" : undefined;
    return { seed, faultsMs: minutes * 60_000, healedMs: HEALED_MS, without };
  } catch (error) {
    console.error(`chaos: ${(error as Error).message}`);
    process.exit(2);
  }
}

function listOf(counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([what, count]) => `  ${String(count).padStart(7)}  ${what}`).join("\n");
}

const { violations, counts, faults, notices, resource } = await chaos(options());
for (const notice of notices) console.log(`NOTICE: ${notice}`);
console.log(`workers:\n${listOf(counts)}\nfaults:\n${listOf(faults)}`);
for (const { key, what } of violations) console.log(`BROKEN: ${key}: ${what}`);
for (const key of new Set(violations.map((violation) => violation.key))) {
  const { count = 0, log = [] } = resource[key] ?? {};
  console.log(`${key}: count ${count}, the last ${LAST} of ${log.length} entries of its log:`);
  for (const entry of log.slice(-LAST)) console.log(`  ${JSON.stringify(entry)}`);
}
console.log(violations.length === 0 ? "no property was broken" : `${violations.length} properties were broken`);
process.exitCode = violations.length > 0 ? 1 : 0;
