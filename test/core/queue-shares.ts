/**
 * Helpers of the rules for a record with a queue: the occupants of the key, the room left for others, and the kind of a
 * request. They read the record's fields alone and never call the core.
 */
import type { LeaseId } from "../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import type { Hold, LockRecord, Mode, Offer, Waiter } from "../../lib/core/record.js";
import type { Asked } from "./queue-history.js";

/** A part of the key that a lease holds or is offered. */
export interface Occupant {
  readonly mode: Mode;
  readonly permits: number;
  /** The owner: the leases of one scope have one owner. */
  readonly of: string;
}

/** The parts of a record: holds with their ids, offers, waiters in order. */
export const holdsOf = (record: LockRecord | undefined): readonly (readonly [LeaseId, Hold])[] => Object.entries(record?.holds ?? {});
export const offersOf = (record: LockRecord | undefined): readonly Offer[] => record?.offers ?? [];
export const waitersOf = (record: LockRecord | undefined): readonly Waiter[] => record?.waiters ?? [];
/** The time at which a waiter was last seen. */
export const lastSeenMs = ({ aliveUntilMs, ttlMs }: Waiter): number => aliveUntilMs - ttlMs;
/** True if an offer has not lapsed at the time of the request. */
export const isPending = ({ offeredAtMs }: Offer, { reading }: Asked): boolean => offeredAtMs + DEFAULTS.offerWindowMs > reading.earliestMs;
export const isHeardOf = ({ aliveUntilMs }: Waiter, { reading }: Asked): boolean => aliveUntilMs > reading.earliestMs;
/** True if this id is among them. */
export const has = (all: readonly { readonly leaseId: LeaseId }[], id: LeaseId): boolean => all.some(({ leaseId }) => leaseId === id);

/** The id of a client that sends its own request; otherwise empty. */
export const itself = ({ by }: Asked): LeaseId => (by?.isItself ? by.leaseId : "");
/** True if the answer grants a lease that wasn't held before. */
export const isGranted = ({ command, answer }: Asked): boolean =>
  command?.type === "acquire" && answer.ok && "how" in answer && answer.how === "granted";
/** True if the request's id has a place in the queue or an offer. */
export const isInQueue = (record: LockRecord | undefined, { by }: Asked): boolean =>
  [...offersOf(record), ...waitersOf(record)].some(({ leaseId }) => leaseId === by?.leaseId);
/** The leases of the request's scope. */
export const ofItsScope = ({ command, before }: Asked): readonly Hold[] =>
  holdsOf(before).flatMap(([, hold]) =>
    command?.type === "acquire" && command.scope !== undefined && hold.scope === command.scope ? [hold] : [],
  );
/** True if the grant joins its scope's hold, past the queue, with the scope's token. */
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

/**
 * The first live waiter that has to be offered the key, if it is compatible with all occupants and those who wait before it. One that waits
 * for a crowd and was seen lately comes for itself; but the caller is here now.
 */
export function leftOut(record: LockRecord | undefined, asked: Asked): Waiter | undefined {
  const { reading, by } = asked;
  if (!record) return undefined;
  const stands = ({ expiresAtMs, marginMs }: Hold): boolean => expiresAtMs + marginMs > reading.earliestMs;
  const shares = occupantsOf(record, { hold: stands, offer: (offer) => isPending(offer, asked) });
  const { upgrading } = record;
  const its = upgrading && record.holds[upgrading.leaseId];
  const isUpgrading = its !== undefined && stands(its) && upgrading !== undefined && upgrading.untilMs > reading.earliestMs;
  const isOfCrowd = !record.waitSet && holdsOf(record).some(([, { mode }]) => record.limit > 1 || mode === "shared");
  const comesForItself = (waiter: Waiter): boolean =>
    isOfCrowd && waiter.leaseId !== by?.leaseId && lastSeenMs(waiter) > reading.latestMs - LIMITS.keepAliveAfterMs;
  const kept: Occupant[] = [...shares];
  for (const waiter of waitersOf(record).filter((each) => isHeardOf(each, asked))) {
    kept.push({ ...waiter, of: waiter.leaseId });
    if ((waiter.mode === "shared" && isUpgrading) || !areTogether(kept, record.limit)) return undefined;
    if (!comesForItself(waiter)) return waiter;
  }
  return undefined;
}
