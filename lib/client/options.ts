/** What callers may ask for, and the checks that name the option and the rule before anything is sent. */
import { isKey } from "../core/key.js";
import { LIMITS } from "../core/limits.js";
import type { Meta, Mode } from "../core/record.js";
import { InvalidRequestError } from "./errors.js";

/** Options of a lease. */
export interface LeaseOptions {
  /**
   * The lease's length in ms: how long the key stays held if this process dies. Heartbeats renew it
   * whatever its length; it does not bound the work.
   * @default 30 000 (1 000 – 86 400 000); in Lambda at most the remaining time + 2 s
   */
  readonly leaseMs?: number;
  /** A label for people who look who holds what. @default the client's `owner` */
  readonly owner?: string;
  /** A JSON object of at most 1 KB, kept with the lease. */
  readonly meta?: Meta;
  /** `false`: a fixed lease that ends after `leaseMs`, renewed by nobody. @default true */
  readonly heartbeat?: boolean;
  /**
   * `"shared"`: beside others who share, and never beside one who does not; a read-write lock is one key used
   * in both modes. @default "exclusive"
   */
  readonly mode?: Mode;
  /** How many permits of the key may be out at once: a semaphore. All who use the key say the same. @default 1, a mutex */
  readonly limit?: number;
  /** How many of them this lease takes, at most `limit`. @default 1 */
  readonly permits?: number;
  /** In the key's queue, from 0 to 9: higher ones first, then in the order of arrival. @default 0 */
  readonly priority?: number;
  /** Ends a hold that forgot itself, in ms from its grant: the signal fires and the key is released. None by default. */
  readonly maxHoldMs?: number;
}

/** Options of an acquire that waits. */
export interface AcquireOptions extends LeaseOptions {
  /**
   * How long to wait for the key in ms; 0 asks once. It is kept in an outage too; below 500, a first answer has 500 ms.
   * @default 30 000; in Lambda at most the remaining time − 1 s
   */
  readonly waitMs?: number;
  /** Gives the wait up with an AbortError; nothing stays held. */
  readonly signal?: AbortSignal;
}

/** Options of a set of keys. */
export type SetOptions = Omit<AcquireOptions, "mode" | "limit" | "permits" | "priority">;

const LEASE_OPTIONS = ["leaseMs", "owner", "meta", "mode", "limit", "permits", "priority", "heartbeat", "maxHoldMs"];
const SET_OPTIONS = ["leaseMs", "owner", "meta", "heartbeat", "maxHoldMs", "waitMs", "signal"];
const ACQUIRE_OPTIONS = [...LEASE_OPTIONS, "waitMs", "signal"];

/** @throws InvalidRequestError naming what is wrong with an acquire that asks once. */
export function checkTryAcquire(options: LeaseOptions & { readonly signal?: AbortSignal }): void {
  checkNames("tryAcquire", options, [...LEASE_OPTIONS, "signal"]);
  checkLease(options);
  checkSignal(options.signal);
}

