/**
 * The data of the console, read and changed through a lock client: over HTTP with the caller's own credentials, or on a table. It has the
 * calls of an operator only: no lease is acquired, renewed or released here, and no answer has a leaseId, a principal or a lease's meta.
 */
import type { LockClient, RunInspection, Runs } from "../../lib/index.js";
import type { Listing, Page } from "../inspect/pages.js";
import { firstOf } from "../inspect/pages.js";
import { hasUsedUp, jsonOf } from "../inspect/run-text.js";
import type { About, Exhausted, History, KeyView, LimitOfKey, Line, Lines, Listed, Locks, RunOfKey } from "./data.js";
import { historyQuery } from "./insights-query.js";
import { canBeKey, locksOf, ORDERS, thatFit } from "./overview.js";
import type { RecentLines } from "./recent-lines.js";

/** The calls of an operator, which are all that a console needs of a client. */
export type Operator = Pick<LockClient, "health" | "list" | "inspect" | "limits" | "forceRelease"> & {
  readonly runs: Pick<Runs, "get" | "list" | "reset">;
};

/** The parts of a console. */
export interface FaceOptions {
  readonly locks: Operator;
  /** The address of the service, or the name of the table. */
  readonly where: string;
  readonly canChange: boolean;
  readonly pollMs: number;
  /** The log. With it the service is in this process: its requests are free, and a look reads everything. @default none */
  readonly lines?: RecentLines;
  /** The options with which the command line finds the same locks. @default none: it finds them by itself */
  readonly cliOptions?: string;
  /** The log of a deployed service, and how to query it for a key's lines of the last `sinceMs`. @default unknown: the query is only shown */
  readonly deployedLog?: DeployedLog;
  /** Returns the parts that a key was made from, if they don't show in it. @default none are shown */
  readonly partsOf?: (key: string) => string | undefined;
}

/** The log of a deployed service. */
export interface DeployedLog {
  readonly logGroup: string;
  /** Runs the query over the last `sinceMs` and returns the lines of the key. It costs money. */
  linesOf(key: string, query: string, sinceMs: number): Promise<readonly Line[]>;
}

type WithParts = <T extends { readonly key: string }>(view: T) => T & { readonly parts?: string };

