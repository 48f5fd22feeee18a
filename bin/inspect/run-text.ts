/** Runs in a form for people or programs. */
import type { RunInspection } from "../../lib/index.js";
import { formatDuration } from "../duration.js";

/** The attempts that a caller makes at most if it says nothing else. What a caller says is not stored with the run. */
export const DEFAULT_ATTEMPTS = 5;

type Attempts = Pick<RunInspection, "state" | "retryable" | "attempt">;

/** True if the run has failed as often as callers try by default: by that limit it is refused until somebody resets it. */
export function hasUsedUp({ state, retryable, attempt }: Attempts): boolean {
  return state === "failed" && retryable === true && attempt >= DEFAULT_ATTEMPTS;
}

/** Returns the run's state, and for a failed run if the next caller runs it again. More attempts than the default had another limit. */
export function stateOf(run: Attempts): string {
  const { state, retryable, attempt } = run;
  if (hasUsedUp(run)) return `failed ${attempt} times, ${attempt > DEFAULT_ATTEMPTS ? "past the default limit" : "refused until reset"}`;
  return state === "failed" && retryable === true ? "failed, to be retried" : state;
}

/** Returns the time for which it has been running, since which it is interrupted, or for which its outcome is still stored; `""` if none
 * is known. `format` formats the first. */
export function lastsOf(run: Pick<RunInspection, "heldMs" | "endedAgoMs" | "keptForMs">, format = formatDuration): string {
  const { heldMs, endedAgoMs, keptForMs } = run;
  if (heldMs !== undefined) return `running for ${format(heldMs)}`;
  if (endedAgoMs !== undefined) return `ended ${formatDuration(endedAgoMs)} ago`;
  if (keptForMs === undefined) return "";
  return keptForMs === "forever" ? "kept for ever" : `kept for ${formatDuration(keptForMs)}`;
}

/** Returns what happens next to an interrupted run, which a person need not do; `""` of any other. */
export function nextOf({ state, checkpoint }: Pick<RunInspection, "state" | "checkpoint">): string {
  if (state !== "interrupted") return "";
  return `nothing to repair: the next start takes over${checkpoint === undefined ? "" : " from this checkpoint"}`;
}

/** Returns the run as JSON, with its error as name and message. */
export function jsonOf({ error, ...run }: RunInspection): object {
  return { ...run, ...(error && { error: { name: error.name, message: error.message } }) };
}
