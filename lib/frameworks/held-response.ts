/**
 * A response of node:http that is held back until its outcome is recorded: status, headers and body stay changeable, and nothing is sent. A
 * body that is written in parts without a known length is a stream: it is sent as it comes, and can't be replaced.
 */
import type { OutgoingHttpHeaders, ServerResponse } from "node:http";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { resultBytes } from "../core/request-limits.js";
import type { MadeResponse, SentHeaders, StoredResponse } from "../web/response.js";
import { bytesOf, changesFor, madeResponse, TransientResponse } from "../web/response.js";

/** A response that is held back. */
export interface HeldResponse {
  /** Resolves when the route has ended its response, or when its stream has ended. */
  readonly made: Promise<MadeResponse>;
  /** Sends the route's response, unless it is a stream. */
  release(): void;
  /** Sends `answer` in its place, as soon as the route has ended its own. */
  replace(answer: StoredResponse): void;
}

/** The arguments of `write` and `end`. */
type Args = readonly [chunk?: unknown, encoding?: unknown, done?: unknown];

/** The end of a stream that was cut off: its work is not known to be done. */
const CUT_OFF = new TransientResponse(500);

/** The members of a response that tell or change how far it is. */
const METHODS = ["writableEnded", "writeHead", "flushHeaders", "write", "end", "destroy"];

/** Returns true to hold a body that is written in parts. `bytes` is its length, or if that `isKnown` not, what was written of it. */
export type Holds = (bytes: number, isKnown: boolean) => boolean;

const KNOWN_LENGTH: Holds = (bytes, isKnown) => isKnown && bytes <= resultBytes;

/** Holds `response` back. Every framework on node:http sends by these methods. @param holds @default bodies of a known length */
// Over 60 lines: the methods share what they hold back.
export function hold(response: ServerResponse, replayHeaders?: readonly string[], holds = KNOWN_LENGTH): HeldResponse {
  const own = METHODS.map((name) => [name, Object.getOwnPropertyDescriptor(response, name)] as const);
  const parts: Buffer[] = [];
  let state: "open" | "ended" | "sending" = "open";
  let flush: (answer?: StoredResponse) => void = () => undefined;
  let settle: (made: MadeResponse) => void = () => undefined;
  const made = new Promise<MadeResponse>((resolve) => (settle = resolve));

  function restore(): void {
    state = "sending";
    for (const [name, before] of own) {
      if (before) Object.defineProperty(response, name, before);
      else Reflect.deleteProperty(response, name);
    }
  }

  function stream(): void {
    restore();
    response.once("finish", () => settle(new TransientResponse(response.statusCode)));
    response.once("close", () => settle(CUT_OFF));
    for (const part of parts) response.write(part);
  }

  /** Ends the route's response. A second end changes nothing. */
  function ended(done: (() => void) | undefined): void {
    state = "ended";
    const { statusCode, statusMessage } = response;
    const headers = { ...response.getHeaders() };
    const body = Buffer.concat(parts);
    flush = (answer) => {
      restore();
      Object.assign(response, { statusCode, statusMessage });
      for (const name of response.getHeaderNames()) response.removeHeader(name);
      setHeaders(response, headers);
      if (answer) sendAnswer(response, answer);
      else response.end(body);
      done?.();
    };
    settle(madeResponse(statusCode, ...decoded(headers, body), replayHeaders));
  }

  Object.defineProperty(response, "writableEnded", { configurable: true, get: () => state === "ended" });
  Object.assign(response, {
    writeHead(status: number, ...[message, headers]: readonly unknown[]): ServerResponse {
      if (state === "ended") return response;
      response.statusCode = status;
      if (typeof message === "string") response.statusMessage = message;
      const given = typeof message === "string" ? headers : message;
      setHeaders(response, Array.isArray(given) ? byName(given) : ((given ?? {}) as OutgoingHttpHeaders));
      return response;
    },
    flushHeaders(): void {
      if (state === "ended" || holds(0, false)) return;
      stream();
      response.flushHeaders();
    },
    write(...args: Args): boolean {
      if (state === "ended") return false;
      const written = bytesIn(args);
      const length = response.getHeader("content-length");
      const heldBytes = [...parts, ...written].reduce((bytes, part) => bytes + part.length, 0);
      if (!holds(length === undefined ? heldBytes : Number(length), length !== undefined)) {
        stream();
        return Reflect.apply(response.write.bind(response), undefined, args) as boolean;
      }
      // The rest may never come, if it is piped to a client that hangs up.
      if (parts.length === 0) response.once("close", () => settle(CUT_OFF));
      parts.push(...written);
      const done = doneOf(args);
      if (done) process.nextTick(done);
      return true;
    },
    end(...args: Args): ServerResponse {
      if (state === "ended") return response;
      parts.push(...bytesIn(args));
      ended(doneOf(args));
      return response;
    },
    destroy(error?: Error): ServerResponse {
      restore();
      settle(CUT_OFF);
      return response.destroy(error);
    },
  });

  return {
    made,
    release: () => flush(),
    replace: (answer) => void made.then(() => flush(answer)),
  };
}

/** Statuses whose responses have no body, and so no length. */
const BODILESS: readonly number[] = [204, 304];

/** Sends `answer` as the response. Headers that other middlewares set, such as CORS, stay. */
export function sendAnswer(response: ServerResponse, answer: StoredResponse): void {
  const body = bytesOf(answer);
  response.statusCode = answer.statusCode;
  response.statusMessage = "";
  setHeaders(response, changesFor(answer, response.getHeaders()));
  // Node tells no length by itself once the header of one was removed: the end of the connection would be the end of the body.
  if (!BODILESS.includes(answer.statusCode)) response.setHeader("content-length", body.length);
  response.end(body);
}

const DECODERS = { gzip: gunzipSync, "x-gzip": gunzipSync, br: brotliDecompressSync, deflate: inflateSync } as const;

/** Returns headers and body without their content encoding, which belongs to one exchange; as they are, if it is another or too large. */
function decoded(headers: OutgoingHttpHeaders, body: Buffer): readonly [headers: SentHeaders, body: Buffer] {
  const { "content-encoding": encoding, ...others } = headers;
  const decode = Object.hasOwn(DECODERS, String(encoding)) ? DECODERS[encoding as keyof typeof DECODERS] : undefined;
  try {
    return decode ? [others, decode(body, { maxOutputLength: resultBytes })] : [headers, body];
  } catch {
    return [headers, body];
  }
}

function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined) response.removeHeader(name);
    else response.setHeader(name, value);
  }
}

/** Returns headers that are a list of names and values in turn. */
function byName(list: readonly unknown[]): OutgoingHttpHeaders {
  const flat = list.flat() as string[];
  return Object.fromEntries(flat.flatMap((name, at) => (at % 2 === 0 ? [[name, flat[at + 1]]] : [])));
}

function bytesIn([chunk, encoding]: Args): readonly Buffer[] {
  if (chunk === undefined || chunk === null || typeof chunk === "function") return [];
  if (typeof chunk !== "string") return [Buffer.from(chunk as Uint8Array)];
  return [Buffer.from(chunk, typeof encoding === "string" ? (encoding as BufferEncoding) : "utf8")];
}

function doneOf(args: Args): (() => void) | undefined {
  return args.find((one) => typeof one === "function") as (() => void) | undefined;
}
