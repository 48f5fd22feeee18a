/**
 * The console's own guard, behind that of its server (infra/local/local-server.ts): a change must come from the page itself, and where the
 * console lends somebody's credentials, each request for data must know the secret of this start.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The header with the secret. */
export const SECRET_HEADER = "x-holdfast-console";

/** Returns the reason for which the request is refused, or undefined. */
export function refusalOf({ headers, method }: IncomingMessage, isData: boolean, secret?: string): string | undefined {
  if (isData && secret !== undefined && !isSecret(headers[SECRET_HEADER], secret))
    return "This page doesn't know the secret of the running console: open the address that holdfast ui printed";
  if (method !== "POST") return undefined;
  if (headers["sec-fetch-site"] !== "same-origin") return "Only the console's own page may make changes";
  return /^application\/json\b/.test(headers["content-type"] ?? "") ? undefined : "A change must be sent as application/json";
}

/** Compares hashes, so that the time tells nothing about the secret. */
function isSecret(given: string | readonly string[] | undefined, secret: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return typeof given === "string" && timingSafeEqual(hash(given), hash(secret));
}
