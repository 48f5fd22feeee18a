/**
 * The lines of the service's log about one key, from where the log is kept: CloudWatch Logs, the memory of a service on this machine, or a
 * file that somebody exported.
 */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import type { LogLine } from "../../lib/dynamodb.js";
import type { Line, Lines } from "../../console/data.js";
import { historyQuery, linesOfRows, QUERY_LINES, timeOfRow } from "../../console/insights-query.js";
import { RecentLines } from "../../console/recent-lines.js";
import { CONSOLE_PATH } from "../../console/server.js";
import { CliError } from "../cli-error.js";
import { type InsightsOptions, keptFrom, runQuery } from "../insights.js";

/** The lines about a key in a time. */
export interface KeyLog {
  /** The earliest first. */
  readonly lines: readonly Line[];
  /** The time from which no line is missing, in epoch ms. Absent: it isn't known. */
  readonly fromMs?: number | undefined;
  /** Sentences that a person should know of the log. */
  readonly notes: readonly string[];
}

/** A time, in epoch ms. */
export interface LogSpan {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The advice for who gave no log. */
const WHERE_LOGS_ARE =
  "Pass --log-group or set HOLDFAST_LOG_GROUP (the stack's output LogGroupName), pass --log FILE, or --url of a `holdfast dev`, which keeps its own.";
/** The longest time for a request to a local service, in ms. */
const REQUEST_MS = 10_000;

/** Returns the error for a log that is not known. */
export function noLog(message: string): CliError {
  return new CliError("config", message, { next: WHERE_LOGS_ARE });
}

/** Reads the log of a deployed service, by one query. @throws CliError with CloudWatch's own words if it refuses */
export async function deployedLines(
  key: string,
  { fromMs, toMs }: LogSpan,
  namespace: string | undefined,
  log: InsightsOptions,
): Promise<KeyLog> {
  const rows = await runQuery(historyQuery(key, namespace, QUERY_LINES), { fromMs, toMs }, log).catch((error: unknown) => {
    throw new CliError("unavailable", `the log group ${log.logGroup} can't be read: ${wordsOf(error)}`, { next: RIGHTS });
  });
  const nowMs = Date.now();
  const notes = toMs > nowMs - LATE_MS ? [LATE] : [];
  const begunMs = await keptFrom(log, nowMs).catch((error: unknown) => {
    notes.unshift(`it is not known from when on the log is kept: ${wordsOf(error)}`);
    return undefined;
  });
  const isCut = rows.length >= QUERY_LINES;
  if (isCut)
    notes.unshift(`the query returned its largest number of lines, ${QUERY_LINES}: ask for a shorter time, and for an earlier one by --at`);
  const [earliest] = isCut ? rows.slice(-1) : [];
  return { lines: linesOfRows(rows, key), fromMs: earliest ? timeOfRow(earliest) : begunMs, notes };
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The advice for who may not read the log, or named another. */
const RIGHTS = "It needs logs:StartQuery on the log group, and logs:GetQueryResults. The stack's output LogGroupName is its name.";
/** The time after which no line is missing any more, in ms. */
const LATE_MS = 600_000;
const LATE = "CloudWatch has a line only some minutes after it was written, so the latest may be missing";

/** Reads the log of a service on this machine, which its console has, up to the end of the time: more may be written meanwhile. @throws CliError if there is none at that URL */
export async function localLines(key: string, { toMs }: LogSpan, url: string): Promise<KeyLog> {
  const lines: Line[] = [];
  for (let from = 0; ;) {
    const answer = await linesAt(url, from);
    if (!answer) throw noLog(`${url} keeps no log that a command can read`);
    lines.push(...answer.lines.filter((line) => line.key === key));
    const latestMs = answer.lines.at(-1)?.atMs ?? 0;
    if (answer.next === from || latestMs > toMs) return { lines, fromMs: answer.fromMs, notes: [] };
    from = answer.next;
  }
}

/** Returns the lines after a position; undefined if what answers is no console that has a log. */
async function linesAt(url: string, from: number): Promise<Lines | undefined> {
  try {
    const path = `${url.replace(/\/$/, "")}${CONSOLE_PATH}/api/lines?from=${from}`;
    const response = await fetch(path, { redirect: "error", signal: AbortSignal.timeout(REQUEST_MS) });
    const answer = (await response.json()) as Partial<Lines>;
    return response.ok && Array.isArray(answer.lines) ? (answer as Lines) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Reads an exported log: a line is JSON, with `operateAtMs` or behind its time, as `aws logs tail` prints it. Any other line is left out.
 * @throws CliError if the file can't be read or has no such line
 */
export async function exportedLines(key: string, path: string, namespace = "default"): Promise<KeyLog> {
  const found: LogLine[] = [];
  let fromMs = Infinity;
  const input = path === "-" ? process.stdin : createReadStream(path);
  try {
    for await (const text of createInterface({ input, crlfDelay: Infinity })) {
      const line = lineOf(text);
      if (!line) continue;
      fromMs = Math.min(fromMs, line.operateAtMs);
      if (key.endsWith(line.id)) found.push(line); // Keeps few of a large file. The whole key is compared below.
    }
  } catch (error) {
    throw new CliError("config", `--log: ${(error as Error).message}`);
  }
  if (fromMs === Infinity)
    throw new CliError("config", `--log ${path}: has no line of the service's log`, {
      next: "Each is a line of JSON with operateAtMs, or behind its time, as `aws logs tail` prints it.",
    });
  const recent = new RecentLines(fromMs, Infinity);
  for (const line of found.sort((a, b) => a.operateAtMs - b.operateAtMs)) recent.add(line);
  const lines: Line[] = [];
  for (let from = -1, next = 0; from !== next;) {
    from = next;
    const page = recent.since(from, namespace);
    lines.push(...page.lines.filter((line) => line.key === key));
    next = page.next;
  }
  return { lines, fromMs, notes: [] };
}

function lineOf(text: string): LogLine | undefined {
  const at = text.indexOf("{");
  if (at < 0) return undefined;
  try {
    const line = JSON.parse(text.slice(at)) as Partial<LogLine>;
    const { operateAtMs = timeOf(text.slice(0, at)) } = line;
    if (typeof line.event !== "string" || typeof line.id !== "string" || Number.isNaN(operateAtMs)) return undefined;
    // A line leaves out the values that most lines have.
    return { namespace: "default", kind: "lock", model: "", ...line, operateAtMs } as LogLine;
  } catch {
    return undefined;
  }
}

/** Returns the time at the beginning of a text; in UTC if it says no zone. */
function timeOf(text: string): number {
  const [time = ""] = text.split(/\s/, 1);
  return Date.parse(/(?:Z|[+-]\d\d:?\d\d)$/.test(time) ? time : `${time}Z`);
}
