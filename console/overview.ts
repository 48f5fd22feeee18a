/** The view over all keys that were read: figures, the keys that need a look, and the rows that fit a search. Pure. */
import type { Inspection, LimitView } from "../lib/index.js";
import type { KeyHolder, KeyView, LimitInUse, LocksData, RunOfKey } from "./data.js";
import { lateOf, permitsOut } from "./page/words.js";

/** The orders of the held keys. `key`: as they were read. */
export const ORDERS = ["wait", "left", "held", "key"] as const;
/** An order of the held keys. */
export type Order = (typeof ORDERS)[number];

/** A caller that waits longer than this makes its key worth a look, in ms. */
export const LONG_WAIT_MS = 60_000;
/** The largest number of keys that are named as worth a look. */
export const LOOKS_MAX = 5;

/** A search in the held keys. */
export interface LocksSearch {
  /** A part of the key's name or of an owner's; `""` for all. */
  readonly find: string;
  readonly rowsMax: number;
  readonly order: Order;
  /** True for those alone that are waited for. */
  readonly onlyWaited: boolean;
}

/** Returns the longest time for which a caller in the queue has waited, in ms; 0 for an empty queue. */
export function longestWaitMs({ waiters }: Pick<KeyView, "waiters">): number {
  return Math.max(0, ...waiters.map(({ waitingMs }) => waitingMs));
}

/** Returns the hold whose lease ends first. */
export function shortestHold({ holders }: Pick<KeyView, "holders">): KeyHolder | undefined {
  return holders.toSorted((a, b) => a.remainingMs - b.remainingMs)[0];
}

const VALUES: Readonly<Record<Order, (view: KeyView) => number>> = {
  wait: (view) => -longestWaitMs(view),
  left: (view) => shortestHold(view)?.remainingMs ?? 0,
  held: ({ holders }) => -Math.max(0, ...holders.map(({ heldMs }) => heldMs)),
  key: () => 0,
};

/** Returns `views` in an order; those of the same value stay as they are. */
export function sortedBy(views: readonly KeyView[], order: Order): readonly KeyView[] {
  const values = new Map(views.map((view) => [view, VALUES[order](view)]));
  return views.toSorted((a, b) => (values.get(a) ?? 0) - (values.get(b) ?? 0));
}

/** True if a part of one of the texts is `find`, in capitals or not. */
function hasPart(find: string, texts: readonly (string | undefined)[]): boolean {
  const part = find.toLowerCase();
  return texts.some((text) => text?.toLowerCase().includes(part));
}

/** True if `text` can be a key, or the beginning of one. */
export function canBeKey(text: string): boolean {
  return /^[A-Za-z0-9._:~-]{1,200}$/.test(text);
}

/** Returns what is known of the keys that were read, with the first rows of those that fit. */
export function locksOf(
  read: readonly KeyView[],
  { find, order, onlyWaited, rowsMax }: LocksSearch,
): Omit<LocksData, "read" | "more" | "readsOn"> {
  const waited = read.filter(({ waiters }) => waiters.length > 0);
  const looks = read.filter((view) => lateOf(view) > 0 || longestWaitMs(view) > LONG_WAIT_MS);
  const fits = (onlyWaited ? waited : read).filter(({ key, parts, holders, waiters }) =>
    hasPart(find, [key, parts, ...[...holders, ...waiters].map(({ owner }) => owner)]),
  );
  return {
    items: sortedBy(fits, order).slice(0, rowsMax),
    fits: fits.length,
    figures: {
      held: read.length,
      waiting: waited.reduce((sum, { waiters }) => sum + waiters.length, 0),
      waitedFor: waited.length,
      late: read.reduce((sum, view) => sum + lateOf(view), 0),
    },
    looks: sortedBy(sortedBy(looks, "left"), "wait").slice(0, LOOKS_MAX),
    looksInAll: looks.length,
  };
}

/** A number with what it counts, and its colour unless it is 0. */
export interface Figure {
  readonly count: string;
  readonly text: string;
  readonly tone: string;
}

/** Returns the figures of the held keys. Each is the least that there are, as long as not all keys were read. */
export function figuresOf({ figures, more, read }: Pick<LocksData, "figures" | "more" | "read">): readonly Figure[] {
  const { held, waiting, waitedFor, late } = figures;
  const onKeys = waitedFor > 0 ? `, on ${waitedFor} ${waitedFor === 1 ? "key" : "keys"}` : "";
  const figure = (count: number, one: string, several: string, tone: string, on = ""): Figure => {
    const text = `${count === 1 ? one : several}${on}`;
    return { count: atLeast(count, more), text: more ? `${text}, of ${read} read` : text, tone: count > 0 ? tone : "" };
  };
  return [
    figure(held, "key held", "keys held", ""),
    figure(waiting, "caller waiting", "callers waiting", "wait", onKeys),
    figure(late, "holder not renewed in time", "holders not renewed in time", "late"),
  ];
}

/** Returns a count, as the least that there may be where there may be `more`. */
export function atLeast(count: number, more: boolean): string {
  return more ? `≥ ${count}` : String(count);
}

/** Returns the rows whose key or owner fits. */
export function thatFit<T extends Pick<RunOfKey, "key" | "parts" | "owner">>(rows: readonly T[], find: string): readonly T[] {
  return rows.filter(({ key, parts, owner }) => hasPart(find, [key, parts, owner]));
}

/** Returns the limits in use in the order of their names: those that were taken from lately, and those whose permits are out. */
export function limitsInUse(taken: readonly LimitView[], held: readonly Inspection[]): readonly LimitInUse[] {
  const limits = new Map<string, LimitInUse>(taken.map((limit) => [limit.key, limit]));
  for (const view of held) {
    const { key, limit: of, waiters } = view;
    const permits = of !== undefined && { out: permitsOut(view), of, waiting: waiters.length };
    if (permits) limits.set(key, { ...limits.get(key), key, permits });
  }
  return [...limits.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1));
}

/** Returns why the next can't have a permit yet, however much the rates allow: all are out, or others wait before it; undefined if it can. */
export function permitWaitOf({ permits }: LimitInUse): "all out" | "others wait" | undefined {
  if (!permits) return undefined;
  if (permits.out >= permits.of) return "all out";
  return permits.waiting > 0 ? "others wait" : undefined;
}

/** Returns the time until the next may start, in ms; undefined if that is not known, as while it waits for a permit: nobody knows when one comes back. */
export function nextInOf(limit: LimitInUse): number | undefined {
  return permitWaitOf(limit) === undefined ? limit.nextInMs : undefined;
}
