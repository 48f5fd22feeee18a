/** `locked`: wraps a function or method so that every call holds the lock that its arguments name. */
import { isA } from "../../../core/brand.js";
import * as LIMITS from "../../../core/request-limits.js";
import { InvalidRequestError, LockTimeoutError } from "../../wire/errors.js";
import type { AcquireOptions, WhenUnavailable } from "../options.js";
import type { Checks } from "../../wire/checks.js";
import { ACQUIRE, WHEN_UNAVAILABLE } from "../options.js";
import { checkOptions, oneOf, unchecked } from "../../wire/checks.js";
import type { AsyncMethod, AsyncMethodDecorator, MethodCall, SkippingDecorator, Through } from "./wrap-method.js";
import { checkMade, clientOf, madeOf, ofArguments, wrapperOf } from "./wrap-method.js";

/** Options of a function that runs under a lock, in addition to those of the acquire. */
export interface LockedOptions<This, Args extends readonly unknown[]> extends AcquireOptions, WhenUnavailable, Through<This> {
  /**
   * Makes the key from the arguments. No key (an empty list): the function runs without a lock. One key: a lock, which queues. Two to 25
   * keys: a set, all or nothing, which does not queue. More keys are refused.
   */
  readonly key: (this: This, ...args: Args) => string | readonly string[];
  /**
   * The behaviour if the key is held: `"wait"` waits (up to `waitMs`, then LockTimeoutError), `"skip"` skips the call, which then returns
   * undefined, and `"throw"` throws LockTimeoutError at once. @default "wait"
   */
  readonly whenHeld?: "wait" | "skip" | "throw" | undefined;
}

const OPTIONS: Checks<LockedOptions<never, never>> = {
  key: ofArguments,
  locks: unchecked,
  whenHeld: oneOf("wait", "skip", "throw"),
  ...ACQUIRE,
  ...WHEN_UNAVAILABLE,
};

/** With these options a call can skip the function and return undefined. */
export type Skipping = { readonly whenHeld: "skip" } | { readonly whenUnavailable: "skip" };

/**
 * Returns `fn` under the lock that its arguments name, or, without `fn`, a decorator that does the same for a method:
 *
 * ```ts
 * class Orders {
 *   locks = createLockClient();
 *   ＠locked({ key: (order: Order) => key("ORDER", order.id) })
 *   async accept(order: Order) {}
 * }
 * ```
 *
 * It works as `withLock`: heartbeats while the function runs, a release afterwards, and LockLostError if the lock was lost meanwhile.
 * @throws InvalidRequestError naming the invalid option; at a call, naming the method, if the key can't be made: the function does not run
 *   then.
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
  checkOptions("locked", options, OPTIONS, "key");
  return wrapperOf("locked", fn, (call) => underLock(options, call));
}

type AnyOptions = LockedOptions<unknown, readonly unknown[]>;

async function underLock(options: AnyOptions, call: MethodCall): Promise<unknown> {
  const { locks: _locks, key: makeKey, whenHeld = "wait", ...rest } = options;
  const client = clientOf(options, call);
  const keys = keysOf(call, makeKey);
  const [key] = keys;
  if (key === undefined) return call.work();
  let entered = false as boolean;
  const enter = (): unknown => {
    entered = true;
    return call.work();
  };
  const acquire = { ...rest, ...(whenHeld !== "wait" && { waitMs: 0 }) };
  try {
    return await (keys.length === 1 ? client.withLock(key, acquire, enter) : client.withLocks(keys, acquire, enter));
  } catch (error) {
    if (entered || whenHeld !== "skip" || !isA(error, LockTimeoutError)) throw error;
    return undefined;
  }
}

/** Returns the distinct keys of a call. */
function keysOf({ self, args, name }: MethodCall, makeKey: AnyOptions["key"]): readonly string[] {
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
