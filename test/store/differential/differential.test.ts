/** Both stores agree in some of the histories of each kind, on a table in memory. The witness of each mistake shows a difference. */
import { describe, it } from "vitest";
import { replayWitnesses } from "../../support/witnesses.js";
import { ROWS } from "./differential-rows.js";

/** One of this many histories is played here. The slow tier plays all of them. */
const ONE_OF = 15;
/** Enough for a slow engine on a busy machine. */
const LONG_MS = 180_000;

describe.each(ROWS)("$name", { timeout: LONG_MS }, (row) => {
  it(`comes to the same as the core alone in one of ${ONE_OF} histories`, () => row.play(ONE_OF));
});

describe("a mistake in what the table is sent", () => replayWitnesses(ROWS.flatMap(({ mistakes }) => mistakes)));
