/** The entry point of the function that wakes sleepers. With main.ts, the only files of `lambda` that read the environment. */
import { composeAgent } from "./agent.js";

/** The handler of the schedule and of the stream. */
export const handler = composeAgent(process.env);
