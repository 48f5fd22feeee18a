/** The idempotency of a web framework's routes, for all frameworks: which requests run, and what is sent for one. */
import { type Checks, boolean, unchecked } from "../client/wire/checks.js";
import { ENDLESS } from "../client/wire/invocation.js";
import { type OnceOptions, checkRunnerOptions, isCovered, isFinalStatus, onceRunner, REPLAYED } from "./once.js";
import { problemAnswer } from "./problem.js";
import type { RequestParts } from "./request.js";
import { type MadeResponse, type StoredResponse, checkReplayHeaders } from "./response.js";

/**
 * Options of idempotent routes, in addition to those of the run. A route runs once per `Idempotency-Key`. The response is sent when it is
 * recorded. A repeated request gets the recorded status, body and headers, with `Idempotent-Replayed: true`. A key in progress is answered
 * 409, another request with the same key 422, a request without a key 400, and 503 if the locks can't be reached. If the client hangs up,
 * the route still finishes and is recorded. A stream is sent as it comes and not recorded: after it, the key is answered 409
 * `result-omitted`.
 */
export interface IdempotentOptions<Request> extends Omit<OnceOptions<readonly [request: Request]>, "signal" | "isFinal"> {
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
}

/** The service of a route's requests. */
export interface Serve<Request> {
  /**
   * Serves one request. `respond` starts the route, and resolves with its response before that is sent. Resolves with the answer to send in
   * its place; undefined to send the route's own.
   */
  (request: Request, parts: RequestParts, respond: () => Promise<MadeResponse>): Promise<StoredResponse | undefined>;
  /**
   * True if the request runs under a key, and not yet: where several of these stand in front of a route, the first one serves it.
   * @param request the object that stays the same from one middleware to the next
   */
  covers(request: object, parts: Pick<RequestParts, "method" | "idempotencyKey">): boolean;
}

const served = new WeakSet<object>();

/** The options beside those of the run and the functions. Service and caller are checked where keys are made. */
const OWN: Checks = {
  service: unchecked,
  caller: unchecked,
  required: boolean,
  replayHeaders: (_name, value) => checkReplayHeaders(value),
};
const OF_RUNS = Object.fromEntries(["largeResult", "signal", "isFinal"].map((name) => [name, "is not an option of a route"]));

/**
 * Returns the function that serves requests with these options.
 * @throws InvalidRequestError naming the invalid option
 */
export function serveOnce<Request>(options: IdempotentOptions<Request>): Serve<Request> {
  const { required, fingerprint, isRecorded = isFinalStatus, replayHeaders, ...rest } = options;
  checkRunnerOptions(options, ["fingerprint", "isRecorded"], OWN, OF_RUNS);
  const run = onceRunner<readonly [Request], MadeResponse>({
    ...rest,
    compared: fingerprint,
    comparedBy: "fingerprint",
    isRecorded: ({ statusCode }) => isRecorded(statusCode),
  });
  // In an invocation, a run ends when its outcome is recorded or can't be any more: an answer that invites a retry must not come before.
  const locks = options.locks.forInvocation(ENDLESS);

  async function serve(request: Request, parts: RequestParts, respond: () => Promise<MadeResponse>) {
    let isMade = false as boolean;
    const outcome = await run({ args: [request], request: parts, locks }, async () => {
      const response = await respond();
      isMade = true;
      return response;
    }).catch((error: unknown) => {
      if (!isMade) throw error;
      return { how: "refused" as const, answer: problemAnswer("not-recorded") };
    });
    if (outcome.how === "refused") return outcome.answer;
    if (outcome.ran) return undefined;
    const { headers, ...stored } = outcome.response as StoredResponse;
    return { ...stored, headers: { ...headers, ...REPLAYED } };
  }

  function covers(request: object, parts: Pick<RequestParts, "method" | "idempotencyKey">): boolean {
    if (served.has(request) || !isCovered(parts, options)) return false;
    served.add(request);
    return true;
  }
  return Object.assign(serve, { covers });
}

/** Returns the parts of a request of a framework. @param readContent returns the content of the body; its errors are errors of the request */
export function partsFrom(
  url: string,
  { readContent, ...parts }: Pick<RequestParts, "method" | "pattern" | "idempotencyKey"> & { readonly readContent: () => unknown },
): RequestParts {
  const [path = "", ...query] = url.split("?");
  return { ...parts, path: path || "/", content: () => ({ query: query.join("?") || undefined, body: readContent() }) };
}
