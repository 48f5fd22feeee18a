/** A list is read from all shards at once, a page of each: one ordered page is made from these. */
import type { ListQuery, Page } from "../port.js";
import type { TableCalls } from "./calls.js";
import { shardKey, SHARDS } from "./item-key.js";
import type { Item } from "./layout.js";
import { TABLE } from "./table.js";

/** Items that one shard's query reads, before filtering. */
const QUERY_LIMIT = 100;

/** The table that is listed. */
interface Listed {
  readonly calls: TableCalls;
  readonly tableName: string;
}

/** The items that a list shows: a filter of DynamoDB with its values. */
interface Filter {
  readonly expression: string;
  readonly values: Item;
}

/** A query of locks, runs or limits. */
type ShardQuery = Omit<ListQuery, "kind"> & { readonly kind: Parameters<typeof shardKey>[1] };

/** Returns one page of the items that pass the filter, in the order of their keys. */
export async function listShards<Stored>(
  table: Listed,
  query: ShardQuery,
  filter: Filter,
  recordOf: (item: Item) => Stored,
): Promise<Page<Stored>> {
  const shards = await Promise.all(Array.from({ length: SHARDS }, (_, shard) => queryShard(table, shard, query, filter)));
  const { items, next } = mergeShards(shards, query.max);
  const records = items.map(({ key, record }) => ({ key, record: recordOf(record) }));
  return next === undefined ? { items: records } : { items: records, next };
}

/** Returns the items of one shard, in order, and the key up to which the page is complete. */
async function queryShard(
  { calls, tableName }: Listed,
  shard: number,
  { namespace, kind, prefix, after }: ShardQuery,
  { expression, values }: Filter,
): Promise<Page<Item>> {
  // Every key character is above " " and below DEL, so the two ends need no other bound.
  const from = after >= prefix ? `${after} ` : prefix;
  const to = `${prefix}\u007f`;
  // The cursor is beyond the prefix, so no key is left. DynamoDB rejects a range that ends before it begins.
  if (from > to) return { items: [] };
  const { Items = [], LastEvaluatedKey } = await calls.query({
    TableName: tableName,
    KeyConditionExpression: "#p = :p AND #k BETWEEN :from AND :to",
    FilterExpression: expression,
    ExpressionAttributeNames: { "#p": TABLE.partitionKey, "#k": TABLE.sortKey },
    ExpressionAttributeValues: { ":p": shardKey(namespace, kind, shard), ":from": from, ":to": to, ...values },
    Limit: QUERY_LIMIT,
  });
  const items = Items.map((item) => ({ key: item[TABLE.sortKey] as string, record: item }));
  const next = LastEvaluatedKey?.[TABLE.sortKey] as string | undefined;
  return next === undefined ? { items } : { items, next };
}

/** Merges one page per shard into one ordered page, up to the first key where a shard's page ends. */
function mergeShards<Stored>(shards: readonly Page<Stored>[], max: number): Page<Stored> {
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
