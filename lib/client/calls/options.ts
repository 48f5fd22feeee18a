/** The options of callers, and their checks. */
import { isKey } from "../../core/key.js";
import { given } from "../../core/members.js";
import * as LIMITS from "../../core/request-limits.js";
import type { Meta } from "../../core/details.js";
import type { Mode } from "../../core/record.js";
import { type Checks, CHECKS, checkOptions, must, refused, SHOWN_CHARS, text, whole } from "../wire/checks.js";

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
  /**
   * The longest time between two `lease.progress()`, in ms, at least `leaseMs`; the first counts from the grant. After it the signal aborts
   * and heartbeats end, so work that hangs loses the key one lease later at the latest. No limit by default.
   */
  readonly progressMs?: number | undefined;
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
   * The behaviour if the locks can't be reached, or nothing can be decided now (`throttled`, `clock-skew`, `internal`): `"throw"` throws
   * LockUnavailableError, `"skip"` skips the work and returns undefined, and `"proceed"` runs it without the lock, for work where a missed call
   * is worse than two concurrent ones. The client's `onEvent` reports the latter two. For 3 s after an outage, such a call does so at once,
   * without asking, unless it would wait longer than the one that met it.
   * @default "throw"
   */
  readonly whenUnavailable?: "throw" | "skip" | "proceed" | undefined;
}

/** Options of a set of keys. */
export type SetOptions = Omit<AcquireOptions, "mode" | "limit" | "permits" | "priority">;

/** The last arguments of a call that runs work: its options may be left out. */
export type WorkLast<Options, Held, T> = [work: (held: Held) => Promise<T> | T] | [options: Options, work: (held: Held) => Promise<T> | T];

/** Returns the options and the work of such arguments. */
export function optionsAndWork<Options extends object, Work>(rest: [Work] | [Options, Work]): [Partial<Options>, Work] {
  return rest.length === 1 ? [{}, rest[0]] : rest;
}

/** The options of a lease that its heartbeats have, and no request. */
export type KeptOptions = "heartbeat" | "maxHoldMs" | "progressMs";

const { leaseMs, owner, meta, mode, heartbeat, maxHoldMs, progressMs, waitMs, whenUnavailable, signal } = CHECKS;
/** The checks of the options of a lease that another process acquired. */
export const ATTACH: Checks<Pick<LeaseOptions, "leaseMs" | "owner" | KeptOptions>> = { leaseMs, owner, heartbeat, maxHoldMs, progressMs };
export const SET: Checks<SetOptions> = { ...ATTACH, meta, waitMs, signal };
/** The checks of the options that each request of an acquire has. */
export const PARAMETERS: Checks<Omit<LeaseOptions, KeptOptions>> = {
  leaseMs,
  owner,
  meta,
  mode,
  limit: whole(1, LIMITS.permitsMax),
  permits: whole(1, LIMITS.permitsMax),
  priority: whole(0, LIMITS.priorityMax),
};
const LEASE: Checks<LeaseOptions> = { ...PARAMETERS, ...ATTACH };
export const ACQUIRE: Checks<AcquireOptions> = { ...LEASE, waitMs, signal };

/** The option of a wrapper, in addition to those of its acquire. */
export const WHEN_UNAVAILABLE: Checks<WhenUnavailable> = { whenUnavailable };

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

/** The checks of a page's options. */
export const PAGE = {
  prefix: must((value) => isPartOfKey(value), "it must be the beginning of a key"),
  max: whole(1, LIMITS.listMax),
  cursor: must((value) => isPartOfKey(value) && value !== "", "it must be an earlier page's"),
};

function isPartOfKey(value: unknown): boolean {
  return typeof value === "string" && /^[\w.:~-]{0,200}$/.test(value);
}

/**
 * Returns `options` merged over `defaults`; options given as undefined keep their default. A value that is no object is returned for the
 * client to refuse.
 */
export function withDefaults<Options extends object>(defaults: Options, options: Options): Options {
  if (typeof options !== "object" || (options as unknown) === null) return options;
  return { ...defaults, ...given(options) };
}

/** @throws InvalidRequestError if mode, limit and permits don't fit together. */
export function checkKind({ mode, limit = 1, permits = 1 }: LeaseOptions): void {
  if (permits > limit) throw refused("permits", permits, `it must be at most the limit of ${limit}`);
  if (mode === "shared" && limit !== 1) throw refused("limit", limit, "a shared lease takes none");
}

/** @throws InvalidRequestError for a time without progress that would say nothing, since a lease of this length is over by itself. */
export function checkProgress({ heartbeat, progressMs }: Pick<LeaseOptions, KeptOptions>, leaseMs: number): void {
  if (progressMs !== undefined && (progressMs < leaseMs || heartbeat === false))
    throw refused("progressMs", progressMs, `it must be at least the lease of ${leaseMs} ms, which needs heartbeats`);
}

/** Refuses a scope that is no text, or too short not to be guessed. */
export const SCOPE = text(LIMITS.scopeMinChars, LIMITS.scopeMaxChars);
