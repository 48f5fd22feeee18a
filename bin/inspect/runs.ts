/** `holdfast runs`: lists runs and their states. */
import type { RunInspection } from "../../lib/index.js";
import { withParts } from "./holds.js";
import { firstOf } from "./pages.js";
import { DEFAULT_ATTEMPTS, hasUsedUp, jsonOf, lastsOf, stateOf } from "./run-text.js";
import type { CommandContext } from "../context.js";
import { plainJson } from "../plain-text.js";
import type { Column } from "../table.js";
import { cutKey, tableOf } from "../table.js";
import { cutEnd } from "../terminal.js";

/** The prefix and state of the runs, and the largest number of them. */
export interface RunsArgs {
  readonly prefix: string;
  readonly state?: RunInspection["state"];
  readonly max: number;
}

const COLUMNS: readonly Column<RunInspection>[] = [
  { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 20, to: cutKey } },
  // The next column tells how often.
  { title: "STATE", cell: (run) => (hasUsedUp(run) ? "out of attempts" : stateOf(run)) },
  { title: "ATTEMPT", cell: ({ attempt }) => String(attempt), align: "right" },
  { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 10, to: cutEnd } },
  { title: "SINCE OR UNTIL", cell: lastsOf },
];

/** The advice for runs that have used up their attempts. */
const OUT_OF_ATTEMPTS = `a run out of attempts is refused until it is reset, unless its caller allows more than ${DEFAULT_ATTEMPTS}: holdfast reset KEY --reason TEXT`;

/** Lists runs in the order of their keys, but those first that need a person. */
export async function runs({ prefix, state, max }: RunsArgs, { locks, screen, asJson, print, say }: CommandContext): Promise<number> {
  const query = { prefix, ...(state !== undefined && { state }) };
  const { items, more } = await firstOf<RunInspection>(max, (page) => locks.runs.list({ ...query, ...page }));
  if (asJson) {
    await print(`${plainJson({ items: items.map(jsonOf), more })}\n`);
    return 0;
  }
  if (items.length === 0) say(`there are no such runs`);
  else {
    const usedUp = items.filter(hasUsedUp);
    await print(`${tableOf(COLUMNS, [...usedUp, ...items.filter((run) => !hasUsedUp(run))], screen).join("\n")}\n`);
    if (usedUp.length > 0) say(OUT_OF_ATTEMPTS);
  }
  if (more) say(`there are more than these ${items.length}: give a prefix, or a larger --max`);
  return 0;
}
