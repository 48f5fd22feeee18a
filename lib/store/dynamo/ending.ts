/**
 * The writes that end one lease or one wait. One hands the key over to the first who waits. The others end a lease beside others, and leave the
 * queue to its next poll (lib/core/lock/release.ts). Those of a large crowd, of a release that lost races, and of a
 * waiter that leaves its place, don't depend on who ended before either: they list the lease among those that ended, in place of shifting the
 * tombstones.
 */
import { touchedTtlAtSec } from "../../core/change.js";
import type { Release } from "../../core/commands.js";
import { isCrowd } from "../../core/lock/crowd.js";
import { highestLowWatermark } from "../../core/lock/expiry.js";
import { endOnly } from "../../core/lock/release.js";
import { placeOf } from "../../core/lock/places.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { LIMITS } from "../../core/limits.js";
import { holdBytes, waitersBytes } from "../../core/record-bytes.js";
import type { Hold, LockRecord } from "../../core/record.js";
import type { ClockReading } from "../../core/time.js";
import { LARGE_CROWD } from "./crowd-item.js";
import { FORMAT_VERSION } from "./item.js";
import { type Lists, LEFT, LEFT_BYTES, listBytes, NO_ENTRY, NOTHING } from "./lists.js";
import * as is from "./predicates.js";
import type { AttemptOf, FormWrite, Write } from "./predicates.js";
import { storedId } from "./stored-id.js";

/** The lease is the caller's and live. Others stay, or nobody waits. */
export function leave(attempt: AttemptOf<Release>): FormWrite {
  const { command, reading, seen = NOTHING } = attempt;
  const isListed = Object.keys(seen.record.holds).length > LARGE_CROWD || seen.lists.listed.length > 0;
  const ended = isListed ? listed([storedId(command.leaseId)], reading) : shifted(command, reading, watermarkOf(seen.record));
  return removal(attempt, ended, [is.LEAVES_THE_QUEUE], { ":zero": 0 });
}

/** Ends a live lease, whoever waits. No change of another lease can break the write's condition, so it never loses a race. */
export function endAnyway(attempt: AttemptOf<Release>): FormWrite {
  return removal(attempt, listed([storedId(attempt.command.leaseId)], attempt.reading));
}

/** The lease is the caller's, live and alone. The key is offered to the first waiter, if there is one. */
export function handOver({ command, reading, policy, seen = NOTHING }: AttemptOf<Release>): FormWrite {
  const set = [
    is.HELD_FOR,
    `h = if_not_exists(${is.first.offer}, :nobody)`,
    "ox = :now",
    `ol = if_not_exists(${is.first.aliveUntilMs}, :now) - if_not_exists(${is.first.ttlMs}, :zero)`,
  ];
  const write = ending(
    command,
    reading,
    {
      condition: [is.HANDS_OVER, is.TTL_STANDS],
      update: set,
      values: {
        ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
        ":nobody": {},
        ":now": reading.latestMs,
        ":zero": 0,
      },
    },
    shifted(command, reading, watermarkOf(seen.record)),
  );
  return {
    ...write,
    update: `${write.update} REMOVE q[0], qi[0], cb`,
    lists: ({ places, listed }) => ({ places: places.slice(1), listed }),
  };
}

