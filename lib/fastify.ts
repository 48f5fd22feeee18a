/**
 * `holdfast/fastify`: handlers of Fastify 5 that run once per `Idempotency-Key`, and an error handler for refusals of locks. It imports
 * nothing from Fastify.
 */
export type { FastifyHandler, FastifyReplyLike } from "./frameworks/fastify.js";
export { idempotent, lockErrors } from "./frameworks/fastify.js";
export type { NodeRequest } from "./frameworks/node-request.js";
export type { IdempotentOptions } from "./web/idempotent.js";
