/** The holds of a key over a time: its leases as the console's timeline has them, with what a table needs beside them. Pure. */
import { type Broken, type EndKind, type Lane, beginning, ending } from "../../console/lanes.js";

/** A hold that may be over. */
export interface PastHold {
  readonly owner: string;
  readonly fencingToken?: number | undefined;
  /** Its time, in epoch ms. Without `toMs` it goes on, or nothing tells when it ended. */
  readonly fromMs: number;
  readonly toMs?: number | undefined;
  /** The number of callers that waited for the key in this time, however their wait ended. */
  readonly waited: number;
  /** The way in which it ended. Absent: it goes on, or nothing tells that it ended. */
  readonly ending?: EndKind | undefined;
  readonly broken?: Broken | undefined;
}

/** A wait that goes on at some time. */
export interface PastWait {
  readonly owner: string;
  readonly fromMs: number;
  /** Absent: it goes on, or nothing tells that it ended. */
  readonly toMs?: number | undefined;
  /** The way in which it ended; `granted` if with the key. */
  readonly ending?: EndKind | "granted" | undefined;
}

/** Returns the holds of a key's lanes, in the order of their beginnings. */
export function holdsIn(lanes: readonly Lane[]): readonly PastHold[] {
  return lanes.flatMap((lane) => holdIn(lane, lanes) ?? []).sort((a, b) => a.fromMs - b.fromMs);
}

/** Returns who held the key at a time and who waited, in epoch ms. A hold whose end nobody knows counts until it was surely over. */
export function lanesAt(
  lanes: readonly Lane[],
  atMs: number,
): { readonly holds: readonly PastHold[]; readonly waits: readonly PastWait[] } {
  const holding = lanes.filter((lane) => lane.hold && lane.hold.fromMs <= atMs && atMs < ending(lane));
  return {
    holds: holding.flatMap((lane) => holdIn(lane, lanes) ?? []).sort((a, b) => a.fromMs - b.fromMs),
    waits: lanes.flatMap(({ owner, wait, hold, end }): readonly PastWait[] => {
      const { fromMs, toMs = Infinity } = wait ?? { fromMs: Infinity };
      return fromMs <= atMs && atMs < toMs ? [{ ...wait, owner, fromMs, ending: hold ? "granted" : end?.kind }] : [];
    }),
  };
}

function holdIn(lane: Lane, lanes: readonly Lane[]): PastHold | undefined {
  const { owner, hold, end, broken } = lane;
  if (!hold) return undefined;
  const { fromMs, fencingToken } = hold;
  const waited = lanes.filter((other) => other !== lane && other.wait && beginning(other) < ending(lane) && waitEnd(other) > fromMs).length;
  // A lane without a known end draws the hold as far as it was seen.
  const toMs = end?.kind === "unknown" ? undefined : hold.toMs;
  return { owner, fencingToken, fromMs, toMs, waited, ending: end?.kind, broken };
}

function waitEnd({ wait }: Lane): number {
  return wait?.toMs ?? Infinity;
}
