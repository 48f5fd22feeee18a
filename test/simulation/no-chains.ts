/**
 * What the simulation's bundle has in place of Node's AsyncLocalStorage, whose hooks on every promise take a tenth of a
 * history's time. It knows no chain of calls: no client of the simulation asks, in its work, for what that work holds.
 */

/** A storage that keeps nothing. */
export class AsyncLocalStorage<T> {
  run<R>(_store: T, work: () => R): R {
    return work();
  }

  getStore(): T | undefined {
    return undefined;
  }
}
