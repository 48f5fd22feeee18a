/** The HTTP format of API Gateway: events of payload format 2.0 in, structured results out. */
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2 } from "aws-lambda";
import { type Refusal, ERRORS, refuse } from "../lib/core/errors.js";
import { toSecondsUp } from "../lib/core/time.js";
import type { Decoded } from "../lib/contract/decode.js";
import { PROBLEM_TYPE, toProblem } from "../lib/contract/problem.js";

/** An event of an HTTP API; `authorizer` is the output of the route's authorizer. */
export type HttpEvent = APIGatewayProxyEventV2 & { readonly requestContext: { readonly authorizer?: unknown } };

/** A response. It always has a status code, because the gateway would otherwise make it a 200. */
export type HttpResult = APIGatewayProxyStructuredResultV2 & { readonly statusCode: number };

/** Returns a JSON answer. */
export function json(statusCode: number, body: object, headers: Readonly<Record<string, string>> = {}): HttpResult {
  return {
    statusCode,
    headers: { "content-type": "application/json", "cache-control": "no-store", ...headers },
    body: JSON.stringify(body),
  };
}

/** Returns an answer without a body. */
export function empty(statusCode: number, headers: Readonly<Record<string, string>>): HttpResult {
  return { statusCode, headers: { "cache-control": "no-store", ...headers } };
}

/** Returns a refusal as a problem document, with `Retry-After` if it has a `retryAfterMs`. */
export function problem(refusal: Refusal, instance: string | undefined, headers: Readonly<Record<string, string>> = {}): HttpResult {
  const { retryAfterMs } = refusal;
  return json(ERRORS[refusal.code].status, toProblem(refusal, instance), {
    "content-type": PROBLEM_TYPE,
    ...(retryAfterMs !== undefined && { "retry-after": String(toSecondsUp(retryAfterMs)) }),
    ...headers,
  });
}

/** Returns the seconds of `Prefer: wait=N` (RFC 7240 §4.3), possibly among other preferences; undefined without it. */
export function secondsToWait(prefer: string | undefined): number | undefined {
  const [, quoted, seconds] = /(?:^|[,;])\s*wait\s*=\s*(?:"(\d+)"|(\d+))\s*(?=[,;]|$)/i.exec(prefer ?? "") ?? [];
  const said = quoted ?? seconds;
  return said === undefined ? undefined : Number(said);
}

/** A strict decoder that keeps a byte order mark, which JSON then refuses. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const REPLACEMENT_CHARACTER = "\ufffd";

/** Returns the body as text, even if the gateway encoded it; refuses a body that is not UTF-8. */
export function bodyOf({ body, isBase64Encoded, headers }: HttpEvent): Decoded<string | undefined> {
  try {
    const text = body !== undefined && isBase64Encoded ? UTF_8.decode(Buffer.from(body, "base64")) : body;
    if (text === undefined || isUtf8(text, headers["content-length"])) return { ok: true, value: text };
  } catch {
    // Refused below.
  }
  return refuse("invalid-request", { detail: `The body is not UTF-8${hasMarkOfUtf16(body, isBase64Encoded) ? ": it is UTF-16" : ""}` });
}

/** True for a body that begins with the byte order mark of UTF-16, which a gateway that decodes it makes two replacement characters. */
function hasMarkOfUtf16(body: string | undefined, isBase64Encoded: boolean): boolean {
  if (!isBase64Encoded) return body?.startsWith(REPLACEMENT_CHARACTER.repeat(2)) === true;
  return /^(?:fffe|feff)/.test(Buffer.from(body ?? "", "base64").toString("hex"));
}

/**
 * True if the bytes of `text` were UTF-8. A gateway that decodes a body replaces an invalid byte with U+FFFD, which takes three bytes, so
 * the text is then longer than the body that was sent. A U+FFFD in the request itself doesn't change the length.
 */
function isUtf8(text: string, contentLength: string | undefined): boolean {
  if (!text.isWellFormed()) return false;
  return contentLength === undefined || !text.includes(REPLACEMENT_CHARACTER) || Number(contentLength) === Buffer.byteLength(text);
}
