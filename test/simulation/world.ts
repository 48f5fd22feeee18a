/**
 * True time, which no code in the simulation can read, and the processes that run in it. Each has clocks with errors, timers, pauses and
 * an end. Events run one at a time. Between two events all pending promises settle.
 */
import type { Clock, Timer } from "../../lib/core/time.js";

interface Event {
  readonly atMs: number;
  readonly order: number;
  /** Undefined if it was cancelled. */
  task: (() => void) | undefined;
}

/** The number of events after which other work in this thread gets to run: timers of a test, messages to a worker. */
const EVENTS_IN_A_ROW = 500;

/** Thrown by {@link World.run} when the world has ended. */
export class EndOfWorld extends Error {}

/** The queue of all future events. */
export class World {
  /** True time in epoch ms. */
  nowMs: number;
  /** Called after every event, when all promises have settled. */
  atRest: () => void = () => undefined;
  events = 0;
  /** Takes what happens to messages and processes, for a timeline. Undefined: nobody reads it. */
  tell: ((who: string, what: string) => void) | undefined;
  /** Called after every event. True ends the world. */
  isOver: () => boolean = () => false;
  readonly #heap: Event[] = [];
  #order = 0;
  #serial = 0;

  constructor(startMs: number) {
    this.nowMs = startMs;
  }

  /** Returns a new, rising number. */
  serial(): number {
    return ++this.#serial;
  }

  /** Runs `task` in `delayMs` of true time, unless cancelled. */
  in(delayMs: number, task: () => void): Timer {
    const event: Event = { atMs: this.nowMs + Math.max(0, delayMs), order: this.#order++, task };
    this.#push(event);
    return { cancel: () => void (event.task = undefined) };
  }

  /** Resolves in `delayMs` of true time. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.in(delayMs, resolve));
  }

  /** Runs events until `done` or until true time `untilMs`. @throws EndOfWorld */
  async run(untilMs: number, done: () => boolean = () => false): Promise<void> {
    await settled();
    while (!done()) {
      const next = this.#pop(untilMs);
      if (!next) break;
      this.nowMs = Math.max(this.nowMs, next.atMs);
      this.events++;
      if (next.task) {
        next.task();
        await settled();
        if (this.events % EVENTS_IN_A_ROW === 0) await othersTurn();
      }
      this.atRest();
      if (this.isOver()) throw new EndOfWorld();
    }
    if (!done()) this.nowMs = Math.max(this.nowMs, untilMs);
  }

  #push(event: Event): void {
    const heap = this.#heap;
    let at = heap.push(event) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!before(event, heap[parent]!)) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = event;
  }

  #pop(untilMs: number): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    if (!first || first.atMs > untilMs) return undefined;
    const last = heap.pop()!;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child++;
      if (!before(heap[child]!, last)) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function before(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** Resolves when all pending promises have settled: Node starts the next tick only when no promise can continue. */
function settled(): Promise<void> {
  return new Promise((resolve) => void process.nextTick(resolve));
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Less than a timer can distinguish. Without it, rounding would make a timer fire forever. */
const TIMER_GRAIN_MS = 0.01;

/** A process: its clocks, and whether it is running, paused or ended. */
export class Process implements Clock {
  readonly #world: World;
  /** Its name in a timeline. */
  readonly name: string;
  /** The error of the wall clock, in ms. It may change at any time (a jump). */
  wallErrorMs: number;
  /** The error of both clocks' rate. */
  readonly rateError: number;
  /** True if the monotonic clock stops during a pause, as in a frozen sandbox. */
  readonly stopsWhenPaused: boolean;
  #dead = false;
  #pausedAtMs: number | undefined;
  #stoppedMs = 0;
  #waiting: (() => void)[] = [];

  constructor(
    world: World,
    {
      name = "",
      wallErrorMs = 0,
      rateError = 0,
      stopsWhenPaused = false,
    }: { name?: string; wallErrorMs?: number; rateError?: number; stopsWhenPaused?: boolean } = {},
  ) {
    this.#world = world;
    this.name = name;
    this.wallErrorMs = wallErrorMs;
    this.rateError = rateError;
    this.stopsWhenPaused = stopsWhenPaused;
  }

  get isRunning(): boolean {
    return !this.#dead && this.#pausedAtMs === undefined;
  }

  get isDead(): boolean {
    return this.#dead;
  }

  wallMs(): number {
    return this.#world.nowMs + this.wallErrorMs;
  }

  monotonicMs(): number {
    const stoppedMs = this.stopsWhenPaused && this.#pausedAtMs !== undefined ? this.#world.nowMs - this.#pausedAtMs : 0;
    return (this.#world.nowMs - this.#stoppedMs - stoppedMs) * (1 + this.rateError);
  }

  after(delayMs: number, task: () => void): Timer {
    let cancelled = false;
    const dueMs = this.monotonicMs() + delayMs;
    const fire = (): void => {
      if (cancelled) return;
      // Timers use the monotonic clock. If it stopped, they fire late.
      const leftMs = dueMs - this.monotonicMs();
      if (leftMs > TIMER_GRAIN_MS) wait(leftMs);
      else task();
    };
    const wait = (ms: number): void => void this.#world.in(ms / (1 + this.rateError), () => this.deliver(fire));
    wait(delayMs);
    return { cancel: () => void (cancelled = true) };
  }

  inBackground(delayMs: number, task: () => void): Timer {
    return this.after(delayMs, task);
  }

  /** Runs `task` in this process: now, after a pause, or never if the process has ended. */
  deliver(task: () => void): void {
    if (this.#dead) return;
    if (this.#pausedAtMs === undefined) task();
    else this.#waiting.push(task);
  }

  pause(forMs: number): void {
    if (!this.isRunning) return;
    this.#pausedAtMs = this.#world.nowMs;
    this.#world.tell?.(this.name, `the process is paused for ${Math.round(forMs)} ms`);
    this.#world.in(forMs, () => this.#wake());
  }

  crash(): void {
    if (!this.#dead) this.#world.tell?.(this.name, "the process ends");
    this.#dead = true;
  }

  #wake(): void {
    if (this.#pausedAtMs === undefined) return;
    this.#world.tell?.(this.name, "the process goes on");
    if (this.stopsWhenPaused) this.#stoppedMs += this.#world.nowMs - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const task of waiting) this.deliver(task);
  }
}
