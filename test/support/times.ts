/**
 * A reporter that prints the time of each part of a run, as the table in CONTRIBUTING.md:
 *
 *     npm run test:all -- --reporter=default --reporter=./test/support/times.ts
 */
import { cpus } from "node:os";
import { relative, sep } from "node:path";
import type { Reporter, TestModule, Vitest } from "vitest/node";
import { table } from "../docs/generated.js";
import { ROOT } from "../tidy/tree.js";

interface Part {
  tests: number;
  ms: number;
}

/** Prints the seconds of each directory and tier, including imports and hooks, the longest first. */
export default class Times implements Reporter {
  #vitest: Vitest | undefined;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const parts = new Map<string, Part>();
    for (const module of modules) {
      const [, directory = ""] = relative(ROOT, module.moduleId).split(sep);
      const { collectDuration, duration } = module.diagnostic();
      for (const name of [`${directory}, ${module.project.name}`, `all, ${module.project.name}`]) {
        const part = parts.get(name) ?? { tests: 0, ms: 0 };
        part.tests += [...module.children.allTests()].length;
        part.ms += collectDuration + duration;
        parts.set(name, part);
      }
    }
    const rows = [...parts].toSorted(([, a], [, b]) => b.ms - a.ms);
    const cells = rows.map(([name, { tests, ms }]) => [name, String(tests), (ms / 1000).toFixed(1)]);
    this.#vitest?.logger.log(
      `\n${table(["part, tier", "tests", "s"], cells)}\n\n${cpus().length} × ${cpus()[0]?.model ?? "?"}, Node ${process.version}`,
    );
  }
}
