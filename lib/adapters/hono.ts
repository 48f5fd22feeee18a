/**
 * Idempotent routes of Hono 4, limits in front of routes, and its refusals. The client runs on Node, Deno and Cloudflare Workers (with `nodejs_compat`).
 * Hono is not imported: a middleware is a function.
 */
import { InvalidRequestError } from "../client/wire/errors.js";
import { headerIn } from "../client/calls/batch.js";
import { resultBytes } from "../core/request-limits.js";
import { systemClock } from "../core/time.js";
import { problemAnswer, problemOf } from "./problem.js";
import { type RateLimitOptions, limitRequests } from "./rate-limit.js";
import { contentOf } from "./request.js";
import type { MadeResponse, StoredResponse } from "./response.js";
import { addHeaders, bytesOf, carry, CUT_OFF, madeResponse, TransientResponse } from "./response.js";
import { type IdempotentOptions, partsFrom, serveOnce } from "./route.js";

/** A context of Hono, as far as it is used here. Hono's own `Context` is one. */
export interface HonoContext {
  readonly req: {
    readonly raw: Request;
    readonly method: string;
    readonly url: string;
    /** The pattern of the route or middleware that runs. */
    readonly routePath?: string;
    arrayBuffer(): Promise<ArrayBuffer>;
  };
  /** True once there is a response. */
  readonly finalized: boolean;
  get res(): Response;
  set res(response: Response | undefined);
}

/** Options of idempotent routes of Hono. */
export interface HonoIdempotentOptions<Context> extends IdempotentOptions<Context> {
  /**
   * The largest body that is read, in bytes; a larger one is answered 413. Hono has no body limit of its own, and `bodyLimit` comes too late
   * behind this. With `fingerprint`, nothing is read. @default 1 048 576
   */
  readonly maxBodyBytes?: number | undefined;
}

const MAX_BODY_BYTES = 1024 * 1024;
/** A response that isn't complete after this is a stream, in ms. A body in memory takes no time at all. */
const STREAM_MS = 20;

/**
 * Returns a middleware for routes that run once per `Idempotency-Key`, as {@link IdempotentOptions} says. Use it after authentication:
 * `app.post("/orders", idempotent({ locks, service: "orders", caller: (c: Context) => c.get("user").id }), route)`. A body over
 * `maxBodyBytes` is answered 413. A response is a stream if it is a `text/event-stream`, has `Transfer-Encoding`, or is not complete after
 * 20 ms.
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotent<Context extends HonoContext = HonoContext>({
  maxBodyBytes = MAX_BODY_BYTES,
  ...options
}: HonoIdempotentOptions<Context>): (c: Context, next: () => Promise<void>) => Promise<void> {
  if (!Number.isSafeInteger(maxBodyBytes) || maxBodyBytes < 0)
    throw new InvalidRequestError(`maxBodyBytes: must be a whole number of bytes, 0 or more; it is ${maxBodyBytes}`, "maxBodyBytes");
  const serve = serveOnce(options);
  return async (c, next) => {
    const { method, routePath: pattern, raw, url } = c.req;
    const head = { method, pattern, idempotencyKey: headerIn("idempotency-key", raw.headers) };
    if (!serve.covers(c, head)) return next();
    const body = options.fingerprint ? undefined : await bodyOf(c, maxBodyBytes);
    if (body === "too-large") return void replace(c, responseOf(problemAnswer("too-large"), c.res.headers));
    const { pathname, search } = new URL(url);
    const parts = partsFrom(pathname + search, {
      ...head,
      readContent: () => body && contentOf(body, raw.headers.get("content-type") ?? undefined),
    });
    await new Promise<void>((streams, reject) => {
      const served = serve(c, parts, async () => {
        await next();
        if (!c.finalized) throw new Error("The route returned no response, and called no other that did");
        const made = isStream(c.res) ? undefined : await madeOf(c.res, options.replayHeaders);
        if (made) return made;
        const [response, ended] = watched(c.res);
        replace(c, response);
        streams();
        return ended;
      });
      served.then((answer) => {
        if (answer) replace(c, responseOf(answer, c.res.headers));
        streams();
      }, reject);
    });
  };
}

/**
 * Returns a middleware that limits requests, as {@link RateLimitOptions} says. Use it after CORS and authentication:
 * `app.use(rateLimit({ locks, service: "orders", name: "all", caller: (c: Context) => c.get("user").id, rates }))`.
 * @throws InvalidRequestError naming the invalid option
 */
