/** A short run of `npm run soak`, and its control: leases without heartbeats, which are lost. */
import { expect, it } from "vitest";
import { soak } from "./soak.js";

const LEASES = 200;
// Leases of the default length: those of 12 s ended when a machine stood still for a while. Without heartbeats they end before the outage.
const OPTIONS = { leases: LEASES, contenders: 20, leaseMs: 30_000, healthyMs: 30_000 };
const LIMIT_MS = 300_000;

it("200 leases are kept, lost in time when the engine is away, and taken again without a storm", { timeout: LIMIT_MS }, async () => {
  const { healthy, told, toldLate, recovered, healthyRate, ratesAfter } = await soak(OPTIONS);
  expect(healthy).toMatchObject({ held: LEASES, lost: 0, failed: 0 });
  expect({ told, toldLate, recovered }).toEqual({ told: LEASES, toldLate: 0, recovered: LEASES });
  // All intervals together: on a busy machine the work of one may fall into the next.
  const requests = ratesAfter.reduce((sum, rate) => sum + rate, 0) / ratesAfter.length;
  expect(requests).toBeLessThan(2 * healthyRate);
});

it("control: without heartbeats they are lost", { timeout: LIMIT_MS }, async () => {
  const { healthy } = await soak({ ...OPTIONS, leases: 20, contenders: 2, leaseMs: 2000, healthyMs: 5000, heartbeat: false });
  expect(healthy.lost).toBeGreaterThan(0);
});
