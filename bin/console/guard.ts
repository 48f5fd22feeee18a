/**
 * The guard of the console: it answers only requests that a page of its own origin sends. A foreign `Host` is a name that somebody
 * pointed at this machine (DNS rebinding); a change must come from the page itself; and where the console lends somebody's credentials,
 * each request for data must know the secret of this start.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The header with the secret. */
export const SECRET_HEADER = "x-holdfast-console";

const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/** Returns the reason for which the request is refused, or undefined. */
export function refusalOf({ headers, method, socket }: IncomingMessage, isData: boolean, secret?: string): string | undefined {
  if (!LOOPBACK.some((name) => headers.host === `${name}:${socket.localPort}` || (socket.localPort === 80 && headers.host === name)))
    return "The console answers only to this machine's own name: open it as http://127.0.0.1, with its port";
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