export function rateLimit<Context extends HonoContext = HonoContext>(
  options: RateLimitOptions<Context>,
): (c: Context, next: () => Promise<void>) => Promise<void> {
  const limit = limitRequests(options);
  return async (c, next) => {
    const { headers, refused } = await limit(c);
    addHeaders(headers, Object.fromEntries(c.res.headers), c.res.headers);
    if (refused) replace(c, responseOf(refused.answer, c.res.headers));
    else await next();
  };
}

/**
 * Returns the response for an error that a route threw: 423 for a lock that is held, 429 for a limit without room, 503 for a lock that was
 * lost or can't be reached, each as a problem with Retry-After where a retry helps. Undefined for other errors:
 * `app.onError((error, c) => lockProblem(error, c) ?? c.text("Internal Server Error", 500))`.
 * @param c keeps the headers that other middlewares set, and exposes Retry-After to scripts of other origins
 */
export function lockProblem(error: unknown, c?: HonoContext): Response | undefined {
  const answer = problemOf(error);
  if (!answer) return undefined;
  const response = responseOf(answer, c?.res.headers ?? new Headers());
  // Hono would set the headers of the response before it once more, and so hide what is exposed here.
  if (c) c.res = undefined;
  return response;
}

/** Returns the body's bytes, and leaves the request to the route: Hono keeps a body that it has read. */
async function bodyOf({ req }: HonoContext, mostBytes: number): Promise<Uint8Array | "too-large" | undefined> {
  if (req.raw.body === null) return undefined;
  if (Number(req.raw.headers.get("content-length") ?? 0) > mostBytes) return "too-large";
  const body = req.raw.bodyUsed ? new Response(await req.arrayBuffer()).body : req.raw.clone().body;
  const read = await bytesIn(body, mostBytes);
  if (read.how !== "whole") return "too-large";
  return read.bytes.length === 0 ? undefined : read.bytes;
}

type BytesRead = { readonly how: "whole"; readonly bytes: Uint8Array } | { readonly how: "too-large" | "late" };

/** Reads a body up to `mostBytes`, and if given, up to the end of `late`. */
async function bytesIn(body: ReadableStream<Uint8Array> | null, mostBytes: number, late?: Promise<undefined>): Promise<BytesRead> {
  const reader = body?.getReader();
  const chunks: Uint8Array[] = [];
  for (let length = 0; ;) {
    const next = await Promise.race([reader?.read() ?? ENDED, ...(late ? [late] : [])]);
    if (next?.done) return { how: "whole", bytes: Buffer.concat(chunks) };
    length += next?.value.length ?? 0;
    if (!next || length > mostBytes) {
      // A copy of a body is cancelled only when the other copy has ended too.
      void reader?.cancel().catch(() => undefined);
      return { how: next ? "too-large" : "late" };
    }
    chunks.push(next.value);
  }
}

const ENDED = { done: true, value: undefined } as const;

function isStream({ headers }: Response): boolean {
  return headers.has("transfer-encoding") || /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
}

/** Returns the same response, and how its stream ends. */
function watched(response: Response): readonly [response: Response, made: Promise<MadeResponse>] {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const made = (response.body?.pipeTo(writable) ?? writable.close()).then(
    () => new TransientResponse(response.status),
    () => CUT_OFF,
  );
  return [new Response(readable, response), made];
}

/** Returns the response to record; undefined for a stream. Reads its body up to the size that can be recorded. */
async function madeOf(response: Response, replayHeaders: readonly string[] | undefined): Promise<MadeResponse | undefined> {
  const headers = Object.fromEntries(response.headers);
  if (Number(headers["content-length"] ?? 0) > resultBytes) return new TransientResponse(response.status);
  let hurry = (): void => undefined;
  const late = new Promise<undefined>((resolve) => (hurry = () => resolve(undefined)));
  const timer = systemClock.after(STREAM_MS, hurry);
  const read = await bytesIn(response.clone().body, resultBytes, headers["content-length"] === undefined ? late : undefined);
  timer.cancel();
  if (read.how === "late") return undefined;
  return madeResponse(response.status, headers, read.how === "whole" ? read.bytes : undefined, replayHeaders);
}

function responseOf(answer: StoredResponse, current: Headers): Response {
  const headers = new Headers(current);
  carry(answer, Object.fromEntries(current), headers);
  return new Response(answer.body === "" ? null : new Uint8Array(bytesOf(answer)), { status: answer.statusCode, headers });
}

/** Sets the response. Hono would add the headers of the one before. */
function replace(c: HonoContext, response: Response): void {
  c.res = undefined;
  c.res = response;
}