/** A waiter leaves its place, which stays without it: nobody else's moves. */
export function leavePlace({ command, reading, policy, seen: { record, lists } = NOTHING }: AttemptOf<Release>): FormWrite {
  const { leaseId, principal } = command;
  const slot = lists.places.indexOf(leaseId);
  const waiter = record.waiters[placeOf(record, leaseId)];
  const ended = listed([storedId(leaseId), LEFT], reading);
  const bytes = isCrowd(record) && waiter && waitersBytes([waiter]) - LEFT_BYTES - ended.bytes;
  const counted = bytes ? ["cb = cb - :bytes", "cv = cv + :one"] : [];
  return {
    condition: [is.waitsAt(slot), is.TTL_STANDS, ...(bytes ? [is.COUNTED] : []), is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${[`qi[${slot}] = :left`, `q[${slot}] = :empty`, ended.update, "v = v + :one", ...counted].join(", ")}`,
    names: { "#me": storedId(leaseId) },
    values: {
      ":by": principal,
      ":left": LEFT,
      ":empty": NO_ENTRY,
      ...ended.values,
      ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
      ...(bytes && { ":bytes": bytes }),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
    lists: ({ places, ...others }) => ({ places: places.with(slot, LEFT), listed: ended.after(others) }),
  };
}

/** Removes one lease of the key, on these conditions too, and leaves the queue as it is. */
function removal(
  { command, reading, policy, seen: { record: seen } = NOTHING }: AttemptOf<Release>,
  ended: Ended,
  condition: readonly string[] = [],
  values: Write["values"] = {},
): FormWrite {
  const { leaseId } = command;
  const hold = holdOf(seen, leaseId);
  // Reentrant holds of a scope share their permits. Without right sums, the next to join writes them anew.
  const isCounted = hold !== undefined && hold.scope === undefined && isCrowd(seen);
  const write = ending(
    command,
    reading,
    {
      condition: [...condition, is.TTL_STANDS, ...(isCounted ? [is.COUNTED] : [])],
      // Sums that were right stay right, and others stay wrong: `cv` rises with `v`.
      update: [is.HELD_FOR, ...(isCounted ? ["cp = cp - :permits", "cb = cb - :bytes", "cv = cv + :one"] : [])],
      values: {
        ...values,
        ":now": reading.latestMs,
        ":touched": touchedTtlAtSec(EMPTY_RECORD, reading, policy),
        ...(isCounted && {
          ":permits": hold.permits,
          ":bytes": leastBytes(hold, seen) - ended.bytes,
        }),
      },
    },
    ended,
  );
  return {
    ...write,
    update: `${write.update} REMOVE h.#me${isCounted ? ", jt.#me" : ""}`,
    decides: (before) => endOnly(before, command, reading, policy),
    lists: ({ places, ...lists }) => ({ places, listed: ended.after(lists) }),
  };
}

/** Returns the bytes of a hold. Its meta may have changed since it was seen: the sum is then too high, until somebody writes the whole record. */
function leastBytes({ meta: _changing, ...hold }: Hold, { limit }: LockRecord): number {
  return holdBytes(hold, limit);
}

/** The parts of a write besides those that each end of a lease has. */
interface WriteParts {
  readonly condition: readonly string[];
  readonly update: readonly string[];
  readonly values: Write["values"];
}

/** A write that ends the caller's own, live lease. */
export function ending(
  { leaseId, principal }: Pick<Release, "leaseId" | "principal">,
  reading: ClockReading,
  { condition, update, values }: WriteParts,
  ended: Ended,
): Write {
  return {
    condition: [is.MINE, is.LIVE, is.NOT_BROKEN, ...ended.condition, ...condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${["v = v + :one", ended.update, ...update].join(", ")}`,
    names: { "#me": storedId(leaseId) },
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
  /** The leases that are listed after it. */
  readonly after: (before: Pick<Lists, "listed">) => readonly string[];
}

/** Returns the fate of the low watermark: it stays if the tombstone that drops out is below it, as far as was seen. */
function watermarkOf({ tombstones, lowWatermark }: LockRecord): is.Watermark {
  const [last] = tombstones.slice(LIMITS.tombstonesMax - 1);
  return (last?.leaseId ?? "") < lowWatermark ? "stays" : "rises";
}

/** The lease becomes the first tombstone. Which form is right depends on those that ended before, so it may lose a race to others that end. */
export function shifted({ leaseId }: Pick<Release, "leaseId">, reading: ClockReading, watermark: is.Watermark, outcome?: string): Ended {
  const { update, values } = is.addTombstone(leaseId, watermark, outcome);
  return {
    condition: [is.NONE_LISTED, watermark === "stays" ? is.LOW_WATERMARK_STAYS : is.LOW_WATERMARK_RISES],
    update,
    values: { ...values, ":zero": 0, ":reach": storedId(highestLowWatermark(reading)) },
    bytes: 0,
    after: ({ listed: none }) => none,
  };
}

/** The lease is listed, until a write of the whole record, or of one that joins, makes a tombstone of it. */
function listed(entries: readonly string[], { earliestMs }: ClockReading): Ended {
  return {
    condition: [],
    update: "rl = list_append(if_not_exists(rl, :none), :ids), rz = :endedAt",
    values: { ":none": [], ":ids": entries, ":endedAt": earliestMs },
    bytes: listBytes(entries),
    after: (before) => [...before.listed, ...entries],
  };
}
