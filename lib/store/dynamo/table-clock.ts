/**
 * The second clock of a direct client: the `Date` header of DynamoDB's responses. It is in whole seconds, so each
 * response bounds the table's time: at its arrival the time was at least `Date`, and when the request was sent it was
 * less than `Date + 1 s`. Intersecting the bounds of many responses narrows them to about a round trip (Cristian 1989,
 * Marzullo 1984).
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DEFAULTS } from "../../core/limits.js";
import type { Clock, Instant } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";
import type { AnswerWatcher } from "./built-in-calls.js";

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

/**
 * The middleware stacks of watched DynamoDB clients: lock clients that share one also share the bounds from its responses. All document
 * clients of a client have its stack.
 */
const watched = new WeakMap<object, { readonly clock: Clock; readonly time: () => TableTime | undefined }>();
/** The watchers of answers that come from the transport that bypasses the client (dynamo/choose-transport.ts). */
const watchers = new WeakMap<object, AnswerWatcher[]>();
/** The start of the middleware's name. */
export const CLOCK_MIDDLEWARE = "holdfastTableClock";

/** Returns the watchers of answers to requests sent by the configuration of `client`. */
export function answerWatchers({ middlewareStack }: DynamoDBClient): readonly AnswerWatcher[] {
  return watchers.get(middlewareStack) ?? [];
}

/** Watches `client`'s responses. Returns a function for the table's present time, which is undefined before the first. */
export function watchTableClock({ middlewareStack }: DynamoDBClient, clock: Clock): () => TableTime | undefined {
  const watching = watched.get(middlewareStack);
  if (watching?.clock === clock) return watching.time;
  let known: Known | undefined;
  const watcher: AnswerWatcher = {
    now: () => instantOf(clock),
    answered(sentAt, date) {
      const dateMs = Date.parse(date ?? "");
      if (!Number.isNaN(dateMs)) known = narrowed(known, dateMs, sentAt, instantOf(clock));
    },
  };
  const all = watchers.get(middlewareStack) ?? [];
  watchers.set(middlewareStack, [...all, watcher]);
  middlewareStack.add(
    (next) => async (args) => {
      const sentAt = watcher.now();
      const output = await next(args);
      watcher.answered(sentAt, dateOf(output.response));
      return output;
    },
    { step: "deserialize", name: `${CLOCK_MIDDLEWARE}${all.length}` },
  );
  const time = (): TableTime | undefined => known && moved(known, instantOf(clock));
  watched.set(middlewareStack, { clock, time });
  return time;
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

function dateOf(response: unknown): string | undefined {
  const { headers } = (response ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
  return headers?.["date"];
}
