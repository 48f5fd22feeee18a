/** "Questions": the tests that answers cite exist, the answers' figures match the code, and every question has an answer. */
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { createLockClient } from "../../lib/testing.js";
import { citedTests } from "./cited-tests.js";
import { oneLine, readPage } from "./generated.js";

const PAGE = readPage("docs/faq.md");
const TEXT = oneLine(PAGE);
/** The anchor that a heading has on GitHub. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(" ", "-");

describe("the page of questions", () => {
  it("names each test by its title", () => {
    const cited = citedTests(PAGE);
    expect(cited.length).toBeGreaterThan(10);
    expect([...PAGE.matchAll(/\.\.\/test\/[\w./-]+/g)]).toHaveLength(cited.length);
    expect(PAGE).not.toContain("`test/");
  });

  it("lists every question of a team at its top, in order, and nothing else", () => {
    const [list = "", ...sections] = PAGE.split("\n## ");
    const questions = sections.flatMap((section) => section.match(/^### .*$/gm));
    const anchors = questions.map((heading) => anchorOf(heading!.replace("### ", "")));
    expect([...list.matchAll(/ \[[^\]]+\]\(#([\w-]+)\)/g)].map(([, anchor]) => anchor)).toEqual(anchors);
    expect(anchors.length).toBeGreaterThan(15);
  });

  it("says of waiting without end what there is: the largest number waits beyond every other limit, and gets the key", async () => {
    expect(TEXT).toContain("`waitMs` takes any number, `Number.MAX_SAFE_INTEGER` too");
    const holder = createLockClient();
    const { clock, store } = holder;
    const held = await holder.acquire("key");
    const asked = createLockClient({ clock, store }).acquire("key", { waitMs: Number.MAX_SAFE_INTEGER });
    await clock.advance(3_600_000);
    await held.release();
    expect((await clock.settle(asked)).state).toBe("held");
  });

  it.each([
    ["a crashed holder's time", `${DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs)} ms after the last heartbeat that arrived`],
    ["a heartbeat's interval", `1 for each heartbeat (every ${renewAfterMs(DEFAULTS.leaseMs) / 1000} s)`],
    ["the bounds of a lease", `${DEFAULTS.leaseMs / 1000} s is the default, ${LIMITS.leaseMinMs / 1000} s the least`],
    ["E", `one has to be within ${DEFAULTS.clockErrorMs} ms`],
  ])("says %s as the code has it", (_what, sentence) => {
    expect(TEXT).toContain(sentence);
  });

  it("says for how long a release is sent again", async () => {
    const locks = createLockClient();
    const lease = await locks.acquire("key");
    for (let attempt = 0; attempt < 50; attempt++) locks.faults.loseNextRequest("release");
    const startedMs = locks.clock.monotonicMs();
    await expect(locks.clock.settle(lease.release())).rejects.toThrow("release");
    expect(locks.clock.monotonicMs() - startedMs).toBeLessThanOrEqual(5000);
    expect(TEXT).toContain("sent again for 5 s");
  });
});
