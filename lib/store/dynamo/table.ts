/**
 * The table, defined once: the CDK stack, `npm start` and the tests all create it from here.
 *
 * The partition key is a namespace's shard, the sort key the lock's key. So a list by prefix is a query of the table
 * itself, in key order, and no index costs a write unit (docs/decisions/002-listing-without-an-index.md).
 */
export const TABLE = {
  partitionKey: "p",
  sortKey: "k",
  /** Epoch seconds. Garbage collection only: a lease's own deadline decides when it ends. */
  ttlAttribute: "x",
} as const;
