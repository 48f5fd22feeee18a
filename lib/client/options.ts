/** The options of callers, and the checks that name the option and the rule before anything is sent. */
import { isKey } from "../core/key.js";
import { given } from "../core/members.js";
import * as LIMITS from "../core/request-limits.js";
import type { Meta } from "../core/details.js";
import type { Mode } from "../core/record.js";
import { InvalidRequestError } from "./errors.js";

/** Options of a lease. */
export interface LeaseOptions {
  /**
   * The lease's length in ms: the time for which the key stays held if this process dies. Heartbeats renew a lease of any length; the
   * length does not limit the work.
   * @default the client's `leaseMs`, else 30 000 (1 000 – 86 400 000); in Lambda at most the remaining time + 2 s
   */
  readonly leaseMs?: number | undefined;
  /** A label for people who inspect the key. @default the client's `owner` */
  readonly owner?: string | undefined;
  /** A JSON object of at most 1 KB, stored with the lease. Whatever is not JSON is stored as `JSON.stringify` writes it. */
  readonly meta?: Meta | undefined;
  /** `false`: a fixed lease without heartbeats, which ends after `leaseMs`. @default true */
  readonly heartbeat?: boolean | undefined;
  /**
   * `"shared"`: shares the key with other shared holders and excludes exclusive ones. A read-write lock is one key used in both modes.
   * @default "exclusive"
   */
  readonly mode?: Mode | undefined;
  /**
   * The number of permits of the key that can be held at once: a semaphore. All users of the key must give the same number. @default 1, a
   * mutex
   */
  readonly limit?: number | undefined;
  /** The number of permits that this lease takes, at most `limit`. @default 1 */
  readonly permits?: number | undefined;
  /** The priority in the key's queue, from 0 to 9. Higher priorities go first; equal ones are served in order of arrival. @default 0 */
  readonly priority?: number | undefined;
  /** Ends a forgotten hold this long after its grant, in ms: the signal aborts and the key is released. No limit by default. */
  readonly maxHoldMs?: number | undefined;
}

/** Options of an acquire that waits. */
export interface AcquireOptions extends LeaseOptions {
  /**
   * The time to wait for the key, in ms; 0 asks once. It also limits the wait during an outage. Below 500, the first response still has 500
   * ms.
   * @default the client's `waitMs`, else 45 000; in Lambda at most the remaining time − 1 s
   */
  readonly waitMs?: number | undefined;
  /** Cancels the wait with an AbortError; nothing stays held. */
  readonly signal?: AbortSignal | undefined;
}

/** The behaviour of a wrapper whose locks can't be reached. */
export interface WhenUnavailable {
  /**
   * The behaviour if the locks can't be reached: `"throw"` throws LockUnavailableError, `"skip"` skips the work and returns undefined, and
   * `"proceed"` runs it without the lock, for work where a missed call is worse than two concurrent ones. The client's `onEvent` reports the
   * latter two. For 3 s after an outage, such a call does so at once, without asking, unless it would wait longer than the one that met it.
   * @default "throw"
   */
  readonly whenUnavailable?: "throw" | "skip" | "proceed" | undefined;
}

/** Options of a set of keys. */
export type SetOptions = Omit<AcquireOptions, "mode" | "limit" | "permits" | "priority">;

/** The last arguments of a call that runs work: its options may be left out. */
export type WorkLast<Options, Held, T> = [work: (held: Held) => Promise<T> | T] | [options: Options, work: (held: Held) => Promise<T> | T];

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

/** One of these words. */
export const oneOf = (...words: readonly string[]): Check =>
  must((value) => words.includes(value as string), `it must be ${words.map((word) => JSON.stringify(word)).join(" or ")}`);

/** Text of this length. */
export const text =
  (minChars: number, maxChars: number): Check =>
  (name, value) =>
    checkText(name, value, minChars, maxChars);

