/** A request that waits: it looks at the record, and does not write to it meanwhile. */
import { LIMITS } from "../core/limits.js";
import type { LockRecord } from "../core/record.js";
import { elapsedMs, instantOf } from "../core/time.js";
import type { Address } from "../store/lock-store.js";
import type { Requests } from "./request.js";

/** Pauses between two looks: the first, doubled up to the longest. */
const FIRST_LOOK_MS = 50;
const LONGEST_LOOK_MS = 400;

/** Looks at the record until `isNews` or `waitMs` has passed; what it was at the last look. */
export async function watch(
  { store, clock }: Pick<Requests, "store" | "clock">,
  address: Address,
  waitMs: number,
  isNews: (record: LockRecord | undefined) => boolean,
  signal?: AbortSignal,
): Promise<LockRecord | undefined> {
  const began = instantOf(clock);
  for (let looks = 0; ; looks++) {
    const record = await store.read(address);
    const leftMs = Math.min(waitMs, LIMITS.serverWaitMs) - elapsedMs(began, instantOf(clock));
    if (isNews(record) || leftMs <= 0 || signal?.aborted) return record;
    const pauseMs = Math.min(FIRST_LOOK_MS * 2 ** Math.min(looks, 10), LONGEST_LOOK_MS, leftMs);
    await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
  }
}
