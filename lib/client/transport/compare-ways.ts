/**
 * Compares two ways to the records: the service must know the caller by the identity that the table is used under, and a lease of one way
 * must be found on the other. Only reads are sent.
 */
import type { CallerIdentity, LeaseRef } from "../../core/api/locks.js";
import type { ServiceApi } from "../../core/api/runs.js";
import { errorOf, LockError } from "../errors.js";
import type { RetryBounds, Runtime } from "./retry.js";
import { retry } from "./retry.js";

/** The limits of a comparison's request. */
export type RequestLimits = Pick<RetryBounds, "attemptMs" | "budgetMs">;

/** The codes of answers that stay the same until something is configured: rights, credentials, or one of the two ways. */
export const FINAL: ReadonlySet<string> = new Set(["not-configured", "forbidden"]);

/** The reason if leases of one way are unknown to the other. */
export const OTHER_TABLE = "the service and this client don't use the same table";

/** Returns the error for two ways that can't replace each other. */
export function notConfigured(why: string): LockError {
  return new LockError(`failover: ${why}`, { code: "not-configured", definite: true, retry: "never" });
}

/**
 * Returns the caller's identity at the service.
 * @throws LockError `not-configured` if it differs from `expected`, or the service is too old to tell it; the service's own refusal
 */
export async function identityOf(
  service: ServiceApi,
  expected: Partial<CallerIdentity>,
  limits: RequestLimits,
  runtime: Runtime,
): Promise<CallerIdentity> {
  const { answer } = await retry((attempt) => service.health({ caller: "1" }, attempt), limits, runtime);
  if (!answer.ok && answer.code !== "invalid-request") throw errorOf(answer, "failover: the service's view of this caller");
  const told = answer.ok ? answer.caller : undefined;
  if (!told) throw notConfigured("the service is of a version that doesn't tell a caller its identity");
  const names = Object.keys(expected) as (keyof CallerIdentity)[];
  const name = names.find((one) => told[one] !== expected[one]);
  if (name === undefined) return told;
  throw notConfigured(`${name}: ${JSON.stringify(told[name])} at the service, ${JSON.stringify(expected[name])} on the table`);
}

/** True if this way knows the lease, held or ended. @throws LockError for any other refusal, or without an answer */
export async function isKnownTo(api: ServiceApi, ref: LeaseRef, limits: RequestLimits, runtime: Runtime): Promise<boolean> {
  const { answer } = await retry((attempt) => api.check(ref, attempt), limits, runtime);
  if (answer.ok) return true;
  if (answer.code === "lease-lost") return answer.reason !== "never";
  throw errorOf(answer, `failover: ${ref.key} looked up on the other way`);
}
