/**
 * The pace of heartbeats while the service fails. As long as it answers, each is sent when it is due. After a failure all
 * heartbeats of a client wait in one line, and are let through in groups, with a pause before each that grows, up to what
 * the client sends when all is well; a group that succeeds opens the gate for all, and later retries go together. So an outage meets fewer requests
 * than a service that is up, every lease has its turn in it, and its end is noticed within one pause.
 */
import { LIMITS } from "../../core/limits.js";
import type { Clock, Timer } from "../../core/time.js";
import type { Gate } from "./retry.js";

/** The pause before the first group, each later one so many times longer. */
const FIRST_PAUSE_MS = 50;
const PAUSE_GROWTH = 4;
/** A lease that has not had its turn by this part of its interval before its deadline has it then. */
const LAST_TURN = 0.1;

/** A lease that beats. */
export interface Beating {
  /** How often it is renewed when all is well, in ms. */
  readonly renewAfterMs: number;
  /** How long it may still be believed, in ms. */
  remainingMs(): number;
  /** Ends its place in the line. */
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly lease: Beating;
  readonly deadlineMs: number;
  readonly pass: () => void;
}

/** The gate of one client. */
export class RetryGate {
  readonly #clock: Clock;
  readonly #random: () => number;
  /** How often each lease beats, by lease. */
  readonly #perMs = new Map<Beating, number>();
  #totalPerMs = 0;
  readonly #line = new Set<Waiting>();
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  /** Groups let through since the last that succeeded. */
  #groups = 0;
  #lastGroupMs = Number.NEGATIVE_INFINITY;
  #lastGroupSize = 1;
  #succeededInARow = 0;
  #isOpen = true;

  /** @param random from 0 to 1, for jitter */
  constructor(clock: Clock, random: () => number) {
    this.#clock = clock;
    this.#random = random;
  }

  /** Counts `lease` among those that beat, until its signal aborts. */
  add(lease: Beating): void {
    const perMs = 1 / lease.renewAfterMs;
    this.#perMs.set(lease, perMs);
    this.#totalPerMs += perMs;
    const remove = (): void => {
      this.#perMs.delete(lease);
      // From zero again, so that the errors of many sums are not kept for ever.
      this.#totalPerMs = this.#perMs.size === 0 ? 0 : this.#totalPerMs - perMs;
    };
    lease.signal.addEventListener("abort", remove, { once: true });
  }

  /** The gate as the heartbeats of `lease` meet it. */
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
        lease.signal.removeEventListener("abort", leave);
        resolve();
      };
      const waiting = { lease, deadlineMs: this.#clock.monotonicMs() + lease.remainingMs(), pass };
      this.#line.add(waiting);
      lease.signal.addEventListener("abort", leave, { once: true });
      this.#schedule([waiting]);
    });
  }

  #failed(): void {
    this.#isOpen = false;
    this.#succeededInARow = 0;
  }

  /** When as many in a row were answered as the last group had, the service is well. */
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

  /** Sets the timer for the next group, which goes earlier where one of `these` would have no turn before its deadline. */
  #schedule(these: Iterable<Waiting>): void {
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

  /** The pause after the last group. At its longest, groups go as often as when all is well; those of a few leases, as often as one of them. */
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
    const isLast = ({ lease, deadlineMs }: Waiting): boolean => deadlineMs - 2 * LAST_TURN * lease.renewAfterMs <= nowMs;
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
