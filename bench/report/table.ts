/** Tables and figures as text. */

/** A markdown table, formatted like prettier's. The first row is the head. */
export function markdownTable(rows: readonly (readonly string[])[]): string {
  const [head = []] = rows;
  const widths = head.map((_, column) => Math.max(3, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = line(widths.map((width) => "-".repeat(width)));
  return [line(head), rule, ...rows.slice(1).map(line)].join("\n");
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
