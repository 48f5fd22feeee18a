/**
 * The secret of a start of `holdfast ui`, and the cookie for which it is exchanged. The secret is good for one exchange, so the address that
 * a browser keeps in its history opens nothing. The page's script can't read the cookie, and no other site's page sends it. What other
 * pages of this machine send is refused here too.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The browser that opened the address, if one did. */
export type BrowserSession = ReturnType<typeof sessionOf>;

/** Returns the session of `secret`. It lasts until the process or the browser ends. */
export function sessionOf(secret: string) {
  const cookie = randomBytes(24).toString("base64url");
  let isExchanged = false;
  return {
    /** Exchanges the secret, once. Returns the cookie to set; undefined if it is another, or was exchanged before. */
    open(candidate: unknown, request: IncomingMessage): string | undefined {
      if (isExchanged || !isSame(candidate, secret)) return undefined;
      isExchanged = true;
      return `${nameOf(request)}=${cookie}; Path=/console; HttpOnly; SameSite=Strict`;
    },
    isOpenFor: (request: IncomingMessage): boolean => isExchanged && isSame(cookiesOf(request).get(nameOf(request)), cookie),
  };
}

/** Returns the cookie's name. It has the port, since browsers send a cookie to every port of a host. */
function nameOf({ socket }: IncomingMessage): string {
  return `holdfast-${socket.localPort}`;
}

function cookiesOf({ headers }: IncomingMessage): ReadonlyMap<string, string> {
  const pairs = (headers.cookie ?? "").split(/;\s*/).map((pair) => pair.split("=", 2));
  return new Map(pairs.map(([name = "", value = ""]) => [name, value]));
}

/** Compares hashes, so that the time tells nothing about the secret. */
function isSame(candidate: unknown, expected: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return typeof candidate === "string" && timingSafeEqual(hash(candidate), hash(expected));
}

/**
 * Returns the reason for which a request is refused, or undefined. It stands behind the guard of the server (infra/local/local-server.ts). A page
 * of another port of this machine is no page of another site for a browser, and its requests have the console's cookie: only the console's
 * own page may read data and make changes. Only a change must say that it comes from the page: a program reads too.
 */
export function refusalOf({ headers, method }: IncomingMessage, isData: boolean): string | undefined {
  const site = headers["sec-fetch-site"];
  if (method !== "POST") return isData && site === "same-site" ? "Only the console's own page may read its data" : undefined;
  if (site !== "same-origin") return "Only the console's own page may make changes";
  return /^application\/json\b/.test(headers["content-type"] ?? "") ? undefined : "A change must be sent as application/json";
}
