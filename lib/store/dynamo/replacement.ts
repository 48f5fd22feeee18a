/** The write of a whole record, on its version: the form of every change that has none of its own. */
import type { Decision } from "../../core/commands.js";
import { isSameQueue } from "../../core/lock/places.js";
import type { LockRecord } from "../../core/record.js";
import { FORMAT_VERSION, OPTIONAL, QUEUE, toItem } from "./item.js";
import { type Stored, hasLeftPlaces, wholly } from "./lists.js";
import { type AttemptOf, type FormWrite, type Write, KNOWN_FORMAT, TOUCHED_AS_SEEN, UNTOUCHED } from "./predicates.js";

/** Writes what was decided. The count of keep-alives may differ, and another decision may be right by then: so this one is the answer. */
export function whole({ decision, seen }: AttemptOf): FormWrite {
  const decided = decision as Required<Decision>;
  return { ...replacement(decided.next, seen), decides: () => decided, lists: () => wholly(decided.next).lists };
}

/**
 * Writes the whole record, on condition that nothing changed since it was seen. A keep-alive leaves the version alone,
 * but is counted. So a changed queue is written only over the queue that was seen, and an unchanged queue is left
 * alone if it has no places that were left.
 */
export function replacement(next: LockRecord, stored: Stored | undefined): Write {
  const seen = stored?.record;
  const isLeft = stored !== undefined && isSameQueue(next, stored.record) && !hasLeftPlaces(stored);
  const item = Object.fromEntries(Object.entries(toItem(next)).filter(([name]) => !isLeft || !QUEUE.includes(name)));
  const removed = OPTIONAL.filter((name) => !Object.hasOwn(item, name) && !(isLeft && QUEUE.includes(name)));
  const values = Object.fromEntries(Object.entries(item).map(([name, value]) => [`:${name}`, value]));
  const touches = !isLeft && seen && (seen.touches === undefined ? UNTOUCHED : TOUCHED_AS_SEEN);
  const condition = seen ? ["v = :seen", ...(touches ? [touches] : []), KNOWN_FORMAT] : ["attribute_not_exists(v)"];
  return {
    condition: condition.join(" AND "),
    update: `SET ${Object.keys(item)
      .map((name) => `${name} = :${name}`)
      .join(", ")}${removed.length > 0 ? ` REMOVE ${removed.join(", ")}` : ""}`,
    names: {},
    values: {
      ...values,
      ...(seen && { ":seen": seen.version, ":format": FORMAT_VERSION }),
      ...(touches === TOUCHED_AS_SEEN && { ":touches": seen?.touches }),
    },
  };
}

/**
 * Asserts that the record is as it was seen. It writes back the version that it checks, so it needs only the right to
 * update. A ConditionCheck costs the same, and needs a right that the roles don't have.
 */
export function unchanged(seen: LockRecord | undefined): Write {
  return {
    condition: `v = :seen AND ${KNOWN_FORMAT}`,
    update: "SET v = :seen",
    names: {},
    values: { ":seen": seen?.version ?? 0, ":format": FORMAT_VERSION },
  };
}
