/** Still mine? Reads only. A broken lease that may drain is still held until its end. */
import type { Held } from "./commands.js";
import { holdOf } from "./ending.js";
import type { Refusal } from "./errors.js";
import { refuse } from "./errors.js";
import type { LeaseId } from "./lease-id.js";
import type { LockRecord } from "./record.js";
import type { ClockReading } from "./time.js";
import { isLive } from "./expiry.js";
import { leaseLost, leaseView } from "./views.js";

/** What a lease's holder is told about it: the lease, or that it is over and why. */
export function check(
  record: LockRecord | undefined,
  { key, leaseId, principal }: { readonly key: string; readonly leaseId: LeaseId; readonly principal: string },
  reading: ClockReading,
): Held | Refusal {
  const hold = record && holdOf(record, leaseId);
  if (!record || !hold) return leaseLost(record, leaseId, reading);
  if (hold.principal !== "" && hold.principal !== principal) return refuse("forbidden");
  if (!isLive(hold, reading)) return refuse("lease-lost", { reason: hold.broken === "forced" ? "broken" : "expired" });
  return { ok: true, how: "checked", lease: leaseView(key, leaseId, hold, record, reading) };
}
