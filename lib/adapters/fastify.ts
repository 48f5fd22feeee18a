/** Idempotent routes of Fastify 5, limits in front of routes, and its refusals. Fastify is not imported: a route's handler is wrapped. */
import type { ServerResponse } from "node:http";
import { resultBytes } from "../core/request-limits.js";
import { type NodeRequest, partsOf, serveBuffered } from "./node-http.js";
import { problemOf } from "./problem.js";
import { type RateLimitOptions, limitRequests } from "./rate-limit.js";
import { type SentHeaders, type StoredResponse, addHeaders, bytesOf, carry, headersOfReply } from "./response.js";
import { type IdempotentOptions, serveOnce } from "./route.js";

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
 * Returns `handler`, run once per `Idempotency-Key` as {@link IdempotentOptions} says: `app.post("/orders", idempotent({ locks, service:
 * "orders", caller }, handler))`, where `caller` is `(request) => request.user.id`. Hooks and validation come before it.
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotent<Handler extends FastifyHandler>(options: IdempotentOptions<Parameters<Handler>[0]>, handler: Handler): Handler {
  const serve = serveOnce<NodeRequest>(options);
  const wrapped = function (this: unknown, request: NodeRequest, reply: FastifyReplyLike): unknown {
    const call = (): unknown => Reflect.apply<unknown, [NodeRequest, FastifyReplyLike], unknown>(handler, this, [request, reply]);
    if (!serve.covers(request, partsOf(request))) return call();
    return new Promise((resolve, reject) => {
      const sending = new Sending();
      let work: Promise<unknown> | undefined;
      serveBuffered(serve, request, reply.raw, options, {
        route() {
          sending.watch(reply);
          resolve((work = called(call, reply, sending)));
        },
        work: () => work,
        reply: (answer) => resolve(payloadOf(answer, reply)),
        buffers: (bytes, isKnown) => (isKnown || sending.isWhole) && bytes <= resultBytes,
      }).catch(reject);
    });
  };
  return wrapped as Handler;
}

export type FastifyHook = (request: any, reply: any) => Promise<unknown>; // eslint-disable-line @typescript-eslint/no-explicit-any -- Fastify's own types, which depend on the route

/**
 * Returns a hook that limits requests, as {@link RateLimitOptions} says: `app.addHook("preHandler", rateLimit({ locks, service: "orders",
 * name: "all", caller, rates }))`, where `caller` is `(request: FastifyRequest) => request.user.id`, or the option `preHandler` of a route.
 * @throws InvalidRequestError naming the invalid option
 */
export function rateLimit<Request extends NodeRequest = NodeRequest>(options: RateLimitOptions<Request>): FastifyHook {
  const limit = limitRequests(options);
  return async (request: Request, reply: FastifyReplyLike) => {
    const { headers, refused } = await limit(request);
    addHeaders(headers, reply.getHeaders(), headersOfReply(reply));
    return refused && reply.send(payloadOf(refused.answer, reply));
  };
}

/**
 * An error handler: `app.setErrorHandler(lockErrors)`. Answers a lock that is held with 423, a limit without room with 429, a lock that was
 * lost or can't be reached with 503, each as a problem with Retry-After where a retry helps. Throws all other errors, which Fastify's own
 * handler then answers.
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
  if (value === undefined && reply.raw.destroyed && !sending.isLeft) reply.raw.end();
  return value;
}

/** The way in which a reply is sent, by the handler or by Fastify. */
class Sending {
  /** True if the handler calls `send` itself, or waits for its reply: then its result says nothing. */
  isLeft = false;
  /** True if the payload is sent, and is no stream; a hook such as a compression may make one of it. */
  isWhole = false;

  watch(reply: FastifyReplyLike): void {
    const use = (name: "send" | "then"): unknown => {
      this.isLeft = true;
      Reflect.deleteProperty(reply, name);
      if (name === "then") return Reflect.get(reply, name) as unknown;
      return (payload?: unknown): unknown => {
        this.isWhole = !isStream(payload);
        return reply.send(payload);
      };
    };
    for (const name of ["send", "then"] as const) Object.defineProperty(reply, name, { configurable: true, get: () => use(name) });
  }
}

function isStream(payload: unknown): boolean {
  const { pipe, getReader } = (payload ?? {}) as { readonly pipe?: unknown; readonly getReader?: unknown };
  return typeof pipe === "function" || typeof getReader === "function" || payload instanceof Response;
}

/** Sets status and headers, and returns the payload to send. */
function payloadOf(answer: StoredResponse, reply: FastifyReplyLike): unknown {
  reply.code(answer.statusCode);
  carry(answer, reply.getHeaders(), headersOfReply(reply));
  return answer.body === "" ? undefined : bytesOf(answer);
}
