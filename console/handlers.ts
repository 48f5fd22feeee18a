/**
 * The data of the console, read and changed through a lock client: over HTTP with the caller's own credentials, or on a table. It has the
 * calls of an operator only: no lease is acquired, renewed or released here, and no answer has a leaseId, a principal or a lease's meta.
 */
import type { LockClient, RunInspection, Runs } from "../lib/index.js";
import { type ItemPage, type PageRequest, firstOf } from "./pages.js";
import { hasUsedUp, jsonOf, type ListedState, listedStateOf, storedStateOf } from "./text/run-text.js";
import { bySchedule, isScheduleOf, latestOccurrences } from "./schedules.js";
import type {
  About,
  Exhausted,
  History,
  KeyView,
  LimitData,
  LimitOfKey,
  Line,
  Lines,
  ListData,
  LocksData,
  Parts,
  RunData,
  RunOfKey,
  ScheduleData,
  Untold,
} from "./data.js";
import { historyQuery } from "./insights-query.js";
import { canBeKey, limitsInUse, locksOf, ORDERS, thatFit } from "./overview.js";
import { RanOut } from "./ran-out.js";
import type { RecentLines } from "./recent-lines.js";

/** The calls of an operator, which are all that a console needs of a client. */
export type Operator = Pick<LockClient, "health" | "list" | "inspect" | "limits" | "forceRelease"> & {
  readonly runs: Pick<Runs, "get" | "list" | "reset">;
};

/** The parts of a console. */
export interface HandlerOptions extends Pick<About, "where" | "canChange" | "pollMs" | "cliOptions"> {
  /** The client. It has `retryReads: false`: the page asks again anyway, and tells a failure at once. */
  readonly locks: Operator;
  /** The log. With it the service is in this process: its requests are free, and a look reads everything. @default none */
  readonly lines?: RecentLines;
  /** The log of a deployed service, and how to query it for a key's lines of the last `sinceMs`. @default unknown: the query is only shown */
  readonly deployedLog?: DeployedLog | undefined;
  /** Returns the parts that a key was made from, if they don't show in it. @default none are shown */
  readonly partsOf?: (key: string) => string | undefined;
}

/** The log of a deployed service. */
export interface DeployedLog {
  readonly logGroup: string;
  /** Runs the query over the last `sinceMs` and returns the lines of the key. It costs money. */
  linesOf(key: string, query: string, sinceMs: number): Promise<readonly Line[]>;
}

/** Answers a request for data. A list sends no further request once `reader` has aborted. */
export type ReadHandler = (query: URLSearchParams, reader: AbortSignal) => Promise<unknown>;
/** Makes a change. */
export type ChangeHandler = (body: Readonly<Record<string, unknown>>) => Promise<unknown>;

/** The answers and changes by the last part of their path. */
export interface Handlers {
  readonly answers: Readonly<Record<string, ReadHandler>>;
  /** Empty if the console may only read. */
  readonly changes: Readonly<Record<string, ChangeHandler>>;
}

/** The largest number of rows of a list: more than these is no longer read by a person. */
const ROWS_MAX = 500;
const ROWS = 100;
/** The most keys and requests of one look at a service that charges for them. Idle keys are read too, a page at a time. */
export const READ_KEYS = 500;
export const READ_REQUESTS = 10;
/** The most keys of a look that reads on by itself, in twice as many requests; for more, somebody has to ask for all. */
export const READ_ON_KEYS = 2000;
/** The most keys of a look that reads everything. */
const ALL_KEYS = 20_000;
/** The largest number of runs whose error is read too: a request for each. */
const ERRORS_MAX = 5;
/** The interval of the list's requests to a service that charges for them, in ms (docs/costs.md). */
export const PAID_POLL_MS = 5000;
/** The longest time of a schedule that is read, in days. */
const DAYS_MAX = 31;
const DAY_MS = 86_400_000;
/** The longest stored value that is shown, in characters. */
const VALUE_CHARS = 4000;

/** A request for a page of a list. */
interface PageQuery extends PageRequest {
  readonly prefix?: string;
}

