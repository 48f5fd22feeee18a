/** `locked`: a function or method whose every call holds the lock that its arguments name. */
import { LIMITS } from "../../core/limits.js";
import { InvalidRequestError, LockTimeoutError, LockUnavailableError } from "../errors.js";
import type { Teller } from "../tell.js";
import { TELL } from "../tell.js";
import type { LockClient } from "../lock-client.js";
import type { AcquireOptions } from "../options.js";
import { checkOneOf, refused } from "../options.js";
import type { AsyncMethod, Call, AsyncMethodDecorator, Through } from "./wrap-method.js";
import { checkMade, clientOf, madeOf, wrapped } from "./wrap-method.js";

/** Options of a function that runs under a lock, beside those of the acquire. */
export interface LockedOptions<This, Args extends readonly unknown[]> extends AcquireOptions, Through<This> {
  /**
   * The key, made from the arguments; several (a list argument) are one set, all or nothing. No key: nothing is
   * locked and the function runs. One: a lock, which queues. Two to 25: a set, which does not. More are refused.
   */
  readonly key: (this: This, ...args: Args) => string | readonly string[];
  /**
   * When another holds the key: `"wait"` for it (`waitMs`, then LockTimeoutError), `"skip"` the call, which then
   * returns undefined, or `"throw"` LockTimeoutError at once. @default "wait"
   */
  readonly whenHeld?: "wait" | "skip" | "throw";
  /**
   * When the locks can't be reached: `"throw"` LockUnavailableError, `"skip"` the call, or `"proceed"` without the
   * lock, where a call too few is worse than two at once. The client's `onEvent` is told of the latter two. @default "throw"
   */
  readonly whenUnavailable?: "throw" | "skip" | "proceed";
}

/** With these a call may come to nothing, and returns undefined. */
type Skipping = { readonly whenHeld: "skip" } | { readonly whenUnavailable: "skip" };

/** A decorator of methods that may return undefined. */
type SkippingDecorator<Args extends readonly unknown[]> = <This, All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the method takes
  method: AsyncMethod<This, All, R | undefined>,
  context: ClassMethodDecoratorContext<This, AsyncMethod<This, All, R | undefined>>,
) => AsyncMethod<This, All, R | undefined>;

/**
 * `fn` under the lock that its arguments name, or, without `fn`, a decorator that does so to a method:
 *
 * ```ts
 * class Orders {
 *   locks = createLockClient();
 *   ＠locked({ key: (order: Order) => key("ORDER", order.id) })
 *   async accept(order: Order) {}
 * }
 * ```
 *
 * As `withLock`: heartbeats while it runs, a release after it, LockLostError if the lock was lost meanwhile.
 * @throws InvalidRequestError naming the method, when the key can't be made; the function does not run then.
 */
export function locked<This, Args extends readonly unknown[], All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the function takes
  options: LockedOptions<This, Args> & Skipping,
  fn: AsyncMethod<This, All, R>,
): AsyncMethod<This, All, R | undefined>;
export function locked<This, Args extends readonly unknown[], All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the function takes
  options: LockedOptions<This, Args>,
  fn: AsyncMethod<This, All, R>,
): AsyncMethod<This, All, R>;
export function locked<Args extends readonly any[] = any[]>(options: LockedOptions<any, Args> & Skipping): SkippingDecorator<Args>; // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
export function locked<Args extends readonly any[] = any[]>(options: LockedOptions<any, Args>): AsyncMethodDecorator<Args>; // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
export function locked(
  options: LockedOptions<unknown, readonly unknown[]>,
  fn?: AsyncMethod<unknown, readonly unknown[], unknown>,
): unknown {
  check(options);
  const around = (call: Call<unknown, readonly unknown[], unknown>): Promise<unknown> => underLock(options, call);
  if (fn !== undefined) return wrapped("locked", fn, undefined, around);
  return (method: AsyncMethod<unknown, readonly unknown[], unknown>, context: ClassMethodDecoratorContext) =>
    wrapped("locked", method, context, around);
}

async function underLock<This, Args extends readonly unknown[], R>(
  options: LockedOptions<This, Args>,
  call: Call<This, Args, R>,
): Promise<R | undefined> {
  const { locks: _locks, key: makeKey, whenHeld = "wait", whenUnavailable = "throw", ...acquire } = options;
  const client = clientOf(options, call);
  const keys = keysOf(call, makeKey);
  if (keys.length === 0) return call.work();
  let entered = false as boolean;
  const enter = (): Promise<R> | R => {
    entered = true;
    return call.work();
  };
  try {
    return await held(client, keys, { ...acquire, ...(whenHeld !== "wait" && { waitMs: 0 }) }, enter);
  } catch (error) {
    if (entered) throw error;
    if (whenHeld === "skip" && error instanceof LockTimeoutError) return undefined;
    if (whenUnavailable === "throw" || !(error instanceof LockUnavailableError)) throw error;
    (client as Teller)[TELL]?.({ type: whenUnavailable === "skip" ? "skipped" : "proceeded", key: keys.join(" "), error });
    return whenUnavailable === "proceed" ? call.work() : undefined;
  }
}

function held<R>(client: LockClient, keys: readonly string[], options: AcquireOptions, enter: () => Promise<R> | R): Promise<R> {
  const [key] = keys;
  return keys.length === 1 && key !== undefined ? client.withLock(key, options, enter) : client.withLocks(keys, options, enter);
}

/** The keys of a call, each once. */
function keysOf<This, Args extends readonly unknown[]>(
  { self, args, name }: Call<This, Args, unknown>,
  makeKey: LockedOptions<This, Args>["key"],
): readonly string[] {
  const made: unknown = madeOf(name, "key", () => Reflect.apply(makeKey, self, args));
  const keys: unknown[] = Array.isArray(made) ? made : [made];
  for (const key of keys) checkMade(name, key);
  const distinct = [...new Set(keys as string[])];
  if (distinct.length > LIMITS.setKeys) {
    throw new InvalidRequestError(
      `${name}: its arguments name ${distinct.length} keys; a set has at most ${LIMITS.setKeys}, so call it in parts`,
      "key",
    );
  }
  return distinct;
}

function check({ key, whenHeld, whenUnavailable }: LockedOptions<never, never>): void {
  if (typeof key !== "function") throw refused("key", key, "it must be a function of the arguments");
  checkOneOf("whenHeld", whenHeld, "wait", "skip", "throw");
  checkOneOf("whenUnavailable", whenUnavailable, "throw", "skip", "proceed");
}
