/** An instance with a task each second, which prints each fire as `ran …` or `skipped …`. With the argument `bare` it has no coordinator. */
import { schedule } from "node-cron";
import { createLockClient } from "../../../lib/index.js";
import { runCoordinator } from "../node-cron.js";

const coordinated = process.argv[2] === "bare" ? {} : { distributed: true, runCoordinator: runCoordinator(createLockClient()) };
const task = schedule("* * * * * *", ({ date }) => console.log("ran", date.toISOString()), { name: "report", ...coordinated });
task.on("execution:skipped", ({ date, reason }) => console.log("skipped", date.toISOString(), reason));
