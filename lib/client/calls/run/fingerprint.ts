/**
 * The fingerprint of a run's payload: the SHA-256 of its canonical JSON. A large payload is written in portions, between which the process's
 * other work goes on. Stored runs are compared by it, so the same payload must have the same fingerprint in every version.
 */
import { createHash } from "node:crypto";
import { canonicalPieces } from "../../../core/canonical.js";
import { nextTurn } from "../../../core/time.js";
import { inputToJson } from "./run-options.js";

/** The length of a portion, in characters, which takes some milliseconds. */
const PORTION_CHARS = 256 * 1024;

/**
 * Returns the fingerprint of the payload as it is at the time of the call. @throws InvalidRequestError naming what JSON can't represent
 */
export async function fingerprintOf(payload: unknown, turn = nextTurn): Promise<string> {
  const json = inputToJson(payload, "payload");
  const hash = createHash("sha256");
  let portion = "";
  for (const piece of canonicalPieces(json)) {
    portion += piece;
    if (portion.length < PORTION_CHARS) continue;
    hash.update(portion);
    portion = "";
    await turn();
  }
  return hash.update(portion).digest("base64url");
}
