/** The simulation finds each mistake when it searches from the first seed. */
import { describe } from "vitest";
import { searchWitnesses } from "../support/witnesses.js";
import { MISTAKES, TIMEOUT_MS } from "./must-fail.js";

describe("the simulation", { timeout: TIMEOUT_MS }, () => searchWitnesses(MISTAKES));
