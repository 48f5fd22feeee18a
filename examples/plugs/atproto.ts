/** The `requestLock` of atproto's OAuth clients: one process at a time refreshes the tokens of a user, which the server lets do once. */
import type { RuntimeLock } from "@atproto/oauth-client";
import { type LockClient, key } from "../../lib/index.js";

/**
 * Returns the lock for `new NodeOAuthClient({ requestLock, … })`. It is renewed while `fn` runs, and others wait up to `waitMs`, 45 s by default.
 * Without an answer of the service nobody refreshes, as atproto asks: the call rejects.
 */
export function requestLock(locks: Pick<LockClient, "withLock">): RuntimeLock {
  return (name, fn) => locks.withLock(key("ATPROTO", name), async () => await fn());
}
