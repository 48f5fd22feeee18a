/** The writes of a lease that joins others, at once or when it was offered the key (lib/core/lock/crowd.ts). They commute with those of the other members of the crowd. */
import type { Acquire } from "../../core/commands.js";
import { ttlAtSec } from "../../core/change.js";
import { grantBeside } from "../../core/lock/acquire.js";
import { isLately, tokenBeside } from "../../core/lock/crowd.js";
import { newHold } from "../../core/lock/grant.js";
import { offerOf } from "../../core/lock/queue.js";
import { EMPTY_RECORD, holdOf } from "../../core/lock/tombstones.js";
import { LIMITS } from "../../core/limits.js";
import { holdBytes, waitersBytes } from "../../core/record-bytes.js";
import type { Hold, LockPolicy, LockRecord } from "../../core/record.js";
import type { ClockReading } from "../../core/time.js";
import { LISTED_MAX, shortId } from "./crowd-item.js";
import { FORMAT_VERSION } from "./item.js";
import { HOLD } from "./layout.js";
import * as is from "./predicates.js";
import type { FastPath } from "./predicates.js";

/**
 * Readers or permits hold the key. Either it was offered to this one too, or nobody waits and this one fits. The token is counted from the last one at the moment of the write, so
 * it stands apart from the hold. A hold's value can't be computed there.
 */
export function join(command: Acquire, seen: LockRecord, reading: ClockReading, policy: LockPolicy): FastPath {
  const { leaseId, limit, permits } = command;
  const counts = isLately(seen, reading);
  const hold = { ...newHold(EMPTY_RECORD, command, reading, policy), fencingToken: counts ? 0 : tokenBeside(seen, reading) };
  const offer = offerOf(seen, leaseId);
  const bytes = holdBytes(hold, limit) - (offer ? waitersBytes([offer]) : 0);
  const ttl = ttlOf(hold, policy, seen);
  const left = seen.upgrading && !holdOf(seen, seen.upgrading.leaseId) ? seen.upgrading.leaseId : undefined;
  const notUpgrading = left === undefined ? is.NOT_UPGRADING : is.UPGRADER_LEFT;
  const token = counts ? "jt.#in = f + :one, f = f + :one" : "f = :now";
  const mayJoin = offer ? [is.OFFERED] : [is.NOBODY_WAITS, notUpgrading, is.ROOM_TO_JOIN, is.NOT_HERE, is.NEVER_ENDED, is.FEW_LISTED];
  const counted = offer ? "co = co - :one" : "cp = cp + :permits";
  return {
    condition: [
      ...[is.CROWD, ...mayJoin, is.SAME_LIMIT, is.BYTES_TO_JOIN],
      ...[counts ? is.LATELY : is.LONG_AGO, ttl.condition, is.KNOWN_FORMAT],
    ].join(" AND "),
    update: `SET h.#me = :joined, ${[token, counted, "cb = cb + :bytes", "cv = cv + :one", "v = v + :one", ...ttl.update].join(", ")}`,
    names: { "#me": leaseId, ...(counts && { "#in": shortId(leaseId) }) },
    values: {
      ...(offer
        ? { ":by": command.principal, ":params": command.requestHash }
        : {
            ":me": leaseId,
            ":permits": permits,
            ":most": LIMITS.leasesMax,
            // Readers take no permits: there is room for as many of them as for leases.
            ":room": (limit > 1 ? limit : LIMITS.leasesMax) - permits,
            ...(left === undefined ? { ":earlier": reading.earliestMs } : { ":left": left }),
            ":few": LISTED_MAX,
            ":zero": 0,
          }),
      ":joined": HOLD.toItem(hold),
      ":limit": limit,
      ":bytes": bytes,
      ":small": LIMITS.recordBytes - bytes,
      ":lately": reading.latestMs - LIMITS.nextTokenMs,
      ...(!counts && { ":now": hold.fencingToken }),
      ":ttl": ttlAtSec(hold, policy),
      ":one": 1,
      ":format": FORMAT_VERSION,
    },
    ...(!offer && { outcome: (before: LockRecord) => grantBeside(before, command, reading, policy) }),
  };
}

/** The condition and the update of a lock's TTL: it rises to this lease's, or is enough as far as `seen` shows. It never falls. */
export function ttlOf(
  hold: Pick<Hold, "expiresAtMs" | "marginMs">,
  policy: LockPolicy,
  seen: LockRecord | undefined,
): { readonly condition: string; readonly update: readonly string[] } {
  if (seen && seen.ttlAtSec >= ttlAtSec(hold, policy)) return { condition: is.TTL_IS_ENOUGH, update: [] };
  return { condition: is.TTL_RISES, update: [`${is.X} = :ttl`] };
}
