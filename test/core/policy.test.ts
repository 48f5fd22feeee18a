/** The policy of a deployment: the bounds of its options, and the margin that they give. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, RETENTION_MIN_MS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";

describe("a policy", () => {
  it.each([
    [500, 10_000, 1_021],
    [500, 1, 1_002],
    [0, 10_000, 21],
    [DEFAULTS.clockGuardMs - 1, 1_000, 2 * DEFAULTS.clockGuardMs + 1],
  ])("with a clock error of %d ms lets a lease of %d ms be taken over %d ms after its end", (clockErrorMs, leaseMs, marginMs) => {
    expect(createPolicy({ clockErrorMs }).marginMs(leaseMs)).toBe(marginMs);
  });

  it("has the defaults of the limits", () => {
    expect(createPolicy()).toMatchObject({ retentionMs: DEFAULTS.retentionMs });
    expect(createPolicy().marginMs(10_000)).toBe(createPolicy({ clockErrorMs: DEFAULTS.clockErrorMs }).marginMs(10_000));
    expect(createPolicy({ retentionMs: RETENTION_MIN_MS }).retentionMs).toBe(RETENTION_MIN_MS);
  });

  it.each([
    [{ clockErrorMs: -1 }, "clockErrorMs"],
    [{ clockErrorMs: DEFAULTS.clockGuardMs }, "clockErrorMs"],
    [{ clockErrorMs: Number.NaN }, "clockErrorMs"],
    [{ retentionMs: RETENTION_MIN_MS - 1 }, "retentionMs"],
    [{ retentionMs: Number.NaN }, "retentionMs"],
  ])("is refused with %j, by the option's name", (options, name) => {
    expect(() => createPolicy(options)).toThrow(new RegExp(`^${name}: must be`));
    expect(() => createPolicy(options)).toThrow(RangeError);
  });
});
