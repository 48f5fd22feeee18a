/**
 * The alarms of all leases of a client, on one timer in the background. An alarm counts on the monotonic clock. A deadline counts on the
 * clock that shows more elapsed time: as soon as the wall clock has gained on the monotonic one, because it was set or because the process
 * was frozen, every deadline is looked at again.
 */
import type { Clock, Timer } from "../../core/time.js";
import { Heap } from "../ask/heap.js";

/** The longest pause of the timer. Timers don't run in a frozen sandbox; a short one detects the freeze soon after the thaw. */
const LONGEST_PAUSE_MS = 1000;
/** A smaller gain of the wall clock is rounding: it counts whole milliseconds. Margins of leases are far larger. */
const GAIN_MS = 2;

/** A pending alarm. A client has two for each lease: they share their functions, and `task` gets its argument as that of a timeout does. */
class Alarm<Argument = unknown> implements Timer {
  constructor(
    readonly dueMs: number,
    readonly isDeadline: boolean,
    readonly task: (argument: Argument) => void,
    readonly argument: Argument,
    readonly onCancel: (alarm: Alarm) => void,
  ) {}

  cancel(): void {
    this.onCancel(this as Alarm);
  }
}

/** The alarms of one client. */
export class Alarms {
  readonly #clock: Clock;
  readonly #byTime = new Heap<Alarm>(({ dueMs }) => dueMs);
  #timer: { readonly timer: Timer; readonly dueMs: number } | undefined;
  readonly #cancel = (alarm: Alarm): void => {
    if (this.#byTime.delete(alarm)) this.#setTimer();
  };
  #isRunning = false;
  /** The least lead of the wall clock over the monotonic one since the deadlines were last looked at, in ms. */
  #leadMs = Number.POSITIVE_INFINITY;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs `task` with `argument` once in `delayMs`. */
  set<Argument>(delayMs: number, task: (argument: Argument) => void, argument: Argument): Timer {
    return this.#add(delayMs, task, argument, false);
  }

  /** Runs `task` in `leftMs`, or as soon as the wall clock gains on the monotonic one. The task checks, and sets the deadline again. */
  setDeadline<Argument>(leftMs: number, task: (argument: Argument) => void, argument: Argument): Timer {
    return this.#add(leftMs, task, argument, true);
  }

  #add<Argument>(delayMs: number, task: (argument: Argument) => void, argument: Argument, isDeadline: boolean): Timer {
    const nowMs = this.#clock.monotonicMs();
    this.#leadMs = Math.min(this.#leadMs, this.#clock.wallMs() - nowMs);
    // Whole milliseconds: a timer that fires a fraction too early would find nothing to do and be set again at once.
    const alarm = new Alarm(nowMs + Math.max(0, Math.ceil(delayMs)), isDeadline, task, argument, this.#cancel);
    this.#byTime.add(alarm as Alarm);
    this.#setTimer();
    return alarm;
  }

  /** Sets the timer for the first alarm. A timer that comes too early for it stays. */
  #setTimer(): void {
    if (this.#isRunning) return;
    const { first } = this.#byTime;
    if (!first) {
      this.#timer?.timer.cancel();
      this.#timer = undefined;
      return;
    }
    const nowMs = this.#clock.monotonicMs();
    const delayMs = Math.min(Math.max(0, Math.ceil(first.dueMs - nowMs)), LONGEST_PAUSE_MS);
    const dueMs = nowMs + delayMs;
    if (this.#timer && this.#timer.dueMs <= dueMs) return;
    this.#timer?.timer.cancel();
    this.#timer = { dueMs, timer: this.#clock.inBackground(delayMs, () => this.#runDue()) };
  }

  #runDue(): void {
    const nowMs = this.#clock.monotonicMs();
    const leadMs = this.#clock.wallMs() - nowMs;
    const hasGained = leadMs - this.#leadMs > GAIN_MS;
    this.#leadMs = hasGained ? leadMs : Math.min(this.#leadMs, leadMs);
    const deadlines = hasGained ? this.#byTime.members.filter(({ isDeadline }) => isDeadline) : [];
    this.#isRunning = true;
    try {
      for (const alarm of deadlines) if (this.#byTime.delete(alarm)) alarm.task(alarm.argument);
      for (let { first } = this.#byTime; first && first.dueMs <= nowMs; { first } = this.#byTime) {
        this.#byTime.delete(first);
        first.task(first.argument);
      }
    } finally {
      this.#isRunning = false;
      this.#timer = undefined;
      this.#setTimer();
    }
  }
}
