/** Tells a person at a terminal whom a command waits for, while it waits. */
import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../lib/index.js";
import { formatDuration } from "../duration.js";
import type { RunContext } from "../context.js";

/** A wait shorter than this is not worth a word. */
const FIRST_LOOK_MS = 1000;
const NEXT_LOOK_MS = 2000;

/** Says on stderr who holds the key and what place this process has in its queue, at first and when that changes, until `end` aborts. */
export async function tellWaiting(key: string, { locks, say, owner }: Pick<RunContext, "locks" | "say" | "owner">, end: AbortSignal) {
  let formatFailure: string | undefined;
  for (let lookMs = FIRST_LOOK_MS; await passes(lookMs, end); lookMs = NEXT_LOOK_MS) {
    const found = await waitedFor(key, locks, owner).catch(() => undefined); // The wait itself tells what is wrong.
    if (!found || end.aborted || found.state === formatFailure) continue;
    formatFailure = found.state;
    say(found.line);
  }
}

/** What to say, and what must change before it is said again. */
async function waitedFor(key: string, locks: LockClient, owner: string): Promise<{ readonly line: string; readonly state: string }> {
  const { holders, waiters } = await locks.inspect(key);
  const [first] = holders;
  const place = waiters.find((waiter) => waiter.owner === owner)?.position;
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : "";
  const by = first ? `held by ${first.owner || "somebody"}${others} for ${formatDuration(first.heldMs)}` : "it is being handed over";
  return {
    line: `waiting for ${key}: ${by}${place === undefined ? "" : `, you are ${ordinal(place)}`}`,
    state: JSON.stringify([first?.fencingToken, holders.length, place]),
  };
}

/** Whether so much time passed before the end. */
async function passes(ms: number, end: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal: end, ref: false }).catch(() => undefined);
  return !end.aborted;
}

/** 1st, 2nd, 3rd, 4th, and 11th to 13th. */
export function ordinal(place: number): string {
  const tens = place % 100;
  const suffix = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place}${suffix}`;
}
