/**
 * `holdfast/durable`: locks and runs in a durable function of AWS Lambda. It needs the package `@aws/durable-execution-sdk-js`, of which it
 * uses the context that the function has anyway.
 */
export type { DurableSteps, StepLease } from "./durable/execution-lease.js";
export { type DurableLock, type DurableLockOptions, type DurableWork, withDurableLock } from "./durable/lock.js";
export { type DurableRun, type DurableRunOptions, type DurableRunWork, withDurableRun } from "./durable/run.js";
