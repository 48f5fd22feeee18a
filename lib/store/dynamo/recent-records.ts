/**
 * What this process saw of keys a moment ago. It decides nothing by itself: it says which guess is likely to
 * be right, and what a change may be tried on without a look, since it is written only on the version that was
 * seen. So a key that is contended costs its process no refused write. Bounded, and soon forgotten.
 */
import type { LeaseId } from "../../core/lease-id.js";
import type { LockRecord } from "../../core/record.js";
import type { Clock } from "../../core/time.js";
import type { Address } from "../port.js";

/** A key as it was last seen. */
export interface RecentRecord {
  readonly record?: LockRecord;
  readonly holds: number;
  /** Somebody holds it, is offered it or waits. */
  readonly isInUse: boolean;
  /** A refused write would cost more than a look. */
  readonly isLarge: boolean;
  readonly offered: ReadonlySet<LeaseId>;
  readonly waiting: ReadonlySet<LeaseId>;
  /** Who is next to be offered the key. */
  readonly first?: LeaseId | undefined;
}

/** Of a key that this process knows nothing of. */
export const NOTHING_SEEN: RecentRecord = { holds: 0, isInUse: false, isLarge: false, offered: new Set(), waiting: new Set() };

/** A glimpse is worth this long, and so many keys are remembered. */
const FRESH_MS = 5000;
const MOST_KEYS = 256;
/** So many in the queue make an item worth a look before a write. */
const LARGE_QUEUE = 8;

/** The keys that a process saw lately. */
export class RecentRecords {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly recent: RecentRecord; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What was last seen of the key, if that is not long ago. */
  of(address: Address): RecentRecord {
    const seen = this.#seen.get(nameOf(address));
    return seen && this.#clock.monotonicMs() - seen.atMs <= FRESH_MS ? seen.recent : NOTHING_SEEN;
  }

  /** Remembers the key as it is now. */
  note(address: Address, record: LockRecord | undefined): void {
    const name = nameOf(address);
    this.#seen.delete(name);
    const recent = record && recentRecordOf(record);
    if (!recent?.isInUse) return;
    this.#seen.set(name, { recent, atMs: this.#clock.monotonicMs() });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_KEYS && oldest !== undefined) this.#seen.delete(oldest);
  }
}

function nameOf({ namespace, kind, key }: Address): string {
  return `${namespace}/${kind}/${key}`;
}

function recentRecordOf(record: LockRecord): RecentRecord {
  const { holds, offers, waiters } = record;
  const count = Object.keys(holds).length;
  return {
    record,
    holds: count,
    isInUse: count + offers.length + waiters.length > 0,
    isLarge: waiters.length >= LARGE_QUEUE,
    offered: new Set(offers.map(({ leaseId }) => leaseId)),
    waiting: new Set(waiters.map(({ leaseId }) => leaseId)),
    first: waiters[0]?.leaseId,
  };
}
