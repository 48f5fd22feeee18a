/** "Do you need a lock?": its code is the examples', its figures are the code's, its costs are counted at the engine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { ROOT } from "../tidy/tree.js";
import { describeCosts, describeQuotes } from "./quotes.js";

const PATH = "docs/do-you-need-a-lock.md";
const PAGE = readFileSync(join(ROOT, PATH), "utf8");
/** The page as one line, regardless of wrapping. */
const TEXT = PAGE.replaceAll(/\s+/g, " ");
const DAY_MS = 86_400_000;

describeQuotes(PATH, PAGE);

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
  describeCosts(TEXT, [
    ["2 writes for the work", "a run that nobody ran, from its start to its outcome"],
    ["(3 after an attempt that failed or died)", "a start after a failure", "a start that takes over", "an outcome without a result"],
    ["1 for each checkpoint", "a heartbeat with a small checkpoint"],
    ["1 for a replay", "a replay"],
    ["and 1 read in each replay", "a replay of a large result of 20 KB"],
    ["1 write to acquire, 1 to release", "an acquire of a new key", "a release"],
  ]);
});
