/** The generated parts of docs/evidence.md: what tests each property, and the defects that have a regression test. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PARTS } from "../mutation/parts.js";
import { type FileScore, recordedResults, scoreOf } from "../mutation/results.js";
import type { Bug } from "../simulation/bugs/bug.js";
import { BUGS } from "../simulation/bugs/bugs.js";
import { ROOT, sourcesIn } from "../tidy/tree.js";
import { ENGINES, recordedRuns } from "../support/ran.js";
import { citedTests } from "./cited-tests.js";
import { readPage, table } from "./generated.js";

/** The witnesses of all mistakes: a property and the seed of a history that breaks it. */
export function witnesses(): Readonly<Record<string, string>> {
  const read = (name: string) =>
    JSON.parse(readFileSync(join(ROOT, `test/simulation/must-fail-${name}.witnesses.json`), "utf8")) as Record<string, string>;
  return { ...read("locks"), ...read("queues"), ...read("runs"), ...read("sleepers"), ...read("regions") };
}

/** Marks a cell without any test. */
const NONE = "🔴 none";

/** The properties, each with the mistakes that break it in the simulation and in the model, and the tests that show it. */
function byProperty(): string {
  const found = witnesses();
  const breaking = (property: string, isThere: (bug: Bug) => boolean): string =>
    listed(BUGS.filter((bug) => isThere(bug) && propertyOf(bug) === property).map(({ name }) => `\`${name}\``));
  const propertyOf = ({ name, noticedBy, breaks }: Bug): string | undefined => (noticedBy ? breaks : found[name]?.split(" ")[0]);
  const model = readPage("test/model/results.md");
  const rows = readPage("docs/guarantees.md")
    .split("\n")
    .flatMap((row) => {
      const [, property] = /^\| ([SLR]\d+) /.exec(row) ?? [];
      return property === undefined ? [] : [{ property, row }];
    });
  return table(
    ["Property", "Mistakes in the core that break it", "in the store, the service or the client", "Mistakes in the model", "Shown by"],
    rows.map(({ property, row }) => [
      property,
      breaking(property, ({ file }) => file.startsWith("lib/core/")),
      breaking(property, ({ file }) => !file.startsWith("lib/core/")),
      String(model.split(`| breaks ${property} `).length - 1 || ""),
      citedTests(row)
        .map(({ file }) => `\`${file}\``)
        .join(", "),
    ]),
  );
}

function listed(names: readonly string[]): string {
  return names.length === 0 ? NONE : names.join(", ");
}

/** The defects that tests keep from coming back: each comment of a test that names a regression, with the test's file. */
function defects(): string {
  const tests = sourcesIn("test/").filter(({ path }) => path.endsWith(".test.ts"));
  return table(
    ["Test", "What it keeps from coming back"],
    tests.flatMap(({ path, text }) =>
      Array.from(text.matchAll(/\/\*\*([\s\S]*?)\*\//g), ([, comment = ""]) => comment.replaceAll(/\s*\n\s*\*\s?/g, " ").trim())
        .filter((comment) => comment.includes("Regression"))
        .map((comment) => [`[${path.slice("test/".length).replace(".test.ts", "")}](../${path})`, comment]),
    ),
  );
}

/** The scores of the files whose mutants were tried, and of each part of them as a whole. */
function mutants(): string {
  const { parts } = recordedResults();
  const cells = (name: string, files: readonly FileScore[]): readonly string[] => {
    const sum = (of: "noticed" | "survived" | "excused"): number => files.reduce((total, file) => total + file[of], 0);
    return [
      name,
      String(sum("noticed") + sum("survived")),
      `${scoreOf(files).toFixed(1)} %`,
      String(sum("survived")),
      String(sum("excused")),
    ];
  };
  return table(
    ["File", "Mutants", "Noticed", "Survived", "Excused"],
    Object.entries(parts).flatMap(([part, files]) => {
      const scored = Object.entries(files).filter(([, { noticed, survived }]) => noticed + survived > 0);
      const whole = cells(
        `**${part}**`,
        scored.map(([, file]) => file),
      );
      const unscored = unscoredOf(part, files).map((path) => [`\`${path}\``, "", "not scored", "", ""]);
      return scored.length === 0 ? unscored : [whole, ...scored.map(([path, file]) => cells(`\`${path}\``, [file])), ...unscored];
    }),
  );
}

/** The files of a part that have no score. */
function unscoredOf(part: string, scored: object): readonly string[] {
  const { files } = PARTS.find(({ name }) => name === part)!;
  return sourcesIn("lib/").flatMap(({ path }) => (files.test(path) && !Object.hasOwn(scored, path) ? [path] : []));
}

/** The engines, each with the latest recorded run. */
function engines(): string {
  const runs = recordedRuns();
  return table(
    ["Engine", "What runs there", "Passed", "Date", "Command"],
    Object.entries(ENGINES).map(([engine, { what, command }]) => {
      const ran = runs[engine as keyof typeof ENGINES];
      const passed = ran ? `${ran.passed}${ran.skipped > 0 ? `, ${ran.skipped} skipped` : ""}` : "nothing yet";
      return [engine, what, passed, ran?.date ?? "", `\`${command}\``];
    }),
  );
}

/** The latest run of a kit of tests that others wrote for a client (`.ci/clients.sh`): what passed, and how many tests can't, by reason. */
interface Kit {
  readonly version: string;
  readonly passed: number;
  readonly cannot: Readonly<Record<string, number>>;
}

/** The tests that others wrote for their locks, each with what it said of a client here. */
function kits(): string {
  const ran = JSON.parse(readFileSync(join(ROOT, "test/support/kits.json"), "utf8")) as Readonly<Record<string, Kit>>;
  return table(
    ["Tests", "Version", "Passed", "What can't apply"],
    Object.entries(ran).map(([name, { version, passed, cannot }]) => {
      const count = passed + Object.values(cannot).reduce((sum, tests) => sum + tests, 0);
      const reasons = Object.entries(cannot).map(([reason, tests]) => `${tests}: ${reason}`);
      return [name, version, `${passed} of ${count}`, reasons.join("; ")];
    }),
  );
}

/** The page's parts, by name. */
export function evidenceParts(): Readonly<Record<string, string>> {
  return { engines: engines(), kits: kits(), "by property": byProperty(), mutants: mutants(), defects: defects() };
}
