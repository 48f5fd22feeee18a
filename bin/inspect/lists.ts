/** `holdfast ls`, `runs`, `ticks` and `limits`: list held keys with their holders, runs, the occurrences of a schedule, or limits in use. */
import type { Inspection, LimitView, RunInspection } from "../../lib/index.js";
import { CliError } from "../cli-error.js";
import type { CommandContext } from "../context.js";
import { plainJson } from "../../console/text/plain-text.js";
import { type Column, cutMiddle, tableOf } from "../table.js";
import { cutEnd } from "../terminal.js";
import type { LimitInUse } from "../../console/data.js";
import { limitsInUse, nextInOf, sortedBy } from "../../console/overview.js";
import { exactDuration, formatDuration, formatSeconds, rateText } from "../../console/text/duration.js";
import { holdsOf, keyColumns, withParts } from "./holds.js";
import { type ItemPage, type Listing, type PageRequest, type Reading, firstOf, firstThatFit } from "../../console/pages.js";
import {
  agoText,
  DEFAULT_ATTEMPTS,
  hasUsedUp,
  jsonOf,
  keptText,
  type ListedState,
  listedStateOf,
  startedAgoMs,
  stateOf,
  storedStateOf,
} from "../../console/text/run-text.js";
import { occurrenceOf } from "../../console/schedules.js";
import { isTenants } from "./tenants.js";

/** The prefix of the keys, the largest number of them, and the cursor of an earlier list that goes on here. */
export interface ListArgs {
  readonly prefix: string;
  readonly max: number;
  readonly cursor?: string;
}

/** The keys of one owner, or of all. */
export interface LsArgs extends ListArgs {
  readonly owner?: string;
}

/** The runs in one state, or in all. */
export interface RunsArgs extends ListArgs {
  readonly state?: ListedState;
}

/** The name of a schedule, the largest number of its occurrences, and the time in ms within which one must have been done. */
export interface TicksArgs {
  readonly name: string;
  readonly max: number;
  readonly withinMs?: number | undefined;
}

/** The run of an occurrence, and the time in ms from the occurrence before. */
interface OccurrenceRow extends RunInspection {
  readonly occurrence: string;
  readonly afterMs?: number;
}

/** The largest number of occurrences to read: those of two weeks, each minute. */
const OCCURRENCES_MAX = 20_160;

/** The columns of a run's latest attempt. */
const ATTEMPT_COLUMNS: readonly Column<RunInspection>[] = [
  // The next column tells how often.
  { title: "STATE", cell: (run) => (hasUsedUp(run) ? "out of attempts" : stateOf(run)) },
  { title: "ATTEMPT", cell: ({ attempt }) => String(attempt), align: "right" },
  { title: "STARTED", cell: (run) => agoText(startedAgoMs(run)), align: "right", leaves: 3 },
  { title: "TOOK", cell: ({ tookMs }) => (tookMs === undefined ? "-" : formatDuration(tookMs)), align: "right", leaves: 1 },
  { title: "BY", cell: ({ owner }) => owner || "-", cut: { columns: 10, to: cutMiddle }, leaves: 2 },
];

const RUN_COLUMNS: readonly Column<RunInspection>[] = [
  { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 20, to: cutMiddle } },
  ...ATTEMPT_COLUMNS,
  { title: "KEPT FOR", cell: keptText, isSpare: true },
];

const TICK_COLUMNS: readonly Column<OccurrenceRow>[] = [
  { title: "OCCURRENCE", cell: ({ occurrence }) => occurrence },
  { title: "AFTER", cell: ({ afterMs }) => (afterMs === undefined ? "-" : formatDuration(afterMs)), align: "right" },
  ...ATTEMPT_COLUMNS,
];

