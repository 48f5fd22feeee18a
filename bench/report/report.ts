/**
 * The result of a benchmark, as data: tables of text, remarks, and points for plots. It can be stored as JSON and shown
 * later. Nothing here measures.
 */
import { readFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { join } from "node:path";

/** The sizes of a run. Its figures are for the page, or only a trial in seconds of the same code. */
export interface Sizes {
  readonly isQuick: boolean;
  /** The time of `performance.now()` after which nothing is repeated. */
  readonly untilMs: number;
  /** A text: only the rows of `crowds` whose names contain it are played. @default all */
  readonly only?: string;
}

/** Runs a round up to `most` times and returns how often. No round but the first begins after `untilMs`. */
export async function rounds({ untilMs }: Sizes, most: number, round: (index: number) => Promise<void>): Promise<number> {
  for (let done = 1; ; done++) {
    await round(done - 1);
    if (done === most || performance.now() > untilMs) return done;
  }
}

/** A benchmark. */
export type Bench = (sizes: Sizes) => Promise<Report>;

/** A plot: a row of bars for each group, or a line for each series. */
export interface Plot {
  /** The file's name without its ending. */
  readonly name: string;
  readonly title: string;
  readonly kind: "bars" | "lines";
  /** The label of the values. */
  readonly value: string;
  /** The label of the horizontal axis of lines, which is logarithmic. */
  readonly across?: string;
  readonly points: readonly { readonly group: string; readonly series: string; readonly x?: number; readonly y: number }[];
}

/** The result of a benchmark. */
export interface Report {
  /** Tables in markdown. */
  readonly tables: readonly string[];
  /** Remarks in one line each: the conditions, and the contestants that are missing. */
  readonly notes?: readonly string[];
  readonly plots?: readonly Plot[];
  /** The figures of the tables as measured, round by round. */
  readonly figures?: unknown;
}

/** The results of a run, as they are stored. */
export interface Run {
  readonly machine: string;
  /** The processes that wanted to run, on average over the minute before. An idle machine has almost none. */
  readonly loadBefore: number;
  readonly date: string;
  readonly isQuick: boolean;
  readonly tookSec: number;
  readonly reports: Readonly<Record<string, Report>>;
}

/** The report as markdown. */
export function markdownOf({ tables, notes = [] }: Report): string {
  return [...tables, ...(notes.length > 0 ? [notes.map((note) => `- ${note}`).join("\n")] : [])].join("\n\n");
}

/** The machine and the versions: `2 cores, AMD EPYC, Node 20.20.2, AWS SDK 3.1162.0`. */
export function machine(): string {
  const model = (cpus()[0]?.model ?? "").replaceAll(/\((?:R|TM)\)|\s+Processor.*$/g, "").trim();
  const parts = [
    `${availableParallelism()} cores`,
    model,
    `Node ${process.versions.node}`,
    `AWS SDK ${versionOf("@aws-sdk/client-dynamodb")}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}

/** The exact version of a package that this repository measures or measures with. */
export function versionOf(name: string): string {
  const listed = (file: string): Listed => JSON.parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Listed;
  const version = listed("../../package.json").devDependencies?.[name] ?? listed("../peers/package.json").dependencies?.[name];
  if (version === undefined) throw new Error(`no package.json names ${name}`);
  return version;
}

interface Listed {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}
