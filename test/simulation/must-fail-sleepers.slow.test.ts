/** The simulation finds each mistake about sleepers: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { SLEEP_BUGS } from "./bugs/sleep-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () => recordWitnesses(mistakes(...SLEEP_BUGS)));
