/**
 * Idempotent routes of Hono 4, and its refusals. The client runs on Node, Deno and Cloudflare Workers (with `nodejs_compat`).
 * Hono is not imported: a middleware is a function.
 */
import { resultBytes } from "../core/request-limits.js";
import type { IdempotentOptions, RequestParts } from "../web/idempotent.js";
import { isCovered, serveOnce } from "../web/idempotent.js";
import { problemOf } from "../web/problem.js";
import type { MadeResponse, StoredResponse } from "../web/response.js";
import { bytesOf, changesFor, madeResponse, TransientResponse } from "../web/response.js";

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
  get res(): Response;
  set res(response: Response | undefined);
}

/** A stream that was cut off: its work is not known to be done. */
const CUT_OFF = new TransientResponse(500);

/**
 * Returns a middleware for routes that run once per `Idempotency-Key`. Use it after authentication: `app.post("/orders", idempotent({
 * locks, service: "orders", caller: (c: Context) => c.get("user").id }), route)`. The response is sent when it is recorded. A repeated
 * request gets the recorded status, body and headers, with `Idempotent-Replayed: true`. A key in progress is answered 409, another request
 * with the same key 422, a request without a key 400, and 503 if the locks can't be reached. If the client hangs up, the route still
 * finishes and is recorded. A stream (`text/event-stream`, or with `Transfer-Encoding`, as `streamSSE` and `streamText` make them) is sent
 * as it comes and not recorded: after it, the key is answered 409 `result-omitted`.
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotent<Context extends HonoContext = HonoContext>(
  options: IdempotentOptions<Context>,
): (c: Context, next: () => Promise<void>) => Promise<void> {
  const serve = serveOnce(options);
  return async (c, next) => {
    const { pathname, search } = new URL(c.req.url);
    const { method, routePath: pattern } = c.req;
    const idempotencyKey = c.req.raw.headers.get("idempotency-key") ?? undefined;
    const asked = { method, url: pathname + search, pattern, idempotencyKey };
    if (!isCovered(asked, options)) return next();
    const body = options.fingerprint ? undefined : await bodyOf(c);
    const parts: RequestParts = { ...asked, body: () => body };
    await new Promise<void>((streams, reject) => {
      const served = serve(c, parts, async () => {
        await next();
        if (!isStream(c.res)) return madeOf(c.res, options.replayHeaders);
        const [response, made] = watched(c.res);
        replace(c, response);
        streams();
        return made;
      });
      served.then((settled) => {
        if (settled.how === "answer") replace(c, responseOf(settled.answer, c.res.headers));
        streams();
      }, reject);
    });
  };
}

/**
 * Returns the response for an error that a route threw: 423 for a lock that is held, 503 for a lock that was lost or can't be reached, each
 * as a problem with Retry-After where a retry helps. Undefined for other errors:
 * `app.onError((error, c) => lockProblem(error) ?? c.text("Internal Server Error", 500))`.
 */
export function lockProblem(error: unknown): Response | undefined {
  const answer = problemOf(error);
  return answer && responseOf(answer, new Headers());
}

/** Returns the body's bytes, and leaves the request to the route: Hono keeps a body that it has read. */
async function bodyOf({ req }: HonoContext): Promise<Uint8Array | undefined> {
  if (req.raw.body === null) return undefined;
  const bytes = new Uint8Array(await (req.raw.bodyUsed ? req.arrayBuffer() : req.raw.clone().arrayBuffer()));
  return bytes.length === 0 ? undefined : bytes;
}

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

/** Returns the response to record. Reads its body up to the size that can be recorded. */
async function madeOf(response: Response, replayHeaders: readonly string[] | undefined): Promise<MadeResponse> {
  const headers = Object.fromEntries(response.headers);
  if (Number(headers["content-length"] ?? 0) > resultBytes) return new TransientResponse(response.status);
  const chunks: Uint8Array[] = [];
  const reader = response.clone().body?.getReader();
  for (let length = 0, next = await reader?.read(); next?.value; next = await reader?.read()) {
    length += next.value.length;
    if (length > resultBytes) {
      // It resolves only when the other copy has ended too.
      void reader?.cancel().catch(() => undefined);
      return new TransientResponse(response.status);
    }
    chunks.push(next.value);
  }
  return madeResponse(response.status, headers, Buffer.concat(chunks), replayHeaders);
}

function responseOf(answer: StoredResponse, current: Headers): Response {
  const headers = new Headers(current);
  for (const [name, value] of Object.entries(changesFor(answer, Object.fromEntries(current)))) {
    if (value === undefined) headers.delete(name);
    else headers.set(name, value);
  }
  return new Response(answer.body === "" ? null : new Uint8Array(bytesOf(answer)), { status: answer.statusCode, headers });
}

/** Sets the response. Hono would add the headers of the one before. */
function replace(c: HonoContext, response: Response): void {
  c.res = undefined;
  c.res = response;
}
