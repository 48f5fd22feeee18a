/**
 * Screens of a terminal as an SVG that moves within an `<img>`, where no script runs: a row is a strip of its texts, one below the other,
 * and CSS shows one at a time. A reader who wants no motion sees the last screen. The signs of the tour are drawn, not set, since fonts differ.
 */
import type { Run, Screen } from "./recording.js";

/** The width of a character and the height of a row, in px. */
const CHAR_PX = 8.4;
const ROW_PX = 19;
/** The size of the letters, in px. */
export const FONT_PX = 14;
const PADDING_PX = 18;
/** The height of the bar above the screen, with the command. */
const BAR_PX = 38;

const BACK = "#0d1117";
const BAR = "#161b22";
const TEXT = "#e6edf3";
const MUTED = "#9198a1";
/** The colours of a terminal, as they can be told from the dark background. */
const PALETTE = [MUTED, "#ff7b72", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", TEXT];

/** Fonts whose letters are equally wide. */
export const MONOSPACE = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace";

export interface Film {
  /** Described for readers who can't see it. */
  readonly title: string;
  /** The command that was filmed. */
  readonly command: string;
  /** The width of the screen, in characters. */
  readonly columns: number;
  /** From time 0 on. */
  readonly screens: readonly Screen[];
  readonly lengthMs: number;
  /** The speed, against the real one: 1 is as fast. */
  readonly speed: number;
}

/** A text of a row, from `atMs` on. */
interface Strip {
  readonly atMs: number;
  readonly drawn: string;
}

/** Returns the SVG. */
export function filmOf({ title, command, columns, screens, lengthMs, speed }: Film): string {
  const width = Math.ceil(columns * CHAR_PX + 2 * PADDING_PX);
  const rows = (screens[0]?.rows ?? []).map((_, row) => stripsOf(screens, row)).filter(isUsed);
  const height = BAR_PX + rows.length * ROW_PX + 2 * PADDING_PX - 8;
  const moving = rows.flatMap((strips, row) => (strips.length > 1 ? [{ strips, row }] : []));
  const css = [
    `text{font:${FONT_PX}px ${MONOSPACE};fill:${TEXT};white-space:pre}`,
    ...PALETTE.map((colour, at) => `.c${at}{fill:${colour};stroke:${colour}}text.c${at}{stroke:none}`),
    `.b{font-weight:700}.d{fill:${MUTED}}.h{fill:none;stroke-width:2;stroke-dasharray:2 2.2}.w{stroke-width:2.4;stroke-dasharray:2.4 6}.x{stroke-width:2.4}`,
    ...moving.map(({ strips, row }) => `.r${row}{transform:translateY(${-(strips.length - 1) * ROW_PX}px)}`),
    "@media(prefers-reduced-motion:no-preference){",
    ...moving.map(
      ({ strips, row }) => `.r${row}{animation:r${row} ${Math.round(lengthMs)}ms step-end infinite}${keyframes(row, strips, lengthMs)}`,
    ),
    "}",
  ];
  const lines = rows.map((strips, row) => {
    const texts = strips.map(({ drawn }, at) =>
      drawn === "" ? "" : at === 0 ? drawn : `<g transform="translate(0 ${at * ROW_PX})">${drawn}</g>`,
    );
    return `<svg x="${PADDING_PX}" y="${BAR_PX + PADDING_PX - 4 + row * ROW_PX}" width="${width - PADDING_PX}" height="${ROW_PX}"><g class="r${row}">${texts.join("")}</g></svg>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}"><title>${escaped(title)}</title><style>${css.join("")}</style><rect x=".5" y=".5" width="${width - 1}" height="${height - 1}" rx="9" fill="${BACK}" stroke="#30363d"/><path d="M1 ${BAR_PX}V10a9 9 0 0 1 9-9H${width - 10}a9 9 0 0 1 9 9V${BAR_PX}Z" fill="${BAR}"/>${bar(command, speed)}${lines.join("\n")}</svg>\n`;
}

/** The texts of a row over time, without repetitions. */
function stripsOf(screens: readonly Screen[], row: number): readonly Strip[] {
  const strips: Strip[] = [];
  for (const { atMs, rows } of screens) {
    const drawn = (rows[row] ?? []).map(runOf).join("");
    if (strips.at(-1)?.drawn !== drawn) strips.push({ atMs, drawn });
  }
  return strips;
}

/** Rows that are always empty are left out. */
function isUsed(strips: readonly Strip[]): boolean {
  return strips.some(({ drawn }) => drawn !== "");
}

function keyframes(row: number, strips: readonly Strip[], lengthMs: number): string {
  const steps = strips.map(({ atMs }, at) => `${short((100 * atMs) / lengthMs)}%{transform:translateY(${-at * ROW_PX}px)}`);
  return `@keyframes r${row}{${steps.join("")}}`;
}

/** The signs of a lane, which are drawn. */
const SIGNS = /█+|░+|·{2,}|✕/g;

function runOf({ text, column, colour, isBold, isDim }: Run): string {
  const classes = [...(colour === undefined ? [] : [`c${colour}`]), ...(isBold ? ["b"] : []), ...(isDim ? ["d"] : [])];
  const named = classes.length > 0 ? ` class="${classes.join(" ")}"` : "";
  const signs = [...text.matchAll(SIGNS)].map(([sign], at) => ({ sign, at }));
  const places = [...text.matchAll(SIGNS)].map(({ index }) => index);
  const drawn = signs.map(({ sign }, at) => signOf(sign, (column + (places[at] ?? 0)) * CHAR_PX, colour));
  const words = [...text.replaceAll(SIGNS, (sign) => " ".repeat(sign.length)).matchAll(/\S+(?: \S+)*/g)].map(
    ({ 0: word, index }) =>
      `<text x="${short((column + index) * CHAR_PX)}" y="14" textLength="${short(word.length * CHAR_PX)}"${named}>${escaped(word)}</text>`,
  );
  return [...drawn, ...words].join("");
}

/** Draws the sign from `x` on, in the middle of a row. */
function signOf(sign: string, x: number, colour: number | undefined): string {
  const px = sign.length * CHAR_PX;
  const tone = `c${colour ?? 7}`;
  if (sign.startsWith("█")) return `<rect x="${short(x)}" y="3" width="${short(px)}" height="13" class="${tone}" stroke-width="0"/>`;
  if (sign.startsWith("░")) return `<rect x="${short(x + 1)}" y="4" width="${short(px - 2)}" height="11" class="${tone} h"/>`;
  if (sign.startsWith("·")) return `<path d="M${short(x + 3)} 9.5h${short(px - 3)}" class="${tone} w"/>`;
  return `<path d="M${short(x + 1)} 5l7 9m0-9l-7 9" class="${tone} x"/>`;
}

/** The bar: the command, and its speed. What the signs mean is on the screen. */
function bar(command: string, speed: number): string {
  const shown = speed > 1.05 ? `<tspan class="d" dx="14">${speed.toFixed(1)}× speed</tspan>` : "";
  const typed = `<text x="${PADDING_PX}" y="14"><tspan class="c2" stroke="none">$</tspan> ${escaped(command)}${shown}</text>`;
  return `<g transform="translate(0 ${(BAR_PX - ROW_PX) / 2})">${typed}</g>`;
}

function short(number: number): string {
  return String(Number(number.toFixed(2)));
}

/** Returns a text as it stands in an SVG. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
