/**
 * Crowds on a table that is served like DynamoDB, in virtual time (bench/crowds): the quick rows reach the targets that crowds-missed.md
 * doesn't list. A figure of a run is exact, so none of them depends on the machine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Arena } from "../../bench/crowds/arena.js";
import { played, targetsOf } from "../../bench/crowds/crowds.js";
import { ROWS } from "../../bench/crowds/rows.js";
import { turns } from "../../bench/crowds/scenes.js";

const MISSED = readFileSync(join(import.meta.dirname, "crowds-missed.md"), "utf8");
/** True if crowds-missed.md has a line of this row and figure. */
const isListed = (name: string, title: string): boolean =>
  MISSED.split("\n").some((line) => {
    const [, row = "", figure = ""] = line.split("|").map((cell) => cell.trim());
    return row === name && figure === title;
  });

describe("a crowd", () => {
  it.each(ROWS.filter(({ isQuick }) => isQuick))("reaches its targets: $name", async (row) => {
    const missed = targetsOf(await played(row)).filter((target) => !target.isMet && !isListed(row.name, target.title));
    expect(missed.map(({ title, at, limit, reached }) => `${title}: ${reached}, not at ${at} ${limit}`)).toEqual([]);
  });

  it("gives the same figures in every run of a seed, and others with another seed", async () => {
    const scene = turns({ callers: 4, rounds: 3, holdMs: 20, way: "http" });
    const [first, again, other] = [await scene(1), await scene(1), await scene(2)];
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
  });

  it("is throttled only by the units of its own item", async () => {
    const arena = new Arena(1, { writeUnits: 2 });
    const scene = async (): Promise<void> => {
      const client = arena.client("direct");
      for (let order = 0; order < 10; order++) await client.withLock(`ORDER_${order}`, () => undefined);
    };
    await arena.play(scene());
    expect(arena.counts()).toMatchObject({ throttled: 0 });
    await arena.play(arena.client("direct").withLock("ORDER_0", () => arena.sleep(0)));
    for (let order = 0; order < 3; order++) await arena.play(arena.client("direct").withLock("ORDER_0", () => undefined));
    expect(arena.counts().throttled).toBeGreaterThan(0);
  });
});
