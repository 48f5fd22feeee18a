/** The rules by which a table is fit for locks, whoever reads its properties: the construct, before it is made, or the command line. */
import { TABLE } from "./table.js";

/** The properties of a table that decide if it is fit. */
export interface TableShape {
  /** The names and types of its keys, the partition key first, such as `p:S`. */
  readonly keys: readonly string[];
  /** The attribute of its TTL; undefined if it has none. */
  readonly ttlAttribute?: string | undefined;
  readonly hasIndex: boolean;
  /** The consistency of its replicas; undefined for a table of one Region. */
  readonly consistency?: "STRONG" | "EVENTUAL" | undefined;
}

/** The rule that a table with `EVENTUAL` breaks. */
export const LAST_WRITER_WINS =
  'With EVENTUAL (MREC) each Region decides on its own copy, and of concurrent writes the "last writer wins": ' +
  "two Regions would both grant the same lock.";

/** Returns the reasons why a table can't be used for locks, a sentence each. */
export function unfitness({ keys, ttlAttribute, hasIndex, consistency }: TableShape): readonly string[] {
  if (consistency === "EVENTUAL") return [`table: its replicas must be strongly consistent. ${LAST_WRITER_WINS}`];
  const { partitionKey, sortKey } = TABLE;
  return [
    ...(keys.join() === `${partitionKey}:S,${sortKey}:S`
      ? []
      : [`table: must have the string keys ${partitionKey} (partition) and ${sortKey} (sort)`]),
    ...(consistency === undefined && ttlAttribute !== TABLE.ttlAttribute
      ? [`table: must have the TTL attribute ${TABLE.ttlAttribute}: without it nothing is ever collected`]
      : []),
    ...(consistency !== undefined && ttlAttribute !== undefined
      ? ["table: must have no TTL attribute: a table that is strongly consistent in several Regions can't have one"]
      : []),
    ...(hasIndex ? ["table: must have no index: every heartbeat would be written to it too"] : []),
  ];
}
