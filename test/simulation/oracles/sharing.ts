/** The compatibility of leases in its simplest form, written independently of the core. It checks the core's decisions. */
import type { LockRecord, Mode, Waiter } from "../../../lib/core/record.js";
import type { Property } from "./verdict.js";

/** The share of a key that one lease has. */
export interface Share {
  readonly leaseId: string;
  readonly mode: Mode;
  readonly permits: number;
  /** Leases of one scope count as one holder. */
  readonly scope?: string | undefined;
  /** The key's limit when the lease was granted. */
  readonly limit: number;
}

/** Returns the property that is broken if all of these hold at once, if any. */
export function clash(shares: readonly Share[]): Property | undefined {
  const limit = Math.min(...shares.map((share) => share.limit));
  const permitsOf = new Map<string, number>();
  for (const { leaseId, scope = leaseId, permits } of shares) permitsOf.set(scope, Math.max(permitsOf.get(scope) ?? 0, permits));
  if (limit > 1) return [...permitsOf.values()].reduce((sum, permits) => sum + permits, 0) > limit ? "S12" : undefined;
  if (permitsOf.size < 2 || shares.every(({ mode }) => mode === "shared")) return undefined;
  return shares.every(({ mode }) => mode === "exclusive") ? "S1" : "S11";
}

/** Returns all leases in a record, expired or not. */
export function holdersIn({ holds, limit }: LockRecord): readonly Share[] {
  return Object.entries(holds).map(([leaseId, { mode, permits, scope }]) => ({ leaseId, mode, permits, scope, limit }));
}

export function offeredIn({ offers, limit }: LockRecord): readonly Share[] {
  return offers.map(({ leaseId, mode, permits }) => ({ leaseId, mode, permits, limit }));
}

/** True if a waiter fits beside all that hold, are offered the key, or wait before it: nobody has taken what it needs. */
export function isKeptFor(waiter: Waiter, record: LockRecord): boolean {
  const { waiters, limit } = record;
  const upTo = waiters.slice(0, waiters.indexOf(waiter) + 1).map(({ leaseId, mode, permits }) => ({ leaseId, mode, permits, limit }));
  return !clash([...holdersIn(record), ...offeredIn(record), ...upTo]);
}
