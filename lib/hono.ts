/**
 * `holdfast/hono`: routes of Hono 4 that run once per `Idempotency-Key`, limits in front of routes, and the answer to refusals. It
 * imports nothing from Hono.
 */
export { type HonoContext, type HonoIdempotentOptions, idempotent, lockProblem, rateLimit } from "./adapters/hono.js";
export type { RateLimitOptions } from "./adapters/rate-limit.js";
export type { IdempotentOptions } from "./adapters/route.js";
export type { Rate } from "./core/rate.js";
