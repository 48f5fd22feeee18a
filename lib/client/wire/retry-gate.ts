/**
 * Paces heartbeats while the service fails. As long as it answers, each heartbeat is sent when it is due. After a failure, all heartbeats
 * of a client wait in one queue and pass in groups. The pause before each group grows until the rate equals that of normal operation. A
 * successful group opens the gate for all, and later retries go together. So an outage gets fewer requests than normal operation, every
 * lease gets a turn, and the end of the outage is noticed within one pause.
 */
import * as LIMITS from "../../core/request-limits.js";
import type { Clock, Timer } from "../../core/time.js";
import type { StopSignal } from "./lazy-abort.js";
import type { Gate } from "./retry.js";

/** The pause before the first group, in ms, and the growth of the later ones. */
const FIRST_PAUSE_MS = 50;
const PAUSE_GROWTH = 4;
/** The part of its interval before its deadline in which a lease gets a last turn. */
const LAST_TURN = 0.1;

/** A lease with heartbeats. */
export interface Beating {
  /** The renewal interval in normal operation, in ms. */
  readonly renewAfterMs: number;
  /** The time for which it may still be treated as held, in ms. */
  remainingMs(): number;
  /** Removes it from the queue. */
  readonly ending: StopSignal;
}

interface WaitingAttempt {
  readonly lease: Beating;
  readonly deadlineMs: number;
  readonly pass: () => void;
}

/** The gate of one client. */
export class RetryGate {
  readonly #clock: Clock;
  readonly #random: () => number;
  /** The heartbeat rate of each lease, per ms. */
  readonly #perMs = new Map<Beating, number>();
  #totalPerMs = 0;
  readonly #line = new Set<WaitingAttempt>();
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  /** The number of groups since the last success. */
  #groups = 0;
  #lastGroupMs = Number.NEGATIVE_INFINITY;
  #lastGroupSize = 1;
  #succeededInARow = 0;
  #isOpen = true;

  /** @param random returns 0 to 1, for jitter */
  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  add(lease: Beating): void {
    const perMs = 1 / lease.renewAfterMs;
    this.#perMs.set(lease, perMs);
    this.#totalPerMs += perMs;
  }

  delete(lease: Beating): void {
    const perMs = this.#perMs.get(lease);
    if (perMs === undefined) return;
    this.#perMs.delete(lease);
    // Reset to zero, so that rounding errors don't accumulate for ever.
    this.#totalPerMs = this.#perMs.size === 0 ? 0 : this.#totalPerMs - perMs;
  }

  for(lease: Beating): Gate {
    return {
      turn: (isRetry) => (isRetry || !this.#isOpen ? this.#turn(lease) : undefined),
      failed: () => this.#failed(),
      answered: () => this.#answered(),
    };
  }

  #turn(lease: Beating): Promise<void> {
    return new Promise((resolve) => {
      const leave = (): void => {
        this.#line.delete(waiting);
        resolve();
      };
      const pass = (): void => {
        lease.ending.removeEventListener("abort", leave);
        resolve();
      };
      const waiting = { lease, deadlineMs: this.#clock.monotonicMs() + lease.remainingMs(), pass };
      this.#line.add(waiting);
      lease.ending.addEventListener("abort", leave, { once: true });
      this.#schedule([waiting]);
    });
  }

  #failed(): void {
    this.#isOpen = false;
    this.#succeededInARow = 0;
  }

  /** Opens the gate when as many heartbeats in a row were answered as the last group had. */
  #answered(): void {
    if (this.#isOpen || ++this.#succeededInARow < this.#lastGroupSize) return;
    this.#isOpen = true;
    this.#groups = this.#succeededInARow = 0;
    this.#lastGroupSize = 1;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    for (const { pass } of this.#line) pass();
    this.#line.clear();
  }

  /** Sets the timer for the next group. It goes earlier if a lease in `these` would otherwise get no turn before its deadline. */
  #schedule(these: Iterable<WaitingAttempt>): void {
    const [first] = this.#line;
    if (!first) return;
    const nowMs = this.#clock.monotonicMs();
    let dueMs = this.#timer?.dueMs ?? Math.max(nowMs + this.#jittered(FIRST_PAUSE_MS), this.#lastGroupMs + this.#pauseMs(first.lease));
    for (const { lease, deadlineMs } of these) {
      const lastMs = deadlineMs - lease.renewAfterMs * LAST_TURN;
      if (lastMs > nowMs) dueMs = Math.min(dueMs, lastMs);
    }
    if (this.#timer?.dueMs === dueMs) return;
    this.#timer?.timer.cancel();
    this.#timer = { dueMs, timer: this.#clock.inBackground(Math.ceil(dueMs - nowMs), () => this.#letThrough()) };
  }

  /**
   * Returns the pause after the last group, in ms. At its longest, groups go as often as in normal operation, and those of a few leases as
   * often as a single lease.
   */
  #pauseMs({ renewAfterMs }: Beating): number {
    const longestMs = Math.min(LIMITS.renewalsMax / this.#totalPerMs, renewAfterMs);
    return this.#jittered(Math.min(longestMs, FIRST_PAUSE_MS * PAUSE_GROWTH ** Math.min(this.#groups, 10)));
  }

  #jittered(ms: number): number {
    return ms * (0.5 + 0.5 * this.#random());
  }

  #letThrough(): void {
    this.#timer = undefined;
    const nowMs = this.#clock.monotonicMs();
    const isLast = ({ lease, deadlineMs }: WaitingAttempt): boolean => deadlineMs - 2 * LAST_TURN * lease.renewAfterMs <= nowMs;
    const line = [...this.#line];
    const most = this.#isOpen ? line.length : LIMITS.renewalsMax;
    const group = [...line.filter(isLast), ...line.filter((one) => !isLast(one))].slice(0, most);
    if (!this.#isOpen) {
      this.#lastGroupMs = nowMs;
      this.#lastGroupSize = Math.max(1, group.length);
      this.#succeededInARow = 0;
      this.#groups++;
    }
    for (const waiting of group) {
      this.#line.delete(waiting);
      waiting.pass();
    }
    this.#schedule(this.#line);
  }
}
