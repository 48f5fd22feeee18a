/**
 * A cache of the records that this process saw recently. It shows which fast path is likely to succeed. A change may
 * also be decided on a cached record without a read, since it is written only on the version that was seen. So a
 * contended key causes fewer refused writes. The cache is bounded, and its entries expire soon.
 */
import type { Command } from "../../core/commands.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { LockRecord } from "../../core/record.js";
import type { Clock } from "../../core/time.js";
import type { Address } from "../port.js";
import { LARGE_CROWD } from "./crowd-item.js";

/** A key as it was last seen. */
export interface RecentRecord {
  readonly record?: LockRecord;
  readonly holds: number;
  /** True if the key has a holder, an offer or a waiter. */
  readonly isInUse: boolean;
  readonly offered: ReadonlySet<LeaseId>;
  readonly waiting: ReadonlySet<LeaseId>;
  /** Those of the offered and the waiting that sleep. */
  readonly asleep: ReadonlySet<LeaseId>;
  /** The waiter that is next to be offered the key. */
  readonly first?: LeaseId | undefined;
}

/** The entry of a key that is not in the cache. */
export const NOTHING_SEEN: RecentRecord = {
  ...{ holds: 0, isInUse: false },
  ...{ offered: new Set(), waiting: new Set(), asleep: new Set() },
};

/** Lifetime of an entry in ms; that of a large crowd for one that leaves it, since it is likely to be one still; and the most keys in the cache. */
const FRESH_MS = 5000;
const CROWD_MS = 60_000;
const MOST_KEYS = 256;

/** The cache of recent records, by address. */
export class RecentRecords {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly recent: RecentRecord; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the recent record of the key, for this command; {@link NOTHING_SEEN} if it is missing or too old. */
  of(address: Address, { type }: Pick<Command, "type">): RecentRecord {
    const seen = this.#seen.get(nameOf(address));
    const freshMs = type === "release" && seen && seen.recent.holds > LARGE_CROWD ? CROWD_MS : FRESH_MS;
    return seen && this.#clock.monotonicMs() - seen.atMs <= freshMs ? seen.recent : NOTHING_SEEN;
  }

  /** Stores the key's present record, or removes the entry if the key is not in use. */
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
  const { holds, offers, waiters, waitSet = [] } = record;
  const count = Object.keys(holds).length;
  return {
    record,
    holds: count,
    isInUse: count + offers.length + waiters.length > 0,
    offered: new Set(offers.map(({ leaseId }) => leaseId)),
    waiting: new Set([...waiters, ...waitSet].map(({ leaseId }) => leaseId)),
    asleep: new Set([...offers, ...waiters].filter(({ asleep }) => asleep).map(({ leaseId }) => leaseId)),
    first: waiters[0]?.leaseId,
  };
}
