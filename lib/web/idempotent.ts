/**
 * The idempotency of a web framework's routes: from a request to the key and the fingerprint of its run, and to the answer. The adapters
 * in lib/frameworks read the request and hold its response.
 */
import { InvalidRequestError } from "../client/errors.js";
import { ENDLESS } from "../client/invocation.js";
import type { LockClient } from "../client/lock-client.js";
import type { RunOptions } from "../client/run/run-options.js";
import { checkRun } from "../client/run/run-options.js";
import { contentOf } from "./content.js";
import { answerOnce, checkClient, checkFunction, HTTP_WAIT_MS, isFinalStatus, REPLAYED } from "./once.js";
import type { HttpAnswer } from "./problem.js";
import { problemAnswer } from "./problem.js";
import type { KeyOptions, Target } from "./request-key.js";
import { askedAt, isSafe, keyInHeader, requestKeys } from "./request-key.js";
import type { MadeResponse, StoredResponse } from "./response.js";
import { checkReplayHeaders } from "./response.js";

/** Options of idempotent routes, in addition to those of the run. */
export interface IdempotentOptions<Request>
  extends KeyOptions<readonly [request: Request]>, Omit<RunOptions, "payload" | "largeResult" | "signal" | "isFinal"> {
  /** The client, created once. */
  readonly locks: LockClient;
  /** True to answer a request without an `Idempotency-Key` with 400; false to serve it without a run. @default true */
  readonly required?: boolean | undefined;
  /**
   * Makes the content that must be equal when a request is repeated, as JSON, besides its method and path; the same key with other content
   * is answered 422.
   * @default query and parsed body; never headers
   */
  readonly fingerprint?: ((request: Request) => unknown) | undefined;
  /**
   * Decides by its status which response is recorded and replayed. After any other response, the same key runs the route again. So a route
   * answers an outcome such as a declined card with a status of its own, 402; as an error, or a 500, the card is charged again.
   * @default those below 500, except 401, 403, 408, 409, 423, 425 and 429, which say nothing about the work itself
   */
  readonly isRecorded?: ((status: number) => boolean) | undefined;
  /**
   * Response headers to record and replay, besides `content-type`, `location`, `content-location`, `etag`, `last-modified`, `link` and
   * `cache-control`. Cookies, dates, CORS, rate limits and traces belong to one response and are refused. @default none
   */
  readonly replayHeaders?: readonly string[] | undefined;
  /** The time to wait for the response of a concurrent request with the same key, in ms; then 409. 0 asks once. @default 5 000 */
  readonly waitMs?: number | undefined;
  /** The largest number of times that the route is started for a key; 0: no limit. @default 0 */
  readonly maxAttempts?: number | undefined;
}

/** The parts of a request that its key and its fingerprint are made of. */
export interface RequestParts {
  readonly method: string;
  /** Path and query, as sent. */
  readonly url: string;
  /** The pattern of the route, such as `/orders/:id`, or the end of it that follows a router's mount. @default not told */
  readonly pattern?: string | undefined;
  /** The `Idempotency-Key` header, as sent. */
  readonly idempotencyKey: string | undefined;
  /** Returns the parsed body; undefined without one. Errors of it are errors of the request. */
  readonly body: () => unknown;
}

/** The answer to a request: the response that its route just made, or one to send in its place. */
export type Settled = { readonly how: "made" } | { readonly how: "answer"; readonly answer: StoredResponse };

/** Serves one request. `respond` starts the route, and resolves with its response before that is sent. */
export type Serve<Request> = (request: Request, parts: RequestParts, respond: () => Promise<MadeResponse>) => Promise<Settled>;

/** True if a request runs under its key: it is not safe, and it has a key or needs one. */
export function isCovered(
  { method, idempotencyKey }: Omit<RequestParts, "body">,
  { required = true }: { required?: boolean | undefined },
): boolean {
  return !isSafe(method) && (required || idempotencyKey !== undefined);
}

/**
 * Returns the function that serves requests with these options.
 * @throws InvalidRequestError naming the invalid option
 */
export function serveOnce<Request>(options: IdempotentOptions<Request>): Serve<Request> {
  checkIdempotent(options);
  const keys = requestKeys(options);
  const { locks, service: _service, caller: _caller, required: _required, replayHeaders: _headers, ...rest } = options;
  const { fingerprint, isRecorded = isFinalStatus, waitMs = HTTP_WAIT_MS, ...run } = rest;
  // In an invocation, a run ends when its outcome is recorded or can't be any more: an answer that invites a retry must not come before.
  const invocation = locks.forInvocation(ENDLESS);

  return async (request, parts, respond) => {
    const { query, ...target } = targetOf(parts);
    const asked = () => ({
      key: keys.ofRequest([request], target, keyInHeader(parts.idempotencyKey)),
      payload: askedAt(target, fingerprint ? { content: fingerprint(request) } : { query, body: bodyOf(parts) }),
    });
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

function bodyOf({ body: read }: RequestParts): unknown {
  const body = read();
  return typeof body === "string" || body instanceof Uint8Array ? contentOf(body) : body;
}

/** Splits the URL of a request. */
function targetOf({ method, url, pattern }: RequestParts): Target & { readonly query: string | undefined } {
  const [path = "", ...query] = url.split("?");
  return { method, path: path || "/", pattern, query: query.join("?") || undefined };
}

function checkIdempotent<Request>(options: IdempotentOptions<Request>): void {
  const { locks, service: _service, caller: _caller, required, fingerprint, isRecorded, replayHeaders, ...run } = options;
  checkClient(locks);
  checkRun(run);
  for (const name of ["largeResult", "signal", "isFinal"])
    if (name in run) throw new InvalidRequestError(`${name}: is not an option of a route`, name);
  if (required !== undefined && typeof required !== "boolean") throw new InvalidRequestError("required: must be true or false", "required");
  for (const [name, option] of Object.entries({ fingerprint, isRecorded })) if (option !== undefined) checkFunction(name, option);
  checkReplayHeaders(replayHeaders);
}
