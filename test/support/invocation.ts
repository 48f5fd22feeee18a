/** Simulated time: the end of a Lambda invocation, and work that takes a while. */
import type { InvocationContext } from "../../lib/client/wire/invocation.js";
import type { VirtualClock } from "../../lib/testing.js";

/** An invocation that ends `leftMs` from now. */
export function invocation(clock: VirtualClock, leftMs = 60_000): InvocationContext {
  const endsAtMs = clock.wallMs() + leftMs;
  return { getRemainingTimeInMillis: () => endsAtMs - clock.wallMs() };
}

/** Resolves after `ms` of simulated time. */
export function passed(clock: VirtualClock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}
