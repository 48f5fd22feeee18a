/**
 * Acquires that an agent looks after (agent.ts): one that waits asleep, for which the agent claims the key and tells its target; and one whose
 * lease is tied to an execution.
 */
import type { AcquireRequest } from "../core/api/locks.js";
import type { Acquire, Held, Waiting } from "../core/commands.js";
import { type Refusal, refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import { toSecondsUp } from "../core/time.js";
import type { RequestContext } from "./request-context.js";

const NO_AGENT = "this service has no agent that wakes sleepers and renews tied leases";

/** Stores what the agent needs, then sends the acquire. So whoever finds the lease in its record finds its target and its execution too. */
export async function acquireWithAgent(
  context: RequestContext,
  { wait, ...acquire }: Acquire,
  { waitMs = 0, wake, tie }: Pick<AcquireRequest, "waitMs" | "wake" | "tie">,
): Promise<Held | Waiting | Refusal> {
  const { store, clocks } = context;
  const { sleepers } = context.deps;
  if (!sleepers) return invalid(wake ? "wake" : "tie", NO_AGENT);
  if (wake && (waitMs === 0 || waitMs > LIMITS.sleepMaxMs)) {
    const actual = wait ? `N is ${waitMs / 1000}` : "there is none";
    return invalid("wake", `needs Prefer: wait=N, with N from 1 to ${LIMITS.sleepMaxMs / 1000}; ${actual}`);
  }
  const { key, leaseId, leaseMs, principal } = acquire;
  if (tie && leaseMs < LIMITS.agentLeaseMinMs)
    return invalid("leaseMs", `must be at least ${LIMITS.agentLeaseMinMs} with a tie; it is ${leaseMs}`);
  const stored = await context.carryOut({ key }, async () => {
    const { latestMs: putAtMs } = clocks();
    const address = context.addressOf(key);
    const itemFor = (forMs: number) => ({ address, putAtMs, ttlAtSec: toSecondsUp(putAtMs + forMs + store.parameters.retentionMs) });
    // No execution lasts longer, with its wait for the key.
    const tied = tie && (await sleepers.put({ ...itemFor(LIMITS.sleepMaxMs), leaseId, principal, executionArn: tie.executionArn }));
    return tied ?? (wake && (await sleepers.put({ ...itemFor(waitMs), acquire, targets: [wake], untilMs: putAtMs + waitMs })));
  });
  if (stored) return stored;
  return context.apply({ ...acquire, ...(wake ? { wait: true, sleepMs: waitMs } : wait && { wait }) });
}

function invalid(field: string, rule: string): Refusal {
  return refuse("invalid-request", { field, detail: `${field}: ${rule}` });
}
