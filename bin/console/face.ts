/**
 * The data of the console, read and changed through a lock client: over HTTP with the caller's own credentials, or on a table. It has the
 * calls of an operator only: no lease is acquired, renewed or released here, and no answer has a leaseId, a principal or a lease's meta.
 */
import type { LockClient, RunInspection, Runs } from "../../lib/index.js";
import type { Reading } from "../inspect/pages.js";
import { firstOf } from "../inspect/pages.js";
import { jsonOf } from "../inspect/run-text.js";
import type { About, History, KeyView, Line, Lines, Listed, RunOfKey } from "./data.js";
import { historyQuery } from "./insights-query.js";
import type { RecentLines } from "./recent-lines.js";

/** The calls of an operator, which are all that a console needs of a client. */
export type Operator = Pick<LockClient, "health" | "list" | "inspect" | "forceRelease"> & {
  readonly runs: Pick<Runs, "get" | "list" | "reset">;
};

/** The parts of a console. */
export interface FaceOptions {
  readonly locks: Operator;
  /** The address of the service, or the name of the table. */
  readonly where: string;
  readonly canChange: boolean;
  readonly pollMs: number;
  /** The log. @default none */
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
/** The largest number of requests of one look: idle keys are read too, a page at a time. */
export const LOOK_REQUESTS = 10;
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
    locks: (given, reader) => listLocks(locks, given, withParts, reader),
    lock: async (given): Promise<KeyView> => withParts(await locks.inspect(given.get("key") ?? "")),
    runs: (given, reader) => listRuns(locks, given, withParts, reader),
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

async function listLocks(locks: Operator, given: URLSearchParams, withParts: WithParts, reader: AbortSignal): Promise<Listed<KeyView>> {
  const [prefix, owner] = [given.get("prefix") ?? "", given.get("owner") ?? ""];
  let namespace: string | undefined;
  const page = async (asked: { readonly max: number }) => {
    const listed = await locks.list({ prefix, ...(owner !== "" && { owner }), ...asked });
    ({ namespace } = listed);
    return listed;
  };
  const { items, ...listing } = await firstOf(rowsOf(given), page, readingOf(given, reader));
  return { items: items.map(withParts), ...listing, ...(namespace !== undefined && { namespace }) };
}

async function listRuns(locks: Operator, given: URLSearchParams, withParts: WithParts, reader: AbortSignal): Promise<Listed<RunOfKey>> {
  const [prefix, state] = [given.get("prefix") ?? "", given.get("state") ?? ""];
  const query = { prefix, ...(state !== "" && { state: state as RunInspection["state"] }) };
  const { items, ...listing } = await firstOf(rowsOf(given), (page) => locks.runs.list({ ...query, ...page }), readingOf(given, reader));
  return { items: items.map((run) => runOfKey(run, withParts)), ...listing };
}

function readingOf(given: URLSearchParams, signal: AbortSignal): Reading {
  return { requestsMax: LOOK_REQUESTS, from: given.get("from") ?? undefined, signal };
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
