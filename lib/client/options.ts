/** What callers may ask for, and the checks that name the option and the rule before anything is sent. */
import { isKey } from "../core/key.js";
import { LIMITS } from "../core/limits.js";
import type { Meta } from "../core/record.js";
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
  /** Ends a hold that forgot itself, in ms from its grant: the signal fires and the key is released. None by default. */
  readonly maxHoldMs?: number;
}

/** Options of an acquire that waits. */
export interface AcquireOptions extends LeaseOptions {
  /** How long to wait for the key in ms; 0 asks once. @default 30 000; in Lambda at most the remaining time − 1 s */
  readonly waitMs?: number;
  /** Gives the wait up with an AbortError; nothing stays held. */
  readonly signal?: AbortSignal;
}

const LEASE_OPTIONS = ["leaseMs", "owner", "meta", "heartbeat", "maxHoldMs"];
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

/** @throws InvalidRequestError naming an option that does not exist: a misspelt one must not be ignored. */
export function checkNames(what: string, options: object, known: readonly string[]): void {
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw new InvalidRequestError(`${unknown}: is not an option of ${what}; these are: ${known.join(", ")}`, unknown);
}

/** @throws InvalidRequestError naming what is wrong with the options of a lease. */
export function checkLease({ leaseMs, owner, meta, maxHoldMs, heartbeat }: LeaseOptions): void {
  checkMs("leaseMs", leaseMs, LIMITS.leaseMinMs, LIMITS.leaseMaxMs);
  checkMs("maxHoldMs", maxHoldMs, 1, Number.MAX_SAFE_INTEGER);
  if (heartbeat !== undefined && typeof heartbeat !== "boolean")
    throw new InvalidRequestError("heartbeat: must be true or false", "heartbeat");
  if (owner !== undefined && (typeof owner !== "string" || owner.length > LIMITS.ownerChars)) {
    throw new InvalidRequestError(`owner: must be text of at most ${LIMITS.ownerChars} characters`, "owner");
  }
  if (meta !== undefined && !isSmallObject(meta)) {
    throw new InvalidRequestError(`meta: must be an object of at most ${LIMITS.metaBytes} bytes as JSON`, "meta");
  }
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
