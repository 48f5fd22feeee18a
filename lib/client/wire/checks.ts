/** The checks of options, which name the option, the rule and what was given, before anything is sent. */
import type { Meta } from "../../core/details.js";
import * as LIMITS from "../../core/request-limits.js";
import { InvalidRequestError } from "./errors.js";

/** Refuses the given value of an option. @throws InvalidRequestError naming the option and the rule */
export type Check = (name: string, value: unknown) => void;

/** The check of each option of a call. The compiler asks for that of a new option. */
export type Checks<Options = Readonly<Record<string, unknown>>> = { readonly [Name in keyof Options]-?: Check };

/** A whole number within these bounds. */
export const whole =
  (min: number, max: number, rule = "it must be a whole number"): Check =>
  (name, value) => {
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
    throw refused(name, value, `${rule} ${max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`}`);
  };

/** A duration within these bounds. */
export const ms = (minMs: number, maxMs = Number.MAX_SAFE_INTEGER): Check => whole(minMs, maxMs, "it is a whole number of ms");

/** A value for which `isRight`. */
export const must =
  (isRight: (value: unknown) => boolean, rule: string): Check =>
  (name, value) => {
    if (!isRight(value)) throw refused(name, value, rule);
  };

export const oneOf = (...words: readonly string[]): Check =>
  must((value) => words.includes(value as string), `it must be ${words.map((word) => JSON.stringify(word)).join(" or ")}`);

/** Well-formed text of this length. A lone surrogate can't be encoded for the wire. */
export const text =
  (minChars: number, maxChars: number): Check =>
  (name, value) => {
    if (typeof value === "string" && Array.from(value).length >= minChars && value.length <= maxChars && value.isWellFormed()) return;
    throw new InvalidRequestError(`${name}: must be text of ${minChars} to ${maxChars} characters`, name);
  };

/** A value of one of these types. */
export const ofType =
  (...types: readonly string[]): Check =>
  (name, value) => {
    const rule = types.map((type) => (type === "object" ? "an object" : `a ${type}`)).join(" or ");
    if (!types.includes(typeof value)) throw new InvalidRequestError(`${name}: must be ${rule}`, name);
  };

/** Anything: the option is checked where it is used. */
export const unchecked: Check = () => undefined;

export const boolean = must((value) => typeof value === "boolean", "it must be true or false");

/** The checks of options that several calls have. */
export const CHECKS = {
  leaseMs: ms(LIMITS.leaseMinMs, LIMITS.leaseMaxMs),
  owner: text(0, LIMITS.ownerChars),
  reason: text(1, LIMITS.reasonChars),
  fencingToken: must((value) => Number.isSafeInteger(value) && (value as number) >= 0, "it must be a fencing token"),
  meta: (_name: string, value: unknown): void => void metaOf(value),
  mode: oneOf("exclusive", "shared"),
  heartbeat: boolean,
  maxHoldMs: ms(1),
  progressMs: ms(LIMITS.leaseMinMs),
  waitMs: ms(0),
  whenUnavailable: oneOf("throw", "skip", "proceed"),
  signal: must((value) => value instanceof AbortSignal, "it must be an AbortSignal"),
};

/** @throws InvalidRequestError naming the option of `what` that is invalid, unknown, or required and missing. */
export function checkOptions(what: string, options: unknown, checks: Checks, ...required: readonly string[]): void {
  checkNames(what, options, Object.keys(checks));
  for (const [name, check] of Object.entries(checks)) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined || required.includes(name)) check(name, value);
  }
}

/** The longest part of a given value that a message repeats. */
export const SHOWN_CHARS = 80;

/** Returns the error for an option, with the given value and the rule that it breaks. */
export function refused(name: string, value: unknown, rule: string): InvalidRequestError {
  return new InvalidRequestError(`${name}: ${shown(value)} given; ${rule}`, name);
}

/** Formats a given value for a message: short, and without the contents of objects. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > SHOWN_CHARS ? `${value.slice(0, SHOWN_CHARS)}…` : value);
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : String(value);
}

/** @throws InvalidRequestError unless these are known options: a misspelt option, or a bare number, must not be ignored. */
export function checkNames(what: string, options: unknown, names: readonly string[]): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw refused("options", options, `${what} takes an object of options: ${names.join(", ")}`);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw new InvalidRequestError(`${unknown}: is not an option of ${what}; these are: ${names.join(", ")}`, unknown);
}

/** @throws InvalidRequestError unless it is a function that runs when it is called (a generator function doesn't). */
export function checkWork(what: string, field: string, work: unknown, rule = "the last argument is the function to run"): void {
  if (typeof work !== "function") throw new InvalidRequestError(`${what}: ${rule}`, field);
  if (Object.prototype.toString.call(work).includes("Generator")) throw new InvalidRequestError(`${what}: ${rule}, not a generator`, field);
}

/** The member by which libraries know an Observable of each other. */
const OBSERVABLE = "@@observable";

/**
 * Returns the result of work.
 * @throws InvalidRequestError if it is a generator, another async iterable, such as a stream or a cursor, or an Observable: it would do work
 *   when the lock, run or limit around the call is over
 */
export function checkResult<T>(result: T): T {
  if (typeof result !== "object" || result === null) return result;
  const { observable = OBSERVABLE } = Symbol as { readonly observable?: symbol };
  const isGenerator = "next" in result && Object.prototype.toString.call(result).includes("Generator");
  if (!isGenerator && !(Symbol.asyncIterator in result) && !(observable in result) && !(OBSERVABLE in result)) return result;
  const what = "returned an iterator, a stream or an Observable, which would do work after this call is over";
  throw new InvalidRequestError(`work: ${what}; consume it in the work, and return its values`, "work");
}

/**
 * Returns a given meta as JSON carries it, such as text for a Date: every request, comparison and answer has this one.
 * @throws InvalidRequestError unless it serializes to a small JSON object.
 */
export function metaOf(meta: unknown): Meta | undefined {
  if (meta === undefined) return undefined;
  const rule = `meta: must be an object of at most ${LIMITS.metaBytes} bytes as JSON`;
  let json = "";
  try {
    json += JSON.stringify(meta, refuseCode);
  } catch (error) {
    // For example a bigint, a cycle, or a toJSON method that throws.
    throw new InvalidRequestError(`${rule}: ${error instanceof Error ? error.message : String(error)}`, "meta");
  }
  if (!json.startsWith("{") || new TextEncoder().encode(json).length > LIMITS.metaBytes) throw new InvalidRequestError(rule, "meta");
  return JSON.parse(json) as Meta;
}

/** JSON leaves these out without a word. */
function refuseCode(name: string, value: unknown): unknown {
  if (typeof value === "function" || typeof value === "symbol") throw new Error(`${JSON.stringify(name)} is a ${typeof value}`);
  return value;
}
