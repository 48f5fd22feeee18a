/**
 * `holdfast/middy`: locks and runs for Lambda handlers, as handler wrappers, as Middy middlewares, and for queue batches. It imports
 * nothing from Middy: the wrappers don't need it, and a middleware is a plain object.
 */
export type { BatchOptions, BatchRecord, BatchResponse } from "./client/events.js";
export { idempotencyKeyOf, runBatch } from "./client/events.js";
export { currentLease } from "./client/wrap/reentrancy-guard.js";
export { currentRun } from "./client/wrap/once.js";
export type { Handler, Wrapped } from "./middy/around.js";
export type { AnswerTo } from "./middy/http.js";
export type { IdempotencyOptions } from "./middy/idempotency.js";
export { idempotencyHandler, idempotencyMiddleware } from "./middy/idempotency.js";
export { withInvocation } from "./middy/invocation.js";
export type { LambdaContext } from "./middy/lambda-context.js";
export type { LockHandlerOptions } from "./middy/lock.js";
export { lockHandler, lockMiddleware } from "./middy/lock.js";
export type { Middleware, MiddlewareRequest } from "./middy/middleware.js";
export type { ScheduleEvent, ScheduleHandlerOptions, ScheduleResult } from "./middy/schedule.js";
export { scheduleHandler } from "./middy/schedule.js";
export type { SqsHandlerOptions, SqsMessage, SqsResponse } from "./middy/sqs.js";
export { sqsHandler } from "./middy/sqs.js";
export type { HttpAnswer } from "./web/problem.js";
