/** A request to wait asleep: an agent claims the key for the waiter, and tells its target (agent.ts). */
import type { WakeTarget } from "../core/api/locks.js";
import type { Acquire, Held, Waiting } from "../core/commands.js";
import type { Refusal } from "../core/errors.js";
import { refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import { toSecondsUp } from "../core/time.js";
import type { Requests } from "./request.js";

const NO_AGENT = "this service has no agent that wakes sleepers; wait by polling";

/** Stores the sleeper, then queues it. So whoever finds it in the queue finds its target too. */
export async function sleep(
  requests: Requests,
  { wait: _wait, ...acquire }: Acquire,
  target: WakeTarget,
  sleepMs: number | undefined,
): Promise<Held | Waiting | Refusal> {
  const { sleepers, store, clocks, caller } = requests;
  if (!sleepers) return invalid(NO_AGENT);
  if (sleepMs === undefined || sleepMs === 0 || sleepMs > LIMITS.sleepMaxMs) {
    const given = sleepMs === undefined ? "there is none" : `N is ${sleepMs / 1000}`;
    return invalid(`needs Prefer: wait=N, with N from 1 to ${LIMITS.sleepMaxMs / 1000}; ${given}`);
  }
  const { key } = acquire;
  const stored = await requests.read({ key }, async () => {
    const { latestMs: putAtMs } = clocks();
    const ttlAtSec = toSecondsUp(putAtMs + sleepMs + store.parameters.retentionMs);
    const address = { namespace: caller.namespace, kind: "locks", key } as const;
    await sleepers.put({ address, acquire, target, putAtMs, ttlAtSec });
    return { ok: true } as const;
  });
  return stored.ok ? requests.apply({ ...acquire, wait: true, sleepMs }) : stored;
}

function invalid(rule: string): Refusal {
  return refuse("invalid-request", { field: "wake", detail: `wake: ${rule}` });
}
