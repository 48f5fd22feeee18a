/**
 * A wait whose last request is cut off by the end of the wait itself. Regression: Node's timers end up to 2 ms early, so the request ended
 * before its wait, and a key that was held was reported as an outage. A wrapper with `whenUnavailable: "proceed"` then ran beside the holder.
 */
import { expect, it } from "vitest";
import { createClient } from "../../lib/client/client.js";
import { systemRuntime } from "../../lib/client/runtime.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { createPolicy } from "../../lib/core/policy.js";
import { systemClock } from "../../lib/core/time.js";
import { LockTimeoutError } from "../../lib/index.js";
import { gatewayClocks } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";

/** Waits at once: before the mend, one in ten or more was told of an outage. */
const WAITS = 100;

const store = createMemoryStore({ policy: createPolicy(), clock: systemClock });
const caller = { principal: "test/client", namespace: "test", requestId: "test" };
const service = lockService({ store, log: () => undefined, clock: systemClock }, caller, gatewayClocks(systemClock, undefined));

/** The service, which answers one acquire and nothing after it. */
function fallsSilent(): ServiceApi {
  let asked = 0;
  const ask = (call: "acquire" | "acquireSet" | "check" | "inspect") => ({
    [call]: (request: never, options: never) => (asked++ === 0 ? service[call](request, options) : new Promise(() => undefined)),
  });
  return { ...service, ...ask("acquire"), ...ask("acquireSet"), ...ask("check"), ...ask("inspect") };
}

it.each(["acquire", "acquireAll"] as const)("ends as a timeout: %s", async (call) => {
  const holder = createClient(systemRuntime(service));
  const ends = await Promise.all(
    Array.from({ length: WAITS }, async (_, index) => {
      const key = `${call}-${index}`;
      await holder.acquire(key);
      // A scope waits by itself, not in the queue of its process.
      const locks = createClient(systemRuntime(fallsSilent())).scope("nightly-import-7");
      const options = { waitMs: 300 + index };
      const asked = call === "acquire" ? locks.acquire(key, options) : locks.acquireAll([key, `${key}-b`], options);
      return asked.catch((error: unknown) => error);
    }),
  );
  for (const end of ends) expect(end).toBeInstanceOf(LockTimeoutError);
  await holder.close();
});
