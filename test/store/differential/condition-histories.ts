/**
 * Random histories of one key with conditions: leases that wait and notify, callers that queue, cancels, keep-alives, and time that passes
 * between them. Callers that queue have a priority, since an append differs from the core on purpose (differential-queue.ts).
 * Requests of members of the wait set are frequent, since only those can mistake a member for a new caller.
 */
import * as fc from "fast-check";
import type { Acquire, Command } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { LockRecord } from "../../../lib/core/record.js";
import type { ClockReading } from "../../../lib/core/time.js";
import { leaseId, LEASE_MS, MARGIN_MS, START_MS } from "../fixture.js";

const { waiterTtlMs: TTL_MS, offerWindowMs: WINDOW_MS } = DEFAULTS;

interface Step {
  readonly passMs: number;
  readonly aheadMs: number;
  readonly does: "acquire" | "queue" | "permit" | "ask" | "wait" | "notify" | "notifyAll" | "release" | "cancel" | "renew" | "transfer";
  /** Which of the leases that the record has. */
  readonly which: number;
  readonly condition: string;
  readonly sequence: number | undefined;
}

/** A history: the steps. */
export interface ConditionHistory {
  readonly remembered: undefined;
  readonly steps: readonly Step[];
}

const step: fc.Arbitrary<Step> = fc.record({
  passMs: fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(0, 1, 1, 200) },
    { weight: 2, arbitrary: fc.constantFrom(WINDOW_MS, TTL_MS / 2, TTL_MS, LEASE_MS, LEASE_MS + MARGIN_MS) },
  ),
  aheadMs: fc.constantFrom(0, 0, 0, 500, 9_000),
  does: fc.constantFrom<Step["does"][]>(
    ...(["acquire", "acquire", "acquire", "queue", "permit", "ask", "ask", "ask"] as const),
    ...(["wait", "wait", "wait", "notify", "notify", "notify", "notify"] as const),
    ...(["notifyAll", "release", "release", "cancel", "renew", "transfer"] as const),
  ),
  which: fc.nat(5),
  condition: fc.constantFrom("c", "c", "c", "d"),
  sequence: fc.constantFrom(undefined, 1, 1, 2),
});

/** Draws histories. */
export const conditionHistories: fc.Arbitrary<ConditionHistory> = fc.record({
  remembered: fc.constant(undefined),
  steps: fc.array(step, { minLength: 5, maxLength: 40, size: "max" }),
});

/** The commands of a history with their clocks. Each is made after the previous one was carried out. */
export async function* conditionCommandsOf(
  { steps }: ConditionHistory,
  key: string,
  read: () => Promise<LockRecord | undefined>,
): AsyncGenerator<{ readonly command: Command; readonly reading: ClockReading }> {
  let nowMs = START_MS;
  let made = 0;
  for (const { passMs, aheadMs, does, which, condition, sequence } of steps) {
    nowMs += passMs;
    const { holds = {}, offers = [], waiters = [], waitSet = [] } = (await read()) ?? {};
    const newId = leaseId(++made, nowMs - START_MS);
    const members = waitSet.map((member) => member.leaseId);
    const queued = [...offers, ...waiters].map((waiter) => waiter.leaseId);
    const one = (ids: readonly LeaseId[]): LeaseId => ids[which % Math.max(1, ids.length)] ?? newId;
    const held = one(Object.keys(holds));
    const ref = { key, leaseId: held, principal: "P" } as const;
    const acquire = (id: LeaseId, more: Partial<Acquire> = {}): Acquire => ({
      ...{ type: "acquire", key, leaseId: id, principal: "P", owner: "", leaseMs: LEASE_MS, mode: "exclusive", limit: 1, permits: 1 },
      ...{ priority: 0, requestHash: "same", ...more },
    });
    const commands: Readonly<Record<Step["does"], Command>> = {
      acquire: acquire(newId),
      queue: acquire(newId, { wait: true, priority: 1 }),
      // All permits: leases that end together are told in the order of a map, which depends on the engine.
      permit: acquire(newId, { limit: 3, permits: 3 }),
      ask: acquire(one([...members, ...members, ...queued]), { wait: true, priority: 1 }),
      wait: { type: "wait", ...ref, condition, to: acquire(newId) },
      notify: { type: "notify", ...ref, condition, ...(sequence !== undefined && { sequence }) },
      notifyAll: { type: "notify", ...ref, condition, all: true },
      release: { type: "release", ...ref },
      cancel: { type: "release", ...ref, leaseId: one([...queued, ...members]) },
      renew: { type: "renew", ...ref },
      transfer: { type: "transfer", ...ref, toLeaseId: newId },
    };
    yield { command: commands[does], reading: { earliestMs: nowMs, latestMs: nowMs + aheadMs } };
  }
}
