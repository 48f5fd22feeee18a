/** The view of a key: its holders, its waiters, and the leases that ended. */
import * as v from "valibot";
import { LIMITS } from "../core/limits.js";
import { condition, durationMs, fencingToken, integer, Key, leaseMs, mode, owner } from "./fields.js";

/** A holder as a refusal shows it. */
export const Holder = v.strictObject({ owner, mode, permits: integer(1, 1000), fencingToken, heldMs: durationMs, remainingMs: durationMs });
const InspectedHolder = v.strictObject({
  ...Holder.entries,
  leaseMs: v.optional(leaseMs),
  breaking: v.optional(v.pipe(v.literal(true), v.description("An operator broke the hold: it can't be renewed."))),
});
const ending = v.picklist(["released", "expired", "taken", "broken", "transferred", "cancelled", "unknown"]);

/** Everything that any caller of the namespace may see of a key. */
export const Inspection = v.strictObject({
  key: Key,
  version: durationMs,
  mode,
  limit: v.optional(integer(1, LIMITS.permitsMax)),
  fencingToken,
  holders: v.array(InspectedHolder),
  waiters: v.array(
    v.strictObject({
      owner,
      mode,
      priority: integer(0, LIMITS.priorityMax),
      position: integer(1, 1000),
      waitingMs: durationMs,
      offered: v.optional(v.pipe(v.literal(true), v.description("The key is reserved for it, until it claims the key."))),
    }),
  ),
  waitSet: v.optional(
    v.pipe(
      v.array(v.strictObject({ owner, condition, waitingMs: durationMs })),
      v.description("The leases that wait for a condition; absent: none."),
    ),
  ),
  recent: v.optional(
    v.pipe(
      v.array(v.strictObject({ askedAgoMs: durationMs, ending })),
      v.description("The last leases of the key that ended, the latest end first; absent: none, and from lists."),
    ),
  ),
  lapsed: v.optional(
    v.pipe(
      v.array(v.strictObject({ owner, fencingToken, heldMs: durationMs, endedAgoMs: durationMs })),
      v.description("The holds whose lease is over and that nobody has taken over since; absent: none, and from lists."),
    ),
  ),
});
