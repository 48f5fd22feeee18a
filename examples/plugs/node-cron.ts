/**
 * node-cron's `RunCoordinator`: of the instances that schedule a task with `distributed: true`, one runs each fire. A fire is an occurrence of
 * a tick, so a late instance finds it done, a task that still runs skips the next fire on all instances, and `holdfast ticks` lists them.
 */
import type { RunCoordinator } from "node-cron";
import { type LockClient, key } from "../../lib/index.js";

/** The length of the time at the end of node-cron's keys, as in `report:2026-01-31T02:00:00.000Z`. */
const TIME_LENGTH = new Date(0).toISOString().length;

/**
 * Returns a coordinator for `setRunCoordinator`. While a task runs, its lease of `distributedLease` (30 s by default) is renewed. The answer is
 * yes when the work of the tick begins; no if the tick is over and it didn't.
 */
export function runCoordinator(locks: Pick<LockClient, "tick">): RunCoordinator {
  const running = new Map<string, () => void>();
  return {
    shouldRun: (fire, ttlMs) =>
      new Promise((resolve, reject) => {
        const name = key("CRON", fire.slice(0, -TIME_LENGTH - 1));
        const occurrence = new Date(fire.slice(-TIME_LENGTH));
        const run = (): Promise<void> =>
          new Promise((complete) => {
            running.set(fire, complete);
            resolve(true);
          });
        const options = { occurrence, leaseMs: ttlMs };
        locks.tick(name, options, run).then(() => resolve(false), reject);
      }),
    onComplete(fire) {
      running.get(fire)?.();
      running.delete(fire);
    },
  };
}
