/** The state that one attempt passes to the next: its number, its reported outcome, its fingerprint and its checkpoint. */
import { describe, expect, it } from "vitest";
import type { Complete, Start } from "../../lib/core/commands.js";
import type { LockRecord, Payload } from "../../lib/core/record.js";
import { isSameWork } from "../../lib/core/run/run.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { after, at, complete, DAY_MS, decided, LEASE_MS, MARGIN_MS, NOW_MS, said, start } from "./run-parts.js";

const CHECKPOINT: Payload = { digest: "c", bytes: 1, text: "1" };
const TAKEABLE_MS = LEASE_MS + MARGIN_MS;

/** The key of a run, with a sequence of events. */
class Story {
  known: LockRecord | undefined;
  #ms = 0;
  #id = leaseIdAt(NOW_MS);

  /** A new caller starts the run. */
  starts(parts: Partial<Start> = {}): this {
    this.#id = leaseIdAt(NOW_MS + ++this.#ms);
    this.known = after(decided(this.known, start({ leaseId: this.#id, ...parts }), at(this.#ms)));
    return this;
  }

  /** Returns the answer that a new caller would get. */
  asks(parts: Partial<Start> = {}) {
    return decided(this.known, start({ leaseId: leaseIdAt(NOW_MS + ++this.#ms), ...parts }), at(this.#ms));
  }

  saves(checkpoint: Payload = CHECKPOINT): this {
    const renewal = { type: "renew", key: "k", leaseId: this.#id, principal: "me", checkpoint } as const;
    this.known = after(decided(this.known, renewal, at(this.#ms)));
    return this;
  }

  ends(state: Complete["state"]): this {
    this.known = after(decided(this.known, complete(state, { leaseId: this.#id }), at(this.#ms)));
    return this;
  }

  givesUp(): this {
    this.known = after(decided(this.known, { type: "release", key: "k", leaseId: this.#id, principal: "me" }, at(this.#ms)));
    return this;
  }

  /** The runner stays silent until the run may be taken over. */
  isSilent(): this {
    this.#ms += TAKEABLE_MS;
    return this;
  }
}

const told = ({ answer }: ReturnType<Story["asks"]>) =>
  answer.ok && answer.state === "running" ? [answer.attempt, answer.takeover, answer.checkpoint?.digest] : answer;

describe("the next attempt", () => {
  it.each<[string, (run: Story) => Story, readonly unknown[]]>([
    ["of what nobody ran is the first", (run) => run, [1, false, undefined]],
    ["after a failure is no takeover", (run) => run.starts().ends("retry"), [2, false, undefined]],
    ["after a silence is one", (run) => run.starts().isSilent(), [2, true, undefined]],
    ["goes on from where one that failed got to", (run) => run.starts().saves().ends("retry"), [2, false, "c"]],
    ["goes on from where one that fell silent got to", (run) => run.starts().saves().isSilent(), [2, true, "c"]],
    ["goes on from the checkpoint of any before it", (run) => run.starts().saves().ends("retry").starts().isSilent(), [3, true, "c"]],
    ["after a first one that was given up is the first again", (run) => run.starts().saves().givesUp(), [1, false, undefined]],
    ["after a later one that was given up has its number", (run) => run.starts().ends("retry").starts().givesUp(), [2, false, undefined]],
    ["after a takeover that was given up is the takeover", (run) => run.starts().saves().isSilent().starts().givesUp(), [2, true, "c"]],
    [
      "after two takeovers that were given up is still the takeover",
      (run) => run.starts().isSilent().starts().givesUp().starts().givesUp(),
      [2, true, undefined],
    ],
    ["after a takeover that failed is none", (run) => run.starts().isSilent().starts().ends("retry"), [3, false, undefined]],
    ["after a takeover that fell silent is one", (run) => run.starts().isSilent().starts().isSilent(), [3, true, undefined]],
    [
      "after a takeover was given up, and the next failed, is none",
      (run) => run.starts().isSilent().starts().givesUp().starts().ends("retry"),
      [3, false, undefined],
    ],
    [
      "after one that was given up when its lease had run out has its number",
      (run) => run.starts().isSilent().givesUp(),
      [1, false, undefined],
    ],
  ])("%s", (_, before, answer) => {
    expect(told(before(new Story()).asks())).toEqual(answer);
  });

  it("forgets the checkpoint when the work is over", () => {
    expect(new Story().starts().saves().ends("succeeded").known?.run).not.toHaveProperty("checkpoint");
    expect(new Story().starts().saves().ends("failed").known?.run).not.toHaveProperty("checkpoint");
    expect(new Story().starts().saves().ends("retry").known?.run).toHaveProperty("checkpoint");
  });

  it("still knows how the one before it ended, and no other", () => {
    const recordedBy = (run: Story) => run.known?.run?.outcome?.recordedBy;
    const run = new Story().starts().ends("retry");
    const first = recordedBy(run);
    expect(first).toBeDefined();
    expect([recordedBy(run.starts()), recordedBy(run.saves()), recordedBy(run.givesUp())]).toEqual([first, first, first]);
    expect(recordedBy(run.starts().isSilent().starts())).toBe(first);
    expect(recordedBy(run.ends("succeeded"))).not.toBe(first);
  });

  it("keeps its own outcome for as long as it says itself", () => {
    const { known } = new Story()
      .starts()
      .ends("retry")
      .starts({ keepResultMs: 2 * DAY_MS });
    expect(known?.run?.keepResultMs).toBe(2 * DAY_MS);
  });
});

describe("attempts are exhausted", () => {
  const failed = (times: number): Story => {
    const story = new Story();
    for (let attempt = 0; attempt < times; attempt++) story.starts().ends("retry");
    return story;
  };

  it.each([
    [1, 1, "attempts-exhausted"],
    [1, 2, "granted"],
    [2, 2, "attempts-exhausted"],
    [4, 5, "granted"],
    [5, 5, "attempts-exhausted"],
    [6, 5, "attempts-exhausted"],
    [30, 0, "granted"],
  ])("after %i of at most %i: %s (0 is no end)", (times, maxAttempts, answer) => {
    expect(said(failed(times).asks({ maxAttempts }))).toBe(answer);
  });

  it("by the caller's own count, whatever earlier ones counted", () => {
    const story = new Story().starts({ maxAttempts: 1 }).ends("retry");
    expect(said(story.asks({ maxAttempts: 1 }))).toBe("attempts-exhausted");
    expect(said(story.asks({ maxAttempts: 2 }))).toBe("granted");
  });

  it("by attempts that never said how they ended, and not by those that were given up", () => {
    expect(said(new Story().starts().isSilent().asks({ maxAttempts: 1 }))).toBe("attempts-exhausted");
    expect(said(new Story().starts().isSilent().starts().givesUp().asks({ maxAttempts: 1 }))).toBe("attempts-exhausted");
    expect(said(new Story().starts().isSilent().starts().givesUp().asks({ maxAttempts: 2 }))).toBe("granted");
    expect(said(new Story().starts().givesUp().asks({ maxAttempts: 1 }))).toBe("granted");
  });

  it("and says how many there were", () => {
    expect(failed(2).asks({ maxAttempts: 2 }).answer).toMatchObject({
      retry: "never",
      detail: expect.stringMatching(/ 2 .* 2 /) as string,
    });
  });

  it("but not for one who asks for the outcome, or runs", () => {
    expect(said(new Story().starts().ends("failed").asks({ maxAttempts: 1 }))).toBe("failed");
    expect(said(new Story().starts().asks({ maxAttempts: 1 }))).toBe("run-in-progress");
  });
});

describe("what a run is about", () => {
  it.each([
    ["", "", true],
    ["", "a", true],
    ["a", "", true],
    ["a", "a", true],
    ["a", "b", false],
  ])("known as %j, asked for %j: the same is %j", (known, asked, same) => {
    expect(isSameWork(known, asked)).toBe(same);
    const runs = new Story().starts({ fingerprint: known });
    expect(said(runs.asks({ fingerprint: asked }))).toBe(same ? "run-in-progress" : "fingerprint-mismatch");
    expect(said(runs.ends("succeeded").asks({ fingerprint: asked }))).toBe(same ? "succeeded" : "fingerprint-mismatch");
    const failed = new Story().starts({ fingerprint: known }).ends("retry");
    expect(said(failed.asks({ fingerprint: asked }))).toBe(same ? "granted" : "fingerprint-mismatch");
  });

  it("is what the latest attempt said, or else the one before", () => {
    const run = new Story().starts().ends("retry").starts({ fingerprint: "a" }).ends("retry");
    expect(run.known?.run?.fingerprint).toBe("a");
    expect(run.starts().known?.run?.fingerprint).toBe("a");
  });
});
