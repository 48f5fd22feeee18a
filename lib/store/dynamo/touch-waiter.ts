/** The write of a waiter's keep-alive, in the queue or in the wait set. */
import type { Decision } from "../../core/commands.js";
import { FORMAT_VERSION } from "./item.js";
import { OFFER_OF_PLACE, PLACE } from "./layout.js";
import { NOTHING } from "./lists.js";
import * as is from "./predicates.js";
import type { AttemptOf, FormWrite } from "./predicates.js";
import { storedId } from "./stored-id.js";

/**
 * Writes a waiter's keep-alive, if it is later than the last. The version stays the same, so no concurrent write loses a race to it. The
 * record's life may become longer, never shorter. Others may have changed the record by then, so that the core would decide more. Nothing more
 * is written, so what was decided is the answer.
 */
export function touchWaiter({ decision, seen: { lists } = NOTHING }: AttemptOf): FormWrite {
  const decided = decision as Required<Decision>;
  const { waiter, inWaitSet, ttlAtSec } = decided.touch;
  const { leaseId, aliveUntilMs, ttlMs } = waiter;
  const slot = lists.places.indexOf(leaseId);
  const entry = inWaitSet ? "cw.#me" : `q[${slot}]`;
  const place = PLACE.pathsIn(entry);
  const condition = [...(inWaitSet ? [] : [`attribute_exists(${entry}.${OFFER_OF_PLACE}.#me)`]), `${place.aliveUntilMs} < :until`];
  const update = [`${place.aliveUntilMs} = :until`, `${place.ttlMs} = :ttl`, "qv = if_not_exists(qv, :zero) + :one"];
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
    decides: () => decided,
  };
}
