/**
 * `holdfast/middy`: locks and runs for Lambda handlers, as handler wrappers, as Middy middlewares, and for queue batches. It imports
 * nothing from Middy: the wrappers don't need it, and a middleware is a plain object.
 */
export type { BatchOptions, BatchRecord, BatchResponse } from "./client/calls/batch.js";
export { idempotencyKeyOf, runBatch } from "./client/calls/batch.js";
export { currentLease } from "./client/calls/surrounding.js";
export { currentRun } from "./client/calls/wrap/once.js";
export type { Handler, Wrapped } from "./adapters/lambda.js";
export type { AnswerTo } from "./adapters/lambda-http.js";
export type { IdempotencyOptions } from "./adapters/lambda-once.js";
export { idempotencyHandler, idempotencyMiddleware } from "./adapters/lambda-once.js";
export { withInvocation } from "./adapters/lambda.js";
export type { LambdaContext } from "./adapters/middy.js";
export type { LockHandlerOptions } from "./adapters/lambda-lock.js";
export { lockHandler, lockMiddleware } from "./adapters/lambda-lock.js";
export type { Middleware, MiddlewareRequest } from "./adapters/middy.js";
export type { ScheduleEvent, ScheduleHandlerOptions, ScheduleResult } from "./adapters/lambda-events.js";
export { scheduleHandler } from "./adapters/lambda-events.js";
export type { SqsHandlerOptions, SqsMessage, SqsResponse } from "./adapters/lambda-events.js";
export { sqsHandler } from "./adapters/lambda-events.js";
export type { HttpAnswer } from "./adapters/problem.js";
