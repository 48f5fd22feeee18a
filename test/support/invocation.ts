/** A Lambda invocation at simulated time. */
import type { InvocationContext } from "../../lib/client/invocation.js";
import type { VirtualClock } from "../../lib/testing.js";

/** An invocation that ends `leftMs` from now. */
export function invocation(clock: VirtualClock, leftMs = 60_000): InvocationContext {
  const endsAtMs = clock.wallMs() + leftMs;
  return { getRemainingTimeInMillis: () => endsAtMs - clock.wallMs() };
}
