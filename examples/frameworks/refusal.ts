/** Maps the refusal of a lock or a run to an HTTP response, for any framework. `holdfast/middy` does this by itself. */
import { InvalidRequestError, LockError } from "../../lib/index.js";

/** The response to send instead of the route's. */
export interface Refusal {
  readonly status: 400 | 409 | 422 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: string };
}

/** Held or run by another caller, used for something else, lost, or not reachable. All other codes are bugs of the application. */
const STATUS: Readonly<Record<string, Refusal["status"]>> = {
  "wait-timeout": 409,
  "attempts-exhausted": 409,
  "fingerprint-mismatch": 422,
  "lease-lost": 503,
  unavailable: 503,
};

/** Returns the response for an error that a route threw, or undefined if it isn't a refusal. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof LockError)) return undefined;
  const hasNoKey = error instanceof InvalidRequestError && error.field === "Idempotency-Key";
  const status = hasNoKey ? 400 : STATUS[error.code];
  if (status === undefined) return undefined;
  const later: Record<string, string> =
    status === 409 || status === 503 ? { "Retry-After": String(Math.ceil((error.retryAfterMs ?? 1000) / 1000)) } : {};
  return { status, headers: later, body: { error: error.code } };
}
