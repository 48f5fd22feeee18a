/** Records and commands of runs. Parts that a test leaves out have defaults. */
import type { Command, Complete, Decision, Start } from "../../lib/core/commands.js";
import { EMPTY_RECORD } from "../../lib/core/lock/tombstones.js";
import type { Hold, LockRecord, Run } from "../../lib/core/record.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { ClockReading } from "../../lib/core/time.js";
import { transition } from "../../lib/core/transition.js";
import { leaseIdAt } from "../support/lease-ids.js";

/** The default policy. */
export const POLICY = createPolicy();
/** The time of the tests, as an epoch time in ms. */
export const NOW_MS = Date.UTC(2027, 0, 1);
/** A day in ms: the retention, and the default time for which an outcome is stored. */
export const DAY_MS = 86_400_000;
/** The length of a lease. */
export const LEASE_MS = 30_000;
/** The margin after expiry before a takeover. */
export const MARGIN_MS = POLICY.marginMs(LEASE_MS);
/** The lease that sends the commands. */
export const ME = leaseIdAt(NOW_MS);
/** A lease that asked before it. */
export const OTHER = leaseIdAt(NOW_MS - 5_000);

/** Clocks `ms` after {@link NOW_MS}, the latest `aheadMs` beyond. */
export function at(ms: number, aheadMs = 0): ClockReading {
  return { earliestMs: NOW_MS + ms, latestMs: NOW_MS + ms + aheadMs };
}

/** A lease granted now. */
export function hold(over: Partial<Hold> = {}): Hold {
  return {
    principal: "me",
    owner: "",
    mode: "exclusive",
    permits: 1,
    fencingToken: NOW_MS - 7,
    leaseMs: LEASE_MS,
    grantedAtMs: NOW_MS,
    expiresAtMs: NOW_MS + LEASE_MS,
    marginMs: MARGIN_MS,
    requestHash: "same",
    ...over,
  };
}

/** The lease that recorded an outcome at once: mine, and the other. */
export const BY_ME = { recordedBy: ME, principal: "me", owner: "", startedAtMs: NOW_MS, endedAtMs: NOW_MS } as const;
export const BY_OTHER = { ...BY_ME, recordedBy: OTHER, principal: "someone" } as const;

/** A first attempt that is running. */
export function run(over: Partial<Run> = {}): Run {
  return { state: "running", attempt: 1, takeover: false, fingerprint: "", keepResultMs: DAY_MS, ...over };
}

/** A completed run, with an outcome recorded by OTHER and stored for a day from now. */
export function over(state: "succeeded" | "failed" = "succeeded", more: Partial<Run> = {}): Run {
  return run({ state, outcome: { ...BY_OTHER, keptUntilMs: NOW_MS + DAY_MS }, ...more });
}

/** A record of a run's key. */
export function record(parts: Partial<LockRecord> = {}): LockRecord {
  return { ...EMPTY_RECORD, version: 3, fencingToken: NOW_MS - 7, ttlAtSec: NOW_MS / 1000, ...parts };
}

/** A start by ME. */
export function start(parts: Partial<Start> = {}): Start {
  return {
    type: "start",
    key: "k",
    leaseId: ME,
    principal: "me",
    owner: "",
    leaseMs: LEASE_MS,
    fingerprint: "",
    keepResultMs: DAY_MS,
    maxAttempts: 0,
    requestHash: "same",
    ...parts,
  };
}

/** An outcome, reported by ME. */
export function complete(state: Complete["state"], parts: Partial<Complete> = {}): Complete {
  return { type: "complete", key: "k", leaseId: ME, principal: "me", state, ...parts };
}

/** The core's decision by the rules above. */
export function decided<C extends Command>(before: LockRecord | undefined, command: C, reading: ClockReading = at(0)): Decision<C> {
  return transition(before, command, reading, POLICY);
}

/** An answer in a word or two. */
export function said({ answer }: Decision): string {
  if (!answer.ok) return answer.reason ? `${answer.code}: ${answer.reason}` : answer.code;
  if ("how" in answer) return answer.how;
  return "state" in answer ? answer.state : "reset";
}

/** The record after a decision that must change it. */
export function after(decision: Decision): LockRecord {
  if (!decision.next) throw new Error(`nothing changed: ${said(decision)}`);
  return decision.next;
}
