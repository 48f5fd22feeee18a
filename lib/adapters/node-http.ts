/**
 * Requests on node:http, as Express, Fastify and Nest hand them to a route, and the service of one: its response is buffered until its
 * outcome is recorded. Until then status, headers and body stay changeable, and nothing is sent. A body that is written in parts without a
 * known length is a stream: it is sent as it comes, and can't be replaced.
 */
import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { InvalidRequestError } from "../client/wire/errors.js";
import { headerIn } from "../client/calls/batch.js";
import { resultBytes } from "../core/request-limits.js";
import { type RequestParts, contentOfParsed } from "./request.js";
import type { MadeResponse, StoredResponse } from "./response.js";
import { type HeadersToSend, bytesOf, carry, CUT_OFF, madeResponse, TransientResponse } from "./response.js";
import { isFinalStatus } from "./once.js";
import { type IdempotentOptions, type Serve, partsFrom } from "./route.js";

/** The fields of a request that are read here. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly originalUrl?: string | undefined;
  /** The route of Express, whose own type is `any`: `{ path }`. */
  readonly route?: unknown;
  /** The route of Fastify. */
  readonly routeOptions?: { readonly url?: string | undefined } | undefined;
  readonly headers: IncomingHttpHeaders;
  /** The body as a parser left it. */
  readonly body?: unknown;
}

/** Returns the parts of `request`. */
export function partsOf(request: NodeRequest): RequestParts {
  const { method = "", originalUrl, url = "/", headers, route, routeOptions } = request;
  // Express has a list or an expression where a route has several patterns.
  const pattern: unknown = routeOptions?.url ?? (route as { readonly path?: unknown } | undefined)?.path;
  return partsFrom(originalUrl ?? url, {
    method,
    pattern: typeof pattern === "string" ? pattern : undefined,
    idempotencyKey: headerIn("idempotency-key", headers),
    readContent: () => bodyIn(request),
  });
}

