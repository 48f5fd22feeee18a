/** The events of a client, and how they reach a user's listener. */

/** A client event, for metrics and logs. It never carries a leaseId. */
export interface LockClientEvent {
  /**
   * The type. `refused` and `unavailable` report a wrapper (`withLock`, `withLocks`, `runOnce`, `elect`, and what is built on them) that could
   * not run its work: because it was refused, such as by a timeout, or because the locks could not be reached; `error` says why. `skipped`
   * and `proceeded` report a call whose locks could not be reached, according to its `whenUnavailable`. `self-wait` reports a call
   * that begins to wait, or finds the key held, though a call around it seems to hold the key itself: by its async context, which can be
   * another caller's. Of a client
   * with several ways (the URLs of several services, a service and the table, several Regions): `failover` reports that new requests go to a
   * later one in its list, `fallback` that they go to an earlier one again, and `failover-refused` that they don't go to another one, because
   * nothing shows that it knows this client's leases, or something shows that it doesn't: `error` says which and why.
   */
  readonly type:
    | ("acquired" | "released" | "lost" | "renew-failed" | "release-failed")
    | ("refused" | "unavailable" | "skipped" | "proceeded" | "self-wait")
    | ("failover" | "fallback" | "failover-refused");
  /** The key; the keys of a set, separated by spaces; empty for a change of the way. */
  readonly key: string;
  /** The lease's token; absent if there was no lease. */
  readonly fencingToken?: number;
  readonly error?: unknown;
}
/** Calls a user's listener. Its errors and rejections are ignored: a failing metric must not fail the work or end the process. */
export async function emitQuietly<Arguments extends readonly unknown[]>(
  listener: ((...args: Arguments) => unknown) | undefined,
  ...args: Arguments
): Promise<void> {
  try {
    await listener?.(...args);
  } catch {
    // Ignored, as described above.
  }
}
