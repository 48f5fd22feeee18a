/** The handle of a detached lease: what another process needs to attach. A secret; it works once. */
import { isKey } from "../../core/key.js";
import type { LeaseId } from "../../core/lease-id.js";
import { isLeaseId } from "../../core/lease-id.js";
import { LIMITS } from "../../core/limits.js";
import { InvalidRequestError } from "../errors.js";

/** What a handle carries. */
export interface Detached {
  readonly key: string;
  readonly leaseId: LeaseId;
  readonly leaseMs: number;
}

const FORMAT = "hf1";

/** The handle as text that survives a JSON document, a URL and a queue message. */
export function toHandle({ key, leaseId, leaseMs }: Detached): string {
  return [FORMAT, key, leaseId, leaseMs].join("/");
}

/** @throws InvalidRequestError when `handle` was not made by `detach()`. */
export function fromHandle(handle: string): Detached {
  const [format, key = "", leaseId = "", leaseMs = ""] = typeof handle === "string" ? handle.split("/") : [];
  const lengthMs = /^\d+$/.test(leaseMs) ? Number(leaseMs) : Number.NaN;
  if (format !== FORMAT || !isKey(key) || !isLeaseId(leaseId) || !(lengthMs >= LIMITS.leaseMinMs && lengthMs <= LIMITS.leaseMaxMs)) {
    throw new InvalidRequestError("handle: is not one that detach() gave", "handle");
  }
  return { key, leaseId, leaseMs: lengthMs };
}
