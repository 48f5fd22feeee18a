/**
 * A record with a queue as the rules read it: who has what of the key, what that leaves for others, and what a
 * request was. By the record's fields alone; nothing here asks the core.
 */
import type { LeaseId } from "../../lib/core/lease-id.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import type { Hold, LockRecord, Mode, Offer, Waiter } from "../../lib/core/record.js";
import type { Asked } from "./queue-history.js";

/** A part of the key that a lease holds or is offered. */
export interface Occupant {
  readonly mode: Mode;
  readonly permits: number;
  /** Whose: the leases of one scope are one's. */
  readonly of: string;
}

/** The parts of a record: holds with their ids, offers, waiters in order. */
export const holdsOf = (record: LockRecord | undefined): readonly (readonly [LeaseId, Hold])[] => Object.entries(record?.holds ?? {});
export const offersOf = (record: LockRecord | undefined): readonly Offer[] => record?.offers ?? [];
export const waitersOf = (record: LockRecord | undefined): readonly Waiter[] => record?.waiters ?? [];
/** When a waiter was heard of last. */
export const lastSeenMs = ({ aliveUntilMs, ttlMs }: Waiter): number => aliveUntilMs - ttlMs;
/** True if an offer has not lapsed at the time of the request. */
export const isPending = ({ offeredAtMs }: Offer, { reading }: Asked): boolean => offeredAtMs + DEFAULTS.offerWindowMs > reading.earliestMs;
export const isHeardOf = ({ aliveUntilMs }: Waiter, { reading }: Asked): boolean => aliveUntilMs > reading.earliestMs;
/** True if this id is among them. */
export const has = (all: readonly { readonly leaseId: LeaseId }[], id: LeaseId): boolean => all.some(({ leaseId }) => leaseId === id);

/** The id of a client that asks for itself; nobody's otherwise. */
export const itself = ({ by }: Asked): LeaseId => (by?.isItself ? by.leaseId : "");
/** Told that it holds now, and didn't before. */
export const isGranted = ({ command, answer }: Asked): boolean =>
  command?.type === "acquire" && answer.ok && "how" in answer && answer.how === "granted";
/** Asks for itself, or somebody for it, from its place or in its turn. */
export const isInQueue = (record: LockRecord | undefined, { by }: Asked): boolean =>
  [...offersOf(record), ...waitersOf(record)].some(({ leaseId }) => leaseId === by?.leaseId);
/** The leases of the scope under which somebody asks. */
export const ofItsScope = ({ command, before }: Asked): readonly Hold[] =>
  holdsOf(before).flatMap(([, hold]) =>
    command?.type === "acquire" && command.scope !== undefined && hold.scope === command.scope ? [hold] : [],
  );
/** Let in by its scope, past everybody, with the token that the scope has. */
export function isNested(asked: Asked): boolean {
  const { answer, before, by, reading } = asked;
  const levels = ofItsScope(asked).filter(({ expiresAtMs }) => expiresAtMs > reading.earliestMs);
  if (!has(offersOf(before), by?.leaseId ?? "")) return levels.length > 0;
  return (
    answer.ok &&
    "lease" in answer &&
    levels.some(({ fencingToken }) => "fencingToken" in answer.lease && fencingToken === answer.lease.fencingToken)
  );
}

/** Returns the occupants of a record: those of its leases and offers that count. */
export function occupantsOf(
  record: LockRecord | undefined,
  counts: { readonly hold: (hold: Hold) => boolean; readonly offer: (offer: Offer) => boolean },
): readonly Occupant[] {
  const held = holdsOf(record).filter(([, hold]) => counts.hold(hold));
  return [
    ...held.map(([id, { mode, permits, scope }]) => ({ mode, permits, of: scope ?? id })),
    ...offersOf(record)
      .filter(counts.offer)
      .map(({ leaseId, mode, permits }) => ({ mode, permits, of: leaseId })),
  ];
}

/** True if these occupants are compatible with each other, with `limit` permits. */
export function areTogether(shares: readonly Occupant[], limit: number): boolean {
  if (shares.every(({ mode }) => mode === "shared")) return true;
  if (shares.some(({ mode }) => mode === "shared")) return false;
  const byOwner = new Map<string, number>();
  for (const { of, permits } of shares) byOwner.set(of, Math.max(byOwner.get(of) ?? 0, permits));
  return Array.from(byOwner.values()).reduce((sum, each) => sum + each, 0) <= limit;
}

/** The first of the queue that was heard of, if it fits beside all that keeps others out. */
export function leftOut(record: LockRecord | undefined, asked: Asked): Waiter | undefined {
  const { reading } = asked;
  const first = waitersOf(record).find((waiter) => isHeardOf(waiter, asked));
  if (!record || !first) return undefined;
  const stands = ({ expiresAtMs, marginMs }: Hold): boolean => expiresAtMs + marginMs > reading.earliestMs;
  const shares = occupantsOf(record, { hold: stands, offer: (offer) => isPending(offer, asked) });
  const { upgrading } = record;
  const its = upgrading && record.holds[upgrading.leaseId];
  const isUpgrading = its !== undefined && stands(its) && upgrading !== undefined && upgrading.untilMs > reading.earliestMs;
  if (first.mode === "shared" && isUpgrading) return undefined;
  return areTogether([...shares, { ...first, of: first.leaseId }], record.limit) ? first : undefined;
}
