/** The simulation finds each mistake in runs, records and limits: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { LIMIT_BUGS } from "./bugs/limit-bugs.js";
import { RECORD_BUGS } from "./bugs/record-bugs.js";
import { RUN_BUGS } from "./bugs/run-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () => recordWitnesses(mistakes(...RUN_BUGS, ...RECORD_BUGS, ...LIMIT_BUGS)));
