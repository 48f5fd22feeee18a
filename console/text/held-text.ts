/** A line of the log in words that it can vouch for: the event, and for an end how it came and how long the hold lasted. */
import type { LogLine } from "../../lib/dynamodb.js";
import { formatDuration } from "./duration.js";

type Told = Partial<Omit<LogLine, "event">> & { readonly event?: string };

/** The ends of a lease, as the log and a key's record name them: the verb, and the words that may follow it. */
const ENDS: Readonly<Record<string, readonly [verb: string, more: string]>> = {
  released: ["released", ""],
  expired: ["lost", ": its lease ran out"],
  taken: ["lost", ": its lease ran out"],
  broken: ["broken", " by an operator"],
  transferred: ["handed on", " to another lease"],
  cancelled: ["gave up", " waiting"],
  skipped: ["lost place", ": it did not ask again in time"],
};

/** Returns an end as a verb; `ended` if nobody knows how. */
export function verbOf(ending: string): string {
  return ENDS[ending]?.[0] ?? "ended";
}

/** Returns an end in words. */
export function endText(ending: string): string {
  return ENDS[ending]?.join("") ?? "ended, nobody knows how";
}

/** Ends that the service sees some time after the lease itself was over, or that may come after it. */
const SEEN_LATER = ["expired", "taken", "broken", "unknown"];

/** Returns how a hold ended in words: `broken by carol: its machine is gone`. What was broken may have been released before its lease was over. */
export function holdEndText(ending: string, broken?: { readonly by?: string | undefined; readonly why: string }): string {
  if (!broken) return endText(ending);
  const { by = "an operator", why } = broken;
  return `${ending === "broken" ? "broken" : `${endText(ending)}, after a break`} by ${by}${why === "" ? "" : `: ${why}`}`;
}

/** Returns the event of a line as a person says it: each end has a verb of its own. */
export function wordOf({ event = "", reason = "" }: Told): string {
  if (event === "ended") return verbOf(nameOf(reason));
  return event === "skipped" ? verbOf(event) : event;
}

/**
 * Returns the reason of a line, without what {@link wordOf} tells, and the time of its hold; each `""` if there is none. Nobody knows for how
 * long a holder worked whose lease ran out, only that it did not hold for longer.
 */
export function endOf(line: Told, format = formatDuration): { readonly why: string; readonly held: string } {
  const { event, reason = "", heldMs, lapsedMs = 0 } = line;
  const name = nameOf(reason);
  const isLost = wordOf(line) === "lost";
  const own = event === "ended" && name in ENDS ? reason.slice(name.length).replace(/^: /, "") : reason;
  const why = isLost ? "lease ran out" : event === "skipped" ? "it did not ask again in time" : own;
  if (heldMs === undefined) return { why, held: "" };
  const held = `held ${SEEN_LATER.includes(name) ? "at most " : ""}${format(heldMs - lapsedMs)}`;
  return { why, held: name === "taken" ? `${held}, taken ${format(lapsedMs)} later` : held };
}

/** Returns what a line tells of a mode and a wait, each in words or `""`. */
export function factsOf({ mode, position, condition, waitedMs }: Told, format = formatDuration): readonly string[] {
  return [
    saying("now", mode),
    saying("place", position),
    saying("condition", condition),
    saying("waited", waitedMs === undefined ? undefined : format(waitedMs)),
  ];
}

/** Returns a value after its name; `""` if there is none. */
export function saying(name: string, value: string | number | undefined): string {
  return value === undefined ? "" : `${name} ${value}`;
}

function nameOf(reason: string): string {
  return reason.split(": ", 1)[0] ?? "";
}
