/** What the page on idempotency states: its figures are the code's, and what comes back is as its table has it. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
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
    expect(ROWS).toContain(`|began ${DEFAULTS.maxAttempts} times (\`maxAttempts\`)|`);
    expect(PAGE).toContain(`at most ${LIMITS.checkpointBytes / 1024} KB`);
    expect(ROWS).toContain(`|over ${LIMITS.resultBytes / 1024} KB as JSON|`);
  });
});

describe("what the page on idempotency says of", () => {
  /** What the second caller of a run is told whose work returned `value`. */
  async function replayOf(value: unknown, options: { largeResult?: "omit" } = {}): Promise<unknown> {
    const locks = createLockClient();
    const once = () => locks.runOnce("run", options, () => value);
    await once().catch(() => undefined);
    return once().then(
      (result) => (result.resultOmitted ? "omitted" : result.value),
      (error: unknown) => (error as { readonly code: string }).code,
    );
  }

  it.each([[null], [undefined], [12n], [new Date(0)], [Number.NaN], [-0], [{ a: [1, "b", true] }]])(
    "%s: it comes back the same",
    async (value) => {
      expect(await replayOf(value)).toStrictEqual(value);
    },
  );

  it("an Error: its name and message come back, and no stack of before", async () => {
    const error = new RangeError("too far");
    const back = (await replayOf(error)) as Error;
    expect([back.name, back.message]).toEqual(["RangeError", "too far"]);
    expect(back.stack).not.toBe(error.stack);
  });

  it("an object of a class: plain, or what its toJSON made", async () => {
    class Point {
      readonly x = 1;
    }
    expect(await replayOf(new Point())).toStrictEqual({ x: 1 });
    expect(await replayOf({ toJSON: () => "as text" })).toBe("as text");
  });

  it.each([
    ["a Map", new Map()],
    ["a Set", new Set()],
    ["bytes", new Uint8Array(1)],
    ["a function", () => undefined],
    ["what is too large", "x".repeat(LIMITS.resultBytes)],
  ])("%s: nothing is kept, and everybody is told; or it is left out, as asked", async (_name, value) => {
    expect(await replayOf(value)).toBe("result-omitted");
    expect(await replayOf(value, { largeResult: "omit" })).toBe("omitted");
  });

  it("a takeover: only after the lease and its margin; who asks sooner waits", async () => {
    const dead = createLockClient();
    const { clock, store } = dead;
    const forever = new Promise<never>(() => undefined);
    void dead.runOnce("run", { heartbeat: false }, () => forever);
    await clock.advance(1);
    const next = createLockClient({ clock, store });
    const freeMs = DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs);
    await expect(clock.settle(next.runOnce("run", () => "now"))).rejects.toMatchObject({ code: "wait-timeout" });
    await clock.advance(freeMs - DEFAULTS.waitMs);
    expect(await next.runOnce("run", ({ takeover }) => takeover)).toMatchObject({ value: true, attempt: 2 });
  });
});
