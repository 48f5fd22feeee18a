/**
 * The heartbeat of one lease. Every tick does this, in order:
 *
 * 1. check: after its deadline the lease is lost, and nothing is sent;
 * 2. if the tick comes far too late, the process was frozen: ask the service before treating the lease as held;
 * 3. renew.
 *
 * Ticks never overlap and end with the lease. A separate deadline timer makes the signal abort on time even while a renewal hangs. No timer
 * keeps the process alive.
 */
import type { Refusal } from "../../core/errors.js";
import type { Timer } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";
import type { Runtime } from "../transport/retry.js";
import { errorOf, LockLostError } from "../errors.js";
import type { RenewalBatcher } from "./renewal-batcher.js";
import type { InvocationContext } from "../invocation.js";
import { capLeaseMs } from "../invocation.js";
import type { HeldLease } from "./lease.js";
import type { RetryGate } from "../transport/retry-gate.js";

/** The limits of a lease in addition to its deadline, and its callbacks. */
export interface KeepAliveOptions {
  readonly heartbeat: boolean;
  readonly maxHoldMs?: number | undefined;
  /** The invocation that holds the lease. Heartbeats never outlive it, and request no more time than it can need. */
  readonly context?: InvocationContext | undefined;
  /** Called for a renewal that failed without the lease being lost. */
  readonly onRenewFailed: (error: unknown) => void;
  /** Releases the key after the keep-alive ended the hold. */
  readonly giveBack: () => void;
}

/** The runtime, the batcher for joint heartbeats if there is one, and the gate where failing heartbeats wait. */
type KeepAliveDeps = Runtime & { readonly renewalBatcher?: RenewalBatcher | undefined; readonly gate: RetryGate };

/** The lease ends this long before the invocation is stopped, so that its release can still be sent. */
const INVOCATION_ENDS_MS = 500;
/** The longest timer. Timers don't run in a frozen sandbox; a short timer detects the freeze soon after the thaw. */
const LONGEST_NAP_MS = 1000;
/** A tick that is late by more than this many of its intervals means that the process was frozen. */
const THAW_INTERVALS = 2;

/** Keeps `lease` alive until it ends. */
// Over 60 lines: one state machine, whose steps share the timers of one lease.
export function keepAlive(lease: HeldLease, options: KeepAliveOptions, { clock, random, renewalBatcher, gate }: KeepAliveDeps): void {
  const timers = new Set<Timer>();
  lease.signal.addEventListener("abort", () => timers.forEach((timer) => timer.cancel()), { once: true });

  watchDeadline();
  if (options.heartbeat) {
    gate.add(lease);
    scheduleTick();
  }
  const { maxHoldMs } = options;
  if (maxHoldMs !== undefined)
    later(maxHoldMs, () => endHold(new LockLostError(`${lease.key}: held for its maxHoldMs of ${maxHoldMs} ms`, "max-hold")));

  function watchDeadline(): void {
    if (goesOn()) later(Math.min(lease.remainingMs(), invocationLeftMs(), LONGEST_NAP_MS), watchDeadline);
  }

  /** True if the lease is held and its invocation has time left; otherwise ends the hold. */
  function goesOn(): boolean {
    if (!lease.isHeld()) return false;
    if (invocationLeftMs() > 0) return true;
    endHold(new LockLostError(`${lease.key}: the invocation ends`, "invocation-ends"));
    return false;
  }

  function invocationLeftMs(): number {
    return (options.context?.getRemainingTimeInMillis() ?? Number.POSITIVE_INFINITY) - INVOCATION_ENDS_MS;
  }

  function scheduleTick(): void {
    // If a renewal failed near the deadline, the next one comes before the deadline, not at it.
    const delayMs = Math.min(lease.renewAfterMs * (0.9 + 0.2 * random()), lease.remainingMs() / 2);
    const scheduled = instantOf(clock);
    const beat = (): void => void tick(elapsedMs(scheduled, instantOf(clock)) > delayMs * (1 + THAW_INTERVALS));
    later(delayMs, beat, withOthers);
  }

  async function tick(thawed: boolean): Promise<void> {
    if (!goesOn()) return;
    let failedAttempts = 0;
    // A single failed attempt followed by a success is not reported. Further failures are reported once.
    const onFailedAttempt = (refusal: Refusal): void => {
      if (++failedAttempts === 2) options.onRenewFailed(errorOf(refusal, `renew ${lease.key}`));
    };
    try {
      await lease.beat(capLeaseMs(lease.leaseMs, options.context), thawed, onFailedAttempt);
    } catch (error) {
      if (lease.isHeld() && failedAttempts < 2) options.onRenewFailed(error);
    }
    if (lease.isHeld()) scheduleTick();
  }

  function endHold(error: LockLostError): void {
    lease.lose(error);
    options.giveBack();
  }

  function later(delayMs: number, task: () => void, inTime: (delayMs: number, task: () => void) => Timer = inBackground): void {
    // Whole milliseconds: a timer that fires a fraction too early would find nothing to do and be set again at once.
    const timer = inTime(Math.ceil(delayMs), () => {
      timers.delete(timer);
      task();
    });
    timers.add(timer);
  }

  function inBackground(delayMs: number, task: () => void): Timer {
    return clock.inBackground(delayMs, task);
  }

  function withOthers(delayMs: number, beat: () => void): Timer {
    return renewalBatcher ? renewalBatcher.schedule(delayMs, beat) : inBackground(delayMs, beat);
  }
}
