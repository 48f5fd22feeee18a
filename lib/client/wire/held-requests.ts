/**
 * The requests that the service holds, such as those of callers that wait for a run. They take at most half of the sockets, whichever clients
 * share these: if they had all, no heartbeat would be sent before its lease was over. The others ask without a wait, and ask again.
 */

/** The sockets of one agent, or of one `fetch`. */
export interface Sockets {
  readonly of: object;
  /** The number of requests to a host that they carry at once. */
  readonly most: number;
}

/** The number of requests that are held now. */
const held = new WeakMap<object, number>();

/** Sends a request that would be held for `waitMs`; with a wait of 0 if half of the sockets are taken by such requests. */
export async function withinShare<T>({ of, most }: Sockets, waitMs: number, send: (waitMs: number) => Promise<T>): Promise<T> {
  const others = held.get(of) ?? 0;
  if (waitMs <= 0 || others + 1 > most / 2) return send(0);
  held.set(of, others + 1);
  try {
    return await send(waitMs);
  } finally {
    held.set(of, (held.get(of) ?? 1) - 1);
  }
}
