/**
 * Lambda: one invocation's time bounds everything that happens in it. Zero remaining is an edge, not
 * an unknown; a sandbox that is frozen and thawed holds nothing of an earlier invocation.
 */
import { LIMITS } from "../core/limits.js";
import { InvalidRequestError } from "./errors.js";

/** The part of a Lambda context that matters here. */
export interface InvocationContext {
  getRemainingTimeInMillis(): number;
}

/** @throws InvalidRequestError unless it is a context: without one, nothing would be capped, and nobody told. */
export function checkContext(context: unknown): void {
  if (typeof (context as Partial<InvocationContext> | undefined)?.getRemainingTimeInMillis !== "function")
    throw new InvalidRequestError("context: must be the invocation's, which has getRemainingTimeInMillis()", "context");
}

/** A lease may outlive its invocation by this: the function is killed a little after its deadline. */
const KILL_GRACE_MS = 2000;
/** What an invocation keeps for itself after a wait that failed. */
const RESERVED_MS = 1000;
/** What it keeps for itself after any other call. */
const LAST_MS = 200;

/** An acquire that asks once settles within this, whether or not anybody answers. */
const ASK_ONCE_MS = 3000;
/** A wait that is shorter than this still gives its first request so long: a free key is not refused for a slow answer. */
const FIRST_ANSWER_MS = 500;

/** A lease no longer than what is left of the invocation, and never below the shortest lease. */
export function capLeaseMs(leaseMs: number, context: InvocationContext | undefined): number {
  if (!context) return leaseMs;
  return Math.max(LIMITS.leaseMinMs, Math.min(leaseMs, Math.floor(context.getRemainingTimeInMillis()) + KILL_GRACE_MS));
}

/** A wait that ends while the invocation can still do something about it. */
export function capWaitMs(waitMs: number, context: InvocationContext | undefined): number {
  if (!context) return waitMs;
  return Math.max(0, Math.min(waitMs, Math.floor(context.getRemainingTimeInMillis()) - RESERVED_MS));
}

/** The budget of a call, which ends before the invocation does. */
export function capBudgetMs(budgetMs: number, context: InvocationContext | undefined): number {
  if (!context) return budgetMs;
  const remainingMs = Math.max(0, Math.floor(context.getRemainingTimeInMillis()));
  return Math.min(budgetMs, remainingMs - Math.min(LAST_MS, remainingMs / 2));
}

/** How long the first request of a wait is worth, in ms; of a wait of 0 ms, which asks once, all of its attempts. */
export function firstAnswerMs(waitMs: number, context: InvocationContext | undefined): number {
  const askOnceMs = waitMs > 0 ? 0 : capWaitMs(ASK_ONCE_MS, context);
  return Math.max(askOnceMs, capBudgetMs(FIRST_ANSWER_MS, context));
}
