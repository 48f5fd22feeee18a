/**
 * An HTTP server on this machine, and the guard before everything that it serves. It asks nobody for credentials, so no web page may reach
 * it: a browser sends a request to localhost for any page, and lets a page read the answer under a name that its owner pointed at this
 * machine (DNS rebinding). Whatever a socket sends, the process goes on.
 */
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import { StartError } from "./start-error.js";

/** Answers a request. If it throws or rejects, the caller gets a 500. */
export type Serve = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void;

/** The names of the server, and what gets its errors. */
export interface LocalServerOptions {
  /** Host names that it answers to besides `localhost`, `127.0.0.1` and `[::1]`, without a port. @default none */
  readonly allowedHosts?: readonly string[] | undefined;
  /** Called with errors of `serve`. @default they are dropped */
  readonly onError?: ((error: unknown) => void) | undefined;
}

interface Refused {
  readonly status: number;
  readonly message: string;
}

const LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"];
/**
 * The time that a connection stays open without a request, in ms: longer than any client keeps one. A server that ends it sooner, as Node does
 * after 5 s, may end it just when a client sends its next request, which then gets no answer.
 */
const IDLE_MS = 65_000;
const HOST_NAME = /^(?:[\w.-]+|\[[\da-f:.]+\])$/i;

/** Creates the server. It doesn't listen yet. @throws StartError if an allowed host is no name */
export function createLocalServer(serve: Serve, { allowedHosts = [], onError = () => undefined }: LocalServerOptions = {}): Server {
  const wrong = allowedHosts.find((name) => !HOST_NAME.test(name));
  if (wrong !== undefined) throw new StartError(`HOLDFAST_ALLOWED_HOSTS=${wrong} is not a host name: give it without scheme and port`);
  const hosts = new Set([...LOOPBACK_HOSTS, ...allowedHosts].map((name) => name.toLowerCase()));
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    try {
      const refused = refusalOf(request, hosts);
      if (refused) answerBriefly(response, refused);
      else await serve(request, response);
    } catch (error) {
      if (request.errored) return; // The caller disconnected before its request was complete.
      onError(error);
      if (response.headersSent) response.destroy();
      else answerBriefly(response, { status: 500, message: "Internal Server Error" });
    }
  };
  return createServer({ keepAliveTimeout: IDLE_MS }, (request, response) => void answer(request, response));
}

/** Returns the path as sent, still percent-encoded, and the query string without its question mark. */
export function splitUrl({ url = "/" }: IncomingMessage): { readonly encodedPath: string; readonly rawQueryString: string } {
  const mark = url.indexOf("?");
  return mark < 0 ? { encodedPath: url, rawQueryString: "" } : { encodedPath: url.slice(0, mark), rawQueryString: url.slice(mark + 1) };
}

/**
 * Returns the reason for which a request is refused, if there is one:
 *
 * 1. Its target isn't a path of one leading slash. A URL parser would take what follows `//` for a host.
 * 2. Its `Host` is no name of this server. The port isn't compared: it may be that of a tunnel or a proxy.
 * 3. A page of another site sent it, as the browser says. A program says nothing.
 * 4. It has a body without a content type, which a page may send to any site. The service would take it for JSON.
 */
function refusalOf({ url = "", headers }: IncomingMessage, hosts: ReadonlySet<string>): Refused | undefined {
  if (!/^\/(?!\/)/.test(url)) return { status: 400, message: "Bad Request" };
  const { host = "" } = headers;
  const name = host.replace(/:\d*$/, "").toLowerCase();
  if (!hosts.has(name)) {
    const known = [...hosts].join(", ");
    return {
      status: 403,
      message: `Host: it must be one of ${known}, or be allowed (--allow-host, HOLDFAST_ALLOWED_HOSTS); was ${JSON.stringify(host)}`,
    };
  }
  if (headers["sec-fetch-site"] === "cross-site") {
    return { status: 403, message: "Sec-Fetch-Site: a page of another site may not send requests here" };
  }
  if (hasBody(headers) && headers["content-type"] === undefined) {
    return { status: 415, message: "Content-Type: a request with a body must have one, application/json" };
  }
  return undefined;
}

function hasBody(headers: IncomingMessage["headers"]): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Answers as API Gateway does where it answers itself. */
function answerBriefly(response: ServerResponse, { status, message }: Refused): void {
  for (const name of response.getHeaderNames()) response.removeHeader(name); // Headers of an answer that could not be written.
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ message }));
}