/** @throws InvalidRequestError naming what is wrong with an acquire that waits. */
export function checkAcquire(options: AcquireOptions): void {
  checkNames("acquire", options, ACQUIRE_OPTIONS);
  checkLease(options);
  checkMs("waitMs", options.waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkSignal(options.signal);
}

/** @throws InvalidRequestError naming what is wrong with the options of a set. */
export function checkSet(what: string, options: SetOptions): void {
  checkNames(what, options, SET_OPTIONS);
  checkLease(options);
  checkMs("waitMs", options.waitMs, 0, Number.MAX_SAFE_INTEGER);
  checkSignal(options.signal);
}

/** @throws InvalidRequestError unless `key` may name a lock. */
export function checkKey(key: unknown): asserts key is string {
  if (typeof key !== "string" || !isKey(key)) {
    throw new InvalidRequestError(
      `key: must be 1 to ${LIMITS.keyChars} characters of A-Z a-z 0-9 . _ : ~ - and not . or .. (key(...parts) makes one of anything)`,
      "key",
    );
  }
}

/** @throws InvalidRequestError when a duration is given and out of bounds. */
export function checkMs(name: string, value: unknown, minMs: number, maxMs: number): void {
  if (value === undefined) return;
  if (!Number.isSafeInteger(value) || (value as number) < minMs || (value as number) > maxMs) {
    throw new InvalidRequestError(`${name}: must be a whole number of milliseconds from ${minMs} to ${maxMs}`, name);
  }
}

/** @throws InvalidRequestError when a page is asked for that can't be. */
export function checkPage({ prefix, max, cursor }: { readonly prefix?: unknown; readonly max?: unknown; readonly cursor?: unknown }): void {
  for (const [name, value] of [["prefix", prefix] as const, ["cursor", cursor] as const])
    if (value !== undefined && typeof value !== "string") throw new InvalidRequestError(`${name}: must be text`, name);
  if (max !== undefined && !(Number.isSafeInteger(max) && (max as number) >= 1 && (max as number) <= LIMITS.listMax))
    throw new InvalidRequestError(`max: must be a whole number from 1 to ${LIMITS.listMax}`, "max");
}

/** @throws InvalidRequestError unless these are options: one that is misspelt, or a bare number, must not be ignored. */
export function checkNames(what: string, options: unknown, known: readonly string[]): asserts options is object {
  if (typeof options !== "object" || options === null || Array.isArray(options))
    throw new InvalidRequestError(`options: ${what} takes an object of options: ${known.join(", ")}`, "options");
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new InvalidRequestError(`${unknown}: is not an option of ${what}; these are: ${known.join(", ")}`, unknown);
}

/** @throws InvalidRequestError naming what is wrong with the options of a lease. */
export function checkLease({ leaseMs, owner, meta, mode, limit, permits, priority = 0, maxHoldMs, heartbeat }: LeaseOptions): void {
  checkKind(mode, limit, permits);
  if (!(Number.isSafeInteger(priority) && priority >= 0 && priority <= LIMITS.priorityMax))
    throw new InvalidRequestError(`priority: must be a whole number from 0 to ${LIMITS.priorityMax}`, "priority");
  checkMs("leaseMs", leaseMs, LIMITS.leaseMinMs, LIMITS.leaseMaxMs);
  checkMs("maxHoldMs", maxHoldMs, 1, Number.MAX_SAFE_INTEGER);
  if (heartbeat !== undefined && typeof heartbeat !== "boolean")
    throw new InvalidRequestError("heartbeat: must be true or false", "heartbeat");
  checkOwner(owner);
  if (meta !== undefined && !isSmallObject(meta)) {
    throw new InvalidRequestError(`meta: must be an object of at most ${LIMITS.metaBytes} bytes as JSON`, "meta");
  }
}

/** @throws InvalidRequestError when an owner is given that can't be shown. */
export function checkOwner(owner: unknown): void {
  if (owner !== undefined && (typeof owner !== "string" || owner.length > LIMITS.ownerChars))
    throw new InvalidRequestError(`owner: must be text of at most ${LIMITS.ownerChars} characters`, "owner");
}

/** What no key could be asked for. */
function checkKind(mode: unknown, limit: unknown = 1, permits: unknown = 1): void {
  if (mode !== undefined && mode !== "exclusive" && mode !== "shared")
    throw new InvalidRequestError('mode: must be "exclusive" or "shared"', "mode");
  for (const [name, value] of [["limit", limit] as const, ["permits", permits] as const]) {
    if (!(Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) <= LIMITS.permitsMax))
      throw new InvalidRequestError(`${name}: must be a whole number from 1 to ${LIMITS.permitsMax}`, name);
  }
  if ((permits as number) > (limit as number))
    throw new InvalidRequestError(`permits: must be at most the limit of ${String(limit)}`, "permits");
  if (mode === "shared" && limit !== 1) throw new InvalidRequestError("limit: a shared lease takes no permits; leave it out", "limit");
}

/** @throws InvalidRequestError unless `scope` is text that nobody guesses. */
export function checkScope(scope: unknown): asserts scope is string {
  const { scopeMinChars, scopeMaxChars } = LIMITS;
  if (typeof scope !== "string" || scope.length < scopeMinChars || scope.length > scopeMaxChars)
    throw new InvalidRequestError(`scope: must be text of ${scopeMinChars} to ${scopeMaxChars} characters that nobody guesses`, "scope");
}

/** @throws InvalidRequestError unless it is a signal, or none. */
export function checkSignal(signal: unknown): void {
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw new InvalidRequestError("signal: must be an AbortSignal", "signal");
}

function isSmallObject(meta: unknown): boolean {
  return (
    typeof meta === "object" &&
    meta !== null &&
    !Array.isArray(meta) &&
    new TextEncoder().encode(JSON.stringify(meta)).length <= LIMITS.metaBytes
  );
}
