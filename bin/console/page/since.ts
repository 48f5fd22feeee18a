/**
 * The clock time since which a hold lasts. The service tells durations only, and each answer is some time on its way, so each shifts the
 * time by a little: the earliest that was seen is the nearest to the truth, and stands still.
 */
import { useContext, useRef } from "preact/hooks";
import type { KeyView, Locks } from "../data.js";
import { SharedContext } from "./hooks.js";
import { timeText } from "./words.js";

type Holder = KeyView["holders"][number];

/** Returns the clock time of a hold's grant. */
export type Since = (key: string, holder: Holder) => string;

/** Keeps the earliest times of what `data` shows, which arrived at `atMs`. */
export function useSince(data: Locks | undefined, atMs: number): Since {
  const { isUtc } = useContext(SharedContext);
  const known = useRef<ReadonlyMap<string, number>>(new Map());
  const seen = useRef(0);
  if (data && seen.current !== atMs) {
    const shown = [...data.items, ...data.looks].flatMap(({ key, holders }) =>
      holders.map((holder) => [nameOf(key, holder), holder] as const),
    );
    const sinceMs = ([name, { heldMs }]: (typeof shown)[number]): number => Math.min(known.current.get(name) ?? Infinity, atMs - heldMs);
    known.current = new Map(shown.map((each) => [each[0], sinceMs(each)]));
    seen.current = atMs;
  }
  return (key, holder) => timeText(known.current.get(nameOf(key, holder)) ?? atMs - holder.heldMs, isUtc);
}

function nameOf(key: string, { fencingToken }: Holder): string {
  return `${fencingToken} ${key}`;
}
