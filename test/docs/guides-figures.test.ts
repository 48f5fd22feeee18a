/** Every default and limit in a guide matches the code, and the claims about them are true. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { createLockClient, key, LockTimeoutError } from "../../lib/testing.js";
import { ROOT } from "../tidy/tree.js";
import { guide } from "./snippets.js";

const KEYS = guide("choosing-keys").text;
const WAITING = guide("waiting").text;
const LEASES = guide("heartbeats-and-lambda").text;
const START = guide("start-here").text;

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const seconds = (ms: number, digits = 0): string => `${(ms / SECOND_MS).toFixed(digits)} s`;
const crashMs = (leaseMs: number): number => leaseMs + takeoverMarginMs(leaseMs);

describe("the guides' figures", () => {
  it.each([
    [START, `took a lease of ${seconds(DEFAULTS.leaseMs)}, renewed it every ${seconds(renewAfterMs(DEFAULTS.leaseMs))}`],
    [START, `about ${seconds(crashMs(DEFAULTS.leaseMs))} after the last renewal`],
    [START, `queue for up to ${seconds(DEFAULTS.waitMs)}`],
    [KEYS, `Up to ${LIMITS.setKeys} keys.`],
    [KEYS, `1 to ${LIMITS.keyChars} characters of`],
    [WAITING, `\`waitMs\` is ${seconds(DEFAULTS.waitMs)} by default`],
    [WAITING, `has ${seconds(DEFAULTS.offerWindowMs)} to claim it`],
    [WAITING, `not seen for ${seconds(DEFAULTS.waiterTtlMs)} (longer further back)`],
    [WAITING, `0 (the default) to ${LIMITS.priorityMax}, higher before lower`],
    [WAITING, `A key has at most ${LIMITS.waitersMax} waiters`],
    [WAITING, `at least one every ${seconds(LIMITS.pollMaxMs, 1)}`],
    [WAITING, `it blocks the key for ${seconds(crashMs(DEFAULTS.leaseMs), 1)}, its lease and its margin`],
    [
      LEASES,
      `\`leaseMs\` (${seconds(DEFAULTS.leaseMs)} by default, ${seconds(LIMITS.leaseMinMs)} to ${LIMITS.leaseMaxMs / HOUR_MS} h) says how long`,
    ],
    [LEASES, `larger than ${LIMITS.smallRecordBytes / 1024} KB`],
    [LEASES, `up to half of the lease at ${LIMITS.recordBytes / 1024} KB`],
    [
      LEASES,
      `of about ${seconds(takeoverMarginMs(0) - 1)} + ${((takeoverMarginMs(LIMITS.leaseMaxMs) / LIMITS.leaseMaxMs) * 100).toFixed(1)} %`,
    ],
  ])("say as the code has it: %#", (text, sentence) => {
    expect(text).toContain(sentence);
  });

  it.each([
    ["5 s", 5 * SECOND_MS, seconds(renewAfterMs(5 * SECOND_MS), 1)],
    ["30 s (default)", DEFAULTS.leaseMs, seconds(renewAfterMs(DEFAULTS.leaseMs))],
    ["2 min", 120 * SECOND_MS, seconds(renewAfterMs(120 * SECOND_MS))],
    ["15 min", 900 * SECOND_MS, `${renewAfterMs(900 * SECOND_MS) / 60_000} min`],
  ])("of a lease of %s: how often it is renewed, and when its key is free after a crash", (name, leaseMs, every) => {
    const rows = LEASES.replaceAll(/ *\| */g, "|");
    expect(rows).toContain(`|${name}|${every}|${seconds(crashMs(leaseMs), 1)}|`);
  });

  it("of the queue's price are those of the test that measures it", () => {
    const source = readFileSync(join(ROOT, "test/client/acquire/queue-pace.slow.test.ts"), "utf8");
    const bounds = [...source.matchAll(/expect\((\w+)\)\.toBeLess\w+\((\d+)\)/g)].map(([, what, most]) => [what, Number(most)]);
    expect(bounds).toEqual([
      ["perGrant", 7],
      ["medianIdleMs", 60],
      ["perGrant", 7],
      ["medianIdleMs", 100],
    ]);
    expect(source).toContain("const LATENCY_MS = 8;");
    expect(Math.max(...[...source.matchAll(/clients: (\d+)/g)].map(([, clients]) => Number(clients)))).toBe(16);
    for (const said of ["8 ms each way and up to 16 clients", "at most 7 requests for each grant", "holds of up to 200 ms"])
      expect(WAITING).toContain(said);
    expect(WAITING).toContain(
      "less than 60 ms between two holders while holds are up to 50 ms long, and for less than 100 ms with holds of 200 ms",
    );
  });

  it("of hand-overs in a row are the line's", () => {
    const [, most] = /LOCAL_HANDOFFS_MAX = (\d+)/.exec(readFileSync(join(ROOT, "lib/client/acquire/local-queue.ts"), "utf8")) ?? [];
    expect(WAITING).toContain(`up to ${most} in a row`);
  });

  it("of the price in requests are the decision's", () => {
    const decision = readFileSync(join(ROOT, "docs/decisions/011-the-queue-stands-in-the-item.md"), "utf8");
    expect(decision).toContain("(16 clients, holds of 200 ms: some six requests a grant instead of five)");
    expect(WAITING).toContain("16 clients with holds of 200 ms make some six requests a grant instead of five");
  });

  it("of segments are the handle's", () => {
    const most = Number(/Up to (\d+) segments/.exec(KEYS)?.[1]);
    const locks = createLockClient();
    expect(locks.segments("key", most).keys).toHaveLength(most);
    expect(() => locks.segments("key", most + 1)).toThrow("segments");
  });
});

