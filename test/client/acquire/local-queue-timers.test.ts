/**
 * A caller that was served leaves no timer behind. Regression: the last caller of a local queue did. A timer as long as
 * its wait kept the process alive, although no caller was waiting.
 */
import { expect, it } from "vitest";
import type { Clock, Timer } from "../../../lib/core/time.js";
import type { VirtualClock } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const KEY = "ORDER_1231";

/** A harness that tracks the client's timers that would keep a process alive. */
function rigWithTimers() {
  const pending = new Set<Timer>();
  const watched = (clock: VirtualClock): Clock => ({
    wallMs: () => clock.wallMs(),
    monotonicMs: () => clock.monotonicMs(),
    after(delayMs, task) {
      const timer = clock.after(delayMs, () => {
        pending.delete(kept);
        task();
      });
      const kept: Timer = {
        cancel() {
          pending.delete(kept);
          timer.cancel();
        },
      };
      pending.add(kept);
      return kept;
    },
    inBackground: (delayMs, task) => clock.inBackground(delayMs, task),
  });
  return { ...createHarness({ clientClock: watched }), pending };
}

it("nothing keeps the process alive once the last of a line was served", async () => {
  const { clock, locks, pending } = rigWithTimers();
  const first = await clock.settle(locks.acquire(KEY));
  const second = locks.acquire(KEY, { waitMs: 600_000 });
  await clock.advance(1000);
  // Control: a waiting caller does keep it alive.
  expect(pending.size).toBeGreaterThan(0);
  await clock.settle(first.release());
  const lease = await clock.settle(second);
  await clock.settle(lease.release());
  await clock.settle(locks.close());
  expect(pending.size).toBe(0);
});
