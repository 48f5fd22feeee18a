/** `holdfast ls`, `holdfast runs` and `holdfast limits`: list held keys with their holders, runs with their states, or limits in use. */
import type { Inspection, LimitView, RunInspection } from "../../lib/index.js";
import type { CommandContext } from "../context.js";
import { plainJson } from "../plain-text.js";
import { type Column, cutKey, tableOf } from "../table.js";
import { cutEnd } from "../terminal.js";
import { formatSeconds } from "../duration.js";
import { ratesText } from "../values.js";
import { holdsOf, keyColumns, withParts } from "./holds.js";
import { type Listing, firstOf } from "./pages.js";
import { DEFAULT_ATTEMPTS, hasUsedUp, jsonOf, lastsOf, stateOf } from "./run-text.js";

/** The prefix of the keys, and the largest number of them. */
export interface ListArgs {
  readonly prefix: string;
  readonly max: number;
}

/** The keys of one owner, or of all. */
export interface LsArgs extends ListArgs {
  readonly owner?: string;
}

/** The runs in one state, or in all. */
export interface RunsArgs extends ListArgs {
  readonly state?: RunInspection["state"];
}

/** The namespace of a table without tenants. */
const DEFAULT_NAMESPACE = "default";

const RUN_COLUMNS: readonly Column<RunInspection>[] = [
  { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 20, to: cutKey } },
  // The next column tells how often.
  { title: "STATE", cell: (run) => (hasUsedUp(run) ? "out of attempts" : stateOf(run)) },
  { title: "ATTEMPT", cell: ({ attempt }) => String(attempt), align: "right" },
  { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 10, to: cutEnd } },
  { title: "SINCE OR UNTIL", cell: lastsOf },
];

const LIMIT_COLUMNS: readonly Column<LimitView>[] = [
  { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 16, to: cutKey } },
  { title: "RATES", cell: ({ rates }) => ratesText(rates), cut: { columns: 20, to: cutEnd } },
  {
    title: "LEFT",
    cell: ({ rates, remaining }) => remaining.map((left, at) => `${left} of ${rates[at]?.burst ?? left}`).join(", "),
    short: ({ remaining }) => remaining.join(", "),
    paint: ({ remaining }, colors) => (remaining.includes(0) ? colors.yellow : String),
  },
  { title: "FULL IN", cell: ({ fullInMs }) => formatSeconds(fullInMs), align: "right" },
];

/** The advice for runs that have used up their attempts. */
const OUT_OF_ATTEMPTS = `a run out of attempts is refused until it is reset, unless its caller allows more than ${DEFAULT_ATTEMPTS}: holdfast reset KEY --reason TEXT`;

/** Lists held keys in order, and says their namespace if it is not the default one. */
export async function ls({ prefix, max, ...query }: LsArgs, context: CommandContext): Promise<number> {
  let namespace: string | undefined;
  const { items, more } = await firstOf<Inspection>(max, async (page) => {
    const listed = await context.locks.list({ prefix, ...query, ...page });
    ({ namespace } = listed);
    return listed;
  });
  const rows = holdsOf(items);
  const none = `nobody holds ${prefix === "" ? "a key" : `a key that begins with ${prefix}`}`;
  if (!context.asJson && namespace !== undefined && namespace !== DEFAULT_NAMESPACE) context.say(`namespace ${namespace}`);
  return printList({ columns: keyColumns(rows), rows, none }, { namespace, items, more }, context);
}

/** Lists runs in the order of their keys, but those first that need a person. */
export async function runs({ prefix, max, ...query }: RunsArgs, context: CommandContext): Promise<number> {
  const { items, more } = await firstOf<RunInspection>(max, (page) => context.locks.runs.list({ prefix, ...query, ...page }));
  const usedUp = items.filter(hasUsedUp);
  const rows = [...usedUp, ...items.filter((run) => !hasUsedUp(run))];
  const advice = usedUp.length > 0 ? OUT_OF_ATTEMPTS : undefined;
  return printList({ columns: RUN_COLUMNS, rows, none: "there are no such runs", advice }, { items: items.map(jsonOf), more }, context);
}

/** Lists the limits that are not full, in order. */
export async function limits({ prefix, max }: ListArgs, context: CommandContext): Promise<number> {
  const { items, more } = await firstOf<LimitView>(max, (page) => context.locks.limits.list({ prefix, ...page }));
  const such = prefix === "" ? "" : ` that begins with ${prefix}`;
  const none = `no limit${such} was taken from lately: every rate is all back. Permits that are out are in: holdfast ls`;
  const advice = items.length === 0 ? "to take from one: holdfast limit KEY --rate 100/1m -- COMMAND" : undefined;
  return printList({ columns: LIMIT_COLUMNS, rows: items, none, advice }, { items, more }, context);
}

interface Table<Row> {
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** Said instead of a table without rows. */
  readonly none: string;
  readonly advice?: string | undefined;
}

/** Prints a list as JSON, or as a table with what a person should know beside it. */
async function printList<Row>(
  { columns, rows, none, advice }: Table<Row>,
  json: Pick<Listing<unknown>, "items" | "more"> & { readonly namespace?: string | undefined },
  { screen, asJson, print, say }: CommandContext,
): Promise<number> {
  if (asJson) {
    await print(`${plainJson(json)}\n`);
    return 0;
  }
  const { items, more } = json;
  if (items.length === 0) say(none);
  else await print(`${tableOf(columns, rows, screen).join("\n")}\n`);
  if (advice !== undefined) say(advice);
  if (more) say(`there are more than these ${items.length}: give a prefix, or a larger --max`);
  return 0;
}
