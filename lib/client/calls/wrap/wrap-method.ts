/**
 * The common parts of wrappers of functions and methods, used as a decorator or as a call: finding the client, naming the method in errors,
 * and making a key from the arguments, which is validated before anything happens.
 */
import { InvalidRequestError } from "../../wire/errors.js";
import type { LockClient } from "../lock-client.js";
import { checkWork, must, shown } from "../../wire/checks.js";

/** An asynchronous function or method. */
export type AsyncMethod<This, Args extends readonly unknown[], R> = (this: This, ...args: Args) => Promise<R>;

/**
 * A standard (TC39) method decorator that keeps the method's type. `Args` are the parameters of the options' functions; the method can have
 * more.
 */
export type AsyncMethodDecorator<Args extends readonly unknown[]> = <This, All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the method takes
  method: AsyncMethod<This, All, R>,
  context: ClassMethodDecoratorContext<This, AsyncMethod<This, All, R>>,
) => AsyncMethod<This, All, R>;

/** A decorator of methods that may return undefined. */
export type SkippingDecorator<Args extends readonly unknown[]> = <This, All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the method takes
  method: AsyncMethod<This, All, R | undefined>,
  context: ClassMethodDecoratorContext<This, AsyncMethod<This, All, R | undefined>>,
) => AsyncMethod<This, All, R | undefined>;

/** The client that a wrapper uses. */
export interface Through<This> {
  /** The client, or a function that gets it from `this`. @default the property `locks` of `this` */
  readonly locks?: (LockClient | ((self: This) => LockClient)) | undefined;
}

/** Checks a function that makes something from the arguments of a call. */
export const ofArguments = must((value) => typeof value === "function", "it must be a function of the arguments");

/** One call of a wrapped function. */
export interface MethodCall {
  readonly self: unknown;
  readonly args: readonly unknown[];
  /** The wrapper's name in errors, such as `Orders.accept`. */
  readonly name: string;
  /** Calls the wrapped function. */
  readonly work: () => unknown;
}

type AnyMethod = AsyncMethod<unknown, readonly unknown[], unknown>;

/** Returns `fn` with `around` applied to each call; without `fn`, a decorator that does the same for a method. */
export function wrapperOf(wrapper: string, fn: AnyMethod | undefined, around: (call: MethodCall) => Promise<unknown>): unknown {
  if (fn !== undefined) return wrapped(wrapper, fn, undefined, around);
  return (method: AnyMethod, context: ClassMethodDecoratorContext) => wrapped(wrapper, method, context, around);
}

/** @throws InvalidRequestError if it can't be a method */
function wrapped(
  wrapper: string,
  method: AnyMethod,
  context: ClassMethodDecoratorContext | string | symbol | undefined,
  around: (call: MethodCall) => Promise<unknown>,
): AnyMethod {
  // With experimentalDecorators, a decorator is called with the class or its prototype, the member's name, and a descriptor.
  const isLegacy = typeof context === "string" || typeof context === "symbol";
  if (isLegacy || (context !== undefined && (context as { readonly kind?: unknown }).kind !== "method")) {
    throw new InvalidRequestError(
      `@${wrapper}${isLegacy ? ` on ${String(context)}` : ""}: is a standard decorator of methods; ` +
        `with experimentalDecorators, wrap the function: ${wrapper}(options, fn)`,
      "fn",
    );
  }
  checkWork(wrapper, "fn", method, "the last argument is the function to wrap");
  return async function (this: unknown, ...args: readonly unknown[]) {
    const name = context ? `${ownerOf(this, context.static)}${String(context.name)}` : method.name || `the function in ${wrapper}()`;
    return around({ self: this, args, name, work: () => Reflect.apply(method, this, args) });
  };
}

/** Returns the client of a call. @throws InvalidRequestError naming the method if there is no client. */
export function clientOf({ locks }: Through<unknown>, { self, name }: MethodCall): LockClient {
  const found: unknown = typeof locks === "function" ? locks(self) : (locks ?? (self as { readonly locks?: unknown } | undefined)?.locks);
  if (typeof (found as Partial<LockClient> | undefined)?.withLock === "function") return found as LockClient;
  throw new InvalidRequestError(`${name}: needs a client: the option locks, or a property locks of the instance`, "locks");
}

/**
 * Returns the result of `make`.
 * @throws InvalidRequestError naming the method, if `make` throws; `key()` reports which part is undefined, null, empty, NaN or an
 *   object.
 */
export function madeOf<T>(name: string, option: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidRequestError(`${name}: its ${option} could not be made: ${why}`, option);
  }
}

/** @throws InvalidRequestError naming the method, unless `made` is nonempty text. */
export function checkMade(name: string, made: unknown): asserts made is string {
  if (typeof made === "string" && made !== "") return;
  throw new InvalidRequestError(`${name}: its key is ${shown(made)}; it must be text, as key(...parts) makes it`, "key");
}

function ownerOf(self: unknown, isStatic: boolean): string {
  const owner = isStatic
    ? (self as { readonly name?: unknown }).name
    : // A method detached from its instance has no owner.
      (self as { readonly constructor?: { readonly name?: unknown } } | undefined)?.constructor?.name;
  return typeof owner === "string" && owner !== "" ? `${owner}.` : "";
}
