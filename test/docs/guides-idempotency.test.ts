/** The claims of the page on idempotency: its figures match the code. What it says of replays is the conformance of clients. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Hold } from "../../lib/core/record.js";
import { startedTtlAtSec } from "../../lib/core/run/run.js";
import { createLockClient } from "../../lib/testing.js";
import { guide } from "./snippets.js";

const PAGE = guide("idempotency").text;
const ROWS = PAGE.replaceAll(/ *\| */g, "|");

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

describe("the figures of the page on idempotency", () => {
  it.each([
    ["leaseMs", DEFAULTS.leaseMs / SECOND_MS, "s", `${LIMITS.leaseMinMs / SECOND_MS} s – ${LIMITS.leaseMaxMs / HOUR_MS} h`],
    ["keepResultMs", DEFAULTS.keepResultMs / HOUR_MS, "h", `${LIMITS.keepResultMinMs / 60_000} min – ${LIMITS.keepResultMaxMs / DAY_MS} d`],
    ["waitMs", DEFAULTS.waitMs / SECOND_MS, "s", "0 asks once"],
  ])("of %s are the code's", (option, figure, unit, range) => {
    expect(ROWS).toMatch(new RegExp(`\\|\`${option}\`\\|[^|]+\\|${figure} ${unit}\\|${range}\\|`));
  });

  it("of attempts, checkpoints and results are the code's", () => {
    expect(PAGE).toContain(`The default is ${DEFAULTS.maxAttempts}, enough for`);
    expect(ROWS).toContain(`|began ${DEFAULTS.maxAttempts} times (\`maxAttempts\`)|`);
    expect(PAGE).toContain(`for (let call = 0; call < ${DEFAULTS.maxAttempts}; call++) await always();`);
    expect(PAGE).toContain(`at most ${LIMITS.checkpointBytes / 1024} KB`);
    expect(ROWS).toContain(`|over ${LIMITS.resultBytes / 1024} KB as JSON|`);
  });
});

describe("what the page on idempotency says of attempts that are used up", () => {
  it("is not ended by keepResultMs, nor by any time, while the record is there", async () => {
    const locks = createLockClient();
    const tries = (): Promise<unknown> =>
      locks
        .runOnce("run", { keepResultMs: LIMITS.keepResultMinMs }, () => Promise.reject(new Error("again")))
        .catch((error: unknown) => (error as { readonly code?: string }).code);
    for (let call = 0; call < DEFAULTS.maxAttempts; call++) expect(await tries()).toBeUndefined();
    for (const passedMs of [0, 2 * LIMITS.keepResultMinMs, 30 * DAY_MS]) {
      await locks.clock.advance(passedMs);
      expect(await tries()).toBe("attempts-exhausted");
    }
  });

  it.each([
    [DEFAULTS.keepResultMs, 3 * DAY_MS],
    [LIMITS.keepResultMinMs, 2 * DAY_MS + LIMITS.keepResultMinMs],
  ])("may be collected, with a keepResultMs of %d, that and two days after the last attempt's lease", (keepResultMs, afterMs) => {
    const endedMs = 1_800_000_000_000;
    const rules = createPolicy();
    const ttlAtSec = startedTtlAtSec({ expiresAtMs: endedMs, marginMs: 0 } as Hold, keepResultMs, rules);
    expect(ttlAtSec).toBe((endedMs + afterMs) / SECOND_MS);
    expect(PAGE).toContain("three days after the last attempt at the earliest (two days and `keepResultMs`");
  });
});
