/**
 * `holdfast/nest`: a module for Nest 11 and 12 with `@Idempotent()` routes, limits in front of routes (`@RateLimit()`), `@Locked()`
 * methods, and a filter for refusals. It imports nothing from Nest.
 */
export type { NestAsyncOptions, NestContext, NestModule, NestProvider, NestRateLimit } from "./adapters/nest.js";
export { HoldfastModule, Idempotent, IdempotencyInterceptor, Locked, LockErrorFilter, LOCKS, RateLimit } from "./adapters/nest.js";
export { RateLimitInterceptor } from "./adapters/nest.js";
export type { NodeRequest } from "./adapters/node-http.js";
export type { RateLimitOptions } from "./adapters/rate-limit.js";
export type { IdempotentOptions } from "./adapters/route.js";
export type { Rate } from "./core/rate.js";
