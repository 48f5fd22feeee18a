/** Import circles: files that import each other, directly or through others, types included. */
import { importsOf } from "./imports.js";
import type { SourceText } from "./tree.js";

/** Returns each circle as a list of paths, by Tarjan's algorithm for strongly connected components. */
export function circlesIn(sources: readonly SourceText[]): readonly (readonly string[])[] {
  const imports = new Map(sources.map((source) => [source.path, importsOf(source).flatMap(({ file }) => file ?? [])]));
  const order = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];

  const visit = (path: string): number => {
    const index = order.size;
    let low = index;
    order.set(path, index);
    open.push(path);
    for (const next of imports.get(path) ?? []) {
      if (!imports.has(next)) continue;
      if (!order.has(next)) low = Math.min(low, visit(next));
      else if (open.includes(next)) low = Math.min(low, order.get(next) ?? low);
    }
    lowest.set(path, low);
    if (low === index) {
      const circle = open.splice(open.indexOf(path));
      if (circle.length > 1) circles.push(circle.sort());
    }
    return low;
  };

  for (const { path } of sources) if (!order.has(path)) visit(path);
  return circles;
}
