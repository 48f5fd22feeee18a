/** The attributes of a crowd: sums over its leases, and the tokens of those that joined. */
import { permitsOut } from "../../core/lock/compatibility.js";
import { recordBytes } from "../../core/record-bytes.js";
import type { LockRecord } from "../../core/record.js";

/** The number of leases above which a crowd is large: many of them may leave at once. */
export const LARGE_CROWD = 8;
/** The length of the list of ended leases from which one that joins makes tombstones of them. */
export const LISTED_MAX = 16;

/** The sums of a crowd that was written as a whole. Each token is in its hold. */
export function sumsOf(record: LockRecord): {
  readonly cp: number;
  readonly cb: number;
  readonly co: number;
  readonly jt: Readonly<Record<string, number>>;
} {
  const { holds, offers } = record;
  return { cp: permitsOut([...Object.values(holds), ...offers]), cb: recordBytes(record), co: offers.length, jt: {} };
}
