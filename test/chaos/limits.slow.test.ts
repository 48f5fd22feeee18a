/** A short run of `npm run chaos -- --limits`, and its control: with a limiter for each process, the limits are exceeded. */
import { describe, expect, it } from "vitest";
import { limitChaos } from "./limits.js";

const SECOND_MS = 1000;
/** Processes start and end outside of the times given below. */
const LIMIT_MS = 300 * SECOND_MS;

describe("processes that call partners under limits and faults", { timeout: LIMIT_MS }, () => {
  it("exceed no limit, nor its permits", async ({ annotate }) => {
    const { violations, notices, limits, faults } = await limitChaos({ seed: 1, faultsMs: 10 * SECOND_MS, calls: 60 });
    for (const notice of notices) await annotate(notice);
    expect(violations).toEqual([]);
    expect(Object.values(limits).every(({ calls }) => calls > 0)).toBe(true);
    for (const what of ["worker frozen", "worker killed"]) expect(faults[what]).toBeGreaterThan(0);
  });

  it("control: with a limiter for each, they exceed them", async () => {
    const { violations, limits } = await limitChaos({ seed: 1, faultsMs: 0, calls: 300, isCalm: true, without: "sharing" });
    expect(violations.length).toBeGreaterThan(0);
    expect(limits["PARTNER_PERMITS"]?.mostAtOnce).toBeGreaterThan(3);
  });
});
