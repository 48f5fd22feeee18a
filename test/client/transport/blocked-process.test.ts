/**
 * A process that stands still while an answer arrives: its event loop is blocked, or it is frozen. Regression: when it went on, its time
 * limits ended before the answer was read, so a held key looked like an outage. A wrapper with `whenUnavailable: "proceed"` then ran beside
 * the holder.
 */
import { expect, it } from "vitest";
import { type LockClient, LockTimeoutError } from "../../../lib/index.js";
import type { Operation } from "../../../lib/testing.js";
import { createHarness } from "../harness.js";

const PROCEED = { waitMs: 100, whenUnavailable: "proceed" } as const;
/** The first answer may take 500 ms. This one comes later, and the process stands still until after it. */
const ANSWER_MS = 600;
const BLOCKED_MS = 700;

type Call = (locks: LockClient, work: () => string) => Promise<unknown>;
const CALLS: readonly (readonly [name: string, operation: Operation, call: Call])[] = [
  ["withLock", "acquire", (locks, work) => locks.withLock("k", PROCEED, work)],
  ["withLock of a reader", "acquire", (locks, work) => locks.withLock("k", { ...PROCEED, mode: "shared" }, work)],
  ["withLock of a scope", "acquire", (locks, work) => locks.scope("nightly-import-7").withLock("k", PROCEED, work)],
  ["withLocks", "acquireSet", (locks, work) => locks.withLocks(["k", "l"], PROCEED, work)],
];

/** Makes the call, stands still, and goes on. Returns the outcome. */
async function outcomeOf(call: Call, operation: Operation, isAnswered: boolean): Promise<unknown> {
  const { clock, locks, rival, wire } = createHarness();
  await clock.settle(rival.acquire("k"));
  wire.always(operation, isAnswered ? { replyMs: ANSWER_MS } : { lost: "reply", silently: true });
  const outcome = call(locks, () => "ran").catch((error: unknown) => error);
  await clock.advance(1);
  await clock.freeze(BLOCKED_MS);
  return clock.settle(outcome);
}

it.each(CALLS)("reads the answer first: %s", async (_name, operation, call) => {
  expect(await outcomeOf(call, operation, true)).toBeInstanceOf(LockTimeoutError);
});

it.each(CALLS)("control: without any answer it is an outage: %s", async (_name, operation, call) => {
  expect(await outcomeOf(call, operation, false)).toBe("ran");
});
