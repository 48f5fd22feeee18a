/** What a lock's or a run's refusal is over HTTP, whatever the framework. `holdfast/middy` knows it by itself. */
import { InvalidRequestError, LockError } from "../../lib/index.js";

/** An answer to give in the place of the route's. */
export interface Refusal {
  readonly status: 400 | 409 | 422 | 503;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: { readonly error: string };
}

/** Held or run by another; used for something else; lost, or not to be reached. Anything else is the application's own mistake. */
const STATUS: Readonly<Record<string, Refusal["status"]>> = {
  "wait-timeout": 409,
  "attempts-exhausted": 409,
  "fingerprint-mismatch": 422,
  "lease-lost": 503,
  unavailable: 503,
};

/** The answer for what a route threw; undefined where that was no refusal. */
export function refusalOf(error: unknown): Refusal | undefined {
  if (!(error instanceof LockError)) return undefined;
  const hasNoKey = error instanceof InvalidRequestError && error.field === "Idempotency-Key";
  const status = hasNoKey ? 400 : STATUS[error.code];
  if (status === undefined) return undefined;
  const later: Record<string, string> =
    status === 409 || status === 503 ? { "Retry-After": String(Math.ceil((error.retryAfterMs ?? 1000) / 1000)) } : {};
  return { status, headers: later, body: { error: error.code } };
}
