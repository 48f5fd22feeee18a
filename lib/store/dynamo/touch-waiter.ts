/** The write of a waiter's keep-alive, in the queue or in the wait set. */
import type { Touch } from "../../core/commands.js";
import type { LockRecord } from "../../core/record.js";
import { FORMAT_VERSION } from "./item.js";
import { listsOf } from "./lists.js";
import * as is from "./predicates.js";
import type { Write } from "./predicates.js";
import { storedId } from "./stored-id.js";

/**
 * Writes a waiter's keep-alive, if it is later than the last. The version stays the same, so no concurrent write loses a race to it. The
 * record's life may become longer, never shorter.
 */
export function touchWaiter({ waiter, inWaitSet, ttlAtSec }: Touch, seen: LockRecord): Write {
  const { leaseId, aliveUntilMs, ttlMs } = waiter;
  const slot = listsOf(seen).places.indexOf(leaseId);
  const entry = inWaitSet ? "cw.#me" : `q[${slot}]`;
  const condition = [...(inWaitSet ? [] : [`attribute_exists(${entry}.g.#me)`]), `${entry}.u < :until`];
  const update = [`${entry}.u = :until`, `${entry}.s = :ttl`, "qv = if_not_exists(qv, :zero) + :one"];
  if (ttlAtSec !== undefined) {
    condition.push(is.TTL_TOO_SOON);
    update.push(`${is.X} = :kept`);
  }
  return {
    condition: [...condition, is.KNOWN_FORMAT].join(" AND "),
    update: `SET ${update.join(", ")}`,
    names: { "#me": storedId(leaseId) },
    values: {
      ...{ ":until": aliveUntilMs, ":ttl": ttlMs, ":zero": 0, ":one": 1, ":format": FORMAT_VERSION },
      ...(ttlAtSec !== undefined && { ":kept": ttlAtSec }),
    },
  };
}
