/**
 * The bundle's replacement for lib/client/calls/chain-storage.ts. Node's AsyncLocalStorage, whose hooks on every promise take a tenth of a
 * history's time, would track the call chains; no client of the simulation asks for the locks that its own work already holds.
 */
import type { AsyncLocalStorage } from "node:async_hooks";

/** Returns a storage that stores nothing, and that nothing else in the process shares. */
export function sharedStorage<T>(): Pick<AsyncLocalStorage<T>, "run" | "getStore"> {
  return { run: <R>(_store: T, work: () => R) => work(), getStore: () => undefined };
}
