/**
 * The picture of an item, as an SVG: a row for each attribute, and a panel around the parts of each lease. It is narrow, so that it is readable on a
 * phone, and has the light or the dark look of its reader.
 */
import { wrapped } from "../../../examples/flash-sale/sentence.js";
import type { Row } from "../held-item.js";
import { MONOSPACE, escaped } from "./film.js";

const WIDTH_PX = 392;
/** Where the names, the values and the meanings begin. A name within a part begins further to the right. */
const COLUMNS_PX = { name: 16, value: 70, meaning: 205 } as const;
const INDENT_PX = 11;
const PADDING_PX = 14;
/** The height of a line, and the space around the lines of a row, in px. */
const LINE_PX = 15;
const GAP_PX = 5;
const HEAD_PX = 52;
/** The characters of a meaning that fit into a line. */
const MEANING_CHARS = 29;
/** The size of the letters, in px. */
export const ITEM_FONT_PX = 12;

const STYLE = [
  `text{font:${ITEM_FONT_PX}px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2328}`,
  `.m{font-family:${MONOSPACE}}.n{font-weight:700}.t{font-size:15px;font-weight:700}.d{fill:#59636e}`,
  ".back{fill:#fff;stroke:#d1d9e0}.h{fill:#dafbe1;stroke:#1a7f37}.q{fill:#fff8c5;stroke:#9a6700}",
  "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.d{fill:#9198a1}.back{fill:#0d1117;stroke:#3d444d}.h{fill:#12261e;stroke:#3fb950}.q{fill:#272115;stroke:#d29922}}",
].join("");

/** The item that is drawn. */
export interface Pictured {
  readonly title: string;
  /** A line below the title. */
  readonly about: string;
  readonly rows: readonly Row[];
}

/** Returns the SVG. */
export function pictureOf({ title, about, rows }: Pictured): string {
  let y = HEAD_PX;
  const panels = new Map<string, { readonly top: number; bottom: number }>();
  const drawn = rows.map((row) => {
    const [part] = [...row.within, row.name];
    const isPart = row.value === undefined;
    if (row.within.length === 0 && (isPart || [...panels.values()].at(-1)?.bottom === y)) y += GAP_PX;
    const lines = wrapped(row.meaning.replaceAll("`", "").split(" "), MEANING_CHARS);
    const top = y;
    y += Math.max(1, lines.length) * LINE_PX + GAP_PX;
    const panel = panels.get(part);
    if (panel) panel.bottom = y;
    else if (isPart) panels.set(part, { top, bottom: y });
    return textsOf(row, lines, top + LINE_PX - 2);
  });
  const height = y + PADDING_PX;
  const boxes = [...panels].map(
    ([part, { top, bottom }]) =>
      `<rect class="${part}" x="8" y="${top - 2}" width="${WIDTH_PX - 16}" height="${bottom - top + 1}" rx="6" stroke-opacity=".6"/>`,
  );
  const told = rows.map(
    ({ within, name, value, meaning }) => `${[...within, name].join(".")}${value === undefined ? "" : ` ${value}`}: ${meaning}`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH_PX} ${height}" width="${WIDTH_PX}" height="${height}" role="img" aria-labelledby="title desc">`,
    `<title id="title">${escaped(title)}</title>`,
    `<desc id="desc">${escaped(told.join("; ").replaceAll("`", ""))}</desc>`,
    `<style>${STYLE}</style>`,
    `<rect class="back" x=".5" y=".5" width="${WIDTH_PX - 1}" height="${height - 1}" rx="9"/>`,
    `<text class="t" x="16" y="25">${escaped(title)}</text><text class="d" x="16" y="42">${escaped(about)}</text>`,
    ...boxes,
    ...drawn,
    "</svg>\n",
  ].join("\n");
}

/** A row: name, value and meaning. A part's name, which may be a leaseId, has the place of the value too. */
function textsOf({ within, name, value }: Row, meaning: readonly string[], y: number): string {
  const text = (x: number, at: number, named: string, said: string): string =>
    `<text x="${x}" y="${y + at * LINE_PX}" class="${named}">${escaped(said)}</text>`;
  return [
    text(COLUMNS_PX.name + within.length * INDENT_PX, 0, "m n", name),
    ...(value === undefined ? [] : [text(COLUMNS_PX.value, 0, "m", value)]),
    ...meaning.map((line, at) => text(COLUMNS_PX.meaning, at, "d", line)),
  ].join("");
}
