/** The mutants that are planted for the simulation to detect, as docs/mistakes.md lists them, and the extent of its search, as docs/guarantees.md says it. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BUGS, LOCK_BUGS } from "../simulation/bugs/bugs.js";
import { CONDITION_BUGS } from "../simulation/bugs/condition-bugs.js";
import { CROWD_BUGS } from "../simulation/bugs/crowd-bugs.js";
import { EDGE_BUGS } from "../simulation/bugs/edge-bugs.js";
import { KIND_BUGS } from "../simulation/bugs/kind-bugs.js";
import { LIMIT_BUGS } from "../simulation/bugs/limit-bugs.js";
import { QUEUE_BUGS } from "../simulation/bugs/queue-bugs.js";
import { RECORD_BUGS } from "../simulation/bugs/record-bugs.js";
import { REGION_BUGS } from "../simulation/bugs/region-bugs.js";
import { RULE_BUGS } from "../simulation/bugs/rule-bugs.js";
import { RUN_BUGS } from "../simulation/bugs/run-bugs.js";
import { SLEEP_BUGS } from "../simulation/bugs/sleep-bugs.js";
import { STORE_BUGS } from "../simulation/bugs/store-bugs.js";
import { WAY_BUGS } from "../simulation/bugs/way-bugs.js";
import { ROOT } from "../tidy/tree.js";
import { table } from "./generated.js";

/** A constant of a file. @throws Error if it doesn't exist. */
function constant(file: string, name: string): number {
  const [, value] = new RegExp(`^(?:export )?const ${name} = (\\d+);$`, "m").exec(readFileSync(join(ROOT, file), "utf8")) ?? [];
  if (value === undefined) throw new Error(`${file} has no ${name}`);
  return Number(value);
}

/** The part of docs/guarantees.md that says how far the simulation searches. */
export function searchParts(): Readonly<Record<"how far", string>> {
  const within = constant("test/simulation/must-fail.ts", "SEEDS_PER_BUG");
  const noticed = BUGS.filter(({ noticedBy }) => noticedBy).length;
  return {
    "how far": [
      `\`npm test\` plays a few random histories, and finds no property broken. Then it makes mistakes in the production source, one`,
      `against each kind of property, and fails unless the history that is recorded as its witness breaks that property.`,
      `\`npm run test:all\` replays the witnesses of ${BUGS.length - noticed} of ${BUGS.length} mistakes: a search found each among the first ${within} histories.`,
      `Another ${noticed} are in the rule of a single test, which fails with them.`,
    ].join("\n"),
  };
}

/** The table of docs/mistakes.md. */
export function mistakeParts(): Readonly<Record<"the mistakes", string>> {
  const kinds = [
    ["plain locks", LOCK_BUGS],
    ["kinds of locks", KIND_BUGS],
    ["the queue", QUEUE_BUGS],
    ["runs", RUN_BUGS],
    ["records", RECORD_BUGS],
    ["answers", RULE_BUGS],
    ["the store", STORE_BUGS],
    ["conditions", CONDITION_BUGS],
    ["several Regions", REGION_BUGS],
    ["two ways", WAY_BUGS],
    ["crowds", CROWD_BUGS],
    ["edges", EDGE_BUGS],
    ["limits", LIMIT_BUGS],
    ["sleepers", SLEEP_BUGS],
  ] as const;
  return {
    "the mistakes": table(
      ["of", "mistake", "what it is", "what shows it"],
      kinds.flatMap(([of, bugs]) =>
        bugs.map(({ name, why, noticedBy }) => [
          ...[of, `\`${name}\``, why.replaceAll(/__\w+__/g, "`$&`")],
          noticedBy ? `[a test](../${noticedBy[0]} "${noticedBy[1]}")` : "a history",
        ]),
      ),
    ),
  };
}
