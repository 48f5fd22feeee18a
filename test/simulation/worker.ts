/** The entry point of the bundle: the simulation, and a part of a campaign when it runs as a worker. */
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { campaign, PLAYED } from "./campaign.js";
import { simulate } from "./history.js";

export { clicks, givingUp, keeping, readers, turns } from "../../bench/crowds/scenes.js";
export { contend, hold, runs } from "./contention.js";
export { PARTS, simulate } from "./history.js";

/** The seeds that a worker simulates. */
export interface Share {
  readonly first: number;
  readonly seeds: number;
  readonly step: number;
  /** True for histories of a table in several Regions. */
  readonly inRegions: boolean;
}

if (!isMainThread && isShare(workerData)) {
  const { inRegions } = workerData;
  parentPort?.postMessage(await campaign((seed) => simulate(seed, { inRegions }), seedsOf(workerData)));
}

/** Yields the seeds, and tells of each when it was played. */
function* seedsOf({ first, seeds, step }: Share): Iterable<number> {
  for (let index = 0; index < seeds; index++) {
    yield first + index * step;
    parentPort?.postMessage(PLAYED);
  }
}

function isShare(data: unknown): data is Share {
  return typeof data === "object" && data !== null && "step" in data;
}
