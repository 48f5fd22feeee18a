/** The entry point of the bundle: the simulation, and a part of a campaign when it runs as a worker. */
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { campaign } from "./campaign.js";
import { simulate } from "./history.js";

export { contend, hold } from "./contention.js";
export { PARTS, simulate } from "./history.js";

/** The seeds that a worker simulates. */
export interface Share {
  readonly first: number;
  readonly seeds: number;
  readonly step: number;
}

if (!isMainThread && isShare(workerData)) {
  const { first, seeds, step } = workerData;
  parentPort?.postMessage(
    await campaign(
      simulate,
      Array.from({ length: seeds }, (_, index) => first + index * step),
    ),
  );
}

function isShare(data: unknown): data is Share {
  return typeof data === "object" && data !== null && "step" in data;
}
