/**
 * What a wrapper of a function or method needs: as a decorator or as a call, the client it goes through, the
 * name it goes by in errors, and a key from the arguments that is right or is refused before anything happens.
 */
import { InvalidRequestError } from "../errors.js";
import type { LockClient } from "../lock-client.js";
import { checkWork } from "../options.js";

/** An asynchronous function or method. */
export type AsyncMethod<This, Args extends readonly unknown[], R> = (this: This, ...args: Args) => Promise<R>;

/** A standard (TC39) method decorator that keeps the method's type. `Args` are those that the options' functions take, or more. */
export type AsyncMethodDecorator<Args extends readonly unknown[]> = <This, All extends readonly [...Args, ...any[]], R>( // eslint-disable-line @typescript-eslint/no-explicit-any -- whatever else the method takes
  method: AsyncMethod<This, All, R>,
  context: ClassMethodDecoratorContext<This, AsyncMethod<This, All, R>>,
) => AsyncMethod<This, All, R>;

/** Where a wrapper finds its client. */
export interface Through<This> {
  /** The client, or how to get it from `this`. @default the property `locks` of `this` */
  readonly locks?: LockClient | ((self: This) => LockClient);
}

/** How one call of a wrapped function goes. */
export interface Call<This, Args extends readonly unknown[], R> {
  readonly self: This;
  readonly args: Args;
  /** The wrapper's name in errors, such as `Orders.accept`. */
  readonly name: string;
  /** Calls the function that is wrapped. */
  readonly work: () => Promise<R> | R;
}

/** Puts `around` around each call of `method`, decorated or wrapped. @throws InvalidRequestError when that can't be a method. */
export function wrapped<This, Args extends readonly unknown[], R>(
  wrapper: string,
  method: AsyncMethod<This, Args, R>,
  context: ClassMethodDecoratorContext | string | symbol | undefined,
  around: (call: Call<This, Args, R>) => Promise<R>,
): AsyncMethod<This, Args, R> {
  // With experimentalDecorators it is called with the class or its prototype, the member's name, and a descriptor.
  const isLegacy = typeof context === "string" || typeof context === "symbol";
  if (isLegacy || (context !== undefined && (context as { readonly kind?: unknown }).kind !== "method")) {
    throw new InvalidRequestError(
      `@${wrapper}${isLegacy ? ` on ${String(context)}` : ""}: is a standard decorator of methods; ` +
        `with experimentalDecorators, wrap the function: ${wrapper}(options, fn)`,
      "fn",
    );
  }
  checkWork(wrapper, "fn", method, "the last argument is the function to wrap");
  return async function (this: This, ...args: Args): Promise<R> {
    const name = context ? `${ownerOf(this, context.static)}${String(context.name)}` : method.name || `the function in ${wrapper}()`;
    return around({ self: this, args, name, work: () => Reflect.apply(method, this, args) });
  };
}

/** The client of a call. @throws InvalidRequestError naming the method when there is none. */
export function clientOf<This>(
  { locks }: Through<This>,
  { self, name }: Pick<Call<This, readonly unknown[], unknown>, "self" | "name">,
): LockClient {
  const found: unknown = typeof locks === "function" ? locks(self) : (locks ?? (self as { readonly locks?: unknown } | undefined)?.locks);
  if (typeof (found as Partial<LockClient> | undefined)?.withLock === "function") return found as LockClient;
  throw new InvalidRequestError(`${name}: needs a client: the option locks, or a property locks of the instance`, "locks");
}

/**
 * What `make` makes of the arguments.
 * @throws InvalidRequestError naming the method, when it throws: `key()` says which part is undefined, null, empty, NaN or an object.
 */
export function madeOf<T>(name: string, option: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidRequestError(`${name}: its ${option} could not be made: ${why}`, option);
  }
}

/** @throws InvalidRequestError naming the method, unless `made` is text. */
export function checkMade(name: string, made: unknown): asserts made is string {
  if (typeof made === "string" && made !== "") return;
  const what =
    made === ""
      ? "empty text"
      : made === null
        ? "null"
        : Array.isArray(made)
          ? "a list"
          : typeof made === "number"
            ? String(made)
            : typeof made;
  throw new InvalidRequestError(`${name}: its key is ${what}; it must be text, as key(...parts) makes it`, "key");
}

function ownerOf(self: unknown, isStatic: boolean): string {
  const owner = isStatic
    ? (self as { readonly name?: unknown }).name
    : // Detached from its instance, it has none.
      (self as { readonly constructor?: { readonly name?: unknown } } | undefined)?.constructor?.name;
  return typeof owner === "string" && owner !== "" ? `${owner}.` : "";
}
