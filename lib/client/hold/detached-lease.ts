/** The handle of a detached lease, with which another process attaches. It is a secret and works once. */
import type { LeaseView } from "../../core/commands.js";
import { isKey } from "../../core/key.js";
import { isLeaseId } from "../../core/lease-id.js";
import * as LIMITS from "../../core/request-limits.js";
import { InvalidRequestError } from "../wire/errors.js";

/** The content of a handle. */
export type Detached = Pick<LeaseView, "key" | "leaseId" | "leaseMs">;

const FORMAT = "hf1";

/** Returns the handle as text that is safe in a JSON document, a URL and a queue message. */
export function toHandle({ key, leaseId, leaseMs }: Detached): string {
  return [FORMAT, key, leaseId, leaseMs].join("/");
}

/** Parses a handle. @throws InvalidRequestError if `handle` was not made by `detach()`. */
export function fromHandle(handle: string): Detached {
  const [format, key = "", leaseId = "", leaseMs = ""] = typeof handle === "string" ? handle.split("/") : [];
  const lengthMs = /^\d+$/.test(leaseMs) ? Number(leaseMs) : Number.NaN;
  if (format !== FORMAT || !isKey(key) || !isLeaseId(leaseId) || !(lengthMs >= LIMITS.leaseMinMs && lengthMs <= LIMITS.leaseMaxMs)) {
    throw new InvalidRequestError("handle: is not one of detach()", "handle");
  }
  return { key, leaseId, leaseMs: lengthMs };
}
