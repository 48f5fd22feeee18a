/** `runOnce` as a wrapper: the work of a function or method runs once per idempotency key. */
import type { WhenUnavailable } from "../options.js";
import { type Checks, checkOptions, unchecked } from "../../wire/checks.js";
import type { Run } from "../run/run-once.js";
import { type RunOptions, RUN } from "../run/run-options.js";
import { sharedStorage } from "../chain-storage.js";
import type { AsyncMethod, AsyncMethodDecorator, MethodCall, SkippingDecorator, Through } from "./wrap-method.js";
import { checkMade, clientOf, madeOf, ofArguments, wrapperOf } from "./wrap-method.js";

/** Options of a function that runs once, in addition to those of the run. */
export interface OnceOptions<This, Args extends readonly unknown[]> extends Omit<RunOptions, "payload">, WhenUnavailable, Through<This> {
  /** Makes the idempotency key from the arguments. */
  readonly key: (this: This, ...args: Args) => string;
  /** Makes the payload of the run from the arguments. The same key with another payload is refused. @default none: any payload matches */
  readonly payload?: ((this: This, ...args: Args) => unknown) | undefined;
}

const OPTIONS: Checks<OnceOptions<never, never>> = { ...RUN, key: ofArguments, payload: ofArguments, locks: unchecked };

const current = /* @__PURE__ */ sharedStorage<Run>("holdfast.run/1");

/**
 * Returns the run of the surrounding function wrapped by {@link runOnce}: attempt, takeover, checkpoint, token, idempotency key. Undefined
 * outside of one.
 */
export function currentRun(): Run | undefined {
  return current.getStore();
}

/**
 * Returns `fn`, run once per key made from its arguments, or, without `fn`, a decorator that does the same for a method. Every other call
 * with the same key, now or later, returns the first call's result without running the function. With `whenUnavailable: "proceed"`, the
 * function runs without a run if none can be started: perhaps a second time.
 * @throws InvalidRequestError naming the invalid option; at a call, naming the method, if the key or the payload can't be made: the
 *   function does not run then.
 */
export function runOnce<This, Args extends readonly unknown[], All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the function takes
  options: OnceOptions<This, Args> & { readonly whenUnavailable: "skip" },
  fn: AsyncMethod<This, All, R>,
): AsyncMethod<This, All, R | undefined>;
export function runOnce<This, Args extends readonly unknown[], All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the function takes
  options: OnceOptions<This, Args>,
  fn: AsyncMethod<This, All, R>,
): AsyncMethod<This, All, R>;
export function runOnce<Args extends readonly any[] = any[]>( // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
  options: OnceOptions<any, Args> & { readonly whenUnavailable: "skip" }, // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
): SkippingDecorator<Args>;
export function runOnce<Args extends readonly any[] = any[]>(options: OnceOptions<any, Args>): AsyncMethodDecorator<Args>; // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
export function runOnce(
  options: OnceOptions<unknown, readonly unknown[]>,
  fn?: AsyncMethod<unknown, readonly unknown[], unknown>,
): unknown {
  checkOptions("runOnce", options, OPTIONS, "key");
  return wrapperOf("runOnce", fn, (call) => callOnce(options, call));
}

async function callOnce(options: OnceOptions<unknown, readonly unknown[]>, call: MethodCall): Promise<unknown> {
  const { locks: _locks, key: makeKey, payload: makePayload, ...run } = options;
  const { self, args, name, work } = call;
  const client = clientOf(options, call);
  const key: unknown = madeOf(name, "key", () => Reflect.apply(makeKey, self, args));
  checkMade(name, key);
  const payload = makePayload && madeOf(name, "payload", () => Reflect.apply(makePayload, self, args));
  const result = await client.runOnce(key, { ...run, ...(payload !== undefined && { payload }) }, (begun) =>
    begun ? current.run(begun, work) : work(),
  );
  return result?.value;
}
