/**
 * The fingerprint of a run's payload: the SHA-256 of its canonical JSON. Stored runs are compared by it, so the same payload must have the
 * same fingerprint in every version.
 */
import { digestOf } from "../../../core/canonical.js";
import { inputToJson } from "./run-options.js";

/** Returns the fingerprint of the payload. @throws InvalidRequestError naming what JSON can't represent */
export function fingerprintOf(payload: unknown): string {
  return digestOf(inputToJson(payload, "payload"));
}
