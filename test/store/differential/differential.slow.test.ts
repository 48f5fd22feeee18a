/** Both stores agree in all histories of each kind on the engine, and reach every kind of outcome. The witness of each mistake shows a difference. */
import { describe, expect, it } from "vitest";
import { recordWitnesses } from "../../support/witnesses.js";
import { ROWS } from "./differential-rows.js";

/** Enough for a slow engine on a busy machine. */
const LONG_MS = 600_000;

describe.each(ROWS)("$name", { timeout: LONG_MS }, (row) => {
  it(`comes to the same as the core alone in ${row.runs} histories, and reaches every kind of outcome`, async () => {
    expect(await row.play(1)).toEqual([]);
  });
});

describe("a mistake in what the table is sent", { timeout: LONG_MS }, () => recordWitnesses(ROWS.flatMap(({ mistakes }) => mistakes)));
