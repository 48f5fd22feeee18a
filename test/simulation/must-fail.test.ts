/** The simulation finds each mistake in the history that is recorded as its witness. */
import { describe } from "vitest";
import { replayWitnesses } from "../support/witnesses.js";
import { MISTAKES, TIMEOUT_MS } from "./must-fail.js";

describe("the simulation", { timeout: TIMEOUT_MS }, () => replayWitnesses(MISTAKES));
