/** Who a client tells what it does or meets, for wrappers around it that have something to tell. */
import type { LockClientEvent } from "./client-options.js";
import type { LockClient } from "./lock-client.js";

/** The way to the `onEvent` of each client, and of its views. */
export const listeners = new WeakMap<LockClient, (event: LockClientEvent) => void>();
