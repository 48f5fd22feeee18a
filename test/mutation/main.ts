/**
 * `npm run mutation [-- FILE…] [--part NAME] [--changed] [--record] [--workers N]`: changes the product in one place at a time, and prints
 * the changes that no test notices. It scores every part, or these files, or with `--changed` the files that differ from the recorded
 * ones. A mutant is tried again only if its file or a test that runs it has changed: `.engine/` has the results. `--record` writes
 * the scores to results.json, and keeps those of files that were not scored anew. Exits 1 if a part's score is below
 * {@link SCORE_MIN} %.
 */
import { Stryker } from "@stryker-mutator/core";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { format, resolveConfig } from "prettier";
import { ROOT, sourcesIn } from "../tidy/tree.js";
import { type Part, PARTS } from "./parts.js";
import { type FileScore, type Report, digestOf, recordedResults, RESULTS_FILE, SCORE_MIN, scoreOf, scoresIn } from "./results.js";

await main();

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      part: { type: "string" },
      changed: { type: "boolean", default: false },
      record: { type: "boolean", default: false },
      workers: { type: "string", default: String(Math.max(1, availableParallelism() - 1)) },
    },
  });
  const named = positionals.map((path) => relative(ROOT, path));
  for (const path of named) if (!PARTS.some(({ files }) => files.test(path))) throw new Error(`no part has the file ${path}`);
  const isWanted = (path: string): boolean => (named.length === 0 || named.includes(path)) && (!values.changed || hasChanged(path));

  for (const part of PARTS.filter(({ name }) => values.part === undefined || values.part === name)) {
    const files = filesOf(part).filter(isWanted);
    if (files.length === 0) continue;
    await mutate(part, files, Number(values.workers));
    const scores = Object.entries(scoresOf(part)).filter(([path]) => files.includes(path));
    const score = scoreOf(scores.map(([, file]) => file));
    console.log(`${part.name}: ${score.toFixed(1)} % of the mutants of ${files.length} files are noticed`);
    if (score < SCORE_MIN) process.exitCode = 1;
  }
  if (values.record) await record();
}

function filesOf({ files }: Part): readonly string[] {
  return ["lib/", "lambda/"]
    .flatMap((directory) => sourcesIn(directory))
    .map(({ path }) => path)
    .filter((path) => files.test(path));
}

/** True if the recorded scores of the file are of other code than the present. */
function hasChanged(path: string): boolean {
  const [score] = Object.values(recordedResults().parts).flatMap((files) => files[path] ?? []);
  return score?.digest !== digestOf(readFileSync(join(ROOT, path), "utf8"));
}

function incrementalFile({ name }: Part): string {
  return `.engine/mutation-${name}.json`;
}

async function mutate(part: Part, files: readonly string[], concurrency: number): Promise<void> {
  await new Stryker({
    testRunner: "vitest",
    plugins: ["@stryker-mutator/vitest-runner"],
    vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
    coverageAnalysis: "perTest",
    concurrency,
    mutate: [...files],
    testFiles: [...part.tests],
    // Texts are for people, or are names of attributes and expressions of the table, which have a test of their own:
    // test/store/form-expressions.slow.test.ts.
    mutator: { excludedMutations: ["StringLiteral"] },
    // A change of a constant needs all tests, since every test of the file loads it: as long as a hundred others.
    ignoreStatic: true,
    // Only an endless loop takes this long. A busy machine must not count as a test that noticed.
    timeoutMS: 20_000,
    timeoutFactor: 4,
    ignorePatterns: ["dist", "docs", ".engine", "cdk.out", "coverage", "bench"],
    tempDirName: ".engine/mutation-sandbox",
    disableTypeChecks: false,
    incremental: true,
    incrementalFile: incrementalFile(part),
    reporters: ["clear-text"],
    clearTextReporter: { allowColor: false, allowEmojis: false, logTests: false, reportTests: false },
    thresholds: { high: SCORE_MIN, low: SCORE_MIN, break: null },
  }).runMutationTest();
}

/** Returns the latest scores of a part's files. */
function scoresOf(part: Part): Readonly<Record<string, FileScore>> {
  const file = join(ROOT, incrementalFile(part));
  return existsSync(file) ? scoresIn(JSON.parse(readFileSync(file, "utf8")) as Report) : {};
}

/** Writes results.json: of each file the score of the code as it is now, or else the one that was recorded last. Prints the files that have neither. */
async function record(): Promise<void> {
  const before = recordedResults().parts;
  const parts = PARTS.map((part) => {
    const latest = scoresOf(part);
    const scores = filesOf(part).flatMap((path) => {
      const digest = digestOf(readFileSync(join(ROOT, path), "utf8"));
      const score = latest[path]?.digest === digest ? latest[path] : before[part.name]?.[path];
      if (!score) console.log(`${path} was never scored`);
      return score ? [[path, score] as const] : [];
    });
    return [part.name, Object.fromEntries(scores)] as const;
  });
  const machine = `${cpus().length} × ${cpus()[0]?.model.trim() ?? "?"}, Node ${process.version}`;
  const results = { date: new Date().toISOString().slice(0, 10), machine, parts: Object.fromEntries(parts) };
  writeFileSync(RESULTS_FILE, await format(JSON.stringify(results), { ...(await resolveConfig(RESULTS_FILE)), parser: "json" }));
}
