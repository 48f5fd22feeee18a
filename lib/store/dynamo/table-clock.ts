/**
 * The second clock of a client straight on the table: the `Date` header of DynamoDB's own answers.
 * It is in whole seconds, so each answer bounds the table's time: at the latest when it arrived it was
 * `Date`, at the earliest when it was asked for it was not yet `Date + 1 s`. Intersecting the bounds of
 * many answers narrows them to about a round trip (Cristian 1989, Marzullo 1984).
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DEFAULTS } from "../../core/limits.js";
import type { Clock, Instant } from "../../core/time.js";
import { elapsedMs, instantOf } from "../../core/time.js";

/** Between which times the table says it is now. */
export interface TableTime {
  readonly lowMs: number;
  readonly highMs: number;
}

/** What is known: the table's time was within these bounds at `at`. */
interface Known extends TableTime {
  readonly at: Instant;
}

const SECOND_MS = 1000;

/** Who listens already: lock clients that share a DynamoDB client share what its answers say. */
const watched = new WeakMap<DynamoDBClient, { readonly clock: Clock; readonly time: () => TableTime | undefined }>();

/** Listens to `client`'s answers; returns the table's time now, or undefined before the first. */
export function watchTableClock(client: DynamoDBClient, clock: Clock): () => TableTime | undefined {
  const watching = watched.get(client);
  if (watching?.clock === clock) return watching.time;
  let known: Known | undefined;
  client.middlewareStack.add(
    (next) => async (args) => {
      const sentAt = instantOf(clock);
      const output = await next(args);
      const dateMs = dateOf(output.response);
      if (dateMs !== undefined) known = narrowed(known, dateMs, sentAt, instantOf(clock));
      return output;
    },
    { step: "deserialize" },
  );
  const time = (): TableTime | undefined => known && moved(known, instantOf(clock));
  watched.set(client, { clock, time });
  return time;
}

/** What an answer with this `Date` says, together with what was known before. */
export function narrowed(known: Known | undefined, dateMs: number, sentAt: Instant, arrivedAt: Instant): Known {
  const heard: Known = { lowMs: dateMs, highMs: dateMs + SECOND_MS + atMost(elapsedMs(sentAt, arrivedAt)), at: arrivedAt };
  if (!known) return heard;
  const before = moved(known, arrivedAt);
  const lowMs = Math.max(before.lowMs, heard.lowMs);
  const highMs = Math.min(before.highMs, heard.highMs);
  // Bounds that no longer meet: a clock jumped. The newer word counts.
  return lowMs <= highMs ? { lowMs, highMs, at: arrivedAt } : heard;
}

/** The bounds as time goes on: at the least rate for the lower, at the most for the upper. */
function moved(known: Known, now: Instant): TableTime {
  const most = elapsedMs(known.at, now);
  const least = Math.min(now.monotonicMs - known.at.monotonicMs, now.wallMs - known.at.wallMs);
  return { lowMs: known.lowMs + atLeast(least), highMs: known.highMs + atMost(most) };
}

/** The most time that can have passed while a clock counted `ms`: it may be too slow. */
function atMost(ms: number): number {
  return Math.max(0, ms) / (1 - DEFAULTS.clockRateError);
}

/** The least: it may be too fast. */
function atLeast(ms: number): number {
  return Math.max(0, ms) / (1 + DEFAULTS.clockRateError);
}

function dateOf(response: unknown): number | undefined {
  const { headers } = (response ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
  const dateMs = Date.parse(headers?.["date"] ?? "");
  return Number.isNaN(dateMs) ? undefined : dateMs;
}
