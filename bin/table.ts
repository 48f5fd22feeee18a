/** Formats rows as text in columns. If the screen is too narrow, some columns are shortened; on a pipe none are. */
import type { Screen } from "./terminal.js";
import { plain } from "./plain-text.js";
import { cutEnd, endOf, startOf, widthOf } from "./terminal.js";

/** A column of a table of `T`. */
export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  /** The alignment; "right" for numbers. @default "left" */
  readonly align?: "left" | "right";
  /** The smallest width of the column, and the function that shortens a cell. @default the column is never shortened */
  readonly cut?: { readonly columns: number; readonly to: (text: string, columns: number) => string };
}

const GAP = "  ";

/** Returns a heading and a line for each row, without line ends. */
export function tableOf<T>(columns: readonly Column<T>[], rows: readonly T[], { columns: room, colors }: Screen): readonly string[] {
  const cells = [columns.map(({ title }) => title), ...rows.map((row) => columns.map(({ cell }) => plain(cell(row))))];
  const widths = columns.map((_, at) => cells.reduce((width, line) => Math.max(width, widthOf(line[at] ?? "")), 0));
  if (room !== undefined) narrow(widths, columns, room);
  return cells.map((line, row) => {
    const text = line.map((cell, at) => padded(cell, widths[at] ?? 0, columns[at])).join(GAP);
    return row === 0 ? colors.dim(text.trimEnd()) : text.trimEnd();
  });
}

/** Shrinks the columns that can be shortened until the table fits, always the widest first. */
function narrow<T>(widths: number[], columns: readonly Column<T>[], room: number): void {
  const spare = (at: number): number => {
    const { title, cut } = columns[at] ?? {};
    return cut ? (widths[at] ?? 0) - Math.max(cut.columns, widthOf(title ?? "")) : 0;
  };
  let tooMuch = widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1)) - room;
  for (; tooMuch > 0; tooMuch--) {
    const widest = widths.reduce((best, width, at) => (spare(at) > 0 && (best < 0 || width > (widths[best] ?? 0)) ? at : best), -1);
    if (widest < 0) return;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
}

function padded<T>(cell: string, width: number, column: Column<T> | undefined): string {
  const text = widthOf(cell) > width ? (column?.cut?.to ?? cutEnd)(cell, width) : cell;
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return column?.align === "right" ? space + text : text + space;
}

/** Returns a key in at most `columns`: its beginning and its end, because keys can differ in either. */
export function cutKey(key: string, columns: number): string {
  const head = startOf(key, Math.ceil((columns - 1) / 2));
  return `${head}…${endOf(key, columns - 1 - widthOf(head))}`;
}
