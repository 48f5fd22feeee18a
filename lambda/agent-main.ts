/** The entry point of the functions that no caller invokes. With main.ts, the only files of `lambda` that read the environment. */
import { composeAgent, composeTableSweep } from "./agent.js";

/** The handler of the schedule and of the stream: it wakes sleepers. */
export const handler = composeAgent(process.env);

/** The handler of the hourly schedule: it deletes what is over. */
export const sweepTable = composeTableSweep(process.env);
