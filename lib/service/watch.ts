/** A request that waits: it looks at the record, and does not write to it meanwhile. */
import type { Backoff } from "../core/backoff.js";
import { backoffMs } from "../core/backoff.js";
import type { LockRecord } from "../core/record.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Address, LockStore } from "../store/port.js";
import type { Requests } from "./request.js";

/** Pauses between two looks: the first, doubled up to the longest. */
const POLLS: Backoff = { firstMs: 50, longestMs: 400 };

/** Looks at the record until `isNews`, or `waitMs` or the service's own bound has passed; what it was at the last look. */
export async function watch(
  { store, clock, serverWaitMs }: Pick<Requests, "store" | "clock" | "serverWaitMs">,
  address: Address,
  waitMs: number,
  hasChanged: (record: LockRecord | undefined) => boolean,
  signal?: AbortSignal,
): Promise<LockRecord | undefined> {
  const began = instantOf(clock);
  for (let reads = 0; ; reads++) {
    const record = await (reads === 0 ? store.read(address) : singleFlight(store, address));
    const leftMs = Math.min(waitMs, serverWaitMs) - elapsedMs(began, instantOf(clock));
    if (hasChanged(record) || leftMs <= 0 || signal?.aborted) return record;
    const pauseMs = Math.min(backoffMs(POLLS, reads), leftMs);
    await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
  }
}

/** Looks that are under way. */
const UNDER_WAY = new WeakMap<Pick<LockStore, "read">, Map<string, Promise<LockRecord | undefined>>>();

/**
 * A look that all share who would look at the same record meanwhile: two hundred who wait in one process cost what one
 * does. What was written after it began, the next look sees.
 */
function singleFlight(store: Pick<LockStore, "read">, address: Address): Promise<LockRecord | undefined> {
  const reads = UNDER_WAY.get(store) ?? new Map<string, Promise<LockRecord | undefined>>();
  UNDER_WAY.set(store, reads);
  const { namespace, kind, key } = address;
  const name = JSON.stringify([namespace, kind, key]);
  const read = reads.get(name) ?? store.read(address).finally(() => reads.delete(name));
  reads.set(name, read);
  return read;
}
