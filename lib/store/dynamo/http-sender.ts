/**
 * Sends one HTTP request over a keep-alive connection and reads its whole answer. The time from the start to the last byte and the
 * answer's size are bounded. It sends once. The error of a broken connection has the AWS SDK's name for it.
 */
import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, Agent, globalAgent, request as overHttp } from "node:http";
import { Agent as TlsAgent, request as overHttps } from "node:https";
import { closeIdle } from "../../core/idle-connections.js";
import type { Clock } from "../../core/time.js";
import type { RawHeaders } from "./signature.js";

/** The destination of requests. */
export interface Endpoint {
  readonly protocol: "http:" | "https:";
  readonly hostname: string;
  readonly port: number;
  readonly path: string;
  /** @default "POST" */
  readonly method?: "GET" | undefined;
  readonly agent: Agent;
}

/** The connections by protocol. An idle one is kept for the next request, and doesn't keep the process alive. */
export type Connections = Readonly<Record<Endpoint["protocol"], Agent>>;

/** The AWS SDK's limit. */
const MAX_SOCKETS = 50;
/** The time in ms after which an idle connection is closed: less than the 60 s after which many gateways forget it without a word. */
const IDLE_MS = 50_000;

/**
 * Limits of a call to the table, in the AWS SDK's form: its requests for credentials have them too. All attempts together end well before a
 * function's time limit.
 * Without `throwOnRequestTimeout` the SDK only warns at the end of `requestTimeout`, and waits on.
 */
export const TABLE_CALLS = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 1000, requestTimeout: 2000, throwOnRequestTimeout: true },
} as const;

/** Returns connections that are open on demand, through the proxy that Node's own have by `NODE_USE_ENV_PROXY` (Node 24 and later). */
export function connections(idleMs = IDLE_MS): Connections {
  const { proxyEnv } = (globalAgent as { readonly options?: { readonly proxyEnv?: object } }).options ?? {};
  const options = { keepAlive: true, maxSockets: MAX_SOCKETS, timeout: idleMs, ...(proxyEnv && { proxyEnv }) };
  return { "http:": new Agent(options), "https:": new TlsAgent(options) };
}

/** Returns the endpoint at `url`. @throws Error if its protocol is neither HTTP nor HTTPS */
export function endpointAt({ protocol, hostname, port, pathname }: URL, agents: Connections): Endpoint {
  if (protocol !== "http:" && protocol !== "https:") throw new Error(`endpoint: ${protocol} is neither http: nor https:`);
  return {
    protocol,
    hostname: hostname.replace(/^\[(.*)\]$/, "$1"), // An IPv6 address.
    port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
    path: pathname.endsWith("/") ? pathname : `${pathname}/`,
    agent: agents[protocol],
  };
}

/** The time limits of a request, in ms. */
export interface SendBounds {
  /** The limit for opening a new connection. */
  readonly connectMs: number;
  /** The limit for receiving the whole answer. */
  readonly answerMs: number;
}

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Larger than any answer of DynamoDB. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
/** The network error codes that the AWS SDK calls a time-out. After each of them the request may have been carried out. */
const BROKEN: ReadonlySet<string | undefined> = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT"]);

/** Sends `body`, by POST unless the endpoint says otherwise. @throws an error named `TimeoutError`, or one with the network's `code` */
export function send(endpoint: Endpoint, headers: RawHeaders, body: string, bounds: SendBounds, clock: Clock): Promise<Reply> {
  const { protocol, hostname, port, path, method = "POST", agent } = endpoint;
  return new Promise((resolve, reject) => {
    const open = protocol === "https:" ? overHttps : overHttp;
    // Headers in a list are sent unchanged, without a map in between.
    const all = [...headers, "content-length", String(Buffer.byteLength(body))];
    const request = open({ host: hostname, port, path, method, agent, headers: all });
    const fail = (error: Error): void => {
      timer.cancel();
      request.destroy();
      reject(error);
    };
    const timer = clock.after(bounds.answerMs, () => {
      if (request.reusedSocket) closeIdle(agent);
      fail(timeout(`no answer within ${bounds.answerMs} ms`));
    });
    request.on("error", (error: Error & { code?: string }) => {
      if (BROKEN.has(error.code)) error.name = "TimeoutError";
      fail(error);
    });
    request.on("response", (response: IncomingMessage) => {
      const status = response.statusCode ?? 0;
      const broken = (error: Error): void => fail(Object.assign(error, { $metadata: { httpStatusCode: status } }));
      collect(response, broken, (text) => {
        timer.cancel();
        resolve({ status, headers: response.headers, text });
      });
    });
    boundConnecting(request, bounds.connectMs, clock, fail);
    request.end(body);
  });
}

/** Ends a request if its new connection isn't open in time. A keep-alive connection is open already. */
function boundConnecting(request: ClientRequest, connectMs: number, clock: Clock, fail: (error: Error) => void): void {
  request.once("socket", (socket) => {
    if (!socket.connecting) return;
    const timer = clock.after(connectMs, () => fail(timeout(`no connection within ${connectMs} ms`)));
    socket.once("connect", () => timer.cancel());
    request.once("close", () => timer.cancel());
  });
}

function collect(response: IncomingMessage, fail: (error: Error) => void, done: (text: string) => void): void {
  let first: Buffer | undefined;
  let more: Buffer[] | undefined;
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) return fail(new Error(`the answer is longer than ${MAX_ANSWER_BYTES} bytes`));
    if (!first) first = chunk;
    else (more ??= [first]).push(chunk);
  });
  response.on("end", () => done(more ? Buffer.concat(more).toString("utf8") : (first?.toString("utf8") ?? "")));
  response.on("error", fail);
}

function timeout(message: string): Error {
  return Object.assign(new Error(message), { name: "TimeoutError", code: "ETIMEDOUT" });
}
