/**
 * The console's own guard, behind that of its server (infra/local/local-server.ts). A page of another port of this machine is no page of
 * another site for a browser, and its requests have the console's cookie: only the console's own page may read data and make changes.
 */
import type { IncomingMessage } from "node:http";

/** Returns the reason for which a request is refused, or undefined. Only a change must say that it comes from the page: a program reads too. */
export function refusalOf({ headers, method }: IncomingMessage, isData: boolean): string | undefined {
  const site = headers["sec-fetch-site"];
  if (method !== "POST") return isData && site === "same-site" ? "Only the console's own page may read its data" : undefined;
  if (site !== "same-origin") return "Only the console's own page may make changes";
  return /^application\/json\b/.test(headers["content-type"] ?? "") ? undefined : "A change must be sent as application/json";
}
