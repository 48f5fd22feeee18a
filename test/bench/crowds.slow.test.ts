/**
 * Every row of `npm run bench -- crowds`. crowds-missed.md lists the targets that are not reached, with the figures that are:
 * `npx vitest run --project slow test/bench/crowds.slow -u` writes it after a change, and its difference says what became better or worse. All
 * rows are played only then, since they take a quarter of an hour; those that are quick are played each time. A figure of a run is exact,
 * so none of them depends on the machine.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, inject, it } from "vitest";
import { Arena } from "../../bench/crowds/arena.js";
import { type Reached, played, targetsOf, targetsTable } from "../../bench/crowds/crowds.js";
import { ROWS } from "../../bench/crowds/rows.js";
import { turns } from "../../bench/crowds/scenes.js";
import { endBundling, loadBundle } from "../simulation/bundle.js";
import { EARLY_IN_A_BURST, ENDS_IN_ORDER, HALF_A_LEASE, PLACES_BY_CHANCE, WRITES_FIRST } from "../simulation/optimisers.js";

afterAll(endBundling);

const MISSED = readFileSync(join(import.meta.dirname, "crowds-missed.md"), "utf8");
/** True if crowds-missed.md has a line of this row and figure. */
const isListed = (name: string, title: string): boolean =>
  MISSED.split("\n").some((line) => {
    const [, row = "", figure = ""] = line.split("|").map((cell) => cell.trim());
    return row === name && figure === title;
  });

it.runIf(inject("isRecording"))("misses the targets of crowds-missed.md and no others", { timeout: 3_600_000 }, async () => {
  const reached: Reached[] = [];
  for (const row of ROWS) reached.push(...targetsOf(await played(row)));
  const missed = reached.filter(({ isMet }) => !isMet);
  const page = `# Targets of crowds that are not reached

Of ${reached.length} targets (bench/crowds/rows.ts), ${missed.length} are not reached. Medians of three runs in virtual time. Made by \`npx vitest run test/bench/crowds.slow -u\`.

${targetsTable(missed)}
`;
  await expect(page).toMatchFileSnapshot("crowds-missed.md");
});

it("a crowd of tryAcquire takes no lease from its holders; control: it does where each call writes", { timeout: 600_000 }, async () => {
  const lost = async (mistake?: typeof WRITES_FIRST): Promise<number | undefined> => {
    const { clicks } = await loadBundle(mistake);
    return (await clicks({ times: 3, way: "direct" })(1)).lost;
  };
  expect(await lost()).toBe(0);
  expect(await lost(WRITES_FIRST)).toBeGreaterThan(0);
});

it("who waits the longest outside a queue is next in it; control: half are overtaken by chance", { timeout: 600_000 }, async () => {
  const overtaken = async (mistake?: typeof PLACES_BY_CHANCE): Promise<number> => {
    const { turns: turnsOf } = await loadBundle(mistake);
    return (await turnsOf({ callers: 200, rounds: 1, holdMs: 20, way: "direct" })(1)).overtaken!;
  };
  expect(await overtaken()).toBeLessThan(0.1);
  expect(await overtaken(PLACES_BY_CHANCE)).toBeGreaterThan(0.3);
});

it("a burst over HTTP asks less often than its ids would say; control: it asks as often", { timeout: 600_000 }, async ({ annotate }) => {
  const requests = async (mistake?: typeof EARLY_IN_A_BURST): Promise<number> => {
    const { contend } = await loadBundle(mistake);
    const { calls, grants } = await contend({ processes: 200, callers: 1, rounds: 1, holdMs: 20 });
    return calls / grants;
  };
  const [right, early] = [await requests(), await requests(EARLY_IN_A_BURST)];
  await annotate(`requests of each of 200 processes: ${right}, with the shortest pause ${early}`);
  expect(right).toBeLessThan(0.7 * early);
});

it(
  "a release is written once where ids don't end in order; control: many are written twice",
  { timeout: 600_000 },
  async ({ annotate }) => {
    const writes = async (mistake?: typeof ENDS_IN_ORDER): Promise<number> => {
      const { turns: turnsOf } = await loadBundle(mistake);
      return (await turnsOf({ callers: 200, rounds: 1, holdMs: 20, way: "direct" })(1)).writes;
    };
    const [right, inOrder] = [await writes(), await writes(ENDS_IN_ORDER)];
    await annotate(`writes of a grant among 200 callers: ${right}, as if ids ended in order ${inOrder}`);
    expect(right).toBeLessThan(0.95 * inOrder);
  },
);

it(
  "who is next comes when the lease before ends, and no later than after half of it where clocks are off",
  { timeout: 600_000 },
  async ({ annotate }) => {
    const meanIdleMs = async (clockErrorMs: number, mistake?: typeof HALF_A_LEASE): Promise<number> => {
      const { turns: turnsOf } = await loadBundle(mistake);
      const idleMs: number[] = [];
      for (const seed of [1, 2, 3, 4])
        idleMs.push((await turnsOf({ callers: 16, rounds: 3, holdMs: 200, way: "direct", clockErrorMs })(seed)).idleMs!);
      return idleMs.reduce((sum, ms) => sum + ms, 0) / idleMs.length;
    };
    const [right, half, rightIfOff, halfIfOff] = [
      await meanIdleMs(2),
      await meanIdleMs(2, HALF_A_LEASE),
      await meanIdleMs(300),
      await meanIdleMs(300, HALF_A_LEASE),
    ];
    await annotate(`idle in ms, clocks 2 ms off: ${right}, half a lease: ${half}; 300 ms off: ${rightIfOff}, ${halfIfOff}`);
    expect(right).toBeLessThan(0.7 * half);
    expect(rightIfOff).toBeLessThanOrEqual(halfIfOff);
  },
);

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
