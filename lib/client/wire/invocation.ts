/**
 * Lambda: the remaining time of an invocation bounds every lease, wait and call in it. A remaining time of zero is a limit, not an unknown
 * value. A sandbox that was frozen and thawed holds no leases of an earlier invocation.
 */
import * as LIMITS from "../../core/request-limits.js";
import { InvalidRequestError } from "./errors.js";
import { refused } from "./checks.js";

/** The part of a Lambda context that is used here. */
export interface InvocationContext {
  getRemainingTimeInMillis(): number;
}

/** An invocation without a time limit: a request to a server, or a handler that runs in a test or a container. */
export const ENDLESS: InvocationContext = { getRemainingTimeInMillis: () => Number.POSITIVE_INFINITY };

/** @throws InvalidRequestError unless it is a context: without one, nothing would be capped, and the caller would not notice. */
export function checkContext(context: unknown): void {
  if (typeof (context as Partial<InvocationContext> | undefined)?.getRemainingTimeInMillis !== "function")
    throw new InvalidRequestError("context: must have getRemainingTimeInMillis()", "context");
  remainingMs(context as InvocationContext);
}

/** Returns the time left. @throws InvalidRequestError unless it is a number: a context that a test made up can return anything */
export function remainingMs(context: InvocationContext = ENDLESS): number {
  const leftMs: unknown = context.getRemainingTimeInMillis();
  if (typeof leftMs === "number" && !Number.isNaN(leftMs)) return leftMs;
  const type = leftMs instanceof Promise ? "a Promise" : typeof leftMs;
  throw refused("context", leftMs, `getRemainingTimeInMillis() must return a number of ms, not ${type}`);
}

/** A lease can outlive its invocation by this: Lambda kills the function a little after its deadline. */
const KILL_GRACE_MS = 2000;
/** The time that an invocation keeps for itself after a wait that failed. */
const RESERVED_MS = 1000;
/** The time that an invocation keeps for itself after any other call. */
const LAST_MS = 200;

/** The time limit of an acquire that asks once, with or without a response. */
const ASK_ONCE_MS = 3000;
/** The least time for the first and the last request of a wait, even after its end: a slow response doesn't lose a free key. */
export const ANSWER_MS = 500;

/** Returns the lease length, capped by the invocation's remaining time, but at least the minimum. */
export function capLeaseMs(leaseMs: number, context: InvocationContext | undefined): number {
  return Math.max(LIMITS.leaseMinMs, Math.min(leaseMs, Math.floor(remainingMs(context)) + KILL_GRACE_MS));
}

/** Returns the wait, capped so that the invocation still has time to react to a timeout. */
export function capWaitMs(waitMs: number, context: InvocationContext | undefined): number {
  return Math.max(0, Math.min(waitMs, Math.floor(remainingMs(context)) - RESERVED_MS));
}

/** Returns the budget of a call, capped so that the call ends before the invocation does. */
export function capBudgetMs(budgetMs: number, context: InvocationContext | undefined): number {
  const leftMs = Math.max(0, Math.floor(remainingMs(context)));
  return Math.min(budgetMs, leftMs - Math.min(LAST_MS, leftMs / 2));
}

/** Returns the time limit of the first request of a wait, in ms; for a wait of 0 ms, which asks once, of all its attempts. */
export function firstAnswerMs(waitMs: number, context: InvocationContext | undefined): number {
  const askOnceMs = waitMs > 0 ? 0 : capWaitMs(ASK_ONCE_MS, context);
  return Math.max(askOnceMs, capBudgetMs(ANSWER_MS, context));
}

/**
 * True if the invocation left a call less time than an answer may take: then a silence of `silentMs` says nothing about the service, and nobody
 * may go on without the lock for it.
 */
export function isCutShort(silentMs: number, context: InvocationContext | undefined): boolean {
  return silentMs < ASK_ONCE_MS && Math.floor(remainingMs(context)) <= RESERVED_MS;
}
