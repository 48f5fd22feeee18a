/**
 * Crowds and runs with and without each form of a write: what the form earns. The counts are the same in every run, so forms.md has them as
 * they are. `npx vitest run test/simulation/forms -u` writes them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { markdownTable } from "../../bench/report/table.js";
import { type FigureName, type Figures, mediansOf } from "../../bench/crowds/figures.js";
import { endBundling, loadBundle } from "./bundle.js";
import { WITHOUT } from "./forms.js";
import type * as Bundled from "./worker.js";

type Module = typeof Bundled;

/** The figures of the page. For each of them, less is better. */
const SHOWN: readonly (readonly [figure: FigureName, title: string])[] = [
  ["writes", "writes"],
  ["requests", "requests"],
  ["units", "units"],
  ["times", "× the ideal time"],
  ["idleMs", "ms between two holders"],
  ["p50Ms", "p50 in ms"],
  ["p99Ms", "p99 in ms"],
  ["nextMs", "ms until the next"],
];

/** A figure that differs by less is the same: other writes meet other writes. */
const SAME = 0.05;

/** Each figure is the median of a run with each of these. */
const SEEDS = [1, 2, 3] as const;

/** The form that is there for a bound: a release takes at most three writes (test/simulation/waited-for.slow.test.ts). */
const FOR_A_BOUND = "end anyway";

/** Plays a scene with a seed. */
type Play = (module: Module, seed: number) => Promise<Figures>;

const DIRECT = { way: "direct" } as const;
const LOCKS: Readonly<Record<string, Play>> = {
  "one caller, 20 leases of 20 ms": ({ turns }, seed) => turns({ ...DIRECT, callers: 1, rounds: 20, holdMs: 20 })(seed),
  "a mutex, 16 callers, 5 leases of 20 ms each": ({ turns }, seed) => turns({ ...DIRECT, callers: 16, rounds: 5, holdMs: 20 })(seed),
  "a mutex, 6 callers, a lease of 20 s each": ({ turns }, seed) =>
    turns({ ...DIRECT, callers: 6, rounds: 1, holdMs: 20_000, waitMs: 400_000 })(seed),
  "a semaphore of 3, 16 callers, 4 leases of 50 ms each": ({ turns }, seed) =>
    turns({ ...DIRECT, permits: 3, callers: 16, rounds: 4, holdMs: 50 })(seed),
  "a semaphore of 20, 25 callers, 8 leases of 50 ms each": ({ turns }, seed) =>
    turns({ ...DIRECT, permits: 20, callers: 25, rounds: 8, holdMs: 50 })(seed),
  "16 readers that come and go": ({ readers }, seed) => readers({ ...DIRECT, callers: 16 })(seed),
  "16 waiters give up together": ({ givingUp }, seed) => givingUp({ ...DIRECT, callers: 16, how: "abort" })(seed),
  "20 holders of a semaphore keep leases of 3 s": ({ keeping }, seed) => keeping({ ...DIRECT, holders: 20, leaseMs: 3000 })(seed),
};
const RUNS: Readonly<Record<string, Play>> = { "10 runs of 40 s each": ({ runs }) => runs(10, 40_000).then(figuresOf) };

describe("the forms of a write", { timeout: 120_000 }, () => {
  /** The figures of each scene: first with all forms, by "", then without each. */
  const costs = new Map<string, Map<string, Figures>>();

  beforeAll(async () => {
    for (const one of [undefined, ...WITHOUT]) {
      const module = await loadBundle(one);
      const scenes = { ...(one?.kind !== "runs" && LOCKS), ...(one?.kind !== "locks" && RUNS) };
      for (const [what, play] of Object.entries(scenes)) {
        const runs: Figures[] = [];
        for (const seed of SEEDS) runs.push(await play(module, seed));
        costs.set(what, (costs.get(what) ?? new Map<string, Figures>()).set(one?.name ?? "", mediansOf(runs)));
      }
    }
  }, 1_800_000);
  afterAll(endBundling);

  it.each(WITHOUT.filter(({ name }) => name !== FOR_A_BOUND))("$name earns something", ({ name }) => {
    const dearer = [...costs.values()].some((played) => moved(played, name).some(({ before, after }) => after > before));
    expect(dearer).toBe(true);
  });

  it("cost what forms.md says", async () => {
    const parts = [...costs].map(([what, played]) => {
      const shown = SHOWN.filter(([figure]) => figure in played.get("")!);
      const others = [...played.keys()].filter((name) => name === "" || moved(played, name).length > 0);
      const rows = others.map((name) => [
        name === "" ? "all of them" : `without ${name}`,
        ...shown.map(([figure]) => played.get(name)![figure]!.toFixed(2)),
      ]);
      return `## ${what}\n\n${markdownTable([["", ...shown.map(([, title]) => title)], ...rows])}`;
    });
    const page = `# What each form of a write earns

Simulated time, without faults; the median of ${SEEDS.length} runs. Writes, requests to the table and units are for each grant, call, renewal or run. A form that isn't in a table moves none of its figures by ${100 * SAME} %. Made by \`npx vitest run test/simulation/forms -u\`.

Without "whole" and "keep-alive" some changes could not be written at all. "${FOR_A_BOUND}" is there for a bound: a release takes at most three writes, however many others write (waited-for.slow.test.ts).

${parts.join("\n\n")}
`;
    await expect(page).toMatchFileSnapshot("forms.md");
  });
});

/** The figures of runs. */
function figuresOf({ grants, writes, reads, units }: Awaited<ReturnType<Module["runs"]>>): Figures {
  return { grants, throttled: 0, failed: 0, units: units / grants, writes: writes / grants, requests: (writes + reads) / grants };
}

/** The figures of a scene that are others without this form. */
function moved(played: ReadonlyMap<string, Figures>, name: string): readonly { readonly before: number; readonly after: number }[] {
  const [all, without] = [played.get(""), played.get(name)];
  return SHOWN.flatMap(([figure]) => {
    const [before, after] = [all?.[figure], without?.[figure]];
    return before === undefined || after === undefined || Math.abs(after - before) <= SAME * before ? [] : [{ before, after }];
  });
}
