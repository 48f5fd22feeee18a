/**
 * `holdfast/fastify`: handlers of Fastify 5 that run once per `Idempotency-Key`, and an error handler for refusals of locks. It imports
 * nothing from Fastify.
 */
export type { FastifyHandler, FastifyReplyLike } from "./adapters/fastify.js";
export { idempotent, lockErrors } from "./adapters/fastify.js";
export type { NodeRequest } from "./adapters/node-http.js";
export type { IdempotentOptions } from "./adapters/route.js";
