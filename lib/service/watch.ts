/** A request that waits: it looks at the record, and does not write to it meanwhile. */
import type { LockRecord } from "../core/record.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Address, LockStore } from "../store/lock-store.js";
import type { Requests } from "./request.js";

/** Pauses between two looks: the first, doubled up to the longest. */
const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 400;

/** Looks at the record until `isNews`, or `waitMs` or the service's own bound has passed; what it was at the last look. */
export async function watch(
  { store, clock, serverWaitMs }: Pick<Requests, "store" | "clock" | "serverWaitMs">,
  address: Address,
  waitMs: number,
  isNews: (record: LockRecord | undefined) => boolean,
  signal?: AbortSignal,
): Promise<LockRecord | undefined> {
  const began = instantOf(clock);
  for (let looks = 0; ; looks++) {
    const record = await (looks === 0 ? store.read(address) : lookTogether(store, address));
    const leftMs = Math.min(waitMs, serverWaitMs) - elapsedMs(began, instantOf(clock));
    if (isNews(record) || leftMs <= 0 || signal?.aborted) return record;
    const pauseMs = Math.min(FIRST_LOOK_MS * 2 ** Math.min(looks, 10), LONGEST_LOOK_MS, leftMs);
    await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
  }
}

/** Looks that are under way. */
const UNDER_WAY = new WeakMap<Pick<LockStore, "read">, Map<string, Promise<LockRecord | undefined>>>();

/**
 * A look that all share who would look at the same record meanwhile: two hundred who wait in one process cost what one
 * does. What was written after it began, the next look sees.
 */
function lookTogether(store: Pick<LockStore, "read">, address: Address): Promise<LockRecord | undefined> {
  const looks = UNDER_WAY.get(store) ?? new Map<string, Promise<LockRecord | undefined>>();
  UNDER_WAY.set(store, looks);
  const { namespace, kind, key } = address;
  const name = JSON.stringify([namespace, kind, key]);
  const look = looks.get(name) ?? store.read(address).finally(() => looks.delete(name));
  looks.set(name, look);
  return look;
}
