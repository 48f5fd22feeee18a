import { randomUUID } from "node:crypto";

/** Returns a new UUIDv7: the time in ms, then random bits. */
export function leaseId(): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
