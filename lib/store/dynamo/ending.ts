/**
 * The writes that end one lease, whatever became of the others meanwhile. They leave the queue to its next poll (lib/core/lock/release.ts).
 * Those of a large crowd, and of a release that lost races, don't depend on who ended before either: they list the lease among those that
 * ended, in place of shifting the tombstones.
 */
import { touchedTtlAtSec } from "../../core/change.js";
import type { Release } from "../../core/commands.js";
import { isCrowd } from "../../core/lock/crowd.js";
import { highestLowWatermark, isLive, isSkewed } from "../../core/lock/expiry.js";
import { endOnly } from "../../core/lock/release.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { LIMITS } from "../../core/limits.js";
import { holdBytes } from "../../core/record-bytes.js";
import type { Hold, LockPolicy, LockRecord } from "../../core/record.js";
import type { ClockReading } from "../../core/time.js";
import { LARGE_CROWD, LISTED_BYTES, shortId } from "./crowd-item.js";
import { FORMAT_VERSION } from "./item.js";
import * as is from "./predicates.js";
import type { FastPath, Write } from "./predicates.js";

/** The lease is the caller's and live. Others stay, or nobody waits. */
export function leave(command: Release, reading: ClockReading, policy: LockPolicy, seen: LockRecord): FastPath {
  const ended = Object.keys(seen.holds).length > LARGE_CROWD ? listed(command, reading) : shifted(command, reading, stays(seen));
  const condition = [is.LEAVES_THE_QUEUE, ...ended.condition];
  return removal(command, reading, policy, seen, { ...ended, condition, values: { ...ended.values, ":zero": 0 } });
}

/**
 * Ends a live lease, whoever waits. No change of another lease can break the write's condition, so it never loses a race. Returns nothing if
 * the lease isn't the caller's and live, or if the record must show more than its end.
 */
export function endAnyway(command: Release, reading: ClockReading, policy: LockPolicy, seen: LockRecord): FastPath | undefined {
  const hold = holdOf(seen, command.leaseId);
  if (hold?.principal !== command.principal || hold.broken || seen.run || isSkewed(reading) || !isLive(hold, reading)) return undefined;
  return removal(command, reading, policy, seen, listed(command, reading));
}

/** Removes one lease of the key, and leaves the queue as it is. */
function removal(command: Release, reading: ClockReading, policy: LockPolicy, seen: LockRecord, ended: Ended): FastPath {
  const { leaseId } = command;
  const hold = holdOf(seen, leaseId);
  // Reentrant holds of a scope share their permits. Without right sums, the next to join writes them anew.
  const isCounted = hold !== undefined && hold.scope === undefined && isCrowd(seen);
  const write = ending(
    command,
    reading,
    [is.TTL_STANDS, ...(isCounted ? [is.COUNTED] : [])],
    // Sums that were right stay right, and others stay wrong: `cv` rises with `v`.
    [is.HELD_FOR, ...(isCounted ? ["cp = cp - :permits", "cb = cb - :bytes", "cv = cv + :one"] : [])],
    {
      ":now": reading.latestMs,
      ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
      ...(isCounted && {
        ":permits": hold.permits,
        ":bytes": leastBytes(hold, seen) - ended.bytes,
      }),
    },
    ended,
  );
  return {
    ...write,
    names: { ...write.names, ...(isCounted && { "#in": shortId(leaseId) }) },
    update: `${write.update} REMOVE h.#me${isCounted ? ", jt.#in" : ""}`,
    outcome: (before) => endOnly(before, command, reading, policy),
  };
}

/** Returns the bytes of a hold. Its meta may have changed since it was seen: the sum is then too high, until somebody writes the whole record. */
function leastBytes({ meta: _changing, ...hold }: Hold, { limit }: LockRecord): number {
  return holdBytes(hold, limit);
}

/** A write that ends the caller's own, live lease. */
export function ending(
  { leaseId, principal }: Pick<Release, "leaseId" | "principal">,
  reading: ClockReading,
  condition: readonly string[],
  update: readonly string[],
  values: Write["values"],
  ended: Ended,
): Write {
  return {
    condition: [is.MINE, is.LIVE, is.NOT_BROKEN, ...ended.condition, ...condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["v = v + :one", ended.update, ...update].join(", ")}`,
    names: { "#me": leaseId },
    values: { ":principal": principal, ":earlier": reading.earliestMs, ":one": 1, ":format": FORMAT_VERSION, ...ended.values, ...values },
  };
}

/** The way in which a write makes a lease known as ended. */
export interface Ended {
  readonly condition: readonly string[];
  readonly update: string;
  readonly values: Write["values"];
  /** The bytes that it adds to the record. */
  readonly bytes: number;
}

/** True if the tombstone that drops out is below the low watermark, as far as was seen. */
function stays({ tombstones, lowWatermark }: LockRecord): boolean {
  const [last] = tombstones.slice(LIMITS.tombstonesMax - 1);
  return (last?.leaseId ?? "") < lowWatermark;
}

/** The lease becomes the first tombstone. Which form is right depends on those that ended before, so it may lose a race to others that end. */
export function shifted({ leaseId }: Pick<Release, "leaseId">, reading: ClockReading, isBelow: boolean, outcome?: string): Ended {
  const { update, values } = is.addTombstone(leaseId, outcome, isBelow);
  const lowWatermark = isBelow ? is.LOW_WATERMARK_STAYS : is.LOW_WATERMARK_RISES;
  return { condition: [is.NONE_LISTED, lowWatermark], update, values: { ...values, ":reach": highestLowWatermark(reading) }, bytes: 0 };
}

/** The lease is listed, until the next write of the whole record makes a tombstone of it. */
function listed({ leaseId }: Release, { earliestMs }: ClockReading): Ended {
  const values = { ":none": [], ":ids": [leaseId], ":endedAt": earliestMs };
  return { condition: [], update: "rl = list_append(if_not_exists(rl, :none), :ids), rz = :endedAt", values, bytes: LISTED_BYTES };
}
