/**
 * The meaning of what came back in place of the service's answer. This is the one table for every way: over HTTP, by this package's own sender
 * to the table, and by a client of the AWS SDK. Only silence is an outage, past which work may proceed without its lock: whatever shows
 * that the address, a certificate or a proxy is wrong must never look like one.
 *
 * | came back                                                              | means                                              |
 * | ---------------------------------------------------------------------- | -------------------------------------------------- |
 * | nothing, a broken connection, a DNS server that doesn't answer         | `outage`                                           |
 * | 408, 5xx but for those below                                           | `outage`: a gateway that got no answer itself      |
 * | 429                                                                    | `throttled`: refused, and nothing happened         |
 * | 401, 403, 404, 407, 413                                                | `refused`: by a proxy or a gateway before the service |
 * | a certificate that this side doesn't trust                             | `untrusted`: nothing was sent                      |
 * | a permission that the runtime doesn't give (Deno, Node)                | `not-permitted`: nothing was sent                  |
 * | a connection that is refused, a host that isn't known                  | `nobody`: an outage only if the service answered before |
 * | 501, 505, 511, a redirection, any other answer, TLS where there is none | `stranger`: something else than the service        |
 */
import type { LocalCode } from "./errors.js";

/** See the table above. */
export type Meaning = "outage" | "throttled" | "refused" | "untrusted" | "not-permitted" | "nobody" | "stranger";

/** The refusals of a gateway, by status. They came before the service, so nothing happened. */
export const GATEWAY_REFUSALS: Readonly<Record<number, LocalCode>> = {
  401: "not-configured",
  403: "forbidden",
  404: "not-found",
  407: "not-configured",
  413: "too-large",
  429: "throttled",
};

/** The gateway got no request of this client in time. */
const REQUEST_TIMEOUT = 408;
/** The statuses of 500 and above with which something else than a gateway of the service answers. */
const STRANGERS: readonly number[] = [501, 505, 511];

/** Returns the meaning of an answer that is not the service's. */
export function meaningOfStatus(status: number): Exclude<Meaning, "nobody" | "untrusted" | "not-permitted"> {
  if (status === 429) return "throttled";
  if (GATEWAY_REFUSALS[status]) return "refused";
  return status === REQUEST_TIMEOUT || (status >= 500 && !STRANGERS.includes(status)) ? "outage" : "stranger";
}

/** The errors of a host that doesn't exist or has no listener. */
const NOBODY: ReadonlySet<string> = new Set(["ECONNREFUSED", "ENOTFOUND"]);
/** The errors of a certificate that this client doesn't trust. No request was sent to its host. */
const UNTRUSTED = /CERT|^UNABLE_TO_|^INVALID_CA|^HOSTNAME_MISMATCH/;
/** The errors of a permission that Deno or Node doesn't give. */
const NOT_PERMITTED: ReadonlySet<string> = new Set(["NotCapable", "PermissionDenied", "ERR_ACCESS_DENIED"]);
/** The errors of another protocol, such as TLS where there is none, and of a proxy that doesn't connect. */
const OTHER_PROTOCOL = /^EPROTO$|^ERR_SSL_|^ERR_TLS_|^ERR_PROXY_|^HPE_(?!INVALID_EOF)|^OTHER_PROTOCOL$/;
/** The names that runtimes without codes have for these errors in their messages. */
const MESSAGE_CODES: readonly (readonly [message: RegExp, code: string])[] = [
  [/connection refused/i, "ECONNREFUSED"],
  [/dns error/i, "ENOTFOUND"],
  [/certificate/i, "CERTIFICATE"],
  [/InvalidContentType|wrong version number/i, "OTHER_PROTOCOL"],
];

/**
 * Returns the meaning of a failure of the transport, and its code or name. The message is left out because it can quote the URL, which
 * contains the leaseId.
 */
export function meaningOfFailure(cause: unknown): { readonly meaning: Exclude<Meaning, "throttled" | "refused">; readonly why: string } {
  const why = nameOf(cause);
  if (NOBODY.has(why)) return { meaning: "nobody", why };
  if (UNTRUSTED.test(why)) return { meaning: "untrusted", why };
  if (NOT_PERMITTED.has(why)) return { meaning: "not-permitted", why };
  return { meaning: OTHER_PROTOCOL.test(why) ? "stranger" : "outage", why };
}

function nameOf(cause: unknown): string {
  if (!(cause instanceof Error)) return typeof cause;
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  const { code } = inner as Error & { readonly code?: unknown };
  return typeof code === "string" ? code : (MESSAGE_CODES.find(([message]) => message.test(inner.message))?.[1] ?? inner.name);
}

/** The number of attempts, about two seconds of them, after which an address where the service never answered is considered wrong. */
const ATTEMPTS_MAX = 8;

/** Remembers for one client whether the service ever answered it. */
export class Contact {
  #misses = 0;

  /** True once the service has answered: the address is right, and nobody there is an outage from now on. */
  get wasMade(): boolean {
    return this.#misses === Number.NEGATIVE_INFINITY;
  }

  /** Notes an answer of the service. */
  made(): void {
    this.#misses = Number.NEGATIVE_INFINITY;
  }

  /** Notes an attempt that met nobody or a stranger. Returns true if no further attempt is worth it. */
  missed(): boolean {
    return ++this.#misses >= ATTEMPTS_MAX;
  }
}
