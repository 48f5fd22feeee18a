/** Who may hold a key together, said once more and in the simplest words: what the core decides is judged by this. */
import type { LockRecord, Mode } from "../../lib/core/record.js";
import type { Property } from "./verdict.js";

/** What one lease has of a key. */
export interface Share {
  readonly leaseId: string;
  readonly mode: Mode;
  readonly permits: number;
  /** Leases of one scope hold as one. */
  readonly scope?: string | undefined;
  /** Of the key, when it was granted. */
  readonly limit: number;
}

/** The property that is broken when all of these hold at once, if one is. */
export function clash(shares: readonly Share[]): Property | undefined {
  const limit = Math.min(...shares.map((share) => share.limit));
  const permitsOf = new Map<string, number>();
  for (const { leaseId, scope = leaseId, permits } of shares) permitsOf.set(scope, Math.max(permitsOf.get(scope) ?? 0, permits));
  if (limit > 1) return [...permitsOf.values()].reduce((sum, permits) => sum + permits, 0) > limit ? "S12" : undefined;
  if (permitsOf.size < 2 || shares.every(({ mode }) => mode === "shared")) return undefined;
  return shares.every(({ mode }) => mode === "exclusive") ? "S1" : "S11";
}

/** All leases in a record, over or not. */
export function holdersIn({ holds, limit }: LockRecord): readonly Share[] {
  return Object.entries(holds).map(([leaseId, { mode, permits, scope }]) => ({ leaseId, mode, permits, scope, limit }));
}

/** All to whom the key is offered in a record. */
export function offeredIn({ offers, limit }: LockRecord): readonly Share[] {
  return offers.map(({ leaseId, mode, permits }) => ({ leaseId, mode, permits, limit }));
}
