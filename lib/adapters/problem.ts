/**
 * The HTTP answer when a handler did not run or its response can't be returned: a problem document (RFC 9457) with the same members as the
 * service's own. It names no key and no holder, because the application's users read it.
 */
import { isA } from "../core/brand.js";
import { InvalidRequestError, LockError, LockLostError, LockTimeoutError, LockUnavailableError } from "../client/wire/errors.js";
import type { RetryAdvice } from "../core/errors.js";
import { PROBLEM_TYPE } from "../contract/problem.js";

/** An answer in the form that every gateway accepts. */
export interface HttpAnswer {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

/** The problems, by their `code`. */
export const PROBLEMS = {
  locked: { status: 423, retry: "later", title: "Somebody else works on this just now" },
  "run-in-progress": { status: 409, retry: "later", title: "The request with this Idempotency-Key is still being worked on" },
  "fingerprint-mismatch": { status: 422, retry: "never", title: "This Idempotency-Key was used for another request" },
  "invalid-request": { status: 400, retry: "never", title: "The request can't be told from others" },
  "too-large": { status: 413, retry: "never", title: "The request body is too large" },
  "unsupported-media-type": { status: 415, retry: "never", title: "The request body can't be compared with that of another request" },
  "attempts-exhausted": { status: 409, retry: "never", title: "The request with this Idempotency-Key has used up its attempts" },
  "result-omitted": { status: 409, retry: "never", title: "The request was carried out; its answer could not be kept" },
  "rate-limited": { status: 429, retry: "later", title: "There are too many requests; this one was not carried out" },
  unavailable: { status: 503, retry: "later", title: "The request could not be protected, and was not carried out" },
  "not-recorded": { status: 503, retry: "later", title: "The request was carried out, perhaps without being remembered" },
  "lease-lost": { status: 503, retry: "later", title: "The request lost its protection; it may be carried out in part" },
} as const satisfies Record<string, { status: number; retry: RetryAdvice; title: string }>;

export type ProblemCode = keyof typeof PROBLEMS;

/** After these problems, the handler ran completely or partly. */
const INDEFINITE: ReadonlySet<ProblemCode> = new Set(["result-omitted", "not-recorded", "lease-lost"]);
/** The time until a retry when no better one is known, in ms. */
const RETRY_AFTER_MS = 1000;

/** Returns the answer for `code`; `detail` is a sentence about this request. */
export function problemAnswer(
  code: ProblemCode,
  { retryAfterMs = RETRY_AFTER_MS, detail }: { retryAfterMs?: number | undefined; detail?: string } = {},
): HttpAnswer {
  const { status, retry, title } = PROBLEMS[code];
  const isLater = retry === "later";
  const problem = { type: `/problems/${code}`, title, status, code, detail, definite: !INDEFINITE.has(code), retry };
  const retryAfter = String(Math.max(1, Math.ceil(retryAfterMs / 1000)));
  return {
    statusCode: status,
    headers: { "content-type": PROBLEM_TYPE, ...(isLater && { "retry-after": retryAfter }) },
    body: JSON.stringify({ ...problem, ...(isLater && { retryAfterMs }) }),
  };
}

/** The fields whose errors are the caller's mistake, not the application developer's. */
const ASKED_WRONGLY: readonly unknown[] = ["Idempotency-Key", "payload"];

/**
 * Returns the answer for an error that came before the work; undefined for an error of the application's configuration.
 * @param held the problem of a key that others still use after the wait
 */
export function refusalBefore(error: unknown, held: "locked" | "run-in-progress" | "unavailable"): HttpAnswer | undefined {
  if (isA(error, InvalidRequestError)) {
    const { field, message: detail } = error;
    if (field === "body") return problemAnswer("unsupported-media-type", { detail });
    return ASKED_WRONGLY.includes(field) ? problemAnswer("invalid-request", { detail }) : undefined;
  }
  if (!isA(error, LockError)) return undefined;
  if (isA(error, LockTimeoutError) || error.code === "contended") return problemAnswer(held, error);
  // Nothing is held for the handler: the process froze, its client is closed, the invocation is nearly over, or a newer version has the key.
  if (isA(error, LockUnavailableError) || isA(error, LockLostError) || ["invocation-ends", "closed", "newer-format"].includes(error.code))
    return problemAnswer("unavailable", error);
  return error.code in PROBLEMS ? problemAnswer(error.code as ProblemCode, error) : undefined;
}

/** Returns the answer for an error that a route threw: 400, 409, 422, 423, 429 or 503. Undefined if it isn't a refusal of a lock, a run or a limit. */
export function problemOf(error: unknown): HttpAnswer | undefined {
  return isA(error, LockLostError) ? problemAnswer("lease-lost") : refusalBefore(error, "locked");
}
