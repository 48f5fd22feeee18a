/** Hooks of the page: polls, the time, the time since which a hold lasts, the width of an element. */
import { type RefObject, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { About, Exhausted, KeyHolder, Line, LocksData } from "../data.js";
import { isSilence, read } from "./api.js";
import { isOld, poll } from "./poll.js";
import { timeText } from "./words.js";

/** Things that every part of the page may need. */
export interface Shared {
  /** True while the user has stopped the updates. */
  readonly isPaused: boolean;
  readonly isUtc: boolean;
  /** The polls of what is shown. */
  readonly polls: Set<{ readonly current: Polled<unknown> }>;
}

/** The shared things. */
export const SharedContext = createContext<Shared>({ isPaused: false, isUtc: true, polls: new Set() });

/** The properties of every view. */
export interface ViewProps {
  readonly about: About;
  /** The filters of the address. */
  readonly query: URLSearchParams;
  /** All lines of the log, and the poll that brings them. */
  readonly lines: readonly Line[];
  readonly polledLines: Polled<unknown>;
  readonly logFromMs: number | undefined;
  readonly exhausted: Exhausted | undefined;
  /** Tells the user what was done. */
  readonly announce: (news: string) => void;
}

/** The properties of the view of one key or run. */
export interface OneProps extends ViewProps {
  readonly name: string;
}

/** The latest answer, the time at which it arrived, and the failure since, if any. */
export interface Polled<T> {
  readonly data?: T;
  readonly atMs?: number;
  readonly error?: Error;
  /** The time since which it polls without a pause, in epoch ms. */
  readonly sinceMs: number;
  /** The time between two polls, in ms. */
  readonly everyMs: number;
  /** Asks again now. */
  readonly again: () => void;
}

/** Returns what tells the user of a change, and asks for the data that it changed. */
export function doneWith({ announce }: ViewProps, { again }: Polled<unknown>): (news: string) => void {
  return (news) => {
    announce(news);
    again();
  };
}

/** Polls data, if there is a path, for as long as it is shown. Another path or query starts anew; the last answer stays until the next. */
export function usePolled<T>(path: string | undefined, query: Readonly<Record<string, string | number>>, everyMs: number): Polled<T> {
  const ask = path === undefined ? undefined : (reader: AbortSignal) => read<T>(path, query, reader);
  return usePoll(ask, everyMs, `${path} ${JSON.stringify(query)}`);
}

/** Polls `ask`, if there is something to ask; another `of` starts anew. */
export function usePoll<T>(ask: ((reader: AbortSignal) => Promise<T>) | undefined, everyMs: number, of: string): Polled<T> {
  const { isPaused, polls } = useContext(SharedContext);
  const [state, setState] = useState<Omit<Polled<T>, "again" | "everyMs">>({ sinceMs: Date.now() });
  const wake = useRef<() => void>(() => undefined);
  const latest = useRef(ask);
  latest.current = ask;
  const polled = { ...state, everyMs, again: () => wake.current() };
  const own = useRef<Polled<unknown>>(polled);
  own.current = polled;
  useEffect(() => {
    if (!ask || isPaused) return undefined;
    const polling = poll<T>({
      ask: (reader) => (latest.current ?? ask)(reader),
      everyMs,
      isIdle: () => document.hidden,
      later(ms, run) {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
      tell: (result) =>
        setState(({ error: _, ...before }) =>
          "data" in result ? { ...before, data: result.data, atMs: Date.now() } : { ...before, error: result.error as Error },
        ),
    });
    const goOn = (): void => {
      setState((before) => ({ ...before, sinceMs: Date.now() }));
      polling.wake();
    };
    goOn();
    wake.current = polling.wake;
    polls.add(own);
    document.addEventListener("visibilitychange", goOn);
    return () => {
      document.removeEventListener("visibilitychange", goOn);
      polls.delete(own);
      polling.stop();
    };
  }, [of, everyMs, ask === undefined, isPaused]);
  return polled;
}

/** Returns the time in epoch ms, again every `everyMs`. It stands still while the updates are paused or the tab is hidden. */
export function useNow(everyMs: number): number {
  const { isPaused } = useContext(SharedContext);
  const [nowMs, setNow] = useState(() => Date.now());
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) setNow(Date.now());
    }, everyMs);
    setNow(Date.now());
    return () => clearInterval(timer);
  }, [everyMs, isPaused]);
  return nowMs;
}

/** True while the latest answer tells what is so now. False if it is old, as in an outage: what has happened since is not known. */
export function useIsKnown({ data, atMs, everyMs }: Polled<unknown>): boolean {
  const nowMs = useNow(1000);
  return atMs === undefined || !isOld(nowMs - atMs, everyMs, data);
}

/** True once an answer is old, or a request after it failed: then what it told has no colour of a state. */
export function useIsOld(polled: Polled<unknown>): boolean {
  return !useIsKnown(polled) || polled.error !== undefined;
}

/** Returns for how long nobody has answered a poll, in ms; undefined while an answer, or a refusal, is in time. */
export function silentMs({ data, atMs = 0, sinceMs, everyMs, error }: Polled<unknown>, nowMs: number): number | undefined {
  const ms = nowMs - Math.max(atMs, sinceMs);
  return (error ? isSilence(error) : isOld(ms, everyMs, data)) ? ms : undefined;
}

/** Returns the width of an element in px, also after it changed. */
export function useWidth(element: RefObject<Element | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!element.current) return undefined;
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return width;
}

/** Returns the clock time since which a hold lasts. */
export type Since = (key: string, holder: KeyHolder) => string;

/**
 * Keeps the earliest times of what `data` shows, which arrived at `atMs`. The service tells durations only, and each answer is some time on its
 * way, so each shifts the time by a little: the earliest that was seen is the nearest to the truth, and stands still.
 */
export function useSince(data: LocksData | undefined, atMs: number): Since {
  const { isUtc } = useContext(SharedContext);
  const earliestMs = useRef<ReadonlyMap<string, number>>(new Map());
  const lastAtMs = useRef(0);
  if (data && lastAtMs.current !== atMs) {
    const shown = [...data.items, ...data.looks].flatMap(({ key, holders }) =>
      holders.map((holder) => [holderName(key, holder), holder] as const),
    );
    const sinceMs = ([name, { heldMs }]: (typeof shown)[number]): number =>
      Math.min(earliestMs.current.get(name) ?? Infinity, atMs - heldMs);
    earliestMs.current = new Map(shown.map((each) => [each[0], sinceMs(each)]));
    lastAtMs.current = atMs;
  }
  return (key, holder) => timeText(earliestMs.current.get(holderName(key, holder)) ?? atMs - holder.heldMs, isUtc);
}

function holderName(key: string, { fencingToken }: KeyHolder): string {
  return `${fencingToken} ${key}`;
}
