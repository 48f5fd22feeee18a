/** Idempotent routes of Fastify 5, and its refusals. Fastify is not imported: a route's handler is wrapped. */
import type { ServerResponse } from "node:http";
import { resultBytes } from "../core/request-limits.js";
import type { IdempotentOptions } from "../web/idempotent.js";
import { isCovered, serveOnce } from "../web/idempotent.js";
import { problemOf } from "../web/problem.js";
import type { SentHeaders, StoredResponse } from "../web/response.js";
import { bytesOf, changesFor } from "../web/response.js";
import { hold } from "./held-response.js";
import type { NodeRequest } from "./node-request.js";
import { partsOf } from "./node-request.js";

/** A reply of Fastify, as far as it is used here. */
export interface FastifyReplyLike {
  readonly raw: ServerResponse;
  readonly sent: boolean;
  code(statusCode: number): unknown;
  header(name: string, value: string): unknown;
  removeHeader(name: string): unknown;
  getHeaders(): SentHeaders;
  send(payload?: unknown): unknown;
}

/** A handler of a route of Fastify. */
export type FastifyHandler = (this: any, request: any, reply: any) => unknown; // eslint-disable-line @typescript-eslint/no-explicit-any -- Fastify's own types, which depend on the route

/**
 * Returns `handler`, run once per `Idempotency-Key`: `app.post("/orders", idempotent({ locks, service: "orders", caller }, handler))`, where
 * `caller` is `(request) => request.user.id`. Hooks and validation come before it. The response is sent when it is recorded. A repeated
 * request gets the recorded status, body and headers, with `Idempotent-Replayed: true`. A key in progress is answered 409, another request
 * with the same key 422, a request without a key 400, and 503 if the locks can't be reached. If the client hangs up, the handler still
 * finishes and is recorded. A stream is sent as it comes and not recorded: after it, the key is answered 409 `result-omitted`.
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotent<Handler extends FastifyHandler>(options: IdempotentOptions<Parameters<Handler>[0]>, handler: Handler): Handler {
  const serve = serveOnce<NodeRequest>(options);
  const wrapped = function (this: unknown, request: NodeRequest, reply: FastifyReplyLike): unknown {
    const parts = partsOf(request);
    const call = (): unknown => Reflect.apply<unknown, [NodeRequest, FastifyReplyLike], unknown>(handler, this, [request, reply]);
    if (!isCovered(parts, options)) return call();
    return new Promise((resolve, reject) => {
      let held: ReturnType<typeof hold> | undefined;
      const settled = serve(request, parts, () => {
        const sending = watchSend(reply);
        held = hold(reply.raw, options.replayHeaders, (bytes, isKnown) => (isKnown || sending.isWhole()) && bytes <= resultBytes);
        resolve(called(call, reply, sending));
        return held.made;
      });
      settled.then(
        (one) => {
          if (one.how === "made") held?.release();
          else {
            // Hooks see the answer too, and what they do to its body is dropped: they have done it to what was recorded.
            const answered = held ?? hold(reply.raw, undefined, () => true);
            if (!held) resolve(payloadOf(one.answer, reply));
            answered.replace(one.answer);
          }
        },
        (error: unknown) => reject(error as Error),
      );
    });
  };
  return wrapped as Handler;
}

/**
 * An error handler: `app.setErrorHandler(lockErrors)`. Answers a lock that is held with 423, a lock that was lost or can't be reached with
 * 503, each as a problem with Retry-After where a retry helps. Throws all other errors, which Fastify's own handler then answers.
 */
export function lockErrors(error: unknown, _request: unknown, reply: FastifyReplyLike): void {
  const answer = problemOf(error);
  if (!answer) throw error;
  reply.send(payloadOf(answer, reply));
}

/** Calls a handler, and returns its result, which Fastify sends. */
async function called(call: () => unknown, reply: FastifyReplyLike, sending: Sending): Promise<unknown> {
  const result = call();
  // A handler that returns nothing sends its reply later. A reply resolves when it was sent.
  const value = await ((result === undefined ? reply : result) as Promise<unknown>);
  // Fastify sends nothing to a client that is gone. The response is for the client's next request.
  if (value === undefined && reply.raw.destroyed && !sending.isLeft()) reply.raw.end();
  return value;
}

/** Facts about the way in which a reply is sent. */
interface Sending {
  /** True if the handler calls `send` itself, or waits for its reply: then its result says nothing. */
  isLeft(): boolean;
  /** True if the payload is sent, and is no stream; a hook such as a compression may make one of it. */
  isWhole(): boolean;
}

/** Watches how `reply` is sent, by the handler or by Fastify. */
function watchSend(reply: FastifyReplyLike): Sending {
  let isLeft = false;
  let isWhole = false;
  for (const name of ["send", "then"]) {
    Object.defineProperty(reply, name, {
      configurable: true,
      get() {
        isLeft = true;
        Reflect.deleteProperty(reply, name);
        if (name === "then") return Reflect.get(reply, name) as unknown;
        return (payload?: unknown): unknown => {
          isWhole = !isStream(payload);
          return reply.send(payload);
        };
      },
    });
  }
  return { isLeft: () => isLeft, isWhole: () => isWhole };
}

/** True for a stream of Node or the web, or a response of `fetch`. */
function isStream(payload: unknown): boolean {
  const { pipe, getReader } = (payload ?? {}) as { readonly pipe?: unknown; readonly getReader?: unknown };
  return typeof pipe === "function" || typeof getReader === "function" || payload instanceof Response;
}

/** Sets status and headers, and returns the payload to send. */
function payloadOf(answer: StoredResponse, reply: FastifyReplyLike): unknown {
  reply.code(answer.statusCode);
  for (const [name, value] of Object.entries(changesFor(answer, reply.getHeaders()))) {
    if (value === undefined) reply.removeHeader(name);
    else reply.header(name, value);
  }
  return answer.body === "" ? undefined : bytesOf(answer);
}
