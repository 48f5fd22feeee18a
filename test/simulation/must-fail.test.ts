/** The controls of simulation.test.ts: the simulation finds a mistake against each kind of property. The slow tier has all mistakes. */
import { afterAll, describe } from "vitest";
import { replayWitnesses } from "../support/witnesses.js";
import { BUGS } from "./bugs/bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, ONE_OF_EACH, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () => replayWitnesses(mistakes(...BUGS), ONE_OF_EACH));
