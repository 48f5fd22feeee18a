/**
 * The requests of some contended keys with and without each optimiser: its earnings. The counts are the same in every run,
 * so optimisers.md has them as they are. `npx vitest run test/simulation/optimisers -u` writes them.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { markdownTable } from "../../bench/report/table.js";
import { endBundling, loadBundle } from "./bundle.js";
import type { Cost } from "./contention.js";
import { OPTIMISERS } from "./optimisers.js";
import type * as Bundled from "./worker.js";

type Module = typeof Bundled;

const SCENES: readonly (readonly [what: string, play: (module: Module) => Promise<Cost>])[] = [
  ["one caller, 20 leases of 20 ms, one after the other", ({ contend }) => contend({ processes: 1, callers: 1, rounds: 20, holdMs: 20 })],
  ["16 callers in one process, 5 leases of 20 ms each", ({ contend }) => contend({ processes: 1, callers: 16, rounds: 5, holdMs: 20 })],
  ["20 callers in each of 2 processes, 3 leases of 20 ms", ({ contend }) => contend({ processes: 2, callers: 20, rounds: 3, holdMs: 20 })],
  ["3 processes, 5 leases of 200 ms each", ({ contend }) => contend({ processes: 3, callers: 1, rounds: 5, holdMs: 200 })],
  ["16 processes, 5 leases of 20 ms each", ({ contend }) => contend({ processes: 16, callers: 1, rounds: 5, holdMs: 20 })],
  [
    "16 processes that come every 20 ms while the key is held, a lease of 10 ms each",
    ({ contend }) => contend({ processes: 16, callers: 1, rounds: 1, holdMs: 10, arrivalMs: 20 }),
  ],
  [
    "200 processes that come at once, a lease of 20 ms each",
    ({ contend }) => contend({ processes: 200, callers: 1, rounds: 1, holdMs: 20 }),
  ],
  ["8 processes, 4 leases of 2 s each", ({ contend }) => contend({ processes: 8, callers: 1, rounds: 4, holdMs: 2000 })],
  ["300 leases in one process, renewed for a minute", ({ hold }) => hold(300)],
];

/** The scene in which each optimiser earns, and what it saves there. */
const EARNS: Readonly<Record<string, readonly [scene: string, saves: (cost: Cost) => number]>> = {
  "recent-records cache": ["16 processes, 5 leases of 20 ms each", ({ writes }) => writes],
  "pace of the queue": ["16 processes, 5 leases of 20 ms each", ({ lastedMs }) => lastedMs],
  "local queue": ["16 callers in one process, 5 leases of 20 ms each", ({ calls }) => calls],
  "renewal batching": ["300 leases in one process, renewed for a minute", ({ calls }) => calls],
};

describe("the optimisers of contention", { timeout: 120_000 }, () => {
  const costs = new Map<string, Map<string, Cost>>();

  beforeAll(async () => {
    for (const [optimiser, edit] of [["all of them", undefined] as const, ...OPTIMISERS.map((one) => [one.name, one] as const)]) {
      const module = await loadBundle(edit);
      const played = new Map<string, Cost>();
      for (const [what, play] of SCENES) played.set(what, await play(module));
      costs.set(optimiser, played);
    }
  }, 600_000);
  afterAll(endBundling);

  it.each(OPTIMISERS.filter(({ name }) => name in EARNS))("$name: $why", ({ name }) => {
    const [scene, saves] = EARNS[name] ?? [];
    const [withIt, without] = ["all of them", name].map((which) => costs.get(which)?.get(scene ?? ""));
    if (!withIt || !without || !saves) throw new Error(`${name} has no scene`);
    expect(without.grants).toBe(withIt.grants);
    expect(saves(withIt)).toBeLessThan(0.9 * saves(without));
  });

  it("cost what optimisers.md says", async () => {
    const parts = SCENES.map(([what]) => {
      const rows = [...costs].map(([which, played]) => {
        const { grants, writes, reads, calls, lastedMs } = played.get(what)!;
        const each = [writes, reads, calls].map((count) => (count / grants).toFixed(2));
        return [which === "all of them" ? which : `without ${which}`, ...each, `${(lastedMs / 1000).toFixed(1)} s`];
      });
      return `## ${what}\n\n${markdownTable([["", "writes a lease", "reads a lease", "calls a lease", "until all are done"], ...rows])}`;
    });
    const page = `# What each optimiser of contention earns\n\nClients over HTTP in simulated time, without faults; the calls are their requests. Made by \`npx vitest run test/simulation/optimisers -u\`.\n\n${parts.join("\n\n")}\n`;
    await expect(page).toMatchFileSnapshot("optimisers.md");
  });
});
