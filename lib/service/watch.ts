/** A long poll: the service reads the record until it changes, writes nothing meanwhile, and answers then. */
import { type Backoff, backoffMs } from "../core/backoff.js";
import { namesTag } from "../core/entity-tag.js";
import type { LockRecord } from "../core/record.js";
import { LIMITS } from "../core/limits.js";
import { type Instant, elapsedMs, instantOf } from "../core/time.js";
import type { Address, LockStore } from "../store/port.js";
import type { RequestContext, ServiceDeps } from "./request-context.js";

/** Pauses between two reads, in ms: the first, doubled up to the longest. */
const POLLS: Backoff = { firstMs: 50, longestMs: 400 };

type PollDeps = Pick<ServiceDeps, "clock" | "serverWaitMs">;

/** Returns the time in ms that is left of a long poll that began then. */
export function leftMsOf({ clock, serverWaitMs = LIMITS.serverWaitMs }: PollDeps, waitMs: number, began: Instant): number {
  return Math.min(waitMs, serverWaitMs) - elapsedMs(began, instantOf(clock));
}

/** Reads the record until `hasChanged`, or until `waitMs` or the service's own limit has passed. Returns the last record. */
export async function watch(
  deps: PollDeps & { readonly store: Pick<LockStore, "read"> },
  address: Address,
  waitMs: number,
  hasChanged: (record: LockRecord | undefined) => boolean,
  signal?: AbortSignal,
): Promise<LockRecord | undefined> {
  const { store, clock } = deps;
  const began = instantOf(clock);
  for (let reads = 0; ; reads++) {
    const record = await (reads === 0 ? store.read(address) : singleFlight(store, address));
    const leftMs = leftMsOf(deps, waitMs, began);
    if (hasChanged(record) || leftMs <= 0 || signal?.aborted) return record;
    const pauseMs = Math.min(backoffMs(POLLS, reads), leftMs);
    await new Promise<void>((resolve) => void clock.after(pauseMs, resolve));
  }
}

/** Returns what `viewOf` makes of the record. Waits while the caller knows its tag; if it still does then, nothing has changed. */
export async function viewChanged<View extends { readonly tag: string } | undefined>(
  context: RequestContext,
  address: Address,
  { ifNoneMatch, waitMs = 0 }: { readonly ifNoneMatch?: string | undefined; readonly waitMs?: number | undefined },
  viewOf: (record: LockRecord | undefined) => View,
  signal?: AbortSignal,
): Promise<View | { readonly ok: true; readonly tag: string; readonly unchanged: true }> {
  const isKnown = (view: View): boolean => view !== undefined && namesTag(ifNoneMatch, view.tag);
  const mostMs = ifNoneMatch === undefined ? 0 : waitMs;
  const view = viewOf(await watch(context.deps, address, mostMs, (record) => !isKnown(viewOf(record)), signal));
  return view && isKnown(view) ? { ok: true, tag: view.tag, unchanged: true } : view;
}

/** Reads in progress. */
const UNDER_WAY = new WeakMap<Pick<LockStore, "read">, Map<string, Promise<LockRecord | undefined>>>();

/**
 * Shares one read among all callers that want the same record meanwhile: two hundred waiters in one process cost as
 * much as one. The next read sees anything that was written after this one began.
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
