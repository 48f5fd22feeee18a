/**
 * `npm run sim -- [--seeds N] [--seed FIRST] [--bug NAME] [--regions]`: the deterministic simulation, on every core; with `--regions` on a table
 * in several Regions, whose doors are cut off. A seed replays exactly. The first history that breaks a property is shrunk, and told as a timeline. Exits 1 on a violation, or if a required situation didn't occur.
 */
import { SingleBar } from "cli-progress";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { Worker } from "node:worker_threads";
import { bugNamed, bundleSimulation, endBundling, loadBundle } from "./bundle.js";
import { type Campaign, emptyCampaign, merge, PLAYED, unseen } from "./campaign.js";
import { SEEDS_PER_BUG } from "./must-fail.js";
import { shrink } from "./shrink.js";
import type { Share } from "./worker.js";

await main();

async function main(): Promise<void> {
  const { seeds, first, bug, inRegions } = options();
  const { url, remove } = await bundleSimulation(bug === undefined ? undefined : bugNamed(bug));
  const cores = Math.max(1, Math.min(availableParallelism(), seeds));
  const total = emptyCampaign();
  const progress = new SingleBar({
    format: "{value} of {total} histories, {eta_formatted} to go",
    noTTYOutput: true,
    notTTYSchedule: 60_000,
  });
  progress.start(seeds, 0);
  const parts = await Promise.all(
    Array.from({ length: cores }, (_, core) =>
      share(url, { first: first + core, seeds: Math.ceil((seeds - core) / cores), step: cores, inRegions }, () => progress.increment()),
    ),
  );
  progress.stop();
  await remove();
  for (const part of parts) merge(total, part);
  report(total, replayed({ bug, inRegions }), inRegions);
  const [failed] = total.failures;
  if (failed) await explain(failed.seed, { bug, inRegions });
  await endBundling();
}

/** Prints the shortest history found that breaks the same property as this seed. */
async function explain(seed: number, { bug, inRegions }: Pick<Options, "bug" | "inRegions">): Promise<void> {
  const { simulate, PARTS } = await loadBundle(bug === undefined ? undefined : bugNamed(bug));
  const shrunk = await shrink((of, extent) => simulate(of, { ...extent, inRegions }), seed, PARTS);
  if (!shrunk) return;
  const { history, without } = shrunk;
  const needed = PARTS.filter((part) => !without.includes(part));
  console.log(
    `\nThe shortest history found has the seed ${history.seed} and ${history.events} events. It needs: ${needed.join(", ") || "nothing"}.\n`,
  );
  for (const line of history.timeline) console.log(line);
}

interface Options {
  readonly seeds: number;
  readonly first: number;
  readonly bug: string | undefined;
  readonly inRegions: boolean;
}

function options(): Options {
  try {
    const { values } = parseArgs({
      options: {
        seeds: { type: "string", default: String(SEEDS_PER_BUG) },
        seed: { type: "string", default: "1" },
        bug: { type: "string" },
        regions: { type: "boolean", default: false },
      },
    });
    const [seeds, first] = [Number(values.seeds), Number(values.seed)];
    if (!Number.isSafeInteger(seeds) || seeds < 1) throw new Error("--seeds takes a whole number from 1");
    if (!Number.isSafeInteger(first) || first < 0) throw new Error("--seed takes a whole number from 0");
    const { noticedBy } = values.bug === undefined ? {} : bugNamed(values.bug);
    if (noticedBy) throw new Error(`no history has to show this bug; a test fails with it: ${noticedBy.join(": ")}`);
    return {
      seeds,
      first,
      bug: values.bug,
      inRegions: values.regions || (values.bug !== undefined && bugNamed(values.bug).inRegions === true),
    };
  } catch (error) {
    console.error(`sim: ${(error as Error).message}`);
    process.exit(2);
  }
}

function share(url: string, workerData: Share, onPlayed: () => void): Promise<Campaign> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(url), { workerData });
    worker.on("message", (message: Campaign | typeof PLAYED) => (message === PLAYED ? onPlayed() : resolve(message)));
    worker.once("error", reject);
  });
}

/** Returns the options by which a seed is replayed. */
function replayed({ bug, inRegions }: Pick<Options, "bug" | "inRegions">): string {
  return `${inRegions ? " --regions" : ""}${bug === undefined ? "" : ` --bug ${bug}`}`;
}

function report(total: Campaign, replayed: string, inRegions: boolean): void {
  for (const { seed, property, what } of total.failures.sort((a, b) => a.seed - b.seed)) {
    console.log(`seed ${seed}: ${property} broken: ${what}   (replay: npm run sim -- --seeds 1 --seed ${seed}${replayed})`);
  }
  console.log(
    `saw ${Object.entries(total.coverage)
      .map(([what, times]) => `${times} ${what}`)
      .join(", ")}; ${total.requests} requests, ${total.events} events`,
  );
  const missing = total.histories > 1 ? unseen(total, inRegions) : [];
  if (missing.length > 0) console.log(`not seen, so this run proves too little: ${missing.join(", ")}`);
  console.log(`${total.histories} histories, ${total.violatingHistories} violations${replayed && ` (${replayed.trim()})`}`);
  process.exitCode = total.violatingHistories > 0 || missing.length > 0 ? 1 : 0;
}
