/**
 * Runs the tests of function URLs once for each mistake in the sources, and once without, as a project each. Writes the names of the tests
 * that fail in each to the file that FAILURES names.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { defineConfig } from "vitest/config";
import type { Reporter, TestModule } from "vitest/node";
import { type Mistake, MISTAKES } from "./function-url-mistakes.js";

/** Puts a mistake into a file, which has the text exactly once. */
const planted = ({ name, edit: [find, replace, file] }: Mistake) => ({
  name: "planted",
  enforce: "pre" as const,
  load(id: string) {
    if (!id.endsWith(`/${file}`)) return undefined;
    const parts = readFileSync(id, "utf8").split(find);
    if (parts.length !== 2) throw new Error(`${name}: ${file} does not have exactly once: ${find}`);
    return parts.join(replace);
  },
});

const failures: Reporter = {
  onTestRunEnd(modules: readonly TestModule[]) {
    const failed: Record<string, string[]> = {};
    for (const module of modules) {
      const names = (failed[module.project.name] ??= module.errors().map(({ message }) => message));
      for (const test of module.children.allTests("failed")) names.push(test.name);
    }
    writeFileSync(process.env["FAILURES"] ?? "", JSON.stringify(failed));
  },
};

const SETTINGS = { environment: "node", provide: { tier: "quick" }, testTimeout: 60_000 } as const;
const files = [...new Set(MISTAKES.map(({ found: [file] }) => file))];

export default defineConfig({
  test: {
    reporters: [failures],
    projects: [
      { test: { ...SETTINGS, name: "none", include: files } },
      ...MISTAKES.map((mistake) => ({
        plugins: [planted(mistake)],
        test: { ...SETTINGS, name: mistake.name, include: [mistake.found[0]] },
      })),
    ],
  },
});
