/**
 * The work of a schedule, once for each occurrence, however many deliver it and however often:
 *
 * 1. A run of the name and the occurrence (decision 041). A lock alone tells who runs it now; a run also tells whether the 3 o'clock one has been done.
 * 2. Within it, a lock on the name: the occurrence before may still be running. Its token grows with every occurrence and attempt, so it is
 *    the one to fence writes with.
 * 3. An occurrence that finds the lock held is skipped, and one that nobody began in time is too late. Either is a final failure of its run.
 */
import { brand, isA } from "../../core/brand.js";
import { bounded } from "../../core/key.js";
import * as DEFAULTS from "../../core/request-defaults.js";
import * as LIMITS from "../../core/request-limits.js";
import type { HolderView } from "../../core/errors.js";
import { FinalError, LockTimeoutError, RunFailedError } from "../wire/errors.js";
import type { Lease } from "../hold/lease-types.js";
import { type Checks, CHECKS, checkOptions, ms, oneOf, refused } from "../wire/checks.js";
import { keepMs, maxAttempts } from "./run/run-options.js";
import { type Run, NotBegun } from "./run/run-once.js";
import type { Locks } from "./locks.js";
import { type Occurrence, type OccurrenceOptions, checkOccurrence, OCCURRENCE_OPTIONS } from "./occurrence.js";

/** Options of a tick: its occurrence, and what happens to it. */
export interface TickOptions extends OccurrenceOptions {
  /**
   * The behaviour if the occurrence before is still running: `"skip"` skips this one for good and records that, with who was running;
   * `"queue"` runs it afterwards. A process that died counts as running until its lease is over.
   * @default "skip"
   */
  readonly overlap?: "skip" | "queue" | undefined;
  /**
   * The time in ms after an occurrence within which its first attempt begins. A later one is recorded as too late, and never runs: a job of
   * 3 o'clock doesn't run at the deployment of the evening. An attempt after the first isn't bounded; a wait in the queue was none.
   * @default the shorter of the interval and 1 h; without an end for an `occurrence`, which the caller names
   */
  readonly maxLateMs?: number | undefined;
  /**
   * The time for which the outcome is remembered, in ms, or `"forever"`: longer than any delivery can be late, and at least the interval.
   * @default 7 days, or two intervals if that is longer
   */
  readonly keepMs?: number | "forever" | undefined;
  /** The length of both leases in ms: if this process dies, a repeated delivery can take over after it. @default the client's, else 30 000 */
  readonly leaseMs?: number | undefined;
  /** The largest number of attempts; 0: no limit. One that gives up waiting in the queue doesn't count. @default 5 */
  readonly maxAttempts?: number | undefined;
  /** The time to wait if the same occurrence is being run by another caller, in ms. @default 0, which asks once */
  readonly waitMs?: number | undefined;
  /** Cancels a wait with an AbortError. It does not stop work that has begun. */
  readonly signal?: AbortSignal | undefined;
}

/** One attempt at an occurrence, as its work sees it. Its token is that of the lock: it grows with every occurrence and attempt of the name. */
export interface Tick extends Run {
  /** The time for which the schedule wanted this. */
  readonly occurrence: Date;
}

/** A holder that was running, and its time since the grant. */
export interface RunningBefore {
  readonly owner: string;
  readonly heldMs: number;
}

export type TickResult<T> = { readonly occurrence: Date } & (
  | { readonly how: "ran"; readonly value: T; readonly attempt: number }
  /** An earlier delivery did it. Its value is undefined if it could not be stored. */
  | { readonly how: "done-before"; readonly value: T | undefined; readonly attempt: number }
  /** Another delivery runs it, or died less than a lease ago. If nobody asks again, a death is never noticed. */
  | { readonly how: "running" }
  /** The occurrence before was still running. Every later delivery of this one gets the same. */
  | { readonly how: "skipped"; readonly running: readonly RunningBefore[] }
  /** Nobody began it within `maxLateMs`: it was so late. Every later delivery of this one gets the same. */
  | { readonly how: "too-late"; readonly lateMs: number }
);

