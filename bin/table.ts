/** Formats rows as text in columns. If the screen is too narrow, columns are shortened or left out; on a pipe none are. */
import type { Screen } from "./terminal.js";
import { plain } from "../console/text/plain-text.js";
import { cutEnd, endOf, startOf, widthOf } from "./terminal.js";

/** A column of a table of `T`. */
export interface Column<T> {
  readonly title: string;
  readonly cell: (row: T) => string;
  /** The alignment; "right" for numbers. @default "left" */
  readonly align?: "left" | "right";
  /** On a screen that is too narrow: the cell in a shorter form. @default it has none */
  readonly short?: (row: T) => string;
  /** On a screen that is too narrow even so: true to leave the column out. @default false */
  readonly isSpare?: boolean;
  /** Then: the smallest width of the column, and the function that shortens a cell. @default the column is never cut */
  readonly cut?: {
    readonly columns: number;
    readonly to: (text: string, columns: number) => string;
    /** True to cut it before those that stand before it. @default false */
    readonly isFirst?: boolean;
  };
  /** On a screen that is too narrow even for cut cells: the place of the column among those that are left out, from 1. @default it stays */
  readonly leaves?: number;
  /** The colour of a cell. @default the terminal's own */
  readonly paint?: (row: T, colors: Screen["colors"]) => (text: string) => string;
}

const GAP = "  ";

/** Returns a heading and a line for each row, without line ends. */
export function tableOf<T>(all: readonly Column<T>[], rows: readonly T[], { columns: room = Infinity, colors }: Screen): readonly string[] {
  const columns = fitting(all, rows, room);
  const widths = columns.map((column) => columnWidth(column, rows));
  cut(widths, columns, rows, room);
  const line = (textOf: (column: Column<T>, width: number) => string): string =>
    columns
      .map((column, at) => textOf(column, widths[at] ?? 0))
      .join(GAP)
      .trimEnd();
  return [
    colors.dim(line((column, width) => padded(column.title, width, column))),
    ...rows.map((row) => line((column, width) => padded(plain(column.cell(row)), width, column, column.paint?.(row, colors)))),
  ];
}

/** Returns the columns in their short forms, and without those that can be spared or have to leave, if the table is too wide otherwise. */
function fitting<T>(all: readonly Column<T>[], rows: readonly T[], room: number): readonly Column<T>[] {
  let columns = all;
  const fits = (widthIn = columnWidth<T>): boolean => totalOf(columns.map((column) => widthIn(column, rows))) <= room;
  const without = (one: Column<T>): void => void (columns = columns.filter((column) => column !== one));
  if (!fits()) columns = columns.map(({ short, ...column }) => ({ ...column, ...(short && { cell: short }) }));
  for (const spare of columns.filter(({ isSpare }) => isSpare)) if (!fits()) without(spare);
  const leaving = columns.filter(({ leaves }) => leaves !== undefined).toSorted((a, b) => (a.leaves ?? 0) - (b.leaves ?? 0));
  for (const one of leaving) if (!fits(narrowestWidth)) without(one);
  return columns;
}

function columnWidth<T>({ title, cell }: Column<T>, rows: readonly T[]): number {
  return rows.reduce((width, row) => Math.max(width, widthOf(plain(cell(row)))), widthOf(title));
}

/** Returns the width of a column whose cells are cut as far as they can be. */
function narrowestWidth<T>(column: Column<T>, rows: readonly T[]): number {
  const { title, cut: { columns } = { columns: Infinity } } = column;
  return Math.min(columnWidth(column, rows), Math.max(columns, widthOf(title)));
}

function totalOf(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, GAP.length * (widths.length - 1));
}

/** Shrinks the columns that can be cut until the table fits, each as far as it can be before the next. */
function cut<T>(widths: number[], columns: readonly Column<T>[], rows: readonly T[], room: number): void {
  const order = [...columns.entries()].sort(([, a], [, b]) => Number(b.cut?.isFirst === true) - Number(a.cut?.isFirst === true));
  for (const [at, column] of order) {
    const tooMuch = totalOf(widths) - room;
    if (tooMuch > 0) widths[at] = Math.max(narrowestWidth(column, rows), (widths[at] ?? 0) - tooMuch);
  }
}

function padded<T>(cell: string, width: number, { cut, align }: Column<T>, paint: (text: string) => string = String): string {
  const text = widthOf(cell) > width ? (cut?.to ?? cutEnd)(cell, width) : cell;
  const space = " ".repeat(Math.max(0, width - widthOf(text)));
  return align === "right" ? space + paint(text) : paint(text) + space;
}

/** Returns a name in at most `columns`: its beginning and its end, because names can differ in either. */
export function cutMiddle(name: string, columns: number): string {
  const head = startOf(name, Math.ceil((columns - 1) / 2));
  return `${head}…${endOf(name, columns - 1 - widthOf(head))}`;
}