/** Answers a request for data. A list sends no further request once `reader` has aborted. */
export type Answer = (given: URLSearchParams, reader: AbortSignal) => Promise<unknown>;
/** Makes a change. */
export type Change = (given: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** The answers and changes by the last part of their path. */
export interface Face {
  readonly answers: Readonly<Record<string, Answer>>;
  /** Empty if the console may only read. */
  readonly changes: Readonly<Record<string, Change>>;
}

/** The largest number of rows of a list: more than these is no longer read by a person. */
const ROWS_MAX = 500;
const ROWS = 100;
/** The most keys and requests of one look at a service that charges for them. Idle keys are read too, a page at a time. */
export const LOOK_KEYS = 500;
export const LOOK_REQUESTS = 10;
/** The most keys of a look that reads everything. */
const ALL_KEYS = 20_000;
/** The largest number of runs whose error is read too: a request for each. */
const ERRORS_MAX = 5;
/** The interval of the list's requests to a service that charges for them, in ms (docs/costs.md). */
export const PAID_POLL_MS = 5000;
/** The longest stored value that is shown, in characters. */
const VALUE_CHARS = 4000;

/** Makes the face. */
export function faceOf(options: FaceOptions): Face {
  const { locks, lines, partsOf = () => undefined } = options;
  const withParts: WithParts = (view) => {
    const parts = partsOf(view.key);
    return parts === undefined ? view : { ...view, parts };
  };
  let namespace: Promise<string> | undefined;
  // A failed read is tried again.
  const namespaceHere = () =>
    (namespace ??= namespaceOf(locks).catch((error: unknown) => ((namespace = undefined), Promise.reject(error as Error))));

  const answers: Record<string, Answer> = {
    about: () => about(options),
    locks: (given, reader) => listLocks(options, given, withParts, reader),
    lock: async (given): Promise<KeyView> => withParts(await locks.inspect(given.get("key") ?? "")),
    runs: (given, reader) => listRuns(options, given, withParts, reader),
    exhausted: (_given, reader) => listExhausted(options, withParts, reader),
    limits: (given, reader) => listLimits(options, given, withParts, reader),
    run: async (given): Promise<{ readonly run: RunOfKey | null }> => {
      const run = await locks.runs.get(given.get("key") ?? "");
      return { run: run && runOfKey(run, withParts) };
    },
    lines: async (given): Promise<Lines> => {
      if (!lines) return { lines: [], next: 0, fromMs: 0 };
      return lines.since(Number(given.get("from") ?? 0) || 0, await namespaceHere());
    },
  };
  answers["history"] = (given) => historyOf(options.deployedLog, given, namespaceHere);
  return { answers, changes: options.canChange ? changesOf(locks) : {} };
}

function changesOf(locks: Operator): Face["changes"] {
  return {
    // The client checks every value, and refuses it by name.
    break: ({ key, fencingToken, reason, drainMs }) =>
      locks.forceRelease(key as string, {
        fencingToken: fencingToken as number,
        reason: reason as string,
        ...(drainMs !== undefined && { drainMs: drainMs as number }),
      }),
    reset: async ({ key, reason }) => {
      await locks.runs.reset(key as string, { reason: reason as string });
      return { reset: true };
    },
  };
}

async function about({ locks, where, canChange, pollMs, lines, cliOptions }: FaceOptions): Promise<About> {
  const { version } = await locks.health();
  return { version, where, canChange, pollMs, ...(lines && { logFromMs: lines.fromMs }), ...(cliOptions !== undefined && { cliOptions }) };
}

async function historyOf(log: DeployedLog | undefined, given: URLSearchParams, namespaceHere: () => Promise<string>): Promise<History> {
  const key = given.get("key") ?? "";
  const query = historyQuery(key, (await namespaceHere()) || undefined);
  const sinceMs = Number(given.get("since") ?? 0);
  if (!log) return { query, canRun: false };
  const lines = sinceMs > 0 ? { lines: await log.linesOf(key, query, sinceMs) } : {};
  return { query, canRun: true, logGroup: log.logGroup, ...lines };
}

async function listLocks(options: FaceOptions, given: URLSearchParams, withParts: WithParts, reader: AbortSignal): Promise<Locks> {
  let namespace: string | undefined;
  const page = async (asked: Asked) => {
    const listed = await options.locks.list(asked);
    ({ namespace } = listed);
    return listed;
  };
  const { items, ...look } = await lookAt(page, options, given, reader);
  const order = ORDERS.find((name) => name === given.get("order")) ?? "wait";
  const search = { find: findIn(given), order, onlyWaited: given.get("only") === "waited", rowsMax: rowsOf(given) };
  return { ...locksOf(items.map(withParts), search), ...look, ...(namespace !== undefined && { namespace }) };
}

async function listRuns(
  options: FaceOptions,
  given: URLSearchParams,
  withParts: WithParts,
  reader: AbortSignal,
): Promise<Listed<RunOfKey>> {
  const page = (asked: Asked) => options.locks.runs.list({ ...asked, ...stateIn(given) });
  const { items, ...look } = await lookAt(page, options, given, reader);
  return {
    ...rowsThatFit(
      items.map((run) => runOfKey(run, withParts)),
      given,
    ),
    ...look,
  };
}

async function listLimits(
  options: FaceOptions,
  given: URLSearchParams,
  withParts: WithParts,
  reader: AbortSignal,
): Promise<Listed<LimitOfKey>> {
  const { items, ...look } = await lookAt((asked) => options.locks.limits.list(asked), options, given, reader);
  return { ...rowsThatFit(items.map(withParts), given), ...look };
}

function rowsThatFit<T extends Parameters<typeof thatFit>[0][number]>(rows: readonly T[], given: URLSearchParams) {
  const fitting = thatFit(rows, findIn(given));
  return { items: fitting.slice(0, rowsOf(given)), fits: fitting.length };
}

/** Lists the runs that have used up their attempts. A page of failed runs alone reads sixteen times as many records as one of all. */
async function listExhausted(options: FaceOptions, withParts: WithParts, reader: AbortSignal): Promise<Exhausted> {
  const { runs } = options.locks;
  const page = (asked: Asked) => runs.list({ ...asked, state: "failed" });
  const { items, more, requests = 0 } = await lookAt(page, options, new URLSearchParams(), reader);
  const usedUp = items.filter(hasUsedUp);
  const named = await Promise.all(usedUp.slice(0, ERRORS_MAX).map(async ({ key }) => runs.get(key)));
  // One that was reset meanwhile is no longer among them.
  const still = [...named.filter((run) => run !== null), ...usedUp.slice(ERRORS_MAX)].filter(hasUsedUp);
  return {
    items: still.slice(0, ROWS_MAX).map((run) => runOfKey(run, withParts)),
    more: more || still.length > ROWS_MAX,
    ...(options.lines ? {} : { requests: requests + named.length }),
  };
}

/** The part of a query that a page adds. */
interface Asked {
  readonly prefix?: string;
  readonly max: number;
  readonly cursor?: string;
}

/**
 * Reads a list: everything if requests are free or all was asked for, otherwise its first keys, and after them those that begin with the
 * search, which may come far behind.
 */
async function lookAt<T extends { readonly key: string }>(
  page: (asked: Asked) => Promise<Page<T>>,
  { lines }: FaceOptions,
  given: URLSearchParams,
  signal: AbortSignal,
): Promise<Pick<Listed<T>, "items" | "read" | "more" | "requests">> {
  const isAll = lines !== undefined || given.get("all") !== null;
  const first: Listing<T> = await firstOf(isAll ? ALL_KEYS : LOOK_KEYS, page, { signal, ...(!isAll && { requestsMax: LOOK_REQUESTS }) });
  const { items, more } = first;
  let { requests } = first;
  const prefix = findIn(given);
  const found = [...items];
  if (more && canBeKey(prefix)) {
    const near = await firstOf(ROWS, (asked) => page({ ...asked, prefix }), { signal, requestsMax: 1 });
    const known = new Set(items.map(({ key }) => key));
    found.push(...near.items.filter(({ key }) => !known.has(key)));
    requests += near.requests;
  }
  return { items: found, read: items.length, more, ...(lines ? {} : { requests }) };
}

function findIn(given: URLSearchParams): string {
  return (given.get("find") ?? "").trim();
}

function stateIn(given: URLSearchParams): { readonly state?: RunInspection["state"] } {
  const state = given.get("state") ?? "";
  return state === "" ? {} : { state: state as RunInspection["state"] };
}

function rowsOf(given: URLSearchParams): number {
  return Math.min(ROWS_MAX, Math.max(1, Number(given.get("max") ?? ROWS) || ROWS));
}

async function namespaceOf(locks: Operator): Promise<string> {
  return (await locks.list({ max: 1 })).namespace ?? "";
}

function runOfKey(run: RunInspection, withParts: WithParts): RunOfKey {
  const { checkpoint, result, error, version: _version, ...shown } = run;
  const { error: plainError } = jsonOf(run) as { readonly error?: unknown };
  return {
    ...withParts(shown),
    ...(checkpoint !== undefined && { checkpoint: textOf(checkpoint) }),
    ...(result !== undefined && { result: textOf(result) }),
    ...(error !== undefined && { error: textOf(plainError) }),
  };
}

/** Returns a stored value as text, cut if it is long. */
function textOf(value: unknown): string {
  const text = JSON.stringify(value, (_name, part: unknown) => (typeof part === "bigint" ? String(part) : part), 2);
  return text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}… (${text.length} characters)` : text;
}
