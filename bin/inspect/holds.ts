/** Holds in a form for people: one line each, because a shared key or a semaphore has several. */
import type { Inspection } from "../../lib/index.js";
import { partsOf } from "../../console/key-parts.js";
import { shortToken, toneOf, WORDS } from "../../console/page/words.js";
import { formatDuration } from "../../console/text/duration.js";
import { type Column, cutMiddle } from "../table.js";

/** A hold with its key. */
export type HoldView = Inspection["holders"][number] & {
  readonly key: string;
  /** The number of permits of the key, for a semaphore. */
  readonly limit?: number | undefined;
  /** The number of callers that wait for the key. */
  readonly waiting: number;
};

/** Returns the holds of these keys, in order. */
export function holdsOf(keys: readonly Inspection[]): readonly HoldView[] {
  return keys.flatMap(({ key, limit, holders, waiters }) => holders.map((holder) => ({ ...holder, key, limit, waiting: waiters.length })));
}

/** Returns a key, and after it the parts that it was made from, if they don't show: `stripe_evt~5F1 (stripe, evt_1)`. */
export function withParts(key: string): string {
  const parts = partsOf(key);
  return parts === undefined ? key : `${key} (${parts})`;
}

/** Returns the kind of a hold: exclusive, shared, or its share of the permits. */
export function kindOf({ mode, permits, limit }: Pick<HoldView, "mode" | "permits" | "limit">): string {
  return limit === undefined ? mode : `${permits} of ${limit}`;
}

/** Returns a hold's state if its lease is not current: `not renewed 43s`; `""` if it is. */
function holdState(hold: HoldView): string {
  const tone = toneOf(hold);
  if (tone === "late") return `${WORDS.late} ${formatDuration(hold.leaseMs - hold.remainingMs)}`;
  return tone === "held" ? "" : WORDS[tone];
}

const paint: NonNullable<Column<HoldView>["paint"]> = (hold, colors) => (holdState(hold) === "" ? String : colors.yellow);

const KEY: Column<HoldView> = { title: "KEY", cell: ({ key }) => withParts(key), cut: { columns: 16, to: cutMiddle }, paint };
const WAITING: Column<HoldView> = {
  title: "WAITING",
  cell: ({ waiting }) => String(waiting),
  align: "right",
  paint: (hold, colors) => (hold.waiting > 0 ? colors.yellow : paint(hold, colors)),
};

/** Returns the columns for the holds of one key. The state is among them if a hold's lease is not current. */
export function holdColumns(holds: readonly HoldView[]): readonly Column<HoldView>[] {
  const hasState = holds.some((hold) => holdState(hold) !== "");
  return [
    { title: "OWNER", cell: ({ owner }) => owner || "-", cut: { columns: 6, to: cutMiddle }, paint },
    { title: "MODE", cell: kindOf, isSpare: holds.every((hold) => kindOf(hold) === "exclusive"), leaves: 3, paint },
    {
      title: "TOKEN",
      cell: ({ fencingToken }) => String(fencingToken),
      short: ({ fencingToken }) => shortToken(fencingToken),
      align: "right",
      leaves: 1,
      paint,
    },
    // Beside the time since the last renewal, the time since the grant can be spared.
    { title: "HELD FOR", cell: ({ heldMs }) => formatDuration(heldMs), align: "right", isSpare: hasState, paint },
    { title: "REMAINING", cell: ({ remainingMs }) => formatDuration(remainingMs), align: "right", leaves: 2, paint },
    ...(hasState ? [{ title: "STATE", cell: holdState, paint }] : []),
  ];
}

/** Returns the columns for these holds of many keys. The number of waiters is among them if there are any. */
export function keyColumns(holds: readonly HoldView[]): readonly Column<HoldView>[] {
  return [KEY, ...holdColumns(holds), ...(holds.some(({ waiting }) => waiting > 0) ? [WAITING] : [])];
}
