/** Reports the events of a client, or of a wrapper around it, to the client's listener. */
import type { LockClientEvent } from "./client-options.js";

/** The member through which a wrapper calls the `onEvent` of a client. Other packages can't name it. */
export const TELL = Symbol("tell");

/** A client that can have a listener. */
export interface Teller {
  readonly [TELL]?: (event: LockClientEvent) => void;
}

/** Calls a user's listener. Its errors and rejections are ignored: a failing metric must not fail the work or end the process. */
export async function tellQuietly<Told extends readonly unknown[]>(
  listener: ((...told: Told) => unknown) | undefined,
  ...told: Told
): Promise<void> {
  try {
    await listener?.(...told);
  } catch {
    // Ignored, as described above.
  }
}