const LIMIT_COLUMNS: readonly Column<LimitInUse>[] = [
  { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 16, to: cutMiddle } },
  {
    title: "LIMITS",
    cell: ({ rates = [], permits }) => [...rates.map(rateText), ...(permits ? [`${permits.of} at once`] : [])].join(", "),
    cut: { columns: 20, to: cutEnd },
  },
  {
    title: "LEFT",
    cell: (limit) =>
      leftOf(limit)
        .map(([left, most]) => `${left} of ${most}`)
        .join(", "),
    short: (limit) =>
      leftOf(limit)
        .map(([left]) => left)
        .join(", "),
    paint: (limit, colors) => (leftOf(limit).some(([left]) => left === 0) ? colors.yellow : String),
  },
];
const inText = (ms: number | undefined): string => (ms === undefined ? "-" : formatSeconds(ms));
const nextText = (ms: number | undefined): string => (ms === 0 ? "now" : inText(ms));
const NEXT_IN: Column<LimitInUse> = { title: "NEXT IN", cell: (limit) => nextText(nextInOf(limit)), align: "right", leaves: 2 };
const ALL_BACK_IN: Column<LimitInUse> = { title: "ALL BACK IN", cell: ({ fullInMs }) => inText(fullInMs), align: "right", leaves: 1 };
const LIMIT_WAITING: Column<LimitInUse> = { title: "WAITING", cell: ({ permits }) => String(permits?.waiting ?? 0), align: "right" };

/** Returns what is left of each rate and of the permits, and how much there is of it at most. */
function leftOf({ rates = [], remaining = [], permits }: LimitInUse): readonly (readonly [left: number, most: number])[] {
  const ofRates = rates.map(({ burst }, at) => [remaining[at] ?? 0, burst] as const);
  return permits ? [...ofRates, [permits.of - permits.out, permits.of]] : ofRates;
}

/** The advice for runs that have used up their attempts. */
const OUT_OF_ATTEMPTS = `a run out of attempts is refused until it is reset, unless its caller allows more than ${DEFAULT_ATTEMPTS}: holdfast reset KEY --reason TEXT`;

/** Lists held keys, the longest wait first and then by name, and says their namespace if it is not the default one. As JSON they are by name. */
export async function ls({ prefix, max, cursor, ...query }: LsArgs, context: CommandContext): Promise<number> {
  let namespace: string | undefined;
  const page = async (request: PageRequest): Promise<ItemPage<Inspection>> => {
    const listed = await context.locks.list({ prefix, ...query, ...request });
    ({ namespace } = listed);
    return listed;
  };
  const { items, ...rest } = await untilStopped(context, (reading) => firstOf(max, page, { ...reading, cursor }));
  const rows = holdsOf(sortedBy(items, "wait"));
  const none = `nobody holds ${prefix === "" ? "a key" : `a key that begins with ${prefix}`}`;
  if (!context.asJson && isTenants(namespace)) context.say(`namespace ${namespace}`);
  return printList({ columns: keyColumns(rows), rows, none }, { namespace, items, ...rest }, context);
}

/** Lists runs in the order of their keys, but those first that need a person. */
export async function runs({ prefix, max, cursor, state }: RunsArgs, context: CommandContext): Promise<number> {
  const stored = state && { state: storedStateOf(state) };
  const pageAfter = (page: PageRequest) => context.locks.runs.list({ prefix, ...stored, ...page });
  const { items, ...rest } = await untilStopped(context, (reading) => {
    const all = { ...reading, cursor };
    return state ? firstThatFit(max, pageAfter, (run) => listedStateOf(run) === state, all) : firstOf(max, pageAfter, all);
  });
  const usedUp = items.filter(hasUsedUp);
  const rows = [...usedUp, ...items.filter((run) => !hasUsedUp(run))];
  const advice = usedUp.length > 0 ? OUT_OF_ATTEMPTS : undefined;
  return printList({ columns: RUN_COLUMNS, rows, none: "there are no such runs", advice }, { items: items.map(jsonOf), ...rest }, context);
}

/**
 * Lists the last occurrences of a schedule in order, each with the time from the one before, so that a gap is seen. With `withinMs`, it fails
 * if none was done in that time.
 */
