/** "Do you need a lock?": its code is the examples', its figures are the code's, its costs are counted at the engine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import type { LockClient, Run } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { freshTable } from "../support/engine.js";
import type { FaultProxy } from "../support/fault-proxy.js";
import { startFaultProxy } from "../support/fault-proxy.js";
import { ROOT, sourcesIn } from "../tidy/tree.js";
import { isFaithful, quotesIn } from "./quotes.js";

const PATH = "docs/do-you-need-a-lock.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
/** The page as one line, regardless of wrapping. */
const TEXT = PAGE.replaceAll(/\s+/g, " ");
const DAY_MS = 86_400_000;

describe("the page's code", () => {
  const quotes = quotesIn(PATH, PAGE);

  it("is all quoted", () => {
    expect(quotes).toHaveLength(PAGE.match(/```ts$/gm)!.length);
    expect(PAGE.match(/```\w*$/gm)!.length).toBe(2 * quotes.length);
  });

  it.each(quotes.map((quote) => ({ ...quote, first: quote.lines.find((line) => !line.startsWith("/**")) })))(
    "stands word for word in $file: $first",
    (quote) => {
      expect(isFaithful(quote)).toBe(true);
    },
  );

  it("is run by a test", () => {
    const tests = sourcesIn("test/examples/").map(({ text }) => text);
    const isRun = (file: string): boolean => tests.some((text) => text.includes(`"../../${file.replace(/\.ts$/, ".js")}"`));
    expect(quotes.map(({ file }) => file).filter((file) => !isRun(file))).toEqual([]);
  });

  it("control: another word, another order, another file, or none is not faithful", () => {
    const [{ file, lines } = { file: "", lines: [] as readonly string[] }] = quotes;
    const changed = [
      { file, lines: lines.with(-2, lines.at(-2)!.replace("e", "a")) },
      { file, lines: lines.toReversed() },
      { file: "examples/payments/refund.ts", lines },
      { file: "", lines },
    ];
    expect(changed.map(isFaithful)).toEqual(changed.map(() => false));
    expect(isFaithful({ file, lines })).toBe(true);
  });
});

describe("the page's figures", () => {
  const seconds = Math.round((DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs)) / 1000);
  it.each([
    ["a heartbeat's interval", `1 for each heartbeat (every ${renewAfterMs(DEFAULTS.leaseMs) / 1000} s)`],
    ["the largest result in the record", `a result over ${LIMITS.inlineBytes / 1024} KB is an item more`],
    ["the wait after a crash", `after a crash for up to about ${seconds} s`],
    ["a takeover", `without a heartbeat (about ${seconds} s by default)`],
    ["a checkpoint", `at most ${LIMITS.checkpointBytes / 1024} KB`],
    ["a result", `A result over ${LIMITS.resultBytes / 1024} KB is not kept`],
    ["attempts", `After ${DEFAULTS.maxAttempts} attempts (\`maxAttempts\`)`],
    ["how long outcomes are kept", `\`keepResultMs\`, ${DEFAULTS.keepResultMs / 3_600_000} hours unless you say otherwise`],
    ["its bounds", `(${LIMITS.keepResultMinMs / 60_000} minute to ${LIMITS.keepResultMaxMs / DAY_MS} days, or \`"forever"\`)`],
  ])("say %s as the code has it", (_what, sentence) => {
    expect(TEXT).toContain(sentence);
  });
});

describe("what a run costs, as the page says it", () => {
  let proxy: FaultProxy;
  let locks: LockClient;
  const large = "x".repeat(2 * LIMITS.inlineBytes);

  beforeAll(async () => {
    proxy = await startFaultProxy();
    const { place } = await freshTable(proxy.endpoint);
    locks = createTableClient(place);
    await locks.runOnce("clock", () => null); // A process reads the table's clock once.
    await locks.runOnce("done", () => 1);
    await locks.runOnce("done-large", () => large);
    await locks.runOnce("failed", () => Promise.reject(new Error("once"))).catch(() => undefined);
    const dying = createTableClient(place);
    await new Promise<void>((resolve) => {
      void dying.runOnce("died", { leaseMs: LIMITS.leaseMinMs }, () => (resolve(), new Promise(() => undefined)));
    });
    await dying.close();
    await vi.waitUntil(async () => (await locks.runs.get("died"))?.state === "interrupted", { timeout: 30_000 });
  });
  afterAll(() => proxy.close());

  it.each<[what: string, sentence: string, act: () => Promise<unknown>, writes: number, reads: number]>([
    ["the work", "2 writes for the work", () => locks.runOnce("new", () => 1), 2, 0],
    ["the work after a failure", "(3 after an attempt that failed or died)", () => locks.runOnce("failed", () => 1), 3, 0],
    ["the work after a death", "(3 after an attempt that failed or died)", () => locks.runOnce("died", () => 1), 3, 0],
    ["a checkpoint", "1 for each checkpoint", () => locks.runOnce("saves", (run: Run) => run.saveCheckpoint(1)), 3, 0],
    ["a replay", "1 for a replay", () => locks.runOnce("done", () => 2), 1, 0],
    ["a large replay", "and 1 read in each replay", () => locks.runOnce("done-large", () => 2), 1, 1],
    ["a lock", "1 write to acquire, 1 to release", () => locks.withLock("lock", () => 1), 2, 0],
  ])("%s: %s", async (_what, sentence, act, UpdateItem, GetItem) => {
    expect(TEXT).toContain(sentence);
    proxy.ledger.clear();
    await act();
    expect({ GetItem: 0, ...proxy.ledger.requests }).toEqual({ UpdateItem, GetItem });
  });
});

describe("what a run is not, as the page says it", () => {
  it("for ever: after keepResultMs the work is done again", async () => {
    const locks = createLockClient();
    await locks.runOnce("key", () => 1);
    await locks.clock.advance(DEFAULTS.keepResultMs - 1000);
    expect(await locks.runOnce("key", () => 2)).toMatchObject({ value: 1, replayed: true });
    await locks.clock.advance(2000);
    expect(await locks.runOnce("key", () => 2)).toMatchObject({ value: 2, replayed: false });
  });

  it("a takeover after an attempt that threw, though its effect may have happened", async () => {
    const locks = createLockClient();
    let effects = 0;
    const work = ({ takeover }: Run): boolean => {
      if (++effects === 1) throw new Error("the answer was lost");
      return takeover;
    };
    await expect(locks.runOnce("key", work)).rejects.toThrow("the answer was lost");
    expect(await locks.runOnce("key", work)).toMatchObject({ value: false, attempt: 2 });
    expect(effects).toBe(2);
  });

  it("tried without end: it is refused after the last attempt, until it is reset", async () => {
    const locks = createLockClient();
    const fail = (): never => {
      throw new Error("again");
    };
    for (let attempt = 1; attempt <= DEFAULTS.maxAttempts; attempt++) await expect(locks.runOnce("key", fail)).rejects.toThrow("again");
    await expect(locks.runOnce("key", () => 1)).rejects.toMatchObject({ code: "attempts-exhausted" });
    await locks.runs.reset("key", { reason: "repaired" });
    expect(await locks.runOnce("key", () => 1)).toMatchObject({ value: 1, attempt: 1 });
  });

  it("compared with another payload, where neither caller gave one", async () => {
    const locks = createLockClient();
    await locks.runOnce("key", { payload: { amount: 1 } }, () => 1);
    await expect(locks.runOnce("key", { payload: { amount: 2 } }, () => 2)).rejects.toMatchObject({ code: "fingerprint-mismatch" });
    expect(await locks.runOnce("key", () => 2)).toMatchObject({ value: 1 });
  });
});
