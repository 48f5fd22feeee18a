/** Runs as a person or a program reads them. */
import type { RunInspection } from "../../lib/index.js";
import { formatDuration } from "../duration.js";

/** Its state, and of a failed one whether the next caller runs it again. */
export function stateOf({ state, retryable }: RunInspection): string {
  return state === "failed" && retryable === true ? "failed, to be retried" : state;
}

/** Since when it runs, or for how long its outcome is still kept; `""` when there is neither. */
export function lastsOf({ heldMs, keptForMs }: RunInspection): string {
  if (heldMs !== undefined) return `running for ${formatDuration(heldMs)}`;
  if (keptForMs === undefined) return "";
  return keptForMs === "forever" ? "kept for ever" : `kept for ${formatDuration(keptForMs)}`;
}

/** The run as JSON; its error as name and message. */
export function jsonOf({ error, ...run }: RunInspection): object {
  return { ...run, ...(error && { error: { name: error.name, message: error.message } }) };
}
