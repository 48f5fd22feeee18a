/** A plain Lambda handler whose locks and runs end with its invocation. */
import type { LockClient } from "../client/lock-client.js";
import { checkClient, checkFunction } from "../web/once.js";
import { invocationOf } from "./around.js";

/**
 * Returns `handler` with a view of `locks` for each invocation. The invocation's remaining time bounds leases and waits. When the handler
 * ends, its remaining leases are released and their heartbeats stop, before the sandbox can be frozen.
 * @throws InvalidRequestError if `locks` is not a client
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