/** Makes the answers and changes. */
// Over 60 lines: a table of short functions.
export function handlersOf(options: HandlerOptions): Handlers {
  const { locks, where, canChange, pollMs, lines, cliOptions, deployedLog, partsOf = () => undefined } = options;
  const { runs, limits } = locks;
  let namespace: Promise<string> | undefined;
  const namespaceHere = (): Promise<string> =>
    (namespace ??= locks.list({ max: 1 }).then(
      (page) => page.namespace,
      (error: unknown) => {
        namespace = undefined; // A failed read is tried again.
        throw error;
      },
    ));
  const ranOut = new RanOut();
  let told = 0;
  const ranOutOf = (held: readonly KeyView[], log: RecentLines, inNamespace: string): Promise<readonly Untold[]> => {
    for (let next = -1; next !== told;) {
      next = told;
      const { lines: added, next: end } = log.since(told, inNamespace);
      ranOut.add(added);
      told = end;
    }
    return ranOut.untold(held, (key) => locks.inspect(key), performance.now());
  };
  const withParts = <T extends { readonly key: string }>(view: T): T & Parts => ({ ...view, parts: partsOf(view.key) });
  const runOfKey = (run: RunInspection): RunOfKey => {
    const { checkpoint, result, error: _error, version: _version, ...shown } = run;
    const { error } = jsonOf(run) as { readonly error?: unknown };
    return { ...withParts(shown), checkpoint: valueText(checkpoint), result: valueText(result), error: valueText(error) };
  };

  /**
   * Reads a list: everything if the service is in this process, or all was asked for; otherwise its first keys, or if the page reads on,
   * more of them, and after them those that begin with the search, which may come far behind.
   */
  const readList = async <T extends { readonly key: string }>(
    page: (pageQuery: PageQuery) => Promise<ItemPage<T>>,
    query: URLSearchParams,
    signal: AbortSignal,
    mostRequests = READ_REQUESTS,
  ): Promise<Pick<ListData<T>, "items" | "read" | "more" | "readsOn" | "requests">> => {
    const isAll = lines !== undefined || query.get("all") !== null;
    const isOn = query.get("on") !== null;
    const keys = isOn ? READ_ON_KEYS : READ_KEYS;
    const requestsMax = isAll ? undefined : isOn ? 2 * mostRequests : mostRequests;
    const first = await firstOf(isAll ? ALL_KEYS : keys, page, { signal, requestsMax });
    const { items, more } = first;
    let { requests } = first;
    const prefix = findIn(query);
    const found = [...items];
    if (more && canBeKey(prefix)) {
      const near = await firstOf(ROWS, (pageQuery) => page({ ...pageQuery, prefix }), { signal, requestsMax: 1 });
      const listedKeys = new Set(items.map(({ key }) => key));
      found.push(...near.items.filter(({ key }) => !listedKeys.has(key)));
      requests += near.requests;
    }
    return { items: found, read: items.length, more, readsOn: more && !isAll && !isOn, requests: lines ? undefined : requests };
  };

  const answers: Record<string, ReadHandler> = {
    async about(): Promise<About> {
      const { version, serverTimeMs, door } = await locks.health();
      return { version, serverTimeMs, where, door: door && hostOf(door), canChange, pollMs, logFromMs: lines?.fromMs, cliOptions };
    },
    async locks(query, reader): Promise<LocksData> {
      let listedIn: string | undefined;
      const page = async (pageQuery: PageQuery) => {
        const listed = await locks.list(pageQuery);
        listedIn = listed.namespace;
        return listed;
      };
      const { items, ...look } = await readList(page, query, reader);
      const order = ORDERS.find((name) => name === query.get("order")) ?? "wait";
      const search = { find: findIn(query), order, onlyWaited: query.get("only") === "waited", rowsMax: rowsIn(query) };
      const found = locksOf(items.map(withParts), search);
      const figures = lines ? { ...found.figures, ranOut: await ranOutOf(items, lines, listedIn ?? "") } : found.figures;
      return { ...found, figures, ...look, namespace: listedIn };
    },
    lock: async (query): Promise<KeyView> => withParts(await locks.inspect(keyIn(query))),
    async runs(query, reader): Promise<ListData<RunOfKey>> {
      const state = (query.get("state") || undefined) as ListedState | undefined;
      const stored = state && storedStateOf(state);
      const { items, ...look } = await readList((pageQuery) => runs.list({ ...pageQuery, state: stored }), query, reader);
      const all = items.filter((run) => state === undefined || listedStateOf(run) === state).map(runOfKey);
      return { ...rowsOf(findIn(query) === "" ? bySchedule(all, hasUsedUp) : all, query), ...look };
    },
    /** A page of the runs in one state reads sixteen times as many records as one of all, so each state has half of the requests. */
    async exhausted(_query, reader): Promise<Exhausted> {
      const inState = (state: RunInspection["state"]) =>
        readList((pageQuery) => runs.list({ ...pageQuery, state }), new URLSearchParams(), reader, READ_REQUESTS / 2);
      const { items, more, requests } = await inState("failed");
      const interrupted = await inState("interrupted");
      const usedUp = items.filter(hasUsedUp);
      const named = await Promise.all(usedUp.slice(0, ERRORS_MAX).map(async ({ key }) => runs.get(key)));
      // One that was reset meanwhile is no longer among them.
      const still = [...named.filter((run) => run !== null), ...usedUp.slice(ERRORS_MAX)].filter(hasUsedUp);
      return {
        items: still.slice(0, ROWS_MAX).map(runOfKey),
        interrupted: interrupted.items.slice(0, ROWS_MAX).map(runOfKey),
        more: more || still.length > ROWS_MAX,
        isPart: more || interrupted.more,
        requests: requests && interrupted.requests && requests + named.length + interrupted.requests,
      };
    },
    async limits(query, reader): Promise<ListData<LimitOfKey>> {
      const taken = await readList((pageQuery) => limits.list(pageQuery), query, reader);
      const held = await readList((pageQuery) => locks.list(pageQuery), query, reader);
      const all = limitsInUse(taken.items, held.items).map(withParts);
      const requests = taken.requests && held.requests && taken.requests + held.requests;
      const readsOn = taken.readsOn || held.readsOn;
      return { ...rowsOf(all, query), read: all.length, more: taken.more || held.more, readsOn, requests };
    },
    async limit(query): Promise<LimitData> {
      const key = keyIn(query);
      const [taken, lock] = await Promise.all([limits.list({ prefix: key, max: 1 }), locks.inspect(key)]);
      const [limit] = limitsInUse(
        taken.items.filter((one) => one.key === key),
        [lock],
      );
      // One at once is a lock, which has no limit.
      const hasLock = lock.limit !== undefined || lock.holders.length + lock.waiters.length > 0;
      return { limit: limit ? withParts(limit) : null, lock: hasLock ? lock : null, requests: lines ? undefined : 2 };
    },
    async run(query): Promise<RunData> {
      const key = keyIn(query);
      const run = await runs.get(key);
      if (run) return { run: runOfKey(run) };
      // A schedule's lock has the name that its occurrences begin with.
      const { items } = await runs.list({ prefix: `${key}_` });
      return { run: null, isSchedule: isScheduleOf(key, items), requests: lines ? undefined : 2 };
    },
    async schedule(query, signal): Promise<ScheduleData> {
      const [untilMs, days] = [Number(query.get("until")) || 0, Math.min(DAYS_MAX, Number(query.get("days")) || 1)];
      const requestsMax = lines || query.get("all") !== null ? undefined : READ_REQUESTS;
      const times = { fromMs: untilMs - days * DAY_MS, untilMs, requestsMax, signal };
      const { items, more, requests } = await latestOccurrences(keyIn(query), times, (page) => runs.list(page));
      return { items: items.map(runOfKey), more, requests: lines ? undefined : requests };
    },
    async lines(query): Promise<Lines> {
      if (!lines) return { lines: [], next: 0, fromMs: 0 };
      return lines.since(Number(query.get("from") ?? 0) || 0, await namespaceHere());
    },
    async history(parameters): Promise<History> {
      const query = historyQuery(keyIn(parameters), (await namespaceHere()) || undefined);
      const sinceMs = Number(parameters.get("since") ?? 0);
      if (!deployedLog) return { query, canRun: false };
      const found = sinceMs > 0 ? await deployedLog.linesOf(keyIn(parameters), query, sinceMs) : undefined;
      return { query, canRun: true, logGroup: deployedLog.logGroup, lines: found };
    },
  };
  return { answers, changes: canChange ? changesOf(locks) : {} };
}