describe("what the guides say of keys", () => {
  it("a number and its text are the same part, case is another, and what is too long keeps its beginning", () => {
    expect(key("ORDER", 1231)).toBe(key("ORDER", "1231"));
    expect(key("MAIL", "Ann@x.org")).not.toBe(key("MAIL", "ann@x.org"));
    expect(key("SECRET", "x".repeat(300))).toMatch(/^SECRET_x+~[0-9a-f]{64}$/);
  });
});

describe("what the guides say of waiting", () => {
  /** A holder that crashed, and a caller that asks right afterwards. */
  async function afterACrash(waitMs?: number) {
    const dead = createLockClient();
    const { clock, store } = dead;
    await dead.acquire("key", { heartbeat: false });
    return clock.settle(createLockClient({ clock, store }).acquire("key", waitMs === undefined ? {} : { waitMs }));
  }

  it("the default wait outlasts a crashed holder; one that ends before its margin does not", async () => {
    expect((await afterACrash()).state).toBe("held");
    await expect(afterACrash(DEFAULTS.leaseMs)).rejects.toBeInstanceOf(LockTimeoutError);
  });

  it("who asks for a key within itself, in which calls, is told at once", () => {
    expect(WAITING).toContain("`withLock`, `withLocks` or `locked` of the same client");
  });
});

describe("what the guides say of an invocation", () => {
  function invocation(leftMs: number) {
    const locks = createLockClient();
    const endsAtMs = locks.clock.monotonicMs() + leftMs;
    const view = locks.forInvocation({ getRemainingTimeInMillis: () => endsAtMs - locks.clock.monotonicMs() });
    return { locks, view, clock: locks.clock };
  }

  it("its leases last for 2 s longer at most, and its work ends 500 ms before", async () => {
    expect(LEASES).toContain("the invocation's remaining time + 2 s");
    expect(LEASES).toContain("**Work ends** 500 ms before");
    const { locks, view, clock } = invocation(10_000);
    const lease = await view.acquire("key");
    expect((await locks.inspect("key")).holders[0]?.remainingMs).toBe(12_000);
    await clock.advance(9499);
    expect(lease.isHeld()).toBe(true);
    await clock.advance(1);
    expect(lease.signal.reason).toMatchObject({ reason: "invocation-ends" });
    expect((await locks.inspect("key")).holders).toEqual([]);
  });

  it("a wait ends 1 s before it does", async () => {
    expect(LEASES).toContain("**Waits** end 1 s before");
    expect(WAITING).toContain("it ends 1 s before the invocation does");
    const { locks, view, clock } = invocation(10_000);
    await locks.acquire("key");
    const began = clock.monotonicMs();
    await expect(clock.settle(view.acquire("key"))).rejects.toBeInstanceOf(LockTimeoutError);
    expect(clock.monotonicMs() - began).toBe(9000);
  });

  it("a plain return closes the view before the work has begun", async () => {
    expect(LEASES).toContain("the client is closed");
    const { locks, clock } = invocation(0);
    const handler = async (): Promise<string> => {
      await using view = locks.forInvocation({ getRemainingTimeInMillis: () => 20_000 });
      return view.withLock("key", () => "done"); // eslint-disable-line @typescript-eslint/return-await -- the trap itself
    };
    await expect(clock.settle(handler())).rejects.toThrow("the client is closed");
  });
});
