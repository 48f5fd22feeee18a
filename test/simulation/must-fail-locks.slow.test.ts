/** The simulation finds each mistake in locks of every kind, answers and the store: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { LOCK_BUGS } from "./bugs/bugs.js";
import { KIND_BUGS } from "./bugs/kind-bugs.js";
import { RULE_BUGS } from "./bugs/rule-bugs.js";
import { STORE_BUGS } from "./bugs/store-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () =>
  recordWitnesses(mistakes(...LOCK_BUGS, ...KIND_BUGS, ...RULE_BUGS, ...STORE_BUGS)),
);
