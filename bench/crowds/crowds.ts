/** `npm run bench -- crowds`: crowds on a table that is served like DynamoDB, in virtual time. The same figures on every machine. */
import type { Plot, Report, Sizes } from "../report/report.js";
import { markdownTable } from "../report/table.js";
import { type FigureName, type Figures, mediansOf } from "./figures.js";
import { type Row, type Target, isMet, OVER_HTTP, ROWS } from "./rows.js";

/** Each figure is the median of a run with each of these. */
const SEEDS = [1, 2, 3] as const;

/** A row as it was played. */
export interface PlayedRow extends Pick<Row, "name" | "targets"> {
  readonly figures: Figures;
  readonly naive?: Figures;
}

/** Plays one row. */
export async function played({ name, targets, scene, naive, isLong }: Row): Promise<PlayedRow> {
  const medians = async (play: Row["scene"]): Promise<Figures> => {
    const runs: Figures[] = [];
    for (const seed of isLong ? SEEDS.slice(0, 1) : SEEDS) runs.push(await play(seed));
    return mediansOf(runs);
  };
  return { name, targets, figures: await medians(scene), ...(naive && { naive: await medians(naive) }) };
}

/** Returns the tables of all rows, or of those whose names contain `only`. */
export async function crowds({ only = "", isQuick }: Pick<Sizes, "only" | "isQuick">): Promise<Report> {
  const rows: PlayedRow[] = [];
  for (const row of ROWS.filter((one) => one.name.includes(only) && (!isQuick || one.isQuick))) rows.push(await played(row));
  return {
    tables: [overview(rows), figuresTable(rows), targetsTable(rows.flatMap(targetsOf))],
    notes: NOTES,
    plots: [curves(rows)],
    figures: rows,
  };
}

/** The table of docs/performance.md: each scene straight on the table, the naive loop beside it, and the targets that it misses. */
function overview(played: readonly PlayedRow[]): string {
  const cell = (figures: Figures | undefined, figure: FigureName): string =>
    figures?.[figure] === undefined ? "" : textOf(figure, figures[figure]);
  const rows = played
    .filter(({ name }) => !name.endsWith(OVER_HTTP))
    .map((row) => {
      const { name, figures, naive } = row;
      const missed = targetsOf(row).filter((target) => !target.isMet);
      return [
        name,
        ...(["times", "requests", "units"] as const).map((figure) => cell(figures, figure)),
        ...(["times", "requests", "units"] as const).map((figure) => cell(naive, figure)),
        missed
          .map(({ title, figure, at, limit, reached }) => `${title} ${textOf(figure, reached)} (at ${at} ${textOf(figure, limit)})`)
          .join(", "),
      ];
    });
  return markdownTable([["scene", "×", "requests", "units", "naive ×", "naive requests", "naive units", "missed"], ...rows]);
}

/** The time of a crowd of a mutex against the ideal one, by the number of its callers. */
function curves(played: readonly PlayedRow[]): Plot {
  const points = played.flatMap(({ name, figures, naive }) => {
    const [, callers] = /^mutex, (\d+) callers?(?: × \d+)?, holds of 20 ms/.exec(name) ?? [];
    const point = (series: string, { times }: Figures) =>
      callers && times ? [{ group: series, series, x: Number(callers), y: times }] : [];
    return [...point(name.endsWith(OVER_HTTP) ? "holdfast, over HTTP" : "holdfast", figures), ...(naive ? point("naive", naive) : [])];
  });
  const value = "time of all grants, against as many holds with 12 ms between two";
  return { name: "crowds", title: "A crowd on one key", kind: "lines", value, across: "callers", points };
}

const NOTES = [
  "Virtual time; a write or a read takes 4 to 8 ms, one in a hundred 100 to 200 ms more; an item takes 1,000 write units and 3,000 read units a second by its size. Where callers come again, it begins with none saved up.",
  "Requests, writes and units are for each grant, call or renewal. ×: the time of all grants, against that of as many holds, each with 12 ms between two holders.",
  "naive: a conditional write of one attribute on the bare SDK, again each 50 ms. It has no order, no lease and no fencing token.",
];

/** A target of a row, and the figure that was reached. */
export interface Reached extends Target {
  readonly name: string;
  /** The figure's name in the tables. */
  readonly title: string;
  readonly reached: number;
  readonly isMet: boolean;
}

/** Returns the targets of a row that was played. */
export function targetsOf({ name, targets, figures }: PlayedRow): readonly Reached[] {
  return targets.map((target) => ({
    ...target,
    name,
    title: TITLES[target.figure],
    reached: figures[target.figure] ?? Number.NaN,
    isMet: isMet(target, figures),
  }));
}

/** The table of targets in markdown. */
export function targetsTable(targets: readonly Reached[]): string {
  const rows = targets.map(({ name, title, figure, at, limit, reached, isMet: met }) => [
    ...[name, title, `at ${at} ${textOf(figure, limit)}`, textOf(figure, reached), met ? "met" : "**missed**"],
  ]);
  return markdownTable([["scene", "figure", "target", "reached", ""], ...rows]);
}

const COLUMNS = ["times", "requests", "writes", "units", "throttled", "failed"] as const satisfies readonly FigureName[];
const TITLES: Readonly<Record<FigureName, string>> = {
  grants: "grants",
  writes: "writes",
  requests: "requests",
  units: "units",
  throttled: "throttled",
  failed: "failed",
  times: "×",
  idleMs: "idle",
  used: "permits in use",
  perSecond: "a second",
  overtaken: "overtaken",
  p50Ms: "p50",
  p99Ms: "p99",
  lastMs: "last",
  leftDead: "left dead",
  nextMs: "next caller",
  lost: "lost",
  runs: "runs",
};
const SHARES: readonly FigureName[] = ["used", "overtaken"];

function figuresTable(played: readonly PlayedRow[]): string {
  const rows = played.flatMap(({ name, figures, naive }) => [lineOf(name, figures), ...(naive ? [lineOf("— naive", naive)] : [])]);
  return markdownTable([["scene", "grants", ...COLUMNS.map((figure) => TITLES[figure]), "besides"], ...rows]);
}

function lineOf(name: string, figures: Figures): readonly string[] {
  const others = Object.entries(figures).filter(([figure]) => figure !== "grants" && !COLUMNS.some((column) => column === figure));
  const besides = others.map(([figure, value]) => `${TITLES[figure as FigureName]} ${textOf(figure as FigureName, value as number)}`);
  const columns = COLUMNS.map((figure) => (figures[figure] === undefined ? "" : textOf(figure, figures[figure])));
  return [name, textOf("grants", figures.grants), ...columns, besides.join(", ")];
}

function textOf(figure: FigureName, value: number): string {
  if (SHARES.includes(figure)) return `${Math.round(100 * value)} %`;
  if (figure.endsWith("Ms")) return value >= 10_000 ? `${(value / 1000).toFixed(1)} s` : `${Math.round(value)} ms`;
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 2 : value < 100 ? 1 : 0 });
}