/** @throws InvalidRequestError if the body is not wholly in `request.body`: different bodies would be equal. */
function bodyIn({ body, headers }: NodeRequest): unknown {
  const type = headers["content-type"];
  // Parsers of forms with files, such as multer, leave their fields alone in the body.
  if (type !== undefined && /^multipart\//i.test(type))
    throw new InvalidRequestError(`body: ${type.split(";", 1)[0]} can have files, which fingerprint must cover`, "body");
  if (body === undefined && (headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0))
    throw new InvalidRequestError(`body: no parser took ${type ?? "it"}; use one before this, or give fingerprint`, "body");
  return contentOfParsed(body ?? undefined, type);
}

/** The way of a framework to answer a request. */
interface Replying {
  /** Starts the route, which ends with the response. */
  readonly route: () => void;
  /** Returns the route's work, where the framework shows it: it may go on after the response. */
  readonly work?: () => Promise<unknown> | undefined;
  /**
   * Makes the framework send `answer` to a request whose route is not called. Its hooks see it too, and what they do to its body is dropped:
   * they have done it to what was recorded. @default the answer is sent without the framework
   */
  readonly reply?: (answer: StoredResponse) => void;
  readonly buffers?: BuffersBody;
}

/** Serves a request. Resolves when the answer is on its way. */
export async function serveBuffered<Request extends NodeRequest>(
  serve: Serve<Request>,
  request: Request,
  response: ServerResponse,
  { replayHeaders, isRecorded = isFinalStatus }: Pick<IdempotentOptions<Request>, "replayHeaders" | "isRecorded">,
  { route, work, reply, buffers }: Replying,
): Promise<void> {
  let buffered: BufferedResponse | undefined;
  const answer = await serve(request, partsOf(request), async () => {
    buffered = new BufferedResponse(response, replayHeaders, buffers);
    route();
    const made = await buffered.made;
    const pending = work?.();
    // Such as the 504 of a timer in front of the work: the client has it now, and its retry waits until the work is over.
    if (pending && !isRecorded(made.statusCode)) {
      buffered.flush();
      await pending.catch(() => undefined);
    }
    return made;
  });
  if (!answer) buffered?.flush();
  else if (buffered) buffered.replace(answer);
  else if (!reply) sendAnswer(response, answer);
  else {
    new BufferedResponse(response, undefined, () => true).replace(answer);
    reply(answer);
  }
}

type Args = readonly [chunk?: unknown, encoding?: unknown, done?: unknown];

/** Returns true to buffer a body that is written in parts. `bytes` is its length, or if that `isKnown` not, what was written of it. */
export type BuffersBody = (bytes: number, isKnown: boolean) => boolean;

const KNOWN_LENGTH: BuffersBody = (bytes, isKnown) => isKnown && bytes <= resultBytes;
/** The members of a response that tell or change how far it is. Every framework on node:http sends by these. */
const MEMBERS = ["writableEnded", "writeHead", "flushHeaders", "write", "end", "destroy", "flush"] as const;
/** Statuses whose responses have no body, and so no length. */
const BODILESS: readonly number[] = [204, 304];

/** Buffers a response until its outcome is recorded. */
export class BufferedResponse {
  /** Resolves when the route has ended its response, or when its stream has ended. */
  readonly made: Promise<MadeResponse>;
  readonly #response: ServerResponse;
  readonly #replayHeaders: readonly string[] | undefined;
  readonly #buffers: BuffersBody;
  readonly #own: readonly (PropertyDescriptor | undefined)[];
  readonly #parts: Buffer[] = [];
  #bufferedBytes = 0;
  #isEnded = false;
  #hasHead = false;
  #settle: (made: MadeResponse) => void = () => undefined;
  #send: (answer?: StoredResponse) => void = () => undefined;

  /** @param buffers @default bodies of a known length */
  constructor(response: ServerResponse, replayHeaders?: readonly string[], buffers = KNOWN_LENGTH) {
    this.#response = response;
    this.#replayHeaders = replayHeaders;
    this.#buffers = buffers;
    this.made = new Promise((resolve) => (this.#settle = resolve));
    response.once("pipe", () => this.#failWithClient());
    this.#own = MEMBERS.map((name) => Object.getOwnPropertyDescriptor(response, name));
    Object.defineProperty(response, "writableEnded", { configurable: true, get: () => this.#isEnded });
    // One that is there already belongs to a compression before this, where it belongs.
    if (!("flush" in response))
      Object.defineProperty(response, "flush", { configurable: true, get: () => undefined, set: refuseCompression });
    // Once the route has ended its response, nothing that it calls changes anything.
    Object.assign(response, {
      writeHead: (...args: readonly [status: number, ...unknown[]]) => (this.#isEnded || this.#writeHead(...args), response),
      flushHeaders: () => void (this.#isEnded || this.#flushHeaders()),
      write: (...args: Args) => !this.#isEnded && this.#write(args),
      end: (...args: Args) => (this.#isEnded || this.#end(args), response),
      destroy: (error?: Error) => (this.#restore(), this.#settle(CUT_OFF), response.destroy(error)),
    });
  }

  /** Sends the route's response, unless it is a stream. */
  flush(): void {
    this.#send();
    this.#send = () => undefined;
  }

  /** Sends `answer` in its place, as soon as the route has ended its own. */
  replace(answer: StoredResponse): void {
    void this.made.then(() => this.#send(answer));
  }

  #writeHead(status: number, ...[message, headers]: readonly unknown[]): void {
    this.#hasHead = true;
    this.#response.statusCode = status;
    const hasMessage = typeof message === "string";
    if (hasMessage) this.#response.statusMessage = message;
    const fields = hasMessage ? headers : message;
    setHeaders(this.#response, Array.isArray(fields) ? byName(fields) : ((fields ?? {}) as OutgoingHttpHeaders));
  }

  #flushHeaders(): void {
    if (this.#buffers(0, false)) return;
    this.#stream();
    this.#response.flushHeaders();
  }

  #write(args: Args): boolean {
    const response = this.#response;
    const written = bytesIn(args);
    const length = response.getHeader("content-length");
    for (const part of written) this.#bufferedBytes += part.length;
    if (!this.#buffers(length === undefined ? this.#bufferedBytes : Number(length), length !== undefined)) {
      this.#stream();
      return Reflect.apply(response.write.bind(response), undefined, args) as boolean;
    }
    // The rest may never come, if it is piped to a client that hangs up.
    if (this.#parts.length === 0) response.once("close", () => this.#settle(CUT_OFF));
    this.#parts.push(...written);
    const done = doneOf(args);
    if (done) process.nextTick(done);
    return true;
  }

  #end(args: Args): void {
    const response = this.#response;
    this.#ensureHead();
    this.#parts.push(...bytesIn(args));
    this.#isEnded = true;
    const { statusCode, statusMessage } = response;
    const headers = { ...response.getHeaders() };
    const body = Buffer.concat(this.#parts);
    this.#send = (answer) => {
      this.#restore();
      Object.assign(response, { statusCode, statusMessage });
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      setHeaders(response, headers);
      if (answer) sendAnswer(response, answer);
      else response.end(body);
      doneOf(args)?.();
    };
    this.#settle(madeResponse(statusCode, headers, body, this.#replayHeaders));
  }

  /** Calls `writeHead` where Node does: a middleware of the route may have replaced it, to set headers at the last moment. */
  #ensureHead(): void {
    if (!this.#hasHead) this.#response.writeHead(this.#response.statusCode);
  }

  #stream(): void {
    const response = this.#response;
    this.#ensureHead();
    this.#restore();
    response.once("finish", () => this.#settle(new TransientResponse(response.statusCode)));
    this.#failWithClient();
    for (const part of this.#parts) response.write(part);
  }

  /** Settles as cut off when the client is gone, or now if it is gone already: what is sent to nobody may never end. */
  #failWithClient(): void {
    if (this.#response.destroyed) this.#settle(CUT_OFF);
    else this.#response.once("close", () => this.#settle(CUT_OFF));
  }

  #restore(): void {
    this.#isEnded = false;
    for (const [at, name] of MEMBERS.entries()) {
      const before = this.#own[at];
      if (before) Object.defineProperty(this.#response, name, before);
      else Reflect.deleteProperty(this.#response, name);
    }
  }
}

/** Is called when `compression()` adds its method to a buffered response: it would send what must wait. */
function refuseCompression(): void {
  throw new InvalidRequestError("compression: use it before idempotent, not after it", "compression");
}

/** Returns the headers of a response, to set and delete. */
export function headersOf(response: Pick<ServerResponse, "setHeader" | "removeHeader">): HeadersToSend {
  return { set: (name, value) => response.setHeader(name, value), delete: (name) => response.removeHeader(name) };
}

/** Sends `answer` as the response. Headers that other middlewares set, such as CORS, stay. */
export function sendAnswer(response: ServerResponse, answer: StoredResponse): void {
  const body = bytesOf(answer);
  response.statusCode = answer.statusCode;
  response.statusMessage = "";
  carry(answer, response.getHeaders(), headersOf(response));
  // Node tells no length by itself once the header of one was removed: the end of the connection would be the end of the body.
  if (!BODILESS.includes(answer.statusCode)) response.setHeader("content-length", body.length);
  response.end(body);
}

function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) response.removeHeader(name);
    else response.setHeader(name, value);
  }
}

/** Returns headers that are a list of names and values in turn. A name may come several times. */
function byName(list: readonly unknown[]): OutgoingHttpHeaders {
  const flat = list.flat() as string[];
  const headers: Record<string, string | string[]> = {};
  for (let at = 0; at < flat.length; at += 2) {
    const [name = "", value = ""] = flat.slice(at, at + 2);
    const same = Object.keys(headers).find((each) => each.toLowerCase() === name.toLowerCase()) ?? name;
    const before = headers[same];
    headers[same] = before === undefined ? value : [before, value].flat();
  }
  return headers;
}

function bytesIn([chunk, encoding]: Args): readonly Buffer[] {
  if (chunk === undefined || chunk === null || typeof chunk === "function") return [];
  if (typeof chunk !== "string") return [Buffer.from(chunk as Uint8Array)];
  return [Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")];
}

function doneOf(args: Args): (() => void) | undefined {
  return args.find((one) => typeof one === "function") as (() => void) | undefined;
}
