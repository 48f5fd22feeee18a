/** Both stores come to the same in some of the histories of each kind, and are told apart by the witness of each mistake. */
import { describe, it } from "vitest";
import { replayWitnesses } from "../support/witnesses.js";
import { ROWS } from "./differential-rows.js";

/** One history of so many is played here; all of them in the slow tier. */
const ONE_OF = 5;
/** Long, for an engine that is slow, on a machine that is busy. */
const LONG_MS = 180_000;

describe.each(ROWS)("$name", { timeout: LONG_MS }, (row) => {
  it(`comes to the same as the core alone in ${row.runs / ONE_OF} histories`, () => row.play(ONE_OF));
});

describe("a mistake in what the table is sent", () => replayWitnesses(ROWS.flatMap(({ mistakes }) => mistakes)));
