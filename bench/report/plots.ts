/**
 * Plots as SVG files. The text takes the reader's colour scheme and the background is transparent, so that a plot can
 * be read on a light and on a dark page.
 */
import type { Plot } from "./report.js";

const WIDTH = 860;
const BAR = { height: 19, gap: 10, left: 270, right: 120 } as const;
const LINES = { height: 360, left: 50, right: 30, top: 40, bottom: 45, steps: 5 } as const;
/** Colours of middling lightness, which stand out on white and on black. */
const COLOURS = ["#3d8bd3", "#e07b39", "#3fa66b", "#b565c9"] as const;
const STYLE = "svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}";

/** Returns the SVG of a plot. */
export function svgOf(plot: Plot): string {
  const { height, marks } = plot.kind === "bars" ? bars(plot) : lines(plot);
  const about = `xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${escaped(plot.title)}" viewBox="0 0 ${WIDTH} ${height}"`;
  const look = `width="${WIDTH}" font-family="system-ui, sans-serif" font-size="11" fill="currentColor"`;
  return `<svg ${about} ${look}>\n<style>${STYLE}</style>\n${marks.join("\n")}\n</svg>\n`;
}

interface Drawing {
  readonly height: number;
  readonly marks: readonly string[];
}

/** A row of bars for each group, with their values. */
function bars({ points, value }: Plot): Drawing {
  const series = distinct(points.map((point) => point.series));
  const groups = distinct(points.map((point) => point.group));
  const groupHeight = series.length * BAR.height + BAR.gap;
  const scale = (WIDTH - BAR.left - BAR.right) / Math.max(...points.map(({ y }) => y));
  const height = groups.length * groupHeight + 2 * BAR.gap;
  const names = groups.map((group, row) => text(BAR.left - 8, row * groupHeight + (groupHeight - BAR.gap) / 2 + 4, plain(group), "end"));
  const marks = points.flatMap((point) => {
    const at = series.indexOf(point.series);
    const top = groups.indexOf(point.group) * groupHeight + at * BAR.height;
    const width = rounded(point.y * scale);
    const label = series.length > 1 ? `${point.y.toPrecision(2)} (${point.series})` : point.y.toPrecision(2);
    return [
      `<rect x="${BAR.left}" y="${top}" width="${width}" height="${BAR.height - 1}" fill="${COLOURS[at]}"/>`,
      text(BAR.left + width + 5, top + BAR.height - 6, label, "start"),
    ];
  });
  return { height, marks: [...names, ...marks, text(BAR.left, height - 4, value, "start")] };
}

/** A line for each series, over a logarithmic axis. */
function lines({ points, value, across = "" }: Plot): Drawing {
  const decades = Math.max(1, Math.ceil(Math.log10(Math.max(...points.map(({ x = 1 }) => x)))));
  const most = Math.max(...points.map(({ y }) => y));
  const step = niceStep(most / LINES.steps);
  const steps = Math.ceil(most / step);
  const bottom = LINES.height - LINES.bottom;
  const xOf = (x: number): number => rounded(LINES.left + ((WIDTH - LINES.left - LINES.right) * Math.log10(x)) / decades);
  const yOf = (y: number): number => rounded(bottom - ((bottom - LINES.top) * y) / (step * steps));
  const grid = Array.from({ length: steps + 1 }, (_, at) => at * step).flatMap((y) => [
    `<path d="M${LINES.left} ${yOf(y)}H${WIDTH - LINES.right}" stroke="currentColor" stroke-opacity="0.15"/>`,
    text(LINES.left - 8, yOf(y) + 4, String(rounded(y)), "end"),
  ]);
  const ticks = Array.from({ length: decades + 1 }, (_, decade) => 10 ** decade).map((x) =>
    text(xOf(x), bottom + 18, x.toLocaleString("en"), "middle"),
  );
  const drawn = distinct(points.map((point) => point.series)).flatMap((series, at) => {
    const own = points.filter((point) => point.series === series).map(({ x = 1, y }) => [xOf(x), yOf(y)] as const);
    const [lastX, lastY] = own.at(-1)!;
    const colour = COLOURS[at % COLOURS.length]!;
    return [
      `<path d="M${own.map((point) => point.join(" ")).join("L")}" fill="none" stroke="${colour}" stroke-width="2"/>`,
      ...own.map(([x, y]) => `<circle cx="${x}" cy="${y}" r="3" fill="${colour}"/>`),
      lastX < WIDTH / 2 ? text(lastX + 8, lastY + 4, series, "start", colour) : text(lastX, lastY + 16, series, "end", colour),
    ];
  });
  const labels = [text(LINES.left, 14, value, "start"), text(WIDTH - LINES.right, LINES.height - 6, across, "end")];
  return { height: LINES.height, marks: [...grid, ...ticks, ...drawn, ...labels] };
}

/** The smallest of 1, 2, 5, 10, 20, 50 and so on that isn't below `least`. */
function niceStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= least)!;
}

function text(x: number, y: number, content: string, anchor: "start" | "middle" | "end", colour = "currentColor"): string {
  return `<text x="${rounded(x)}" y="${rounded(y)}" text-anchor="${anchor}" fill="${colour}">${escaped(content)}</text>`;
}

function distinct(names: readonly string[]): readonly string[] {
  return [...new Set(names)];
}

/** Without the marks of markdown. */
function plain(title: string): string {
  return title.replaceAll(/\*\*|`/g, "");
}

function escaped(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

function rounded(figure: number): number {
  return Math.round(figure * 10) / 10;
}
