/**
 * Plots as SVG files, drawn by Observable Plot on a DOM in memory. The text takes the reader's colour scheme and the
 * background is transparent, so that a plot can be read on a light and on a dark page.
 */
import { barX, gridX, gridY, lineY, dot, plot, ruleX, text } from "@observablehq/plot";
import { parseHTML } from "linkedom";
import type { Plot } from "./report.js";

const WIDTH_PX = 860;
const BAR_PX = 19;
/** Colours of middling lightness, which stand out on white and on black. */
const COLOURS = ["#3d8bd3", "#e07b39", "#3fa66b", "#b565c9"];
const STYLE = "svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}";

/** Returns the SVG of a plot. */
export function svgOf(data: Plot): string {
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  // `title` would wrap the SVG in a figure, so the title is a text of its own.
  const drawn = data.kind === "bars" ? bars(data, document) : lines(data, document);
  drawn.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  drawn.setAttribute("role", "img");
  drawn.setAttribute("aria-label", data.title);
  const own = document.createElement("style");
  own.textContent = STYLE;
  drawn.prepend(own);
  return `${drawn.outerHTML.replaceAll(/var\(--plot-background\)/g, "none")}\n`;
}

function plain(title: string): string {
  return title.replaceAll(/\*\*|`/g, "");
}

function bars({ points, value }: Plot, document: Document): Element {
  const series = [...new Set(points.map((point) => point.series))];
  const rows = points.map((point) => ({ ...point, group: plain(point.group), label: point.y.toPrecision(2) }));
  const groups = [...new Set(rows.map(({ group }) => group))];
  return plot({
    document,
    className: "plot",
    width: WIDTH_PX,
    height: 60 + groups.length * (series.length * BAR_PX + 8),
    marginLeft: 270,
    marginRight: 110,
    x: { label: value },
    y: { axis: null, domain: series },
    fy: { label: null, domain: groups, padding: 0.15 },
    color: { domain: series, range: COLOURS },
    facet: { data: rows, y: "group", marginLeft: 270 },
    marks: [
      gridX({ stroke: "currentColor", strokeOpacity: 0.15 }),
      barX(rows, { x: "y", y: "series", fill: "series" }),
      text(rows, {
        x: "y",
        y: "series",
        text: (row: (typeof rows)[number]) => (series.length > 1 ? `${row.label} (${row.series})` : row.label),
        textAnchor: "start",
        dx: 4,
      }),
      ruleX([0], { stroke: "currentColor" }),
    ],
  });
}

function lines({ points, value, across }: Plot, document: Document): Element {
  const series = [...new Set(points.map((point) => point.series))];
  const lastOf = points.filter((point, at) => points[at + 1]?.series !== point.series);
  return plot({
    document,
    className: "plot",
    width: WIDTH_PX,
    height: 360,
    marginLeft: 50,
    marginRight: 30,
    marginTop: 30,
    x: { type: "log", label: across ?? null, tickFormat: (x: number) => (Number.isInteger(Math.log10(x)) ? x.toLocaleString("en") : "") },
    y: { label: value, zero: true, nice: true },
    color: { domain: series, range: COLOURS },
    marks: [
      gridY({ stroke: "currentColor", strokeOpacity: 0.15 }),
      lineY(points, { x: "x", y: "y", stroke: "series", strokeWidth: 2 }),
      dot(points, { x: "x", y: "y", fill: "series", r: 3 }),
      text(lastOf, { x: "x", y: "y", text: "series", textAnchor: "end", dy: -10, fill: "series" }),
    ],
  });
}
