/**
 * The heartbeat of one lease. Every tick does this, in order:
 *
 * 1. check: after its deadline the lease is lost, and nothing is sent;
 * 2. if the tick comes far too late, the process was frozen: ask the service before treating the lease as held;
 * 3. renew.
 *
 * Ticks never overlap and end with the lease. A separate alarm at the deadline makes the signal abort on time even while a renewal hangs.
 * All leases of a client share one timer, which doesn't keep the process alive. What is done for a lease is done in the async context of its
 * acquire, whoever set the timer: a token can depend on it.
 */
import { AsyncResource } from "node:async_hooks";
import type { Refusal } from "../../core/errors.js";
import { type Instant, type Timer, elapsedMs, instantOf } from "../../core/time.js";
import { errorOf, LockLostError } from "../wire/errors.js";
import { capLeaseMs, remainingMs } from "../wire/invocation.js";
import type { HeldLease, LeaseDeps } from "./lease.js";
import type { Keeper } from "./lease-types.js";

/** The limits of a lease in addition to its deadline. */
export interface KeepAliveOptions {
  readonly heartbeat?: boolean | undefined;
  readonly maxHoldMs?: number | undefined;
  readonly progressMs?: number | undefined;
}

/** A hold with limits that its caller gave. Few have them, so a lease without takes no memory for them. */
interface LimitedHold {
  readonly leaseId: string;
  readonly began: Instant;
  progressed: Instant;
  alarm?: Timer;
}

/** The lease ends this long before the invocation is stopped, so that its release can still be sent. */
const INVOCATION_ENDS_MS = 500;
/** The longest pause between two looks at the invocation, whose time only it knows. */
const LOOK_MS = 1000;
/** A tick that is late by more than this many of its intervals means that the process was frozen. */
const THAW_INTERVALS = 2;

// One function each for all leases: a closure of every lease would take more memory than its alarm.
const deadlineMoved = (keeper: KeepAlive): void => keeper.within(() => keeper.deadlineMoved());
const tick = (keeper: KeepAlive): void => keeper.within(() => void keeper.tick());
const checkLimits = (keeper: KeepAlive): void => keeper.within(() => keeper.checkLimits());

/** Gives the lease a keep-alive of its own, and starts it. */
export function keepAlive(lease: HeldLease, options: KeepAliveOptions, deps: LeaseDeps): void {
  lease.keeper = new KeepAlive(lease, options, deps);
  lease.keeper.start();
}

/** Keeps one lease alive, from {@link start} until the lease ends. */
class KeepAlive implements Keeper<HeldLease> {
  readonly #lease: HeldLease;
  readonly #deps: LeaseDeps;
  /** The async context of the acquire. `AsyncLocalStorage.snapshot()` in its place takes as much heap as all else of a lease, on Node 20. */
  readonly #context = new AsyncResource("holdfast lease");
  #deadline: Timer | undefined;
  #beat: Timer | undefined;
  /** The time until the next heartbeat, in ms, and when it was scheduled. */
  #delayMs = 0;
  #scheduled: Instant | undefined;
  #limited: LimitedHold | undefined;
  readonly #options: KeepAliveOptions;

  constructor(lease: HeldLease, options: KeepAliveOptions, deps: LeaseDeps) {
    this.#lease = lease;
    this.#deps = deps;
    this.#options = options;
  }