/** A value of one of these types. */
export const ofType =
  (...types: readonly string[]): Check =>
  (name, value) => {
    const rule = types.map((type) => (type === "object" ? "an object" : `a ${type}`)).join(" or ");
    if (!types.includes(typeof value)) throw new InvalidRequestError(`${name}: must be ${rule}`, name);
  };

/** Anything: the option is checked where it is used. */
export const unchecked: Check = () => undefined;

/** True or false. */
export const boolean = must((value) => typeof value === "boolean", "it must be true or false");

/** The checks of options that several calls have. */
export const CHECKS = {
  leaseMs: ms(LIMITS.leaseMinMs, LIMITS.leaseMaxMs),
  owner: text(0, LIMITS.ownerChars),
  reason: text(1, LIMITS.reasonChars),
  meta: (_name: string, value: unknown): void => void metaOf(value),
  mode: oneOf("exclusive", "shared"),
  heartbeat: boolean,
  maxHoldMs: ms(1),
  waitMs: ms(0),
  whenUnavailable: oneOf("throw", "skip", "proceed"),
  signal: must((value) => value instanceof AbortSignal, "it must be an AbortSignal"),
};

const { leaseMs, owner, meta, mode, heartbeat, maxHoldMs, waitMs, whenUnavailable, signal } = CHECKS;
const SET: Checks<SetOptions> = { leaseMs, owner, meta, heartbeat, maxHoldMs, waitMs, signal };
/** The checks of the options that each request of an acquire has. */
export const PARAMETERS: Checks<Omit<LeaseOptions, "heartbeat" | "maxHoldMs">> = {
  ...{ leaseMs, owner, meta },
  ...{ mode, limit: whole(1, LIMITS.permitsMax), permits: whole(1, LIMITS.permitsMax), priority: whole(0, LIMITS.priorityMax) },
};
const LEASE: Checks<LeaseOptions> = { ...PARAMETERS, heartbeat, maxHoldMs };
/** The checks of the options of an acquire that waits. */
export const ACQUIRE: Checks<AcquireOptions> = { ...LEASE, waitMs, signal };

/** The option of a wrapper, in addition to those of its acquire. */
export const WHEN_UNAVAILABLE: Checks<WhenUnavailable> = { whenUnavailable };

/** @throws InvalidRequestError naming the option of `what` that is invalid, unknown, or required and missing. */
export function checkOptions(what: string, options: unknown, checks: Checks, ...required: readonly string[]): void {
  checkNames(what, options, Object.keys(checks));
  for (const [name, check] of Object.entries(checks)) {
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined || required.includes(name)) check(name, value);
  }
}

/** @throws InvalidRequestError naming the invalid option of an acquire that asks once. */
export function checkTryAcquire(options: LeaseOptions & { readonly signal?: AbortSignal | undefined }): void {
  checkOptions("tryAcquire", options, { ...LEASE, signal });
  checkKind(options);
}

/** @throws InvalidRequestError naming the invalid option of an acquire that waits, which also has the options in `more`. */
export function checkAcquire(options: AcquireOptions, more: Checks = {}): void {
  checkOptions("acquire", options, { ...ACQUIRE, ...more });
  checkKind(options);
}

/** @throws InvalidRequestError naming the invalid option of a set, which also has the options in `more`. */
export function checkSet(what: string, options: SetOptions, more: Checks = {}): void {
  checkOptions(what, options, { ...SET, ...more });
}

/** @throws InvalidRequestError unless `key` is a valid key. */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key === "string" && isKey(key)) return;
  const rule = `a key is 1 to ${LIMITS.keyChars} characters of A-Z a-z 0-9 . _ : ~ - and not . or ..`;
  throw refused("key", key, `${rule}; ${madeWith(key)} makes one`);
}

