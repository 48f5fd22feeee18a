/** The mistakes of plain locks and of runs, beside those of simulation.test.ts: a file of its own, so that both go at once. */
import { describe } from "vitest";
import { LOCK_BUGS } from "./bugs.js";
import { mustFailWith, TIMEOUT_MS } from "./must-fail.js";
import { RUN_BUGS } from "./run-bugs.js";

describe("the simulation", { timeout: TIMEOUT_MS }, () => mustFailWith([...LOCK_BUGS, ...RUN_BUGS]));
