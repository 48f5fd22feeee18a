/** The history of a run, rebuilt from the log lines of a random history alone, and compared with its record after every step. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LogLine } from "../../lib/service/log.js";
import type { LockRecord } from "../../lib/core/record.js";
import { COMPLETE_RUN, directService, CANCEL_START, RENEW_RUN, RESET, START, hash } from "../support/direct-service.js";
import { ALICE, BOB } from "../support/http-event.js";
import { LEASE_ID } from "../support/lease-ids.js";
import { sized } from "../support/tier.js";

/** A run according to the log, or to its record. Without a state it is as if it had never existed. */
interface Story {
  readonly state?: "running" | "interrupted" | "retry" | "succeeded" | "failed";
  readonly attempt: number;
  /** The lease and token of the present attempt. */
  readonly lease?: string;
  readonly fencingToken?: number;
}
const NOTHING: Story = { attempt: 0 };

/** Rebuilds the run from its log lines. @throws Error if the lines contradict each other. */
function rebuild(lines: readonly LogLine[]): Story {
  let now = NOTHING;
  /** The state before the present attempt. */
  let before = NOTHING;
  for (const { event, lease = "", fencingToken, attempt = 0, outcome, reason, repeated } of lines) {
    if (repeated) continue;
    if (event === "granted") {
      if (now.lease !== undefined) throw new Error(`${lease} was started while ${now.lease} ran`);
      // A first attempt has no predecessor: any earlier run is forgotten.
      before = attempt === 1 ? NOTHING : now;
      if (before.attempt + 1 !== attempt) throw new Error(`attempt ${attempt} followed ${before.attempt}`);
      now = { state: "running", attempt, lease, ...(fencingToken !== undefined && { fencingToken }) };
    }
    if (event === "ended" && fencingToken !== undefined) {
      if (now.lease !== lease || now.fencingToken !== fencingToken) throw new Error(`${lease} ended and didn't run`);
      // Cancelled, unless a later line has an outcome.
      now = reason === "taken" || reason?.startsWith("broken") ? { state: "interrupted", attempt: now.attempt } : before;
    }
    if (event === "recorded" && outcome) {
      if (now.lease !== undefined) throw new Error(`${lease} said how it ended, and runs`);
      now = { state: outcome, attempt };
    }
    if (event === "reset") {
      if (now.attempt !== attempt) throw new Error(`attempt ${attempt} was reset, and ${now.attempt} was the last`);
      now = NOTHING;
    }
  }
  return now;
}

/** The same, according to the record. */
function storyOf(record: LockRecord | undefined): Story {
  const [holder] = Object.entries(record?.holds ?? {});
  if (!record?.run) return NOTHING;
  const { state, attempt } = record.run;
  return { state, attempt, ...(holder && { lease: hash(holder[0]), fencingToken: holder[1].fencingToken }) };
}

/** One step of a history. A command that needs a missing lease is skipped. */
interface Step {
  readonly does: "start" | "again" | "renew" | "succeed" | "fail" | "retry" | "give up" | "cancel" | "reset";
  readonly which: number;
  readonly bob: boolean;
  readonly large: boolean;
  readonly leaseMs: number;
  readonly passMs: number;
}

const steps = fc.array(
  fc.record<Step>({
    does: fc.constantFrom("start", "start", "start", "again", "renew", "succeed", "fail", "retry", "retry", "give up", "cancel", "reset"),
    // Mostly the latest lease.
    which: fc.oneof(fc.constant(0), fc.constant(0), fc.nat(3)),
    bob: fc.oneof(fc.constant(false), fc.constant(false), fc.boolean()),
    large: fc.boolean(),
    leaseMs: fc.integer({ min: 1_000, max: 15_000 }),
    passMs: fc.oneof(fc.constant(0), fc.nat(20_000), fc.constant(90_000)),
  }),
  { minLength: 5, maxLength: 40 },
);

