/**
 * Sends one HTTP request and reads its whole answer: by Node's own http where there is Node, because it takes less CPU than `fetch`
 * (docs/performance.md), else by `fetch`.
 */
import type { LookupFunction } from "node:net";
import { brand } from "../../core/brand.js";
import type { CallOptions } from "../../core/api/locks.js";
import { closeIdle } from "../../core/idle-connections.js";
import { nodeModules } from "../../core/node-modules.js";
import { stopSignalOf } from "./lazy-abort.js";

export interface HttpRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Pick<Headers, "get">;
  readonly text: string;
}

/** Sends one request, and follows no redirect. @throws what the transport throws if there is no whole answer */
export type Send = (url: string, message: HttpRequest, options: CallOptions) => Promise<HttpResponse>;

/** A connection that was kept from an earlier request broke before the answer began. */
export class StaleConnection extends Error {
  static {
    brand(this, "StaleConnection");
  }
  constructor(override readonly cause: Error) {
    super(cause.message);
  }
}

/** The longest answer, in characters: as long as one of the table may be. The service's are far shorter. */
const ANSWER_MAX_CHARS = 16 * 1024 * 1024;

/** The global `fetch` when this module was loaded. One that replaced it since then is meant to be used. */
const nativeFetch = globalThis.fetch;

/** Returns what sends requests. @param ownFetch a `fetch` of the caller, which then sends all of them */
export function senderBy(ownFetch: typeof fetch | undefined): Send {
  if (ownFetch) return byFetch(ownFetch);
  const load = nodeModules();
  const native = load ? byNode(load) : byFetch(nativeFetch);
  return (...request) => (globalThis.fetch === nativeFetch ? native : byFetch(globalThis.fetch))(...request);
}

/** The sockets of one agent, or of one `fetch`. */
export interface Sockets {
  readonly of: object;
  /** The number of requests to a host that they carry at once. */
  readonly most: number;
}

/** The fewest requests to one host at once that a runtime with `fetch` allows. A `fetch` doesn't say how many it has. */
const FETCH_SOCKETS = 6;

/** Returns the sockets that carry the requests of {@link senderBy} to `url` now. */
export function socketsTo(url: string, ownFetch: typeof fetch | undefined): Sockets {
  const load = ownFetch || globalThis.fetch !== nativeFetch ? undefined : nodeModules();
  if (!load) return { of: ownFetch ?? globalThis.fetch, most: FETCH_SOCKETS };
  const { globalAgent } = /^https:/i.test(url) ? load("node:https") : load("node:http");
  return { of: globalAgent, most: globalAgent.maxSockets };
}

/** The number of long polls under way. */
const longPolls = new WeakMap<object, number>();

/**
 * Sends a long poll of `waitMs`, such as the start of a caller that waits for a run; with a wait of 0 if half of the sockets are taken by
 * others, whichever clients share these: if they had all, no heartbeat would be sent before its lease was over.
 */
export async function withinShare<T>({ of, most }: Sockets, waitMs: number, send: (waitMs: number) => Promise<T>): Promise<T> {
  const others = longPolls.get(of) ?? 0;
  if (waitMs <= 0 || others + 1 > most / 2) return send(0);
  longPolls.set(of, others + 1);
  try {
    return await send(waitMs);
  } finally {
    longPolls.set(of, (longPolls.get(of) ?? 1) - 1);
  }
}

function byFetch(fetchIt: typeof fetch): Send {
  return async (url, { method, headers, body }, options) => {
    const response = await fetchIt(url, {
      method,
      headers,
      body: body ?? null,
      signal: options.signal ?? null,
      // Credentials are for this URL only. A redirect is not followed, and is no answer. Cloudflare Workers refuse "error".
      redirect: "manual",
      // A waiter that gets an earlier answer never learns of its turn. Workers of before November 2024 have no cache, and refuse the option.
      ...("cache" in Request.prototype && { cache: "no-store" }),
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
}

/** A name below localhost. It is this machine, which Node's resolver doesn't know: https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
const LOOPBACK_NAME = /^https?:\/\/[\w.-]+\.localhost(?=[:/?#]|$)/i;

/** Sends through the global agents of `node:http` and `node:https`: their connections are kept, and a proxy that is set there is used. */
function byNode(load: typeof process.getBuiltinModule): Send {
  return (url, { method, headers, body }, options) =>
    new Promise((resolve, reject) => {
      const { request, globalAgent } = /^https:/i.test(url) ? load("node:https") : load("node:http");
      const stop = stopSignalOf(options);
      // Firewalls refuse requests that don't say who sends them.
      const lookup = LOOPBACK_NAME.test(url) && {
        lookup: ((_name, ...rest) => load("node:dns").lookup("localhost", ...rest)) as LookupFunction,
      };
      const sent = request(url, { method, headers: { "user-agent": "holdfast", ...headers }, ...lookup }, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (chunk: string) => void ((text += chunk).length > ANSWER_MAX_CHARS && response.destroy(new RangeError())));
        response.on("error", reject);
        response.on("end", () => {
          const get = (name: string): string | null => (response.headers[name] as string | undefined) ?? null;
          resolve({ status: response.statusCode ?? 0, headers: { get }, text });
        });
      });
      const abort = (): void => {
        // A time limit has no reason; a caller that gives up has one.
        if (sent.reusedSocket && stop?.reason === undefined) closeIdle(globalAgent, `${sent.host}:`);
        sent.destroy();
      };
      // The other side closes what was idle for long, and the request may have met that on its way.
      sent.on("error", (cause) => reject(sent.reusedSocket && !stop?.aborted ? new StaleConnection(cause) : cause));
      sent.on("close", () => stop?.removeEventListener("abort", abort));
      stop?.addEventListener("abort", abort, { once: true });
      sent.end(body);
      if (stop?.aborted) abort();
    });
}
