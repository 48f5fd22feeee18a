/** "Migrating": its calls exist (guides.slow.test.ts compiles its code), its defaults match the code, and its claims about both locks side by side are true. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { createLockClient } from "../../lib/testing.js";
import { oneLine, readPage } from "./generated.js";
import { describeCalls } from "./quotes.js";

const PAGE = readPage("docs/migrating.md");
const TEXT = oneLine(PAGE);

describe("the page about migrating", () => {
  describeCalls(PAGE, 4);

  it.each([
    ["the default lease", `\`leaseMs\` is ${DEFAULTS.leaseMs / 1000} s unless you say otherwise`],
    ["the default wait", `\`waitMs\` is ${DEFAULTS.waitMs / 1000} s`],
    ["the shortest lease", `at least ${LIMITS.leaseMinMs / 1000} s`],
    ["how many keys a set may have", `up to ${LIMITS.setKeys} keys`],
  ])("says %s as the code has it", (_what, sentence) => {
    expect(TEXT).toContain(sentence);
  });
});

describe("what the page says of moving in two steps", () => {
  type Way = "old" | "both" | "new";

  /** Returns the largest number of workers at once when these ways compete for one key. */
  async function meeting(ways: readonly Way[]): Promise<number> {
    const [old, fresh] = [createLockClient(), createLockClient()];
    let [working, most] = [0, 0];
    const work = async (): Promise<void> => {
      most = Math.max(most, ++working);
      for (let turn = 0; turn < 50; turn++) await Promise.resolve();
      working--;
    };
    const go: Readonly<Record<Way, () => Promise<void>>> = {
      old: () => old.withLock("key", work),
      new: () => fresh.withLock("key", work),
      both: () => old.withLock("key", () => fresh.withLock("key", work)),
    };
    const all = Promise.all(ways.map((way) => go[way]()));
    let finished = 0;
    const isDone = (): boolean => finished > 0;
    const done = all.then(() => finished++);
    for (let step = 0; step < 2000 && !isDone(); step++) await Promise.all([old.clock.advance(100), fresh.clock.advance(100)]);
    await done;
    return most;
  }

  it.each<readonly [Way, Way]>([
    ["old", "both"],
    ["both", "new"],
    ["both", "both"],
  ])("%s beside %s: one at a time", async (one, other) => {
    expect(await meeting([one, other, one, other])).toBe(1);
  });

  it("control: old beside new: two at once", async () => {
    expect(await meeting(["old", "new", "old", "new"])).toBe(2);
  });
});
