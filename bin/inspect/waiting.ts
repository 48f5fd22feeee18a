/** Prints the holder of a key while a command waits for it. */
import { setTimeout as delay } from "node:timers/promises";
import type { LockClient } from "../../lib/index.js";
import { formatDuration } from "../../console/text/duration.js";
import type { RunContext } from "../context.js";

/** The time until the first message, in ms: a shorter wait is not worth a message. */
const FIRST_LOOK_MS = 1000;
const NEXT_LOOK_MS = 2000;

/** Prints the key's holder and this process's place in the queue to stderr, at first and after every change, until `end` aborts. */
export async function tellWaiting(key: string, { locks, say, owner }: Pick<RunContext, "locks" | "say" | "owner">, end: AbortSignal) {
  let lastState: string | undefined;
  for (let lookMs = FIRST_LOOK_MS; await passes(lookMs, end); lookMs = NEXT_LOOK_MS) {
    const found = await waitedFor(key, locks, owner).catch(() => undefined); // The wait itself reports errors.
    if (!found || end.aborted || found.state === lastState) continue;
    lastState = found.state;
    say(found.line);
  }
}

/** Says a line once, unless `end` aborts before it is worth it. */
export async function sayLater(say: RunContext["say"], line: string, end: AbortSignal): Promise<void> {
  if (await passes(FIRST_LOOK_MS, end)) say(line);
}

/** Returns the line to print, and the state whose change makes it worth printing again. */
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

/** Waits. Returns true if the time passed before `end` aborted. */
async function passes(ms: number, end: AbortSignal): Promise<boolean> {
  await delay(ms, undefined, { signal: end, ref: false }).catch(() => undefined);
  return !end.aborted;
}

/** Returns an ordinal number: 1st, 2nd, 3rd, 4th, and 11th to 13th. */
export function ordinal(place: number): string {
  const tens = place % 100;
  const suffix = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][place % 10] ?? "th");
  return `${place}${suffix}`;
}
