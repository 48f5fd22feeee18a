/** A list is read from all shards at once, a page of each: one ordered page is made from these. */
import type { ListPage } from "../port.js";

/** Merges one page per shard into one ordered page, up to the first key where a shard's page ends. */
export function mergeShards(shards: readonly ListPage[], max: number): ListPage {
  const horizon = shards.reduce<string | undefined>(
    (lowest, { next }) => (next !== undefined && (lowest === undefined || next < lowest) ? next : lowest),
    undefined,
  );
  const known = shards
    .flatMap(({ items }) => items)
    .filter(({ key }) => horizon === undefined || key <= horizon)
    .sort((a, b) => (a.key < b.key ? -1 : 1));
  const items = known.slice(0, max);
  const next = known.length > max ? items.at(-1)?.key : horizon;
  return next === undefined ? { items } : { items, next };
}
