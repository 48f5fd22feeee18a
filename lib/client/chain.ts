/**
 * What the present chain of calls holds: work that asks, in a `withLock`, for a key that a `withLock` around
 * it already has would wait for itself. It is told so at once.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { LockError } from "./errors.js";

/** Keys held by a call further out. */
export interface HeldKeys {
  readonly keys: readonly string[];
  /** Whose keys they are: a client of another service has keys of the same names. */
  readonly of: object;
  isHeld(): boolean;
}

const held = new AsyncLocalStorage<readonly HeldKeys[]>();

/** Runs `work`, and all that it calls, as holding these. */
export function holding<T>(these: HeldKeys, work: () => T): T {
  return held.run([...(held.getStore() ?? []), these], work);
}

/** @throws LockError `self-deadlock` when the chain of calls that asks holds the key already. */
export function refuseOwn(key: string, of: object): void {
  if (!held.getStore()?.some((one) => one.of === of && one.keys.includes(key) && one.isHeld())) return;
  throw new LockError(`acquire ${key}: this chain of calls holds it already, and would wait for itself; a scope makes it reentrant`, {
    code: "self-deadlock",
    definite: true,
    retry: "never",
  });
}
