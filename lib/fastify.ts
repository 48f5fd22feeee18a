/**
 * `holdfast/fastify`: handlers of Fastify 5 that run once per `Idempotency-Key`, limits in front of routes, and an error handler
 * for refusals. It imports nothing from Fastify.
 */
export { type FastifyHandler, type FastifyHook, type FastifyReplyLike, idempotent, lockErrors, rateLimit } from "./adapters/fastify.js";
export type { NodeRequest } from "./adapters/node-http.js";
export type { RateLimitOptions } from "./adapters/rate-limit.js";
export type { IdempotentOptions } from "./adapters/route.js";
export type { Rate } from "./core/rate.js";
