/** Who a client tells what it does or meets, for wrappers around it that have something to tell. */
import type { LockClientEvent } from "./client-options.js";
import type { LockClient } from "./lock-client.js";

/** The way to the `onEvent` of each client, and of its views. */
export const listeners = new WeakMap<LockClient, (event: LockClientEvent) => void>();

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
