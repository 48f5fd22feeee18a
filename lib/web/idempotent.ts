/**
 * The idempotency of a web framework's routes: from a request to the key and the fingerprint of its run, and to the answer. The adapters
 * in lib/frameworks read the request and hold its response.
 */
import { InvalidRequestError } from "../client/errors.js";
import { unquoted } from "../client/events.js";
import { ENDLESS } from "../client/invocation.js";
import type { LockClient } from "../client/lock-client.js";
import type { RunOptions } from "../client/run/run-options.js";
import { checkRun } from "../client/run/run-options.js";
import { key as keyOf } from "../core/key.js";
import { contentOf } from "./content.js";
import { answerOnce, checkClient, checkFunction, HTTP_WAIT_MS, isFinalStatus, REPLAYED } from "./once.js";
import type { HttpAnswer } from "./problem.js";
import { problemAnswer } from "./problem.js";
import type { MadeResponse, StoredResponse } from "./response.js";
import { checkReplayHeaders } from "./response.js";

/** Options of idempotent routes, in addition to those of the run. */
export interface IdempotentOptions<Request> extends Omit<RunOptions, "payload" | "largeResult" | "signal" | "isFinal"> {
  /** The client, created once. */
  readonly locks: LockClient;
  /**
   * Names the caller, as your authentication knows it. The `Idempotency-Key` is chosen by the caller, so without this, one caller could get
   * another caller's response. Write `"anyone"` if all callers may see each other's responses. A request whose caller has no name fails.
   */
  readonly caller: ((request: Request) => string) | "anyone";
  /** True to answer a request without an `Idempotency-Key` with 400; false to serve it without a run. @default true */
  readonly required?: boolean;
  /**
   * Makes the content that must be equal when a request is repeated, as JSON; the same key with other content is answered 422.
   * @default method, path, query and parsed body; never headers
   */
  readonly fingerprint?: (request: Request) => unknown;
  /**
   * Decides by its status which response is recorded and replayed. After any other response, the same key runs the route again.
   * @default those below 500, except 401, 403, 408, 409, 423, 425 and 429, which say nothing about the work itself
   */
  readonly isRecorded?: (status: number) => boolean;
  /**
   * Response headers to record and replay, besides `content-type`, `location`, `content-location`, `etag`, `last-modified`, `link` and
   * `cache-control`. Cookies, dates, CORS, rate limits and traces belong to one response and are refused. @default none
   */
  readonly replayHeaders?: readonly string[];
  /** The time to wait for the response of a concurrent request with the same key, in ms; then 409. 0 asks once. @default 5 000 */
  readonly waitMs?: number;
  /** The largest number of times that the route is started for a key; 0: no limit. @default 0 */
  readonly maxAttempts?: number;
}

/** The parts of a request that its key and its fingerprint are made of. */
export interface RequestParts {
  readonly method: string;
  /** Path and query, as sent. */
  readonly url: string;
  /** The `Idempotency-Key` header, as sent. */
  readonly idempotencyKey: string | undefined;
  /** Returns the parsed body; undefined without one. Errors of it are errors of the request. */
  readonly body: () => unknown;
}

/** The answer to a request: the response that its route just made, or one to send in its place. */
export type Settled = { readonly how: "made" } | { readonly how: "answer"; readonly answer: StoredResponse };

/** Serves one request. `respond` starts the route, and resolves with its response before that is sent. */
export type Serve<Request> = (request: Request, parts: RequestParts, respond: () => Promise<MadeResponse>) => Promise<Settled>;

/** Methods that change nothing, and so need no key. */
const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS"];
/** The header's text: visible characters, of a length that every proxy accepts. */
const VISIBLE = /^[\x21-\x7e]{1,255}$/;

/** True if a request runs under its key: it is not safe, and it has a key or needs one. */
export function isCovered({ method, idempotencyKey }: Omit<RequestParts, "body">, { required = true }: { required?: boolean }): boolean {
  return !SAFE.includes(method) && (required || idempotencyKey !== undefined);
}

/**
 * Returns the function that serves requests with these options.
 * @throws InvalidRequestError naming the invalid option
 */
export function serveOnce<Request>(options: IdempotentOptions<Request>): Serve<Request> {
  checkIdempotent(options);
  const { locks, caller, required: _required, fingerprint, isRecorded = isFinalStatus, replayHeaders: _headers, ...rest } = options;
  const { waitMs = HTTP_WAIT_MS, ...run } = rest;
  // In an invocation, a run ends when its outcome is recorded or can't be any more: an answer that invites a retry must not come before.
  const invocation = locks.forInvocation(ENDLESS);

  return async (request, parts, respond) => {
    const asked = () => ({ key: keyFor(callerOf(caller, request), parts), payload: fingerprint ? fingerprint(request) : askedOf(parts) });
    let isMade = false as boolean;
    const answered = await answerOnce<MadeResponse>(
      { ...run, locks: invocation, waitMs, asked, isRecorded: ({ statusCode }) => isRecorded(statusCode) },
      async () => {
        const response = await respond();
        isMade = true;
        return response;
      },
    ).catch((error: unknown) => {
      if (!isMade) throw error;
      return { how: "refused" as const, answer: problemAnswer("not-recorded") };
    });
    if (answered.how === "ran") return { how: "made" };
    return { how: "answer", answer: answered.how === "refused" ? answered.answer : replayOf(answered.response) };
  };
}

function replayOf(response: MadeResponse): HttpAnswer {
  const { headers, ...rest } = response as StoredResponse;
  return { ...rest, headers: { ...headers, ...REPLAYED } };
}

/** Returns the caller as parts of a key. */
function callerOf<Request>(caller: IdempotentOptions<Request>["caller"], request: Request): readonly string[] {
  if (caller === "anyone") return [];
  const name: unknown = caller(request);
  if (typeof name === "string" && name !== "") return ["of", name];
  throw new InvalidRequestError("caller: returned no text for this request; authenticate the request before this", "caller");
}

function keyFor(caller: readonly string[], { method, url, idempotencyKey }: RequestParts): string {
  const text = unquoted(idempotencyKey ?? "");
  if (!VISIBLE.test(text))
    throw new InvalidRequestError("Idempotency-Key: the request needs this header, of 1 to 255 visible characters", "Idempotency-Key");
  return keyOf(...caller, method, partsOf(url).path, text);
}

function askedOf({ method, url, body: read }: RequestParts): unknown {
  const { path, query } = partsOf(url);
  const body = read();
  return { method, path, query, body: typeof body === "string" || body instanceof Uint8Array ? contentOf(body) : body };
}

function partsOf(url: string): { readonly path: string; readonly query: string | undefined } {
  const [path = "", ...query] = url.split("?");
  return { path: path || "/", query: query.join("?") || undefined };
}

function checkIdempotent<Request>(options: IdempotentOptions<Request>): void {
  const { locks, caller, required, fingerprint, isRecorded, replayHeaders, ...run } = options;
  checkClient(locks);
  checkRun(run);
  for (const name of ["largeResult", "signal", "isFinal"])
    if (name in run) throw new InvalidRequestError(`${name}: is not an option of a route`, name);
  if (caller !== "anyone" && typeof caller !== "function")
    throw new InvalidRequestError('caller: must be a function that names the caller of a request, or "anyone"', "caller");
  if (required !== undefined && typeof required !== "boolean") throw new InvalidRequestError("required: must be true or false", "required");
  for (const [name, option] of Object.entries({ fingerprint, isRecorded })) if (option !== undefined) checkFunction(name, option);
  checkReplayHeaders(replayHeaders);
}