  /** Begins, or begins again with a new hold after {@link end}. */
  start(): void {
    const lease = this.#lease;
    const deps = this.#deps;
    const { heartbeat = true, maxHoldMs, progressMs } = this.#options;
    this.deadlineMoved();
    if (!lease.isHeld()) return;
    if (heartbeat) {
      deps.gate.add(lease);
      this.#scheduleTick();
    }
    if (maxHoldMs === undefined && progressMs === undefined) return;
    const now = instantOf(deps.clock);
    const { leaseId } = lease;
    // After a wait that was refused, the same hold goes on.
    if (this.#limited?.leaseId !== leaseId) this.#limited = { leaseId, began: now, progressed: now };
    this.checkLimits();
  }

  /** Calls a function in the async context of the acquire. */
  within(task: () => void): void {
    this.#context.runInAsyncScope(task);
  }

  keep(lease: HeldLease): void {
    keepAlive(lease, { heartbeat: this.#options.heartbeat }, this.#deps);
  }

  progress(): void {
    if (this.#limited) this.#limited.progressed = instantOf(this.#deps.clock);
  }

  /** Cancels everything that is scheduled. */
  end(): void {
    this.#scheduled = undefined;
    this.#deadline?.cancel();
    this.#beat?.cancel();
    this.#limited?.alarm?.cancel();
    this.#deps.gate.delete(this.#lease);
  }

  /** Sets the alarm for the deadline. One that a renewal moved later is set again when it rings. */
  deadlineMoved(): void {
    this.#deadline?.cancel();
    if (!this.#goesOn()) return;
    const { context, alarms } = this.#deps;
    const lookMs = context ? Math.min(this.#invocationLeftMs(), LOOK_MS) : Number.POSITIVE_INFINITY;
    this.#deadline = alarms.setDeadline(Math.min(this.#lease.remainingMs(), lookMs), deadlineMoved, this);
  }

  /**
   * Ends a hold that has lasted for its `maxHoldMs`, or shown no progress for its `progressMs`; else sets the alarm for the sooner of them. One
   * that a progress moved later is set again when it rings. Without progress the key is not given back: the work hangs, or goes on without a
   * word, and has the rest of its lease to stop.
   */
  checkLimits(): void {
    const limited = this.#limited;
    if (!limited) return;
    const { maxHoldMs = Infinity, progressMs = Infinity } = this.#options;
    const { clock, alarms } = this.#deps;
    const now = instantOf(clock);
    const heldMs = elapsedMs(limited.began, now);
    const silentMs = Math.floor(elapsedMs(limited.progressed, now));
    if (heldMs >= maxHoldMs) this.#giveUp(this.#loss(`held for its maxHoldMs of ${maxHoldMs} ms`, "max-hold"));
    else if (silentMs >= progressMs)
      this.#lease.lose(this.#loss(`no progress for ${silentMs} ms; its progressMs is ${progressMs}`, "no-progress"));
    else limited.alarm = alarms.set(Math.min(maxHoldMs - heldMs, progressMs - silentMs), checkLimits, this);
  }

  /** True if the lease is held and its invocation has time left; otherwise ends the hold. */
  #goesOn(): boolean {
    if (!this.#lease.isHeld()) return false;
    if (this.#invocationLeftMs() > 0) return true;
    this.#giveUp(this.#loss("the invocation ends", "invocation-ends"));
    return false;
  }

  #invocationLeftMs(): number {
    return remainingMs(this.#deps.context) - INVOCATION_ENDS_MS;
  }

  #scheduleTick(): void {
    const { clock, random, alarms, renewalBatcher } = this.#deps;
    const lease = this.#lease;
    // If a renewal failed near the deadline, the next one comes before the deadline, not at it.
    this.#delayMs = Math.ceil(Math.min(lease.renewAfterMs * (0.9 + 0.2 * random()), lease.remainingMs() / 2));
    this.#scheduled = instantOf(clock);
    // The batcher may ring up to 10 % early, to send several together.
    this.#beat = (renewalBatcher ?? alarms).set(this.#delayMs, tick, this);
  }

  /** Sends a heartbeat, and schedules the next. */
  async tick(): Promise<void> {
    const scheduled = this.#scheduled;
    if (!scheduled || !this.#goesOn()) return;
    const thawed = elapsedMs(scheduled, instantOf(this.#deps.clock)) > this.#delayMs * (1 + THAW_INTERVALS);
    const lease = this.#lease;
    const { context, client } = this.#deps;
    let failedAttempts = 0;
    // A single failed attempt followed by a success is not reported. Further failures are reported once.
    const onFailedAttempt = (refusal: Refusal): void => {
      if (++failedAttempts === 2) client.renewalFailed(lease, errorOf(refusal, `renew ${lease.key}`));
    };
    try {
      const beat = lease.beat(capLeaseMs(lease.leaseMs, context), thawed, onFailedAttempt);
      client.beats(lease, beat);
      await beat;
    } catch (error) {
      if (lease.isHeld() && failedAttempts < 2) client.renewalFailed(lease, error);
    }
    // A wait for a condition meanwhile has scheduled the ticks of the next hold.
    if (lease.isHeld() && this.#scheduled === scheduled) this.#scheduleTick();
  }

  #loss(why: string, reason: LockLostError["reason"]): LockLostError {
    const { key } = this.#lease;
    return new LockLostError(`${key}: ${why}`, reason, { key });
  }

  #giveUp(error: LockLostError): void {
    this.#lease.lose(error);
    this.#deps.client.giveBack(this.#lease);
  }
}
