/** The query of CloudWatch Logs Insights for one key's history, and its rows as lines. Pure. */
import { deedOf } from "./activity.js";
import type { Line } from "./data.js";

/** The largest number of lines that the console's query returns: as many as a person reads. */
export const HISTORY_LINES = 1000;
/** The largest number of lines that a query may return. */
export const QUERY_LINES = 10_000;

const NUMBERS = ["fencingToken", "waitedMs", "heldMs", "lapsedMs", "attempt", "position"] as const;
const TEXTS = ["owner", "lease", "reason", "by", "mode", "condition", "outcome", "errorName"] as const;

/** Returns the query for the latest lines of a key, as a lock and as a run. The log leaves out the namespace `default`. */
export function historyQuery(key: string, namespace = "default", most = HISTORY_LINES): string {
  const { model, id } = partsOf(key);
  return [
    `fields @timestamp, event, kind, model, ${[...TEXTS, ...NUMBERS].join(", ")}, repeated`,
    `| filter ${model === "" ? "" : `model = ${quoted(model)} and `}id = ${quoted(id)}`,
    namespace === "default" ? "| filter not ispresent(namespace)" : `| filter namespace = ${quoted(namespace)}`,
    "| sort @timestamp desc",
    `| limit ${most}`,
  ].join("\n");
}

/** Splits a key as the log does. */
function partsOf(key: string): { readonly model: string; readonly id: string } {
  const at = key.indexOf("_");
  return { model: key.slice(0, Math.max(0, at)), id: key.slice(at + 1) };
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, String.raw`\$&`)}"`;
}

/** A row of an answer: its fields by name. */
export type Row = Readonly<Record<string, string | undefined>>;

/** Returns the time of a row, in epoch ms; NaN if it has none. */
export function timeOfRow({ "@timestamp": at = "" }: Row): number {
  return Date.parse(`${at.replace(" ", "T")}Z`);
}

/** Returns the rows, the latest first, as lines, the earliest first. The only principals among them are those of operators. */
export function linesOfRows(rows: readonly Row[], key: string): readonly Line[] {
  const { model } = partsOf(key);
  return rows.toReversed().flatMap((row, seq): readonly Line[] => {
    const { event, kind = "lock", repeated } = row;
    const atMs = timeOfRow(row);
    if (event === undefined || Number.isNaN(atMs) || (row["model"] ?? "") !== model) return [];
    const texts = TEXTS.flatMap((name) => (row[name] === undefined ? [] : [[name, row[name]]]));
    const numbers = NUMBERS.flatMap((name) => (row[name] === undefined ? [] : [[name, Number(row[name])]]));
    const { by, ...more } = Object.fromEntries([...texts, ...numbers]) as Partial<Line>;
    const isRepeated = repeated === "1" || repeated === "true";
    const line: Line = {
      ...more,
      seq,
      key,
      atMs,
      event: event as Line["event"],
      kind: kind as Line["kind"],
      ...(isRepeated && { repeated: true }),
    };
    return [by !== undefined && deedOf(line) ? { ...line, by } : line];
  });
}
