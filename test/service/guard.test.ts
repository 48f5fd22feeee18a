/** The clock guard applies to the very reading that a decision uses, not to an earlier one. */
import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { ClockReading } from "../../lib/core/time.js";
import { lockService } from "../../lib/service/service.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing.js";
import { leaseIdAt } from "../support/lease-ids.js";

const NOW_MS = Date.UTC(2027, 0, 1);
const FAR_MS = DEFAULTS.clockGuardMs + 1;
const CALLER = { namespace: "test", principal: "P", requestId: "r" } as const;
const KEY = "ORDER_1231";

/** A service whose clocks agree for that many readings, and are too far apart afterwards. */
function agreeingFor(readings: number) {
  const store = createMemoryStore({ policy: createPolicy() });
  let read = 0;
  const clocks = (): ClockReading => ({ earliestMs: NOW_MS, latestMs: NOW_MS + (read++ < readings ? 0 : FAR_MS) });
  const service = lockService({ store, log: () => undefined, clock: new VirtualClock() }, CALLER, clocks);
  return { store, service };
}

describe("clocks that agree at first and disagree at the decision", () => {
  it("grant nothing", async () => {
    for (const readings of [0, 1]) {
      const { store, service } = agreeingFor(readings);
      const answer = await service.acquire({ key: KEY, leaseId: leaseIdAt(NOW_MS) });
      expect(answer).toMatchObject({ code: "clock-skew", definite: true });
      expect(await store.read({ namespace: "test", kind: "locks", key: KEY })).toBeUndefined();
    }
  });

  it("control: while they agree, the same acquire is granted", async () => {
    const { service } = agreeingFor(100);
    expect(await service.acquire({ key: KEY, leaseId: leaseIdAt(NOW_MS) })).toMatchObject({ how: "granted" });
  });

  it("say of no lease that it is still held", async () => {
    const { service } = agreeingFor(3);
    const leaseId = leaseIdAt(NOW_MS);
    await service.acquire({ key: KEY, leaseId });
    expect(await service.check({ key: KEY, leaseId })).toMatchObject({ code: "clock-skew" });
  });
});
