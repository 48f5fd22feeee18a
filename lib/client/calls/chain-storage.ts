/**
 * State of an asynchronous call chain that all copies of this package in a process share, such as two versions in one dependency tree. A
 * lease made by one copy is then the other's `currentLease()`, and a wait for oneself across the two is still noticed.
 */
import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Returns the process's storage of this name.
 * @param name ends with the version of what is stored: a change that older copies can't read needs a new name
 */
export function sharedStorage<T>(name: string): AsyncLocalStorage<T> {
  return ((globalThis as Record<symbol, unknown>)[Symbol.for(name)] ??= new AsyncLocalStorage<T>()) as AsyncLocalStorage<T>;
}
