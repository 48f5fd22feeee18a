/** What the handler speaks with API Gateway: an event of payload format 2.0 in, a structured result out. */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import type { Refusal } from "../lib/core/errors.js";
import { ERRORS, refuse } from "../lib/core/errors.js";
import { toSecondsUp } from "../lib/core/time.js";
import type { Decoded } from "../lib/wire/decode.js";
import { PROBLEM_TYPE, toProblem } from "../lib/wire/problem.js";

/** An event of an HTTP API; `authorizer` is whatever the route's authorizer put there. */
export type HttpEvent = APIGatewayProxyEventV2 & { readonly requestContext: { readonly authorizer?: unknown } };

/** A response. Always has a status code: without one the gateway would make it a 200. */
export type HttpResult = APIGatewayProxyStructuredResultV2 & { readonly statusCode: number };

/** A JSON answer. */
export function json(statusCode: number, body: object, headers: Readonly<Record<string, string>> = {}): HttpResult {
  return {
    statusCode,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}

/** An answer without a body. */
export function empty(statusCode: number, headers: Readonly<Record<string, string>>): HttpResult {
  return { statusCode, headers: { "cache-control": "no-store", ...headers } };
}

/** A refusal as a problem document, with `Retry-After` where there is a `retryAfterMs`. */
export function problem(refusal: Refusal, instance: string | undefined, headers: Readonly<Record<string, string>> = {}): HttpResult {
  const { retryAfterMs } = refusal;
  return json(ERRORS[refusal.code].status, toProblem(refusal, instance), {
    "content-type": PROBLEM_TYPE,
    ...(retryAfterMs !== undefined && { "retry-after": String(toSecondsUp(retryAfterMs)) }),
    ...headers,
  });
}

/** The seconds of a `Prefer: wait=N` (RFC 7240 §4.3), among whatever else is preferred; undefined without one. */
export function secondsToWait(prefer: string | undefined): number | undefined {
  const [, quoted, seconds] = /(?:^|[,;])\s*wait\s*=\s*(?:"(\d+)"|(\d+))\s*(?=[,;]|$)/i.exec(prefer ?? "") ?? [];
  const said = quoted ?? seconds;
  return said === undefined ? undefined : Number(said);
}

/** Keeps a byte order mark, which JSON refuses. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const REPLACEMENT_CHARACTER = "\ufffd";

/** The body as text, whether or not the gateway encoded it; a body that is not UTF-8 is refused. */
export function bodyOf({ body, isBase64Encoded, headers }: HttpEvent): Decoded<string | undefined> {
  try {
    const text = body !== undefined && isBase64Encoded ? UTF_8.decode(Buffer.from(body, "base64")) : body;
    if (text === undefined || isUtf8(text, headers["content-length"])) return { ok: true, value: text };
  } catch {
    // Refused below.
  }
  return refuse("invalid-request", { detail: "The body is not UTF-8" });
}

/**
 * Whether the bytes that became `text` were UTF-8. A gateway that decodes a body puts U+FFFD where a byte is wrong, which is three
 * bytes: then the text isn't as long as the body that was sent. A U+FFFD that was sent itself doesn't change the length.
 */
function isUtf8(text: string, contentLength: string | undefined): boolean {
  if (!text.isWellFormed()) return false;
  return contentLength === undefined || !text.includes(REPLACEMENT_CHARACTER) || Number(contentLength) === Buffer.byteLength(text);
}
