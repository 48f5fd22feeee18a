/**
 * `holdfast/express`: routes of Express 5 that run once per `Idempotency-Key`, and an error handler for refusals of locks. It imports
 * nothing from Express.
 */
export type { ExpressMiddleware, ExpressRequest } from "./frameworks/express.js";
export { idempotent, lockErrors } from "./frameworks/express.js";
export type { NodeRequest } from "./frameworks/node-request.js";
export type { IdempotentOptions } from "./web/idempotent.js";
