/**
 * `holdfast/middy`: locks and runs for Lambda handlers, as handler wrappers, as Middy middlewares, and for queue batches. It imports
 * nothing from Middy: the wrappers don't need it, and a middleware is a plain object.
 */
export { type BatchOptions, type BatchRecord, type BatchResponse, idempotencyKeyOf, runBatch } from "./client/calls/batch.js";
export { currentLease } from "./client/calls/surrounding.js";
export { currentRun } from "./client/calls/wrap/once.js";
export { type Handler, type Wrapped, withInvocation } from "./adapters/lambda.js";
export type { AnswerTo } from "./adapters/lambda-http.js";
export { type IdempotencyOptions, idempotencyHandler, idempotencyMiddleware } from "./adapters/lambda-once.js";
export type { LambdaContext, Middleware, MiddlewareRequest } from "./adapters/middy.js";
export { type LockHandlerOptions, lockHandler, lockMiddleware } from "./adapters/lambda-lock.js";
export type { ScheduleEvent, ScheduleHandlerOptions, ScheduleResult, SqsHandlerOptions } from "./adapters/lambda-events.js";
export { type SqsMessage, type SqsResponse, scheduleHandler, sqsHandler } from "./adapters/lambda-events.js";
export type { HttpAnswer } from "./adapters/problem.js";
