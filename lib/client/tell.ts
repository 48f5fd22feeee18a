/** Tells a client's listener of what the client, or a wrapper around it, does or meets. */
import type { LockClientEvent } from "./client-options.js";

/** The member by which a wrapper reaches the `onEvent` of a client. Other packages can't name it. */
export const TELL = Symbol("tell");

/** A client that may have a listener. */
export interface Teller {
  readonly [TELL]?: (event: LockClientEvent) => void;
}

/** Tells a listener of the user's. What it throws, or rejects with, is its own: no work fails, and no process ends, because a metric did. */
export async function tellQuietly<Told extends readonly unknown[]>(
  listener: ((...told: Told) => unknown) | undefined,
  ...told: Told
): Promise<void> {
  try {
    await listener?.(...told);
  } catch {
    // As above.
  }
}
