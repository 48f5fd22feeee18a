/** The words of the header: the state of the last request of the view. Pure. */
import { formatSeconds } from "../text/duration.js";
import { ApiError } from "./api.js";
import { type Polled, isOld, patienceMs, requestsOf } from "./poll.js";
import type { Tone } from "./words.js";

/** A state with its colour, and since when. */
export interface Status {
  readonly tone: Tone;
  readonly state: string;
  readonly age: string;
}

/** A poll as the header sees it. */
export type Asked = Omit<Polled<unknown>, "again">;

const FAULTS: Readonly<Record<string, string>> = {
  unreachable: "no answer",
  "no-answer": "no answer of holdfast",
  unavailable: "failing",
  internal: "failing",
  throttled: "throttled",
  forbidden: "not allowed",
  "not-configured": "not accepted, or not set up",
};

/** Returns a failure in some words, with its status if the service or a gateway answered with one. */
function faultOf(error: Error): string {
  const { code, status } = error instanceof ApiError ? error : { code: "internal", status: undefined };
  if (status === undefined && code === "unavailable") return "no answer";
  const words = FAULTS[code];
  return words === undefined ? `refused (${code})` : words + (status === undefined ? "" : ` (${status})`);
}

/** Returns for how long a request has had no answer, in ms; 0 if none is under way. */
export function underWayMs({ asked: { current } }: Pick<Asked, "asked">, nowMs: number): number {
  return current === undefined ? 0 : nowMs - current;
}

/** True if a request has had no answer for twice the time that one may take, or the last answer is old. */
export function isSilent(polled: Asked, nowMs: number): boolean {
  const { atMs = 0, sinceMs, everyMs, data } = polled;
  return underWayMs(polled, nowMs) > 2 * patienceMs(everyMs, data) || isOld(nowMs - Math.max(atMs, sinceMs), everyMs, data);
}

/**
 * Returns the state of a view by its own polls. `others` are polls of the same service, such as that of its state: they count while they fail,
 * and never make a view live.
 */
export function statusOf(views: readonly Asked[], others: readonly Asked[], nowMs: number): Status {
  const all = [...views, ...others];
  const sinceText = ({ atMs = 0, sinceMs }: Asked): string => `for ${formatSeconds(nowMs - Math.max(atMs, sinceMs))}`;
  const failed = all.find(({ error }) => error);
  if (failed?.error) return { tone: "over", state: faultOf(failed.error), age: sinceText(failed) };
  const silent = all.find((one) => isSilent(one, nowMs));
  if (silent) return { tone: "over", state: "no answer", age: sinceText(silent) };
  const late = all.find((one) => underWayMs(one, nowMs) > patienceMs(one.everyMs, one.data));
  if (late) return { tone: "late", state: "no answer yet", age: `for ${formatSeconds(underWayMs(late, nowMs))}` };
  const answered = views.filter(({ atMs }) => atMs !== undefined);
  const [first] = answered.toSorted((a, b) => (a.atMs ?? 0) - (b.atMs ?? 0));
  if (!first || answered.length < views.length) return { tone: "unknown", state: "asking", age: "" };
  const ageMs = Math.max(1, nowMs - (first.atMs ?? 0));
  const age = `answered ${formatSeconds(ageMs)} ago`;
  // However many requests a look takes, after a missed interval it tells nothing of now.
  if (ageMs <= first.everyMs + patienceMs(first.everyMs)) return { tone: "held", state: "live", age };
  if (first.asked.current !== undefined) return { tone: "unknown", state: "asking", age };
  const pauseMs = first.everyMs * requestsOf(first.data);
  return { tone: "unknown", state: "resting", age: `${age}, asks in ${formatSeconds(Math.max(0, pauseMs - ageMs))}` };
}

/** Says that the browser's clock is ahead or behind by so much; `""` if it is not. */
export function skewText(aheadMs: number | undefined): string {
  if (aheadMs === undefined) return "";
  return `this device's clock is ${formatSeconds(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead" : "behind"}: times are the service's`;
}
