/**
 * A wait whose last request is cut off by the end of the wait itself. Regression: Node's timers end up to 2 ms early, so the request ended
 * before its wait, and a key that was held was reported as an outage. A wrapper with `whenUnavailable: "proceed"` then ran beside the holder.
 */
import { expect, it } from "vitest";
import { createClient } from "../../../lib/client/client.js";
import { systemRuntime } from "../../../lib/client/runtime.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { createPolicy } from "../../../lib/core/policy.js";
import type { Timer } from "../../../lib/core/time.js";
import { LockTimeoutError } from "../../../lib/index.js";
import { oneClock } from "../../../lib/service/clocks.js";
import { lockService } from "../../../lib/service/service.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { VirtualClock } from "../../../lib/testing.js";

/** A clock whose timers end early, as Node's may. */
class EarlyClock extends VirtualClock {
  constructor(readonly earlyMs: number) {
    super();
  }

  override after(delayMs: number, task: () => void): Timer {
    // Time passes all the same: a timer that is set again for the rest ends at last.
    return super.after(Math.max(0.5, delayMs - this.earlyMs), task);
  }
}

/** The service, which answers one acquire and nothing after it. */
function fallsSilent(service: ServiceApi): ServiceApi {
  let asked = 0;
  const ask = (call: "acquire" | "acquireSet" | "check" | "inspect") => ({
    [call]: (request: never, options: never) => (asked++ === 0 ? service[call](request, options) : new Promise(() => undefined)),
  });
  return { ...service, ...ask("acquire"), ...ask("acquireSet"), ...ask("check"), ...ask("inspect") };
}

it.each((["acquire", "acquireAll"] as const).flatMap((call) => [0, 0.5, 1, 2].map((earlyMs) => ({ call, earlyMs }))))(
  "$call ends as a timeout, with timers that end $earlyMs ms early",
  async ({ call, earlyMs }) => {
    const clock = new EarlyClock(earlyMs);
    const store = createMemoryStore({ policy: createPolicy(), clock });
    const caller = { principal: "test/client", namespace: "test", requestId: "test" };
    const service = lockService({ store, log: () => undefined, clock }, caller, oneClock(clock));
    const holder = createClient(systemRuntime(service, clock));
    for (let waitMs = 300; waitMs < 320; waitMs++) {
      const key = `key-${waitMs}`;
      await holder.acquire(key, { heartbeat: false });
      // A scope waits by itself, not in the queue of its process.
      const locks = createClient(systemRuntime(fallsSilent(service), clock)).scope("nightly-import-7");
      const asked = call === "acquire" ? locks.acquire(key, { waitMs }) : locks.acquireAll([key, `${key}-b`], { waitMs });
      const end = asked.catch((error: unknown) => error);
      await clock.advance(5000);
      expect(await end).toBeInstanceOf(LockTimeoutError);
    }
  },
);