/** The client checks every value of a change, and refuses it by name. */
function changesOf(locks: Operator): Handlers["changes"] {
  return {
    break: ({ key, fencingToken, reason, drainMs }) =>
      locks.forceRelease(key as string, {
        fencingToken: fencingToken as number,
        reason: reason as string,
        drainMs: drainMs as number | undefined,
      }),
    reset: async ({ key, reason, fencingToken }) => {
      await locks.runs.reset(key as string, { reason: reason as string, fencingToken: fencingToken as number });
      return { reset: true };
    },
    "reset-limit": async ({ key, reason }) => {
      await locks.limits.reset(key as string, { reason: reason as string });
      return { reset: true };
    },
  };
}

function keyIn(query: URLSearchParams): string {
  return query.get("key") ?? "";
}

function findIn(query: URLSearchParams): string {
  return (query.get("find") ?? "").trim();
}

/** Returns the first rows of those that fit the search, and how many fit. */
function rowsOf<T extends Parameters<typeof thatFit>[0][number]>(
  all: readonly T[],
  query: URLSearchParams,
): Pick<ListData<T>, "items" | "fits"> {
  const fitting = thatFit(all, findIn(query));
  return { items: fitting.slice(0, rowsIn(query)), fits: fitting.length };
}

function rowsIn(query: URLSearchParams): number {
  return Math.min(ROWS_MAX, Math.max(1, Number(query.get("max") ?? ROWS) || ROWS));
}

/** Returns a stored value as text, cut if it is long. */
function valueText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = JSON.stringify(value, (_name, part: unknown) => (typeof part === "bigint" ? String(part) : part), 2);
  return text.length > VALUE_CHARS ? `${text.slice(0, VALUE_CHARS)}… (${text.length} characters)` : text;
}

/** Returns the host of a URL, or the name of a Region as it is. */
function hostOf(door: string): string {
  return URL.canParse(door) ? new URL(door).host : door;
}