const { leaseMs, waitMs, signal } = CHECKS;
const OPTIONS: Checks<TickOptions> = {
  ...OCCURRENCE_OPTIONS,
  overlap: oneOf("skip", "queue"),
  maxLateMs: ms(0),
  keepMs,
  leaseMs,
  maxAttempts,
  waitMs,
  signal,
};
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A repeated delivery comes hours later at most; people repeat one by hand after a weekend. */
const KEEP_MS = 7 * DAY_MS;
/** The longest time after an occurrence within which it begins, if the caller says nothing else. */
const MAX_LATE_MS = HOUR_MS;
/** The names of the errors that an occurrence is recorded with which never runs. */
const SKIPPED = "TickSkipped";
const TOO_LATE = "TickTooLate";

/** The occurrence never runs: the one before is still running, or nobody began it in time. */
class NeverRuns extends FinalError {
  static {
    brand(this, "NeverRuns");
  }
  constructor(
    override readonly name: typeof SKIPPED | typeof TOO_LATE,
    message: string,
    data: unknown,
  ) {
    super(message, { data });
  }
}

/** Returns the error of an occurrence, for people: `3h 20m late, at most 1h`. The time is rounded up, so that it is always the longer one. */
function tooLate(lateMs: number, maxLateMs: number): NeverRuns {
  const message = `${inUnits(Math.ceil(lateMs / 1000))} late, at most ${inUnits(Math.floor(maxLateMs / 1000))}`;
  return new NeverRuns(TOO_LATE, message, lateMs);
}

/** `26h 3m`, `90s`: whole seconds in hours, minutes and seconds. */
function inUnits(seconds: number): string {
  const parts = [`${Math.floor(seconds / 3600)}h`, `${Math.floor(seconds / 60) % 60}m`, `${seconds % 60}s`];
  return parts.filter((part) => !part.startsWith("0")).join(" ") || "0s";
}

/** @throws InvalidRequestError naming the invalid option of a tick. */
export function checkTick(options: TickOptions): void {
  checkOptions("tick", options, OPTIONS);
  checkOccurrence(options);
}

/** Runs `work` for the occurrence, unless that was done before, is being done, or must be skipped. */
export async function tick<T>(
  locks: Locks,
  name: string,
  { at: occurrence, lateMs, intervalMs }: Occurrence,
  { overlap, maxLateMs, keepMs, leaseMs, maxAttempts, waitMs = 0, signal }: TickOptions,
  work: (tick: Tick) => Promise<T> | T,
): Promise<TickResult<T>> {
  const mostLateMs = maxLateMs ?? (intervalMs === 0 ? Number.POSITIVE_INFINITY : Math.min(intervalMs, MAX_LATE_MS));
  const keepResultMs = keepMsOf(keepMs, intervalMs);
  const options = { leaseMs, maxAttempts, waitMs, signal, keepResultMs, largeResult: "omit" } as const;
  const course = { hasBegun: false };
  try {
    const { value, replayed, attempt } = await locks.runOnce(runKeyOf(name, occurrence), options, (run) => {
      course.hasBegun = true;
      if (run.attempt === 1 && lateMs > mostLateMs) throw tooLate(lateMs, mostLateMs);
      return alone(locks, name, { run, leaseMs, signal, isQueued: overlap === "queue" }, (lease) => work(tickOf(run, lease, occurrence)));
    });
    return { occurrence, how: replayed ? "done-before" : "ran", value, attempt };
  } catch (error) {
    if (isA(error, LockTimeoutError) && !course.hasBegun) return { occurrence, how: "running" };
    const { name: why, data } = neverRuns(error) ?? {};
    if (why === SKIPPED) return { occurrence, how: "skipped", running: data as readonly RunningBefore[] };
    if (why === TOO_LATE) return { occurrence, how: "too-late", lateMs: data as number };
    throw error;
  }
}

