/** The simulation finds each mistake in queues, crowds, conditions and ways: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { CONDITION_BUGS } from "./bugs/condition-bugs.js";
import { CROWD_BUGS } from "./bugs/crowd-bugs.js";
import { EDGE_BUGS } from "./bugs/edge-bugs.js";
import { QUEUE_BUGS } from "./bugs/queue-bugs.js";
import { WAY_BUGS } from "./bugs/way-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () =>
  recordWitnesses(mistakes(...QUEUE_BUGS, ...CONDITION_BUGS, ...WAY_BUGS, ...CROWD_BUGS, ...EDGE_BUGS)),
);
