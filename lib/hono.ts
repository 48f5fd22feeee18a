/**
 * `holdfast/hono`: routes of Hono 4 that run once per `Idempotency-Key`, and the answer to refusals of locks. It imports nothing from Hono.
 */
export type { HonoContext, HonoIdempotentOptions } from "./adapters/hono.js";
export { idempotent, lockProblem } from "./adapters/hono.js";
export type { IdempotentOptions } from "./adapters/route.js";