/** Returns the name and the data of the error of an occurrence that never runs, as decided now or by an earlier delivery. */
function neverRuns(error: unknown): { readonly name: string; readonly data: unknown } | undefined {
  if (isA(error, NeverRuns)) return error;
  return isA(error, RunFailedError) ? { name: (error.cause as Error).name, data: error.data } : undefined;
}

/** Returns the key of an occurrence's run. The time has a fixed length, so different names and times never share a key. */
export function runKeyOf(name: string, occurrence: Date): string {
  return bounded(`${name}_${occurrence.toISOString()}`);
}

/** @throws InvalidRequestError if the outcome would be forgotten while late callers still name this occurrence. */
function keepMsOf(requested: number | "forever" | undefined, intervalMs: number): number | "forever" {
  const keepMs = requested ?? Math.max(KEEP_MS, 2 * intervalMs);
  if (keepMs === "forever" || (requested === undefined && keepMs > LIMITS.keepResultMaxMs)) return "forever";
  if (keepMs < intervalMs) throw refused("keepMs", keepMs, `it must be at least the interval of ${intervalMs} ms, or "forever"`);
  return keepMs;
}

interface Alone {
  readonly run: Run;
  readonly leaseMs: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly isQueued: boolean;
}

/** Runs `work` while it is the only one of its name. @throws NeverRuns if another occurrence is running and this one doesn't queue */
async function alone<T>(
  locks: Locks,
  name: string,
  { run, leaseMs, signal, isQueued }: Alone,
  work: (lease: Lease) => Promise<T> | T,
): Promise<T> {
  // The attempt before may have left its own lock behind, which must not count as another occurrence: outlast it.
  const leftoverMs = run.attempt > 1 ? Math.max(DEFAULTS.waitMs, 2 * (leaseMs ?? 0)) : 0;
  const waitMs = isQueued ? Number.MAX_SAFE_INTEGER : leftoverMs;
  const course = { hasBegun: false };
  try {
    return await locks.withLock(name, { leaseMs, waitMs, signal }, (lease) => {
      course.hasBegun = true;
      return work(lease);
    });
  } catch (error) {
    if (course.hasBegun) throw error;
    if (isQueued) throw new NotBegun("gave up waiting for the occurrence before", { cause: error });
    if (!isA(error, LockTimeoutError)) throw error;
    const running = error.holders.map(({ owner, heldMs }: HolderView): RunningBefore => ({ owner, heldMs }));
    const who = running.map(({ owner, heldMs }) => `${owner || "another"} for ${heldMs} ms`).join(", ");
    throw new NeverRuns(SKIPPED, `skipped: still running before it was ${who || "another"}`, running);
  }
}

/** Returns the run under the lock, as its work sees it. It is held while both are. */
function tickOf(run: Run, lease: Lease, occurrence: Date): Tick {
  const lost = new AbortController();
  for (const { signal } of [run, lease]) {
    const forward = (): void => lost.abort(signal.reason);
    signal.addEventListener("abort", forward, { once: true });
    if (signal.aborted) forward();
  }
  return {
    occurrence,
    idempotencyKey: run.idempotencyKey,
    attempt: run.attempt,
    takeover: run.takeover,
    get checkpoint() {
      return run.checkpoint;
    },
    get fencingToken() {
      return lease.fencingToken;
    },
    signal: lost.signal,
    remainingMs: () => Math.min(run.remainingMs(), lease.remainingMs()),
    isHeld: () => run.isHeld() && lease.isHeld(),
    assertHeld() {
      run.assertHeld();
      lease.assertHeld();
    },
    progress: () => run.progress() && lease.progress(),
    saveCheckpoint: (value) => run.saveCheckpoint(value),
  };
}
