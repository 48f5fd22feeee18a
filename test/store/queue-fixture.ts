/** A key with a queue: polls by its waiters, and the places of all leases. */
import { check } from "../../lib/core/lock/check.js";
import type { Acquire, Held, Notify, Notifying, Waiting } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import type { LeaseId } from "../../lib/core/lease-id.js";
import { LIMITS } from "../../lib/core/limits.js";
import { Fixture, LEASE_MS } from "./fixture.js";

/** Options of an acquire: a reader, and `count` permits of three. */
export const READER = { mode: "shared" } as const;
export const permits = (count: number) => ({ limit: 3, permits: count }) as const;

/**
 * The time of the first poll at a place, from 1, where the latest leases took this long. `left` is the part of the lease at the front that
 * is to come.
 */
export function turnMs(place: number, heldMs: number = LIMITS.unknownHeldMs, left = 0.5): number {
  const eachMs = heldMs + LIMITS.handOverMs;
  const behindMs = place === 1 ? 0 : Math.min(eachMs, 3 * LIMITS.handOverMs) - eachMs;
  return Math.min(LIMITS.pollMaxMs, Math.max(1, Math.round(eachMs * (place - 1 + left) + behindMs)));
}

/** The answer to a waiter. */
export const waiting = (position: number, retryAfterMs: number, pollWithinMs: number = LIMITS.pollMaxMs): Waiting => ({
  ok: true,
  state: "waiting",
  position,
  retryAfterMs,
  pollWithinMs,
});

export class QueueScene extends Fixture {
  /** Polls from a place in the queue without writing: reads the record, as the service does. */
  async look(id: LeaseId, by = "P"): Promise<Held | Waiting | Refusal> {
    return check(await this.read(), { key: this.address.key, leaseId: id, principal: by }, this.clocks);
  }

  /** Frees the key, and waits for a condition as `to`. */
  async wait(
    id: LeaseId,
    to: LeaseId,
    condition = "c",
    { by: principal = "P" }: { readonly by?: string } = {},
  ): Promise<Waiting | Refusal> {
    const { key } = this.address;
    const usual = { owner: "", leaseMs: LEASE_MS, mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "same" } as const;
    const back: Acquire = { type: "acquire", key, leaseId: to, principal, ...usual };
    return (await this.apply({ type: "wait", key, leaseId: id, principal, condition, to: back })).answer;
  }

  /** Notifies a condition. */
  async notify(
    id: LeaseId,
    {
      by: principal = "P",
      condition = "c",
      ...given
    }: Partial<Pick<Notify, "condition" | "sequence" | "all">> & { readonly by?: string } = {},
  ): Promise<Notifying | Refusal> {
    return (await this.apply({ type: "notify", key: this.address.key, leaseId: id, principal, condition, ...given })).answer;
  }

  /** The holders, the offers and the queue. */
  async standing() {
    const { holds = {}, offers = [], waiters = [] } = (await this.read()) ?? {};
    const ids = (some: readonly { readonly leaseId: LeaseId }[]) => some.map(({ leaseId }) => leaseId);
    return { holds: Object.keys(holds).sort(), offers: ids(offers), waiters: ids(waiters) };
  }
}