/** Returns the call of `key()` that makes a valid key from such text. */
function madeWith(text: unknown): string {
  const parts = typeof text === "string" ? text.split(/[/\s|#,]+/).filter((part) => part !== "") : [];
  const written = parts.map((part) => (/^(?:0|[1-9]\d{0,14})$/.test(part) ? part : JSON.stringify(part))).join(", ");
  return `key(${written === "" || written.length > SHOWN_CHARS ? "...parts" : written})`;
}

/** The longest part of a given value that a message repeats. */
const SHOWN_CHARS = 80;

/** Returns the error for an option, with the given value and the rule that it breaks. */
export function refused(name: string, given: unknown, rule: string): InvalidRequestError {
  return new InvalidRequestError(`${name}: ${shown(given)} given; ${rule}`, name);
}

/** Formats a given value for a message: short, and without the contents of objects. */
function shown(given: unknown): string {
  if (typeof given === "string") return JSON.stringify(given.length > SHOWN_CHARS ? `${given.slice(0, SHOWN_CHARS)}…` : given);
  if (Array.isArray(given)) return "a list";
  if (typeof given === "object" && given !== null) return "an object";
  return typeof given === "function" ? "a function" : String(given);
}

/** @throws InvalidRequestError if a duration is given and out of bounds. */
export function checkMs(name: string, value: unknown, minMs: number, maxMs: number): void {
  if (value !== undefined) ms(minMs, maxMs)(name, value);
}

/** @throws InvalidRequestError unless it is well-formed text of this length. A lone surrogate can't be encoded for the wire. */
export function checkText(name: string, value: unknown, minChars: number, maxChars: number): asserts value is string {
  if (typeof value === "string" && Array.from(value).length >= minChars && value.length <= maxChars && value.isWellFormed()) return;
  throw new InvalidRequestError(`${name}: must be text of ${minChars} to ${maxChars} characters`, name);
}

/** @throws InvalidRequestError naming the option that is neither true nor false, nor left out */
export function checkBoolean(name: string, value: unknown): void {
  if (value !== undefined) boolean(name, value);
}

/** The checks of a page's options. */
export const PAGE = {
  prefix: must((value) => isPartOfKey(value), "it must be the beginning of a key"),
  max: whole(1, LIMITS.listMax),
  cursor: must((value) => isPartOfKey(value) && value !== "", "it must be an earlier page's"),
};

function isPartOfKey(value: unknown): boolean {
  return typeof value === "string" && /^[\w.:~-]{0,200}$/.test(value);
}

/** @throws InvalidRequestError unless these are known options: a misspelt option, or a bare number, must not be ignored. */
export function checkNames(what: string, options: unknown, known: readonly string[]): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw refused("options", options, `${what} takes an object of options: ${known.join(", ")}`);
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new InvalidRequestError(`${unknown}: is not an option of ${what}; these are: ${known.join(", ")}`, unknown);
}

/**
 * Returns `options` merged over `defaults`; options given as undefined keep their default. A value that is no object is returned for the
 * client to refuse.
 */
export function withDefaults<Options extends object>(defaults: Options, options: Options): Options {
  if (typeof options !== "object" || (options as unknown) === null) return options;
  return { ...defaults, ...given(options) };
}

/** @throws InvalidRequestError unless it is a function that runs when it is called (a generator function doesn't). */
export function checkWork(what: string, field: string, work: unknown, rule = "the last argument is the function to run"): void {
  if (typeof work !== "function") throw new InvalidRequestError(`${what}: ${rule}`, field);
  if (Object.prototype.toString.call(work).includes("Generator")) throw new InvalidRequestError(`${what}: ${rule}, not a generator`, field);
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

/** @throws InvalidRequestError if mode, limit and permits don't fit together. */
function checkKind({ mode, limit = 1, permits = 1 }: LeaseOptions): void {
  if (permits > limit) throw refused("permits", permits, `it must be at most the limit of ${limit}`);
  if (mode === "shared" && limit !== 1) throw refused("limit", limit, "a shared lease takes none");
}

/** @throws InvalidRequestError unless `scope` is text that is long enough not to be guessed. */
export function checkScope(scope: unknown): asserts scope is string {
  checkText("scope", scope, LIMITS.scopeMinChars, LIMITS.scopeMaxChars);
}
