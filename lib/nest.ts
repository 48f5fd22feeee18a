/**
 * `holdfast/nest`: a module for Nest 11 and 12 with `@Idempotent()` routes, `@Locked()` methods, and a filter for refusals of locks. It
 * imports nothing from Nest.
 */
export type { NestAsyncOptions, NestContext, NestModule, NestProvider } from "./adapters/nest.js";
export { HoldfastModule, Idempotent, IdempotencyInterceptor, Locked, LockErrorFilter, LOCKS } from "./adapters/nest.js";
export type { NodeRequest } from "./adapters/node-http.js";
export type { IdempotentOptions } from "./adapters/route.js";
