/**
 * The brands by which the package's own classes are told. A process can have several copies of the package: a bundler makes one for each part
 * of an application. `instanceof` doesn't know the objects of another copy, and work that failed for good would be done again.
 */

/** A class, also an abstract one. */
type Class<T> = abstract new (...args: never) => T;

/** The member of a branded class's prototype that has the class's name. */
const BRAND = Symbol.for("holdfast.brand/1");

/** Gives the class its brand. Its static block calls this, so that a bundle without the brand has no such class. */
export function brand(type: Class<object>, name: string): void {
  Object.defineProperty(type.prototype, BRAND, { value: name });
}

/** True if `value` is of this branded class or of one below it, whichever copy of the package made it. */
export function isA<T>(value: unknown, type: Class<T>): value is T {
  const name = brandOf(type.prototype);
  if (name === undefined) throw new TypeError(`${type.name} has no brand`);
  for (let one: unknown = value; typeof one === "object" && one !== null; one = Object.getPrototypeOf(one))
    if (brandOf(one) === name) return true;
  return false;
}

/** The `Symbol.hasInstance` of branded classes that others derive from: `instanceof` goes by the brand, for a class of theirs as ever. */
export function hasInstance(type: Class<unknown>, value: unknown): boolean {
  const isBranded = brandOf(type.prototype) !== undefined;
  return isBranded ? isA(value, type) : Function.prototype[Symbol.hasInstance].call<unknown, [unknown], boolean>(type, value);
}

/** Returns the brand that the object itself has, and not the one that it inherits. */
function brandOf(object: unknown): unknown {
  return Object.getOwnPropertyDescriptor(object, BRAND)?.value;
}