export async function ticks({ name, max, withinMs }: TicksArgs, context: CommandContext): Promise<number> {
  const { items: runs, more } = await firstOf<RunInspection>(OCCURRENCES_MAX, (page) =>
    context.locks.runs.list({ prefix: `${name}_`, ...page }),
  );
  if (more) throw new CliError("refused", `${name} has more than ${OCCURRENCES_MAX} runs: keep them for a shorter time`);
  const all = runs.flatMap((run): readonly OccurrenceRow[] => {
    const { schedule, occurrence = "" } = occurrenceOf(run.key) ?? {};
    return schedule === name ? [{ ...run, occurrence }] : []; // Other runs may begin with the name too.
  });
  const rows = all.map((one, at): OccurrenceRow => {
    const before = all[at - 1];
    return before ? { ...one, afterMs: Date.parse(one.occurrence) - Date.parse(before.occurrence) } : one;
  });
  const items = rows.slice(-max);
  const none = `nothing is known of an occurrence of ${name}`;
  await printList({ columns: TICK_COLUMNS, rows: items, none }, { items: items.map(jsonOf), more: false }, context);
  if (withinMs === undefined || rows.some(({ state, endedAgoMs = Infinity }) => state === "succeeded" && endedAgoMs <= withinMs)) return 0;
  throw new CliError("notFound", `no occurrence of ${name} was done within ${exactDuration(withinMs)}`);
}

/** Lists the limits in use, in order: those that were taken from lately, and those whose permits are out. */
export async function limits({ prefix, max }: ListArgs, context: CommandContext): Promise<number> {
  const taken = await firstOf<LimitView>(max, (page) => context.locks.limits.list({ prefix, ...page }));
  const held = await firstOf<Inspection>(max, (page) => context.locks.list({ prefix, ...page }));
  const all = limitsInUse(taken.items, held.items);
  const [items, more] = [all.slice(0, max), taken.more || held.more || all.length > max];
  const columns = [
    ...LIMIT_COLUMNS,
    ...(items.some((limit) => (nextInOf(limit) ?? 0) > 0) ? [NEXT_IN] : []),
    ALL_BACK_IN,
    ...(items.some(({ permits }) => permits && permits.waiting > 0) ? [LIMIT_WAITING] : []),
  ];
  const such = prefix === "" ? "" : ` that begins with ${prefix}`;
  const none = `no limit${such} is in use: all is back, and no permit is out. One at once is a lock: holdfast ls`;
  const advice = items.length === 0 ? "to take from one: holdfast limit KEY --rate 100/1m -- COMMAND" : undefined;
  return printList({ columns, rows: items, none, advice }, { items, more }, context);
}

/** The requests between two lines that say how far a list is. */
const REQUESTS_A_LINE = 50;

/** Reads a list, and tells a person how far it is. Ctrl-C ends it with what was found, if anything was; a second one ends the process. */
async function untilStopped<T>(
  { signals, asJson, say }: CommandContext,
  read: (reading: Pick<Reading, "stop" | "tell">) => Promise<Listing<T>>,
): Promise<Omit<Listing<T>, "requests">> {
  const stopping = new AbortController();
  let found = 0;
  const tell = (items: number, requests: number): void => {
    found = items;
    const ways = found > 0 ? "; Ctrl-C shows them" : "";
    if (!asJson && requests % REQUESTS_A_LINE === 0) say(`${found} found so far, in ${requests} requests${ways}`);
  };
  signals.offerInterrupts(() => {
    if (asJson || found === 0 || stopping.signal.aborted) return false;
    stopping.abort();
    return true;
  });
  try {
    const { requests: _requests, ...listing } = await read({ stop: stopping.signal, tell });
    return listing;
  } finally {
    signals.handBack();
  }
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
  json: Omit<Listing<unknown>, "requests"> & { readonly namespace?: string | undefined },
  { screen, asJson, print, say }: CommandContext,
): Promise<number> {
  if (asJson) {
    await print(`${plainJson(json)}\n`);
    return 0;
  }
  const { items, more, cursor } = json;
  if (items.length === 0) say(more ? `${none}, as far as was read` : none);
  else await print(`${tableOf(columns, rows, screen).join("\n")}\n`);
  if (advice !== undefined) say(advice);
  if (more) say(moreText(items.length, cursor));
  return 0;
}

function moreText(shown: number, cursor: string | undefined): string {
  const begun = shown === 0 ? "not all was read" : `there may be more than these ${shown}`;
  if (cursor === undefined) return `${begun}: give a prefix, or a larger --max`;
  return `${begun}: give a prefix, a larger --max, or --cursor ${cursor} to go on`;
}
