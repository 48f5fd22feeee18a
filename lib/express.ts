/**
 * `holdfast/express`: routes of Express 5 that run once per `Idempotency-Key`, and an error handler for refusals of locks. It imports
 * nothing from Express.
 */
export type { ExpressMiddleware, ExpressRequest } from "./adapters/express.js";
export { idempotent, lockErrors } from "./adapters/express.js";
export type { NodeRequest } from "./adapters/node-http.js";
export type { IdempotentOptions } from "./adapters/route.js";
