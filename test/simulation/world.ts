/**
 * True time, which nobody in the simulation sees, and the processes that live in it: each with clocks
 * that are off, timers, pauses and an end. Events run one at a time; between two of them everything that
 * can go on by itself does.
 */
import type { Clock, Timer } from "../../lib/core/time.js";

interface Event {
  readonly atMs: number;
  readonly order: number;
  /** Undefined when it was cancelled. */
  task: (() => void) | undefined;
}

/** After so many events everything else in this thread has its turn: timers of a test, messages to a worker. */
const EVENTS_IN_A_ROW = 500;

/** Thrown out of {@link World.run} when the world has come to its end. */
export class EndOfWorld extends Error {}

/** The queue of everything that will happen. */
export class World {
  /** True time in epoch ms. */
  nowMs: number;
  /** Called after every event, when the world is at rest. */
  atRest: () => void = () => undefined;
  events = 0;
  /** Asked after every event: whether the world ends here. */
  isOver: () => boolean = () => false;
  readonly #heap: Event[] = [];
  #order = 0;
  #serial = 0;

  constructor(startMs: number) {
    this.nowMs = startMs;
  }

  /** A number that nothing had before, and that grows. */
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
    for (let next = this.#pop(untilMs); next && !done(); next = this.#pop(untilMs)) {
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

/** Resolves when every promise that could go on by itself has: Node takes a tick when no promise is left to go on with. */
function settled(): Promise<void> {
  return new Promise((resolve) => void process.nextTick(resolve));
}

function othersTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/** Below what a timer can tell apart; without it, rounding would set one off for ever. */
const TIMER_GRAIN_MS = 0.01;

/** A process: its clocks, and whether it runs, sleeps through everything, or is gone. */
export class Process implements Clock {
  readonly #world: World;
  /** How far the wall clock is off, in ms; may be changed at any time (a jump). */
  wallErrorMs: number;
  /** How far the rate of both clocks is off. */
  readonly rateError: number;
  /** Whether the monotonic clock stands still in a pause, as in a frozen sandbox. */
  readonly stopsWhenPaused: boolean;
  #dead = false;
  #pausedAtMs: number | undefined;
  #stoppedMs = 0;
  #waiting: (() => void)[] = [];

  constructor(
    world: World,
    {
      wallErrorMs = 0,
      rateError = 0,
      stopsWhenPaused = false,
    }: { wallErrorMs?: number; rateError?: number; stopsWhenPaused?: boolean } = {},
  ) {
    this.#world = world;
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
      // Timers count what the monotonic clock counts: one that stood still makes them late.
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

  /** Runs `task` in this process: now, when it wakes up, or never. */
  deliver(task: () => void): void {
    if (this.#dead) return;
    if (this.#pausedAtMs === undefined) task();
    else this.#waiting.push(task);
  }

  pause(forMs: number): void {
    if (!this.isRunning) return;
    this.#pausedAtMs = this.#world.nowMs;
    this.#world.in(forMs, () => this.#wake());
  }

  crash(): void {
    this.#dead = true;
  }

  #wake(): void {
    if (this.#pausedAtMs === undefined) return;
    if (this.stopsWhenPaused) this.#stoppedMs += this.#world.nowMs - this.#pausedAtMs;
    this.#pausedAtMs = undefined;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const task of waiting) this.deliver(task);
  }
}
