/** Methods of Nest: their metadata, and the work that an idempotent route's method promises. */
import type { Run } from "../client/calls/run/run-once.js";
import { currentRun } from "../client/calls/wrap/once.js";

/** The additions of `reflect-metadata`, which Nest requires. */
export const metadata = Reflect as unknown as {
  defineMetadata(key: unknown, value: unknown, target: object, name?: string | symbol): void;
  getMetadata(key: unknown, target: object, name?: string | symbol): unknown;
  getMetadataKeys(target: object): readonly unknown[];
};

export type Callable = (...args: never[]) => unknown;

/**
 * Returns a class's handlers, watched, as arguments of `Object.defineProperty`. One that it inherits becomes its own: the class that has it
 * may not be idempotent. A method without metadata is no handler.
 */
export function handlersOf(prototype: object): readonly [object, string, PropertyDescriptor][] {
  return Object.entries(descriptorsOf(prototype))
    .filter(([, { value }]) => typeof value === "function" && metadata.getMetadataKeys(value as Callable).length > 0)
    .map(([name, descriptor]) => [prototype, name, { ...descriptor, value: watched(descriptor.value as Callable) }]);
}

/** Returns the members of a prototype with those that it inherits. */
function descriptorsOf(prototype: object): Record<string, PropertyDescriptor> {
  const above = Object.getPrototypeOf(prototype) as object | null;
  const { constructor: _class, ...own } = Object.getOwnPropertyDescriptors(prototype) as Record<string, PropertyDescriptor>;
  return { ...(above && above !== Object.prototype && descriptorsOf(above)), ...own };
}

/** The work of a run: what its handlers promised, which may go on after an interceptor answered in its place. */
const WORK = new WeakMap<Run, Promise<unknown>>();

/** Returns the work of the run that surrounds this. */
export function workOfRun(): Promise<unknown> | undefined {
  const run = currentRun();
  return run && WORK.get(run);
}

/** Returns the method, whose promise is then work of its run. */
export function watched(method: Callable): Callable {
  return inPlaceOf(method, function (this: unknown, ...args: never[]) {
    const result: unknown = Reflect.apply(method, this, args);
    const run = currentRun();
    if (!run || typeof (result as { readonly then?: unknown } | null | undefined)?.then !== "function") return result;
    // A query that begins when `then` is called would be made twice, if Nest got the query itself.
    const work = Promise.resolve(result);
    // An interceptor may call the method again, and one handler may call another.
    const before = WORK.get(run);
    WORK.set(run, before ? Promise.allSettled([before, work]) : work);
    return work;
  });
}

/** Returns `wrapped` with the name and the metadata of `method`. */
export function inPlaceOf<Wrapped extends object>(method: Callable, wrapped: Wrapped): Wrapped {
  for (const key of metadata.getMetadataKeys(method)) metadata.defineMetadata(key, metadata.getMetadata(key, method), wrapped);
  return Object.defineProperty(wrapped, "name", { value: method.name });
}
