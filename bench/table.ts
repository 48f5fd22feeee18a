/** The output of every benchmark: a markdown table, and the date and machine of its figures. */
import { availableParallelism } from "node:os";

/** A markdown table, formatted like prettier's. The first row is the head. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows;
  const widths = head.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = line(widths.map((width) => "-".repeat(width)));
  return [line(head), rule, ...rows.slice(1).map(line)].join("\n");
}

/** `2026-11-20, Node 20.20.2, 2 cores`. */
export function provenance(): string {
  return `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}, ${availableParallelism()} cores`;
}

/** The median. @throws RangeError if `figures` is empty. */
export function median(figures: readonly number[]): number {
  const middle = figures.toSorted((a, b) => a - b)[Math.floor(figures.length / 2)];
  if (middle === undefined) throw new RangeError("the median of nothing");
  return middle;
}

/** `0.08 ms`, `6.9 ms`, `140 ms`. */
export function milliseconds(ms: number): string {
  const decimals = ms < 1 ? 2 : ms < 100 ? 1 : 0;
  return `${ms.toFixed(decimals)} ms`;
}
