/**
 * `npm run chaos -- --minutes M [--seed S] [--without-lock | --without-token] [--regions]`: real processes under faults. Prints what
 * happened, and exits 1 with the key's log if a property was broken. Without the lock, or without the comparison of
 * tokens at the resource, one must be. With `--regions` the two services are those of two Regions, which are cut off.
 *
 * With `--limits [--calm | --without-limiter | --without-sharing]`: processes that call partners under limits. Calm, they
 * meet no fault, and must use at least 90 % of what the rates allow. Without a limiter, or with one for each process, a
 * limit must be exceeded.
 */
import { parseArgs } from "node:util";
import { chaos } from "./chaos.js";
import { limitChaos } from "./limits.js";

// This project supports Node 20. The SDK's warning that it will drop Node 20 doesn't help users of this program.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

/** The time without faults at the end, in ms: a lease, its margin, the offers to dead waiters, and a freeze. */
const HEALED_MS = 15_000;
/** The entries of a key's log that are printed. */
const LAST = 40;

/** The least use of a rate in a calm run. */
const LEAST_USE = 0.9;

function options() {
  try {
    const { values } = parseArgs({
      options: {
        minutes: { type: "string", default: "1" },
        seed: { type: "string", default: "1" },
        "without-lock": { type: "boolean", default: false },
        "without-token": { type: "boolean", default: false },
        regions: { type: "boolean", default: false },
        limits: { type: "boolean", default: false },
        calm: { type: "boolean", default: false },
        "without-limiter": { type: "boolean", default: false },
        "without-sharing": { type: "boolean", default: false },
      },
    });
    const [minutes, seed] = [Number(values.minutes), Number(values.seed)];
    if (!(minutes > 0)) throw new Error("--minutes takes a number above 0");
    if (!Number.isSafeInteger(seed) || seed < 0) throw new Error("--seed takes a whole number from 0");
    return { ...values, seed, faultsMs: minutes * 60_000 };
  } catch (error) {
    console.error(`chaos: ${(error as Error).message}`);
    process.exit(2);
  }
}

function listOf(counts: Readonly<Record<string, number>>): string {
  const sorted = Object.entries(counts).sort(([a], [b]) => (a < b ? -1 : 1));
  return sorted.map(([what, count]) => `  ${String(count).padStart(7)}  ${what}`).join("\n");
}

/** Locks under faults. Returns the number of broken properties. */
async function attackLocks({ seed, faultsMs, ...values }: ReturnType<typeof options>): Promise<number> {
  const without = values["without-lock"] ? "lock" : values["without-token"] ? "token" : undefined;
  const { violations, counts, faults, notices, resource } = await chaos({
    seed,
    faultsMs,
    healedMs: HEALED_MS,
    without,
    inRegions: values.regions,
  });
  for (const notice of notices) console.log(`NOTICE: ${notice}`);
  console.log(`workers:\n${listOf(counts)}\nfaults:\n${listOf(faults)}`);
  for (const { key, what } of violations) console.log(`BROKEN: ${key}: ${what}`);
  for (const key of new Set(violations.map((violation) => violation.key))) {
    const { count = 0, log = [] } = resource[key] ?? {};
    console.log(`${key}: count ${count}, the last ${LAST} of ${log.length} entries of its log:`);
    for (const entry of log.slice(-LAST)) console.log(`  ${JSON.stringify(entry)}`);
  }
  return violations.length;
}

/** Limits under faults. Returns the number of broken properties. */
async function attackLimits({ seed, faultsMs, calm: isCalm, ...values }: ReturnType<typeof options>): Promise<number> {
  const without = values["without-limiter"] ? "limiter" : values["without-sharing"] ? "sharing" : undefined;
  const { limits, violations, counts, faults, notices } = await limitChaos({ seed, faultsMs, isCalm, without });
  const broken = [...violations];
  for (const notice of notices) console.log(`NOTICE: ${notice}`);
  console.log(`workers:\n${listOf(counts)}\nfaults:\n${listOf(faults)}`);
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  for (const [key, { calls, taken, use, mostAtOnce, permitsInUse, hasPermits }] of Object.entries(limits)) {
    const permits = hasPermits ? `; at most ${mostAtOnce} at once, ${percent(permitsInUse)} of the permits in use` : "";
    console.log(`${key}: ${calls} calls that cost ${taken}, ${percent(use)} of what the rates allow${permits}`);
    if (isCalm && !hasPermits && use < LEAST_USE) broken.push(`${key}: less than ${percent(LEAST_USE)} of what the rates allow is used`);
  }
  for (const what of broken) console.log(`BROKEN: ${what}`);
  return broken.length;
}

const given = options();
const broken = await (given.limits ? attackLimits(given) : attackLocks(given));
console.log(broken === 0 ? "no property was broken" : `${broken} properties were broken`);
process.exitCode = broken > 0 ? 1 : 0;
