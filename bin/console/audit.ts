/** The deeds of operators among the lines of the log: who broke which hold or reset which run, and why. Pure. */
import type { LogLine } from "../../lib/dynamodb.js";

/** `drain`: the hold may last until its end, and is not renewed. `force`: it ended at once. */
export type Deed = "drain" | "force" | "reset";

/** Returns the deed that a line tells; undefined for every other line, and for a repeated request. */
export function deedOf({ event, kind, reason = "", repeated }: Pick<LogLine, "event" | "kind" | "reason" | "repeated">): Deed | undefined {
  if (repeated) return undefined;
  if (event === "breaking") return "drain";
  if (event === "reset") return "reset";
  // Without the operator's words, it is the end of a hold that drained. A reset ends the hold of an abandoned attempt, and has its own line.
  return event === "ended" && kind === "lock" && reason.startsWith(BROKEN) ? "force" : undefined;
}

/** Returns the operator's words. */
export function reasonOf({ reason = "" }: Pick<LogLine, "reason">): string {
  return reason.startsWith(BROKEN) ? reason.slice(BROKEN.length) : reason;
}

const BROKEN = "broken: ";
