/** Holds as a person reads them: one line for each, since a key that is shared or has permits has several. */
import type { HolderView, Inspection } from "../../lib/index.js";
import { formatDuration } from "../duration.js";
import type { Column } from "../table.js";
import { cutKey } from "../table.js";
import { cutEnd } from "../terminal.js";

/** A hold, and the key that is held. */
export interface HoldView extends HolderView {
  readonly key: string;
  /** How many permits the key has, of a semaphore. */
  readonly limit?: number;
}

/** The holds of these keys, in order. */
export function holdsOf(keys: readonly Inspection[]): readonly HoldView[] {
  return keys.flatMap(({ key, limit, holders }) => holders.map((holder) => ({ ...holder, key, ...(limit !== undefined && { limit }) })));
}

/** How it holds: alone, beside others, or so many permits of so many. */
export function kindOf({ mode, permits, limit }: HoldView): string {
  return limit === undefined ? mode : `${permits} of ${limit}`;
}

const KEY: Column<HoldView> = { title: "KEY", cell: ({ key }) => key, cut: { columns: 20, to: cutKey } };
/** The columns about a hold of one key. */
export const HOLD_COLUMNS: readonly Column<HoldView>[] = [
  { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 10, to: cutEnd } },
  { title: "MODE", cell: kindOf },
  { title: "TOKEN", cell: ({ fencingToken }) => String(fencingToken), align: "right" },
  { title: "HELD FOR", cell: ({ heldMs }) => formatDuration(heldMs), align: "right" },
  { title: "REMAINING", cell: ({ remainingMs }) => formatDuration(remainingMs), align: "right" },
];
/** The same of many keys. */
export const KEY_COLUMNS: readonly Column<HoldView>[] = [KEY, ...HOLD_COLUMNS];
