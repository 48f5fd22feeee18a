/** The primary keys of items: a namespace's keys are spread over shards. */
import type { Address } from "../port.js";
import { TABLE } from "./table.js";

/** The number of partition keys that a namespace's locks are spread over. Fixed for the life of a table. */
export const SHARDS = 16;

/** The kinds of items of a namespace. */
const ITEM_KINDS = ["locks", "runs", "limits", "payloads"] as const;
type ItemKind = (typeof ITEM_KINDS)[number];

/** Returns the item's primary key. */
export function itemKey({ namespace, kind, key }: Omit<Address, "kind"> & { readonly kind: ItemKind }): Record<string, string> {
  return { [TABLE.partitionKey]: shardKey(namespace, kind, shardOf(key)), [TABLE.sortKey]: key };
}

/** Returns the address of the lock with this primary key; undefined for another item. */
export function lockAddress(partition: string, key: string): Address | undefined {
  const [namespace = "", kind] = partition.split("/");
  return namespace !== "" && kind === "locks" ? { namespace, kind, key } : undefined;
}

/** Returns the primary key of the item of a payload. */
export function payloadKey({ namespace, key }: Address, digest: string): Record<string, string> {
  return { [TABLE.partitionKey]: shardKey(namespace, "payloads", shardOf(key)), [TABLE.sortKey]: `${key}/${digest}` };
}

/** Returns the partition key of a namespace's shard. A namespace has no `/`, so no two tenants share one. */
export function shardKey(namespace: string, kind: ItemKind, shard: number): string {
  return `${namespace}/${kind}/${shard}`;
}

/** Returns the partition keys of all items of a namespace. */
export function partitionsOf(namespace: string): readonly string[] {
  return ITEM_KINDS.flatMap((kind) => Array.from({ length: SHARDS }, (_, shard) => shardKey(namespace, kind, shard)));
}

/** The item that records the table's tenancy. No namespace is empty, so no caller's key is in this partition. */
export const TENANCY_KEY: Readonly<Record<"p" | "k", string>> = { [TABLE.partitionKey]: "/table", [TABLE.sortKey]: "tenancy" };
/** Its attribute. The item has no TTL: it lasts as long as the table. */
export const TENANCY = "tn";
/** The attribute of the same item that lists the doors of the table: the ways by which its services are reached. */
export const DOORS = "dr";

/** Returns the shard of a key: FNV-1a over its characters, which are all ASCII. */
function shardOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) hash = Math.imul(hash ^ key.charCodeAt(index), 0x01000193);
  return (hash >>> 0) % SHARDS;
}
