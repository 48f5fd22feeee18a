/** Hooks of the page: polls, the time, the time since which a hold lasts, the width of an element. */
import { type RefObject, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { About, Exhausted, KeyHolder, Line, LocksData } from "../data.js";
import { read } from "./api.js";
import { serviceNowMs } from "./clock.js";
import { type Polled, poll } from "./poll.js";
import { isSilent } from "./status.js";
import { whenText } from "./words.js";

/** Things that every part of the page may need. */
export interface Shared {
  /** True while the user has stopped the updates. */
  readonly isPaused: boolean;
  readonly isUtc: boolean;
  /** The polls of what is shown, each with its part. */
  readonly polls: Map<{ readonly current: Polled<unknown> }, PollPart>;
}

/** `view`: a poll of the view itself. `service`: of the service's state or log, which every view has. `aside`: of something else. */
export type PollPart = "view" | "service" | "aside";

/** The shared things. */
export const SharedContext = createContext<Shared>({ isPaused: false, isUtc: true, polls: new Map() });

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

/** Returns what tells the user of a change, and asks for the data that it changed. */
export function doneWith({ announce }: ViewProps, { again }: Polled<unknown>): (news: string) => void {
  return (news) => {
    announce(news);
    again();
  };
}

/** Polls data, if there is a path, for as long as it is shown. Another path or query starts anew; the last answer stays until the next. */
export function usePolled<T>(
  path: string | undefined,
  query: Readonly<Record<string, string | number>>,
  everyMs: number,
  part?: PollPart,
): Polled<T> {
  const ask = path === undefined ? undefined : (reader: AbortSignal) => read<T>(path, query, reader);
  return usePoll(ask, everyMs, `${path} ${JSON.stringify(query)}`, part);
}

/** Polls `ask`, if there is something to ask; another `of` starts anew. */
export function usePoll<T>(
  ask: ((reader: AbortSignal) => Promise<T>) | undefined,
  everyMs: number,
  of: string,
  part: PollPart = "view",
): Polled<T> {
  const { isPaused, polls } = useContext(SharedContext);
  const [state, setState] = useState<Omit<Polled<T>, "again" | "asked" | "everyMs">>({ sinceMs: serviceNowMs() });
  const asked = useRef<number | undefined>(undefined);
  const wake = useRef<() => void>(() => undefined);
  const latest = useRef(ask);
  latest.current = ask;
  const polled = { ...state, everyMs, asked, again: () => wake.current() };
  const own = useRef<Polled<unknown>>(polled);
  own.current = polled;
  useEffect(() => {
    if (!ask || isPaused) return undefined;
    const polling = poll<T>({
      ask: (reader) => (latest.current ?? ask)(reader),
      everyMs,
      asks: () => (asked.current = serviceNowMs()),
      isIdle: () => document.hidden,
      later(ms, run) {
        const timer = setTimeout(run, ms);
        return () => clearTimeout(timer);
      },
      tell: (result) => {
        const [askedMs, atMs] = [asked.current, serviceNowMs()];
        asked.current = undefined;
        setState(({ error: _, ...before }) =>
          "data" in result ? { ...before, data: result.data, askedMs, atMs } : { ...before, error: result.error as Error },
        );
      },
    });
    const goOn = (): void => {
      setState((before) => ({ ...before, sinceMs: serviceNowMs() }));
      polling.wake();
    };
    goOn();
    wake.current = polling.wake;
    polls.set(own, part);
    document.addEventListener("visibilitychange", goOn);
    return () => {
      document.removeEventListener("visibilitychange", goOn);
      polls.delete(own);
      asked.current = undefined;
      polling.stop();
    };
  }, [of, everyMs, ask === undefined, isPaused]);
  return polled;
}

/** Returns the service's time in epoch ms, again every `everyMs`. It stands still while the updates are paused or the tab is hidden. */
export function useNow(everyMs: number): number {
  const { isPaused } = useContext(SharedContext);
  const [nowMs, setNow] = useState(serviceNowMs);
  useEffect(() => {
    if (isPaused) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden) setNow(serviceNowMs());
    }, everyMs);
    setNow(serviceNowMs());
    return () => clearInterval(timer);
  }, [everyMs, isPaused]);
  return nowMs;
}

/** True while the latest answer tells what is so now. False if it is old, as in an outage: what has happened since is not known. */
export function useIsKnown(polled: Polled<unknown>): boolean {
  const nowMs = useNow(1000);
  return polled.atMs === undefined || !isSilent({ ...polled, sinceMs: 0 }, nowMs);
}

/** True once an answer is old, or a request after it failed: then what it told has no colour of a state. */
export function useIsOld(polled: Polled<unknown>): boolean {
  return !useIsKnown(polled) || polled.error !== undefined;
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
  return (key, holder) => whenText(earliestMs.current.get(holderName(key, holder)) ?? atMs - holder.heldMs, atMs, isUtc);
}

function holderName(key: string, { fencingToken }: KeyHolder): string {
  return `${fencingToken} ${key}`;
}