/** Plays the steps, comparing after each. Returns the lines, and the number of refused requests. */
async function play(
  history: readonly Step[],
): Promise<{ readonly lines: readonly LogLine[]; readonly truth: Story; readonly refused: number }> {
  const { ask, clock, store, lines, newId } = directService();
  const leases: string[] = [];
  const bodies = new Map<string, object>();
  let truth = NOTHING;
  let refused = 0;
  for (const { does, which, bob, large, leaseMs, passMs } of history) {
    await clock.advance(passMs);
    const isNew = does === "start" || does === "cancel" || leases.length === 0;
    const leaseId = isNew ? newId() : (leases.at(-1 - (which % leases.length)) ?? "");
    if (isNew) leases.push(leaseId);
    if (isNew) bodies.set(leaseId, { leaseMs, owner: `owner-${which}`, keepResultMs: 60_000, maxAttempts: 0, fingerprint: "said-once" });
    const asked = { leaseId, authorizer: bob ? BOB : ALICE };
    const value = "said-once".repeat(large ? 200 : 1);
    const sent = {
      start: () => ask(START, { ...asked, body: bodies.get(leaseId) }),
      again: () => ask(START, { ...asked, body: bodies.get(leaseId) }),
      renew: () => ask(RENEW_RUN, { ...asked, body: { leaseMs, checkpoint: value } }),
      succeed: () => ask(COMPLETE_RUN, { ...asked, body: { state: "succeeded", result: value } }),
      fail: () => ask(COMPLETE_RUN, { ...asked, body: { state: "failed", error: value, retryable: false } }),
      retry: () => ask(COMPLETE_RUN, { ...asked, body: { state: "failed", error: value, retryable: true } }),
      "give up": () => ask(CANCEL_START, asked),
      cancel: () => ask(CANCEL_START, asked),
      reset: () => ask(RESET, { ...asked, body: { reason: "stuck" } }),
    };
    const { status, body } = await sent[does]();
    if (status >= 400 && (body as { code: string }).code !== "not-found") refused++;
    truth = storyOf(await store.read({ namespace: "default", kind: "runs", key: "ORDER_1" }));
    expect(rebuild(lines), `after ${does}`).toEqual(truth);
  }
  return { lines, truth, refused };
}

describe("the log of a run", () => {
  it("tells what became of it, whatever happened; and never a leaseId, a fingerprint, a checkpoint or an outcome's value", async () => {
    const seen = new Set<string>();
    const property = fc.asyncProperty(steps, async (history) => {
      const { lines, refused } = await play(history);
      expect(lines.filter(({ event, reason }) => event === "refused" && reason !== "not-found")).toHaveLength(refused);
      expect(JSON.stringify(lines)).not.toMatch(LEASE_ID);
      expect(JSON.stringify(lines)).not.toContain("said-once");
      for (const { event, reason, outcome, attempt = 0, kind, by } of lines) {
        expect(kind).toBe("run");
        seen.add([event, event === "refused" ? "" : (reason ?? ""), outcome ?? ""].filter(Boolean).join(" "));
        if (event === "granted" && attempt > 1) seen.add("another attempt");
        if (event === "reset" && by === "111122223333/AROABOB") seen.add("reset by another");
      }
    });
    await fc.assert(property, { numRuns: sized({ quick: 50, slow: 300 }) });
    // Situations that the histories must reach; without them, the comparison would mean little.
    const wanted = [
      "granted",
      "another attempt",
      "replayed",
      "refused",
      "reset stuck",
      "reset by another",
      ...["succeeded", "failed", "retry"].map((outcome) => `recorded ${outcome}`),
      ...["released", "expired", "taken", "broken: stuck", "cancelled"].map((reason) => `ended ${reason}`),
    ];
    expect([...seen]).toEqual(expect.arrayContaining(wanted));
  });

  const step = (does: Step["does"], passMs = 0): Step => ({ does, which: 0, bob: false, large: false, leaseMs: 5_000, passMs });
  // A first attempt implies that earlier runs are forgotten. So each story has at most one, and a reset comes last.
  const TRIED = [step("start"), step("retry"), step("start"), step("start", 60_000), step("succeed"), step("reset")];
  const GIVEN_UP = [step("start"), step("retry"), step("start"), step("give up"), step("start")];
  const GRANTED = ["granted", "ended", "recorded", "granted", "ended"];

  it.each([
    ["tried three times, and reset", TRIED, [...GRANTED, "granted", "ended", "recorded", "reset"]],
    ["given up, and started again", GIVEN_UP, [...GRANTED, "granted"]],
  ])("control: without any one of the lines of what was %s, it tells another story, or one that can't be", async (_what, story, events) => {
    const { lines, truth } = await play(story);
    const told = (some: readonly LogLine[]): unknown => {
      try {
        return rebuild(some);
      } catch {
        return "can't be";
      }
    };
    expect(told(lines)).toEqual(truth);
    expect(lines.map(({ event }) => event)).toEqual(events);
    for (const [index, left] of lines.entries())
      expect(told(lines.filter((line) => line !== left)), `without line ${index}, ${left.event}`).not.toEqual(truth);
  });
});
