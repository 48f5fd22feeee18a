/** The claims of the page on idempotency: its figures match the code, and replays match its table. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Hold } from "../../lib/core/record.js";
import { startedTtlAtSec } from "../../lib/core/run/run.js";
import { idempotencyHandler } from "../../lib/middy.js";
import { createLockClient, FinalError } from "../../lib/testing.js";
import { requestV1, requestV2, SCHEDULED } from "../adapters/events.js";
import { guide } from "./snippets.js";

const PAGE = guide("idempotency").text;
const ROWS = PAGE.replaceAll(/ *\| */g, "|");

/** A handler that accepts any event and context. */
type Handle = (event: unknown, context: object) => Promise<unknown>;

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
  it.each([
    ["a FinalError is recorded at once", FinalError, "run-failed", 1],
    ["control: an ordinary error blocks the key, and the refusal names FinalError", Error, "attempts-exhausted", DEFAULTS.maxAttempts],
  ])("a declined card: %s", async (_what, Declined, code, timesCharged) => {
    const locks = createLockClient();
    let charged = 0;
    const pay = (): Promise<unknown> =>
      locks
        .runOnce("run", () => {
          charged++;
          throw new Declined("the card was declined");
        })
        .catch((error: unknown) => error);
    for (let call = 0; call < DEFAULTS.maxAttempts; call++) await pay();
    expect(await pay()).toMatchObject({ code, message: expect.stringMatching(/the card was declined|: FinalError, /) as string });
    expect(charged).toBe(timesCharged);
  });

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

describe("what the page on idempotency says of events", () => {
  const locks = createLockClient();
  const handler = idempotencyHandler({ locks, service: "shop", caller: "none" }, async () => ({ statusCode: 201, body: "made" })) as Handle;
  const context = { getRemainingTimeInMillis: () => 60_000 };

  it.each([
    ["requestContext.http", requestV2()],
    ["httpMethod", requestV1()],
  ])("is so: one with %s is a request, answered 400 without a key", async (what, event) => {
    expect(PAGE).toContain(`\`${what}\``);
    expect(await handler(event, context)).toMatchObject({ statusCode: 400 });
  });

  it("is so: a schedule's is none, and without a key it throws", async () => {
    await expect(handler(SCHEDULED, context)).rejects.toThrow("key: is needed for this event");
  });
});

describe("what the page on idempotency says of", () => {
  /** Returns the replayed result for the second caller of a run whose work returned `value`. */
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

  it("an object with a toJSON: what that made", async () => {
    expect(await replayOf(new URL("http://localhost/"))).toBe("http://localhost/");
  });

  it.each([
    ["a Map", new Map()],
    ["a Set", new Set()],
    ["bytes", new Uint8Array(1)],
    ["URLSearchParams", new URLSearchParams("a=1")],
    ["a Response", new Response("paid")],
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
    const tooShortMs = DEFAULTS.leaseMs;
    await expect(clock.settle(next.runOnce("run", { waitMs: tooShortMs }, () => "now"))).rejects.toMatchObject({ code: "wait-timeout" });
    await clock.advance(freeMs - tooShortMs);
    expect(await next.runOnce("run", ({ takeover }) => takeover)).toMatchObject({ value: true, attempt: 2 });
  });
});
