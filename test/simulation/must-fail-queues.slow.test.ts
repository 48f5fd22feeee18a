/** The simulation finds each mistake in queues, runs and records when it searches from the first seed. */
import { afterAll, describe } from "vitest";
import { searchWitnesses } from "../support/witnesses.js";
import { CONDITION_BUGS } from "./condition-bugs.js";
import { QUEUE_BUGS } from "./queue-bugs.js";
import { RECORD_BUGS } from "./record-bugs.js";
import { RUN_BUGS } from "./run-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () =>
  searchWitnesses(mistakes(...QUEUE_BUGS, ...RUN_BUGS, ...RECORD_BUGS, ...CONDITION_BUGS)),
);
