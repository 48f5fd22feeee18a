/**
 * Polls: the next request is sent only some time after the answer to the last, so two never overlap. While nobody looks, none is sent.
 * After an answer that took several requests the time is as many times as long, and after failures it grows to a minute.
 */

/** Dependencies and settings of a poll. */
export interface PollOptions<T> {
  /** Sends the request. `reader` aborts when the poll is stopped. */
  readonly ask: (reader: AbortSignal) => Promise<T>;
  /** Called with each request. */
  readonly asks?: () => void;
  readonly tell: (result: { readonly data: T } | { readonly error: unknown }) => void;
  /** The time between an answer and the next request, in ms. */
  readonly everyMs: number;
  /** True while nobody looks. */
  readonly isIdle: () => boolean;
  /** Calls `run` later. Returns a function that cancels that. */
  readonly later: (ms: number, run: () => void) => () => void;
}

/** The latest answer, the times at which it was asked for and arrived, and the failure since, if any. */
export interface Polled<T> {
  readonly data?: T;
  readonly askedMs?: number | undefined;
  readonly atMs?: number;
  readonly error?: Error;
  /** The time since which it polls without a pause, in epoch ms. */
  readonly sinceMs: number;
  /** The time between two polls, in ms. */
  readonly everyMs: number;
  /** The time since which a request is under way, in epoch ms; undefined between two. */
  readonly asked: { readonly current: number | undefined };
  /** Asks again now. */
  readonly again: () => void;
}

/** The interval at which every view asks for the state of the service, in ms. */
export const ABOUT_POLL_MS = 15_000;
/** The largest interval at which the view of one key or run asks for it, in ms. */
export const KEY_POLL_MS = 2000;
/** The interval at which every view of a service that charges for requests asks for the runs that need a person, in ms. */
export const EXHAUSTED_POLL_MS = 60_000;
/** The longest time between two requests after failures, in ms. */
const LONGEST_MS = 60_000;

/** The number of polls after which an answer is old. */
const OLD_POLLS = 2;
/** The time that a request may take without making the last answer old, in ms. */
const REQUEST_MS = 1000;

/** True if an answer is so old that nothing may be concluded from it any more: two polls should have brought another. */
export function isOld(ageMs: number, everyMs: number, data?: unknown): boolean {
  return ageMs > OLD_POLLS * everyMs * requestsOf(data) + REQUEST_MS;
}

/** The longest time that one request may take before its answer counts as missed, in ms. */
const PATIENCE_MS = 5000;

/** Returns how long the next answer may take, in ms: an interval, at most 5 s, and of a look that takes several requests a second for each. */
export function patienceMs(everyMs: number, data?: unknown): number {
  return Math.max(REQUEST_MS * requestsOf(data), Math.min(everyMs, PATIENCE_MS));
}

/** Starts a poll with a request. */
export function poll<T>({ ask, asks, tell, everyMs, isIdle, later }: PollOptions<T>) {
  const end = new AbortController();
  const isStopped = (): boolean => end.signal.aborted;
  let isAsking = false;
  let failures = 0;
  let cancel = (): void => undefined;

  const round = async (): Promise<void> => {
    cancel();
    if (isStopped() || isAsking || isIdle()) return; // Woken later.
    isAsking = true;
    asks?.();
    const result = await ask(end.signal).then(
      (data) => ({ data }),
      (error: unknown) => ({ error }),
    );
    isAsking = false;
    if (isStopped()) return;
    failures = "error" in result ? failures + 1 : 0;
    tell(result);
    const pauseMs = "data" in result ? everyMs * requestsOf(result.data) : Math.min(everyMs * 2 ** failures, Math.max(everyMs, LONGEST_MS));
    cancel = later(pauseMs, () => void round());
  };
  void round();
  return {
    /** Asks now, unless a request is under way or nobody looks. */
    wake: () => void round(),
    stop(): void {
      end.abort();
      cancel();
    },
  };
}

/** Returns the number of requests that an answer took, if it says so. */
export function requestsOf(data: unknown): number {
  return (data as { readonly requests?: number } | null | undefined)?.requests ?? 1;
}
