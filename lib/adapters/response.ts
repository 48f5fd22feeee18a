/**
 * The part of a response that a run stores: status, body, and the headers that describe the result. Headers that belong to one exchange
 * (cookies, dates, CORS, rate limits, traces) are never stored.
 */
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";
import { InvalidRequestError } from "../client/wire/errors.js";
import { resultBytes } from "../core/request-limits.js";
import type { HttpAnswer } from "./problem.js";

/** Headers by lower-case name, as a framework tells them. */
export type SentHeaders = Readonly<Record<string, string | number | readonly string[] | undefined>>;

/** A response as it is stored and replayed. */
export interface StoredResponse extends HttpAnswer {
  /** True if `body` is base64, because the response's bytes are no text. */
  isBase64Encoded?: true;
}

/** A response that can't be stored: a stream, an encoded one, or a large one. A run stores no object of a class, but that it succeeded. */
export class TransientResponse {
  constructor(readonly statusCode: number) {}
}

/** A stream that was cut off: its work is not known to be done. */
export const CUT_OFF = new TransientResponse(500);

export type MadeResponse = StoredResponse | TransientResponse;

const DECODERS = { gzip: gunzipSync, "x-gzip": gunzipSync, br: brotliDecompressSync, deflate: inflateSync } as const;
/** The headers that describe a result. */
const DESCRIBE = ["content-type", "location", "content-location", "etag", "last-modified", "link", "cache-control"];
const OF_ONE_EXCHANGE = new RegExp(
  [
    "^(?:set-cookie|date|age|server|via|vary|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length",
    "content-encoding|retry-after|(?:x-)?rate-?limit.*|access-control-.*|trace.*|baggage|server-timing|x-(?:amzn?-)?(?:trace|request)-?id)$",
  ].join("|"),
);
const CONTENT = [...DESCRIBE, "content-length", "content-encoding", "set-cookie", "transfer-encoding"];
/** The headers of an answer that scripts of other origins may read only if they are exposed. */
const EXPOSED = ["Idempotent-Replayed", "Retry-After", "RateLimit", "RateLimit-Policy"];
/** The headers to which each limit of a request adds. */
const LISTS = ["RateLimit", "RateLimit-Policy"];

/** @throws InvalidRequestError unless these headers may be replayed. */
export function checkReplayHeaders(names: unknown): void {
  if (!Array.isArray(names)) throw new InvalidRequestError("replayHeaders: must be a list of names", "replayHeaders");
  for (const name of names as unknown[]) {
    if (typeof name !== "string" || OF_ONE_EXCHANGE.test(name.toLowerCase()))
      throw new InvalidRequestError(`replayHeaders: ${String(name)} belongs to one response and is never replayed`, "replayHeaders");
  }
}

/**
 * Returns the response to store.
 * @param body its bytes; undefined if they are a stream
 */
export function madeResponse(
  statusCode: number,
  headers: SentHeaders,
  body: Uint8Array | undefined,
  replayHeaders: readonly string[] = [],
): MadeResponse {
  const plain = body && decoded(body, headers["content-encoding"]);
  if (plain === undefined || plain.length > resultBytes) return new TransientResponse(statusCode);
  const names = [...DESCRIBE, ...replayHeaders.map((name) => name.toLowerCase())].filter((name) => headers[name] !== undefined);
  const stored = { statusCode, headers: Object.fromEntries(names.map((name) => [name, String(headers[name])])) };
  try {
    return { ...stored, body: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(plain) };
  } catch {
    return { ...stored, body: Buffer.from(plain).toString("base64"), isBase64Encoded: true };
  }
}

/** Returns a body without its content encoding, which belongs to one exchange; undefined if it is another encoding, or too large. */
function decoded(body: Uint8Array, encoding: SentHeaders[string]): Uint8Array | undefined {
  if (encoding === undefined) return body;
  const decode = Object.hasOwn(DECODERS, String(encoding)) ? DECODERS[encoding as keyof typeof DECODERS] : undefined;
  try {
    return decode?.(body, { maxOutputLength: resultBytes });
  } catch {
    return undefined;
  }
}

/** Returns the bytes of an answer's body. */
export function bytesOf({ body, isBase64Encoded }: StoredResponse): Buffer {
  return Buffer.from(body, isBase64Encoded ? "base64" : "utf8");
}

/** The headers of a response that a host is about to send. */
export interface HeadersToSend {
  set(name: string, value: string): unknown;
  delete(name: string): unknown;
}

/** Returns the headers of a reply of Fastify, or of a response in Nest. */
export function headersOfReply(reply: {
  header(name: string, value: string): unknown;
  removeHeader(name: string): unknown;
}): HeadersToSend {
  return { set: (name, value) => reply.header(name, value), delete: (name) => reply.removeHeader(name) };
}

/**
 * Changes a response's headers so that it carries `answer`. Headers that other middlewares set, such as CORS, stay.
 * @param current the headers that are set already, by lower-case name
 */
export function carry({ headers }: StoredResponse, current: SentHeaders, to: HeadersToSend): void {
  for (const name of CONTENT) if (headers[name] === undefined) to.delete(name);
  addHeaders(headers, current, to);
}

/**
 * Adds headers to a response, and exposes them to scripts of other origins if it has CORS.
 * @param current the headers that are set already, by lower-case name
 */
export function addHeaders(headers: Readonly<Record<string, string>>, current: SentHeaders, to: Pick<HeadersToSend, "set">): void {
  const exposed = String(current["access-control-expose-headers"] ?? "");
  const isExposed = new Set(exposed.split(",").map((name) => name.trim().toLowerCase()));
  const isSent = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
  const toExpose = EXPOSED.filter((name) => isSent.has(name.toLowerCase()) && !isExposed.has(name.toLowerCase()));
  for (const [name, value] of Object.entries(headers)) {
    const before = LISTS.includes(name) ? current[name.toLowerCase()] : undefined;
    to.set(name, before === undefined ? value : `${String(before)}, ${value}`);
  }
  if (current["access-control-allow-origin"] !== undefined && toExpose.length > 0)
    to.set("access-control-expose-headers", [...(exposed === "" ? [] : [exposed]), ...toExpose].join(", "));
}
