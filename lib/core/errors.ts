/**
 * Errors as data: every refusal of the service, with its status, whether the operation certainly did not happen, advice
 * to the caller, and one sentence. Problem documents and the table in the docs are made from it. No retry policy is ever
 * inferred from a status. A new code also needs a place in `refusals` (lib/contract/operations.ts; in `ALWAYS` of
 * lib/contract/openapi.ts if every route may answer it) and `ADVICE` (test/docs/error-pages.ts); in `CODES_OF`
 * (bin/format-failure.ts) if its exit status is not that of its advice; in `UNAVAILABLE` (lib/client/wire/errors.ts) if it is an outage, and in `WAITABLE`
 * (lib/client/ask/until-granted.ts, told by docs/waiting.md) if a wait outlasts it. Only `locked` means that the key
 * is held: for another code that does, see every `"locked"` in lib. Then run `npx vitest run test/docs/errors -u`.
 */
import type { PublicDetails } from "./details.js";

/**
 * `same`: send the same request again · `later`: try again after `retryAfterMs` · `new-lease`: use a new leaseId ·
 * `never`: the same request cannot succeed.
 */
export type RetryAdvice = "same" | "later" | "new-lease" | "never";

interface ErrorEntry {
  readonly status: number;
  /** True if the operation certainly did not happen. */
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly title: string;
  /** The last words of every `detail`, for a code whose cause is in the request: what to send instead. */
  readonly instead?: string;
}

/** The registry. Keys are the `code` on the wire. */
export const ERRORS = {
  "invalid-request": { status: 400, definite: true, retry: "never", title: "The request breaks a rule of the API" },
  forbidden: { status: 403, definite: true, retry: "never", title: "This principal may not do that" },
  "not-found": { status: 404, definite: true, retry: "never", title: "Not found" },
  "method-not-allowed": { status: 405, definite: true, retry: "never", title: "The path does not take this method" },
  "limit-mismatch": { status: 409, definite: true, retry: "never", title: "The key is in use with another limit" },
  "run-in-progress": { status: 409, definite: true, retry: "later", title: "Another lease runs under this idempotency key" },
  "attempts-exhausted": { status: 409, definite: true, retry: "never", title: "The run has used up its attempts; reset it to try again" },
  "outcome-differs": { status: 409, definite: true, retry: "never", title: "This lease recorded another outcome before" },
  "upgrade-conflict": { status: 409, definite: true, retry: "never", title: "Another reader asked to upgrade first" },
  "not-exclusive": { status: 409, definite: true, retry: "never", title: "A condition needs an exclusive lease that holds the key once" },
  "token-mismatch": { status: 409, definite: true, retry: "never", title: "The lease has another fencing token by now" },
  "lease-lost": { status: 410, definite: true, retry: "new-lease", title: "The lease is no longer held" },
  "lease-over": {
    status: 410,
    definite: true,
    retry: "new-lease",
    title: "This leaseId was already used and has ended",
    instead: "send the request under a new leaseId",
  },
  "other-hold": { status: 412, definite: true, retry: "never", title: "The key is held by another lease by now" },
  "too-large": { status: 413, definite: true, retry: "never", title: "The request body is too large" },
  "unsupported-media-type": { status: 415, definite: true, retry: "never", title: "The request body must be JSON" },
  "lease-reused": {
    status: 422,
    definite: true,
    retry: "new-lease",
    title: "The leaseId is in use with other parameters",
    instead: "send the request under a new leaseId, or repeat the first one unchanged",
  },
  "fingerprint-mismatch": { status: 422, definite: true, retry: "never", title: "The idempotency key was used with another payload" },
  "lease-id-time": { status: 422, definite: true, retry: "new-lease", title: "The leaseId's time is too far from the service's" },
  locked: { status: 423, definite: true, retry: "later", title: "The key is held by another lease" },
  "rate-limited": { status: 429, definite: true, retry: "later", title: "The limit has no room for this take yet" },
  "queue-full": { status: 429, definite: true, retry: "later", title: "The key's queue is full" },
  "key-full": { status: 429, definite: true, retry: "later", title: "The key's record has reached its size limit" },
  contended: { status: 429, definite: true, retry: "same", title: "Others kept changing the key under the request" },
  throttled: { status: 429, definite: true, retry: "later", title: "Too many requests" },
  "not-configured": { status: 500, definite: true, retry: "never", title: "The table or the credentials are not set up" },
  "older-format": {
    status: 500,
    definite: true,
    retry: "never",
    title: "The record was written by an older version",
    instead: "let the work of the older version end, then use a new table",
  },
  "unreadable-record": { status: 500, definite: true, retry: "never", title: "The record is damaged" },
  internal: { status: 500, definite: false, retry: "same", title: "Something went wrong in the service" },
  "clock-unknown": { status: 500, definite: true, retry: "never", title: "There is no second clock to decide by" },
  "clock-skew": { status: 503, definite: true, retry: "later", title: "The server clocks disagree too much to decide" },
  "newer-format": { status: 503, definite: true, retry: "later", title: "The record was written by a newer version" },
  unavailable: { status: 503, definite: false, retry: "same", title: "The table could not be reached" },
} as const satisfies Record<string, ErrorEntry>;

