/**
 * The second clock of a direct client: the `Date` header of DynamoDB's responses. It is in whole seconds, so each
 * response bounds the table's time: at its arrival the time was at least `Date`, and when the request was sent it was
 * less than `Date + 1 s`. Intersecting the bounds of many responses narrows them to about a round trip (Cristian 1989,
 * Marzullo 1984).
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DEFAULTS } from "../../core/limits.js";
import { type Clock, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { REQUEST_ID } from "./contact.js";

/** Bounds of the table's present time. */
export interface TableTime {
  readonly lowMs: number;
  readonly highMs: number;
}

/** Measured bounds: the table's time was within them at `at`. */
interface Known extends TableTime {
  readonly at: Instant;
}

const SECOND_MS = 1000;

/** The bounds that answers narrow. */
export interface AnswerWatcher {
  /** Notes that a request is sent now. Returns a function that takes its answer's `Date`. */
  readonly sending: () => (date: string | undefined) => void;
  /** Returns the table's present time; undefined before the first answer. */
  readonly time: () => TableTime | undefined;
}

/** Returns a watcher that measures by `clock`. */
export function answerWatcher(clock: Clock): AnswerWatcher {
  let known: Known | undefined;
  return {
    sending() {
      const sentAt = instantOf(clock);
      return (date) => {
        const dateMs = Date.parse(date ?? "");
        if (!Number.isNaN(dateMs)) known = narrowed(known, dateMs, sentAt, instantOf(clock));
      };
    },
    time: () => known && moved(known, instantOf(clock)),
  };
}

/**
 * The watchers of DynamoDB clients, by their middleware stacks: lock clients that share one also share the bounds from its responses. All
 * document clients of a client have its stack.
 */
const watchers = new WeakMap<object, Map<Clock, AnswerWatcher>>();

/** Watches `client`'s responses. Returns a function for the table's present time, which is undefined before the first. */
export function watchTableClock({ middlewareStack }: DynamoDBClient, clock: Clock): () => TableTime | undefined {
  const all = watchers.get(middlewareStack) ?? new Map<Clock, AnswerWatcher>();
  const watching = all.get(clock);
  if (watching) return watching.time;
  const watcher = answerWatcher(clock);
  middlewareStack.add(
    (next) => async (args) => {
      const answered = watcher.sending();
      const output = await next(args);
      answered(dateOf(output.response));
      return output;
    },
    { step: "deserialize", name: `holdfastTableClock${all.size}` },
  );
  watchers.set(middlewareStack, all.set(clock, watcher));
  return watcher.time;
}

/** Returns the bounds from a response with this `Date`, intersected with the known ones. */
export function narrowed(known: Known | undefined, dateMs: number, sentAt: Instant, arrivedAt: Instant): Known {
  const answered: Known = { lowMs: dateMs, highMs: dateMs + SECOND_MS + atMost(elapsedMs(sentAt, arrivedAt)), at: arrivedAt };
  if (!known) return answered;
  const before = moved(known, arrivedAt);
  const lowMs = Math.max(before.lowMs, answered.lowMs);
  const highMs = Math.min(before.highMs, answered.highMs);
  // The bounds don't overlap, so a clock jumped. The newer response counts.
  return lowMs <= highMs ? { lowMs, highMs, at: arrivedAt } : answered;
}

/** Returns the bounds at `now`: the lower moves at the slowest possible rate, the upper at the fastest. */
function moved(known: Known, now: Instant): TableTime {
  const most = elapsedMs(known.at, now);
  const least = Math.min(now.monotonicMs - known.at.monotonicMs, now.wallMs - known.at.wallMs);
  return { lowMs: known.lowMs + atLeast(least), highMs: known.highMs + atMost(most) };
}

/** Returns the most time that can have passed while a clock counted `ms`: the clock may be slow. */
function atMost(ms: number): number {
  return Math.max(0, ms) / (1 - DEFAULTS.clockRateError);
}

/** Returns the least time that can have passed: the clock may be fast. */
function atLeast(ms: number): number {
  return Math.max(0, ms) / (1 + DEFAULTS.clockRateError);
}

/** Returns the date of an answer of DynamoDB. Anybody else's time is none of the table's. */
function dateOf(response: unknown): string | undefined {
  const { headers } = (response ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
  return headers?.[REQUEST_ID] === undefined ? undefined : headers["date"];
}
