/**
 * The heartbeat of one lease, in this order on every tick:
 *
 *  1. check: past its deadline the lease is lost, and nothing is sent;
 *  2. a tick that comes far too late is a thaw: ask the service before claiming anything;
 *  3. renew.
 *
 * Ticks never overlap and end with the lease. A deadline timer runs beside them, so that the signal
 * fires on time even while a renewal hangs. No timer keeps the process alive.
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

/** What bounds a lease beside its deadline. */
export interface KeepAliveOptions {
  readonly heartbeat: boolean;
  readonly maxHoldMs?: number | undefined;
  /** The invocation that holds the lease. Heartbeats never outlive it, and ask for no more than it may need. */
  readonly context?: InvocationContext | undefined;
  /** Told of a renewal that failed without the lease being lost. */
  readonly onRenewFailed: (error: unknown) => void;
  /** Gives the key back once the hold was ended from here. */
  readonly giveBack: () => void;
}

/** The world, what beats together with others where there is such, and where heartbeats wait while they fail. */
type KeepAliveDeps = Runtime & { readonly renewalBatcher?: RenewalBatcher | undefined; readonly gate: RetryGate };

/** Work must stop this long before the invocation is cut off, so that its release still goes out. */
const INVOCATION_ENDS_MS = 500;
/** A timer counts time that a frozen sandbox did not have; a short one finds out soon after the thaw. */
const LONGEST_NAP_MS = 1000;
/** A tick later than this many of its intervals slept through something. */
const THAW_INTERVALS = 2;

/** Keeps `lease` alive until it ends. */
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

  /** Whether the lease is still held, and its invocation has time left for it. */
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
    // After a renewal that failed near the deadline: once more before it, not at it.
    const delayMs = Math.min(lease.renewAfterMs * (0.9 + 0.2 * random()), lease.remainingMs() / 2);
    const scheduled = instantOf(clock);
    const beat = (): void => void tick(elapsedMs(scheduled, instantOf(clock)) > delayMs * (1 + THAW_INTERVALS));
    later(delayMs, beat, withOthers);
  }

  async function tick(thawed: boolean): Promise<void> {
    if (!goesOn()) return;
    let failedAttempts = 0;
    // One that is made up for by the next attempt is nobody's concern; of one that isn't, the holder hears once.
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
    // Whole milliseconds: one due a fraction too early would find nothing to do and come again at once.
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
