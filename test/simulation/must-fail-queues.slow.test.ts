/** The simulation finds each mistake in queues, runs, records and limits: its recorded history shows it. */
import { afterAll, describe } from "vitest";
import { recordWitnesses } from "../support/witnesses.js";
import { CONDITION_BUGS } from "./bugs/condition-bugs.js";
import { CROWD_BUGS } from "./bugs/crowd-bugs.js";
import { EDGE_BUGS } from "./bugs/edge-bugs.js";
import { LIMIT_BUGS } from "./bugs/limit-bugs.js";
import { QUEUE_BUGS } from "./bugs/queue-bugs.js";
import { RECORD_BUGS } from "./bugs/record-bugs.js";
import { RUN_BUGS } from "./bugs/run-bugs.js";
import { WAY_BUGS } from "./bugs/way-bugs.js";
import { endBundling } from "./bundle.js";
import { mistakes, TIMEOUT_MS } from "./must-fail.js";

/** Their histories changed with the queue's pace and places, and with what a wait asks at its end. A search takes a minute or more for each. */
const STALE: readonly string[] = [
  "heard-of-in-vain",
  "every-visit-a-write",
  "offer-withdrawn-by-the-later-clock",
  "the-living-skipped",
  "the-dead-one-by-one",
  "dead-waiters-stay",
  "the-dead-shown",
  "refusal-that-writes-nothing",
  "refused-set-that-writes-nothing",
  "heard-of-taken-back",
  "gives-up-without-asking",
  "collected-while-kept",
  "reset-without-looking",
  "given-up-after-it-began",
  "outcome-before-belief-ends",
  "checkpoints-as-they-come",
  "last-outcome-alone",
  "checkpoint-prolonged-by-a-save",
  "handed-over-by-clocks-that-disagree",
  "guard-on-another-reading",
  "released-by-the-earlier-clock",
  "never-by-the-earlier-clock",
  "record-without-a-bound",
  "queue-compared-by-its-text",
  "notify-dies-with-its-waiter",
  "switched-under-a-new-id",
  "first-way-counts-as-definite",
  "table-under-its-own-principal",
  "release-on-the-version",
  "names-of-conditions-uncounted",
  "one-clock-for-both",
  "full-bucket-charged-from-the-past",
];

afterAll(endBundling);
describe("the simulation", { timeout: TIMEOUT_MS }, () =>
  recordWitnesses(
    mistakes(...QUEUE_BUGS, ...RUN_BUGS, ...RECORD_BUGS, ...CONDITION_BUGS, ...WAY_BUGS, ...CROWD_BUGS, ...EDGE_BUGS, ...LIMIT_BUGS),
    STALE,
  ),
);
