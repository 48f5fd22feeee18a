/** `runOnce` as a wrapper: a function or method whose work happens once for what its arguments name. */
import { AsyncLocalStorage } from "node:async_hooks";
import { refused } from "../options.js";
import type { Run } from "../run/run-once.js";
import type { RunOptions } from "../run/run-options.js";
import type { AsyncMethod, Call, AsyncMethodDecorator, Through } from "./wrap-method.js";
import { checkMade, clientOf, madeOf, wrapped } from "./wrap-method.js";

/** Options of a function that runs once, beside those of the run. */
export interface OnceOptions<This, Args extends readonly unknown[]> extends Omit<RunOptions, "payload">, Through<This> {
  /** The idempotency key, made from the arguments. */
  readonly key: (this: This, ...args: Args) => string;
  /** What the run is about, made from the arguments: the same key with another payload is refused. @default none: any matches */
  readonly payload?: (this: This, ...args: Args) => unknown;
}

const current = /* @__PURE__ */ new AsyncLocalStorage<Run>();

/** The run as which a function wrapped by {@link runOnce} runs: attempt, takeover, checkpoint, token, idempotency key. Undefined outside. */
export function currentRun(): Run | undefined {
  return current.getStore();
}

/**
 * `fn` once for what its arguments name, or, without `fn`, a decorator that does so to a method: every other call
 * with the same key, now or later, returns what the first one did, and its function does not run.
 * @throws InvalidRequestError naming the method, when the key or the payload can't be made; the function does not run then.
 */
export function runOnce<This, Args extends readonly unknown[], All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the function takes
  options: OnceOptions<This, Args>,
  fn: AsyncMethod<This, All, R>,
): AsyncMethod<This, All, R>;
export function runOnce<Args extends readonly any[] = any[]>(options: OnceOptions<any, Args>): AsyncMethodDecorator<Args>; // eslint-disable-line @typescript-eslint/no-explicit-any -- before the method is seen
export function runOnce(
  options: OnceOptions<unknown, readonly unknown[]>,
  fn?: AsyncMethod<unknown, readonly unknown[], unknown>,
): unknown {
  if (typeof options.key !== "function") throw refused("key", options.key, "it must be a function of the arguments");
  const around = (call: Call<unknown, readonly unknown[], unknown>): Promise<unknown> => once(options, call);
  if (fn !== undefined) return wrapped("runOnce", fn, undefined, around);
  return (method: AsyncMethod<unknown, readonly unknown[], unknown>, context: ClassMethodDecoratorContext) =>
    wrapped("runOnce", method, context, around);
}

async function once<This, Args extends readonly unknown[], R>(options: OnceOptions<This, Args>, call: Call<This, Args, R>): Promise<R> {
  const { locks: _locks, key: makeKey, payload: makePayload, ...run } = options;
  const { self, args, name, work } = call;
  const client = clientOf(options, call);
  const key: unknown = madeOf(name, "key", () => Reflect.apply(makeKey, self, args));
  checkMade(name, key);
  const payload = makePayload && madeOf(name, "payload", () => Reflect.apply(makePayload, self, args));
  const { value } = await client.runOnce(key, { ...run, ...(payload !== undefined && { payload }) }, (begun) => current.run(begun, work));
  return value;
}
