/** Idempotent routes of Express 5, limits in front of routes, and its refusals. Express is not imported: a middleware is a function of three arguments. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { type NodeRequest, headersOf, partsOf, sendAnswer, serveBuffered } from "./node-http.js";
import { problemOf } from "./problem.js";
import { type RateLimitOptions, limitRequests } from "./rate-limit.js";
import { addHeaders } from "./response.js";
import { type IdempotentOptions, serveOnce } from "./route.js";

/** A request of Express, as far as it is read here. Express's own `Request` is one. */
export type ExpressRequest = IncomingMessage & NodeRequest;

export type ExpressMiddleware<Request> = (request: Request, response: ServerResponse, next: (error?: unknown) => void) => void;

/**
 * Returns a middleware for routes that run once per `Idempotency-Key`, as {@link IdempotentOptions} says. Use it after the body parser and
 * authentication: `app.post("/orders", idempotent({ locks, service: "orders", caller: (req: Request) => req.user.id }), route)`.
 * @throws InvalidRequestError naming the invalid option
 */
export function idempotent<Request extends ExpressRequest = ExpressRequest>(
  options: IdempotentOptions<Request>,
): ExpressMiddleware<Request> {
  const serve = serveOnce(options);
  return (request, response, next) => {
    if (!serve.covers(request, partsOf(request))) next();
    else serveBuffered(serve, request, response, options, { route: next }).catch(next);
  };
}

/**
 * Returns a middleware that limits requests, as {@link RateLimitOptions} says. Use it after CORS and authentication:
 * `app.use(rateLimit({ locks, service: "orders", name: "all", caller: (req: Request) => req.user.id, rates }))`.
 * @throws InvalidRequestError naming the invalid option
 */
export function rateLimit<Request extends ExpressRequest = ExpressRequest>(options: RateLimitOptions<Request>): ExpressMiddleware<Request> {
  const limit = limitRequests(options);
  return (request, response, next) => {
    limit(request)
      .then(({ headers, refused }) => {
        addHeaders(headers, response.getHeaders(), headersOf(response));
        if (refused) sendAnswer(response, refused.answer);
        else next();
      })
      .catch(next);
  };
}

/**
 * An error handler: `app.use(lockErrors)` after all routes. Answers a lock that is held with 423, a limit without room with 429, a lock that
 * was lost or can't be reached with 503, each as a problem with Retry-After where a retry helps. Passes all other errors on.
 */
export function lockErrors(error: unknown, _request: unknown, response: ServerResponse, next: (error?: unknown) => void): void {
  const answer = problemOf(error);
  if (answer && !response.headersSent) sendAnswer(response, answer);
  else next(error);
}