/** The `code` of a refusal. */
export type ErrorCode = keyof typeof ERRORS;

/** The reason why a lease is no longer held. */
export type LostReason = "expired" | "taken" | "broken" | "released" | "transferred" | "never";

/** A holder as others may see it, without its leaseId, scope or principal. Waiters: `WaiterView` in lock/views.ts. */
export interface HolderView extends PublicDetails {
  readonly mode: "exclusive" | "shared";
  readonly permits: number;
  readonly fencingToken: number;
  readonly heldMs: number;
  readonly remainingMs: number;
}

/** Optional members of a refusal. */
export interface RefusalDetails {
  /** One sentence for a person, about this request. */
  readonly detail?: string;
  /** Set where it differs from the code's usual advice. */
  readonly retry?: RetryAdvice;
  readonly retryAfterMs?: number;
  readonly holders?: readonly HolderView[];
  /** The number of holders that `holders` omits, since an answer is bounded in bytes. */
  readonly holdersOmitted?: number;
  readonly reason?: LostReason;
  /** For a set: `blocking` has the keys that others hold, `lost` the keys of the set that are lost. */
  readonly blocking?: readonly string[];
  readonly lost?: readonly string[];
  /** The field of the request that broke the rule. */
  readonly field?: string;
  readonly serverTimeMs?: number;
  /** A new leaseId is accepted only if its time is above this. */
  readonly leaseIdAboveMs?: number;
  /** Overrides the registry, for codes where only this request shows whether the operation happened. */
  readonly definite?: boolean;
}

/** Optional members of a refusal that a client makes itself. */
export interface LocalDetails extends RefusalDetails {
  /** True if a call had no answer because its invocation ends: the service may be well. */
  readonly invocationEnds?: boolean;
  /** True if the service decided nothing: the request was not sent, or something before the service refused it. */
  readonly undecided?: boolean;
  /** True if nothing answered at the address, or something else than the service. */
  readonly unreached?: boolean;
  /** True if another way may carry it out, where it has not failed. */
  readonly hasOtherWay?: boolean;
  /** The HTTP status of the answer from which it came. */
  readonly httpStatus?: number | undefined;
  /** The failure from which it came. */
  readonly cause?: unknown;
}

/** An operation that did not (or, if not `definite`, may not) happen: data, not an exception. */
export interface Refusal extends LocalDetails {
  readonly ok: false;
  readonly code: ErrorCode;
  readonly definite: boolean;
  readonly retry: RetryAdvice;
  readonly detail: string;
}

/**
 * The refusals that a client makes itself, when nothing answered or only a gateway did. They repeat the registry, which the type holds them
 * to, so that a client's bundle leaves the registry out.
 */
const LOCAL = {
  forbidden: { definite: true, retry: "never" },
  "not-found": { definite: true, retry: "never" },
  "lease-lost": { definite: true, retry: "new-lease" },
  "too-large": { definite: true, retry: "never" },
  locked: { definite: true, retry: "later" },
  throttled: { definite: true, retry: "later" },
  "not-configured": { definite: true, retry: "never" },
  unavailable: { definite: false, retry: "same" },
} as const satisfies { readonly [Code in ErrorCode]?: Pick<(typeof ERRORS)[Code], "definite" | "retry"> };

/** The `code` of a refusal that a client makes itself. */
export type LocalCode = keyof typeof LOCAL;

/** Makes a client's own refusal. Give a `detail` where a person reads it; otherwise it is the code. */
export function refuseLocally(code: LocalCode, details: LocalDetails = {}): Refusal {
  return { ...LOCAL[code], detail: code, ...details, ok: false, code };
}

/** Makes a refusal from the registry's entry and the details of this request. */
export function refuse(code: ErrorCode, details: RefusalDetails = {}): Refusal {
  const { definite, retry, title, instead }: ErrorEntry = ERRORS[code];
  const detail = details.detail ?? title;
  return { definite, retry, ...details, detail: instead === undefined ? detail : `${detail}: ${instead}`, ok: false, code };
}
