/** A history that breaks a property is shrunk, and told as a timeline. */
import { afterAll, describe, expect, it } from "vitest";
import { bugNamed, endBundling, loadBundle } from "./bundle.js";
import { shrink } from "./shrink.js";

/** Far more than the histories take on a loaded machine. */
const LONG_MS = 300_000;
const SEED = 2;
/** Each part that may be left out is tried with some histories. A few parts show how that goes. */
const TRIED = 6;

afterAll(endBundling);

describe("a history that breaks a property", { timeout: LONG_MS }, () => {
  it("is shrunk to a shorter one that breaks the same, and told with requests, records and clients", async () => {
    const { simulate, PARTS } = await loadBundle(bugNamed("acquire-again-extends"));
    const [broken] = (await simulate(SEED, { untilViolated: true })).violations;
    const { history, without } = (await shrink(simulate, SEED, PARTS.slice(0, TRIED)))!;

    expect(history.violations[0]?.property).toBe(broken?.property);
    expect(history.events).toBeLessThan((await simulate(SEED, { untilViolated: true })).events);
    expect(without.length).toBeGreaterThan(0);
    const text = history.timeline.join("\n");
    for (const pattern of [/client-\d+ +PUT .* reaches function-\d, whose clock is/, /record .* held by lease-\d+ \(token/]) {
      expect(text).toMatch(pattern);
    }
    expect(history.timeline.at(-1)).toMatch(new RegExp(`BROKEN +${broken?.property}: `));
  });

  it("takes the same course when it is told; control: another course without its lost requests", async () => {
    const { simulate } = await loadBundle(undefined);
    const { digest } = await simulate(SEED);
    expect((await simulate(SEED, { withTimeline: true })).digest).toBe(digest);
    expect((await simulate(SEED, { without: ["loseRequest", "loseReply", "duplicate", "pause"] })).digest).not.toBe(digest);
  });

  it("is not there without a mistake", async () => {
    const { simulate, PARTS } = await loadBundle(undefined);
    expect(await shrink(simulate, SEED, PARTS)).toBeUndefined();
  });
});
