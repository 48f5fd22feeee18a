/** The simulation finds each mistake about a table in several Regions, and about sleepers in them: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { REGION_BUGS, SLEEP_BUGS_IN_REGIONS } from "./bugs/region-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () => recordWitnesses(mistakes(...REGION_BUGS, ...SLEEP_BUGS_IN_REGIONS)));
