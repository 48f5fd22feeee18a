/** A plain Lambda handler whose locks and runs end with its invocation. */
import type { LockClient } from "../client/lock-client.js";
import { checkClient, checkFunction, invocationOf } from "./around.js";

/**
 * `handler` with a view of `locks` for each invocation: leases and waits are bounded by its remaining time, and
 * whatever the handler still holds when it ends is released, with its heartbeats, before the sandbox may freeze.
 * @throws InvalidRequestError when `locks` is no client
 */
export function withInvocation<Event, Context, Result>(
  locks: LockClient,
  handler: (event: Event, context: Context, locks: LockClient) => Promise<Result> | Result,
): (event: Event, context: Context) => Promise<Result> {
  checkClient(locks);
  checkFunction("handler", handler);
  return async (event, context) => {
    await using view = locks.forInvocation(invocationOf(context));
    return await handler(event, context, view);
  };
}
