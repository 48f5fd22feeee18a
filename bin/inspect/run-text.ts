/** Runs in a form for people or programs. */
import type { RunInspection } from "../../lib/index.js";
import { formatDuration } from "../duration.js";

/** Returns the run's state, and for a failed run if the next caller runs it again. */
export function stateOf({ state, retryable }: Pick<RunInspection, "state" | "retryable">): string {
  return state === "failed" && retryable === true ? "failed, to be retried" : state;
}

/** Returns the time for which it has been running, or for which its outcome is still stored; `""` if neither is known. */
export function lastsOf({ heldMs, keptForMs }: Pick<RunInspection, "heldMs" | "keptForMs">): string {
  if (heldMs !== undefined) return `running for ${formatDuration(heldMs)}`;
  if (keptForMs === undefined) return "";
  return keptForMs === "forever" ? "kept for ever" : `kept for ${formatDuration(keptForMs)}`;
}

/** Returns the run as JSON, with its error as name and message. */
export function jsonOf({ error, ...run }: RunInspection): object {
  return { ...run, ...(error && { error: { name: error.name, message: error.message } }) };
}
