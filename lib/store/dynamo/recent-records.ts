/**
 * A cache of the keys that this process saw in use recently. A change may be decided on such a record without a read, since it is written only
 * where it is right still. So a contended key causes fewer refused writes. The cache is bounded, and its entries expire soon.
 */
import type { Command } from "../../core/commands.js";
import type { LockRecord } from "../../core/record.js";
import type { Clock } from "../../core/time.js";
import type { Address } from "../port.js";
import { LARGE_CROWD } from "./crowd-item.js";
import type { Stored } from "./lists.js";

/** Lifetime of an entry in ms; that of a large crowd for one that leaves it, since it is likely to be one still; and the most keys in the cache. */
const FRESH_MS = 5000;
const CROWD_MS = 60_000;
const MOST_KEYS = 256;

/** The cache of recent records, by address. */
export class RecentRecords {
  readonly #clock: Clock;
  readonly #seen = new Map<string, { readonly stored: Stored; readonly atMs: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns the key as it was seen, for this command; nothing if that is too long ago. */
  of(address: Address, { type }: Pick<Command, "type">): Stored | undefined {
    const seen = this.#seen.get(nameOf(address));
    const freshMs = type === "release" && seen && Object.keys(seen.stored.record.holds).length > LARGE_CROWD ? CROWD_MS : FRESH_MS;
    return seen && this.#clock.monotonicMs() - seen.atMs <= freshMs ? seen.stored : undefined;
  }

  /** Stores the key as it is now, or removes the entry if nobody holds the key, is offered it or waits for it. */
  note(address: Address, stored: Stored | undefined): void {
    const name = nameOf(address);
    this.#seen.delete(name);
    if (!stored || !isInUse(stored.record)) return;
    this.#seen.set(name, { stored, atMs: this.#clock.monotonicMs() });
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > MOST_KEYS && oldest !== undefined) this.#seen.delete(oldest);
  }
}

function nameOf({ namespace, kind, key }: Address): string {
  return `${namespace}/${kind}/${key}`;
}

function isInUse({ holds, offers, waiters }: LockRecord): boolean {
  return offers.length + waiters.length > 0 || Object.keys(holds).length > 0;
}
