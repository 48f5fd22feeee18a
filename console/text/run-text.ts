/** Runs in a form for people or programs. */
import type { RunInspection } from "../../lib/index.js";
import { formatDuration } from "./duration.js";

/** The attempts that a caller makes at most if it says nothing else. What a caller says is not stored with the run. */
export const DEFAULT_ATTEMPTS = 5;

type Attempts = Pick<RunInspection, "state" | "retryable" | "attempt" | "errorName">;

/** The occurrences of a schedule that never run, by the name of the error that they are recorded with: neither is a failure of the work. */
const NEVER_RUN: Readonly<Record<string, "skipped" | "too late">> = { TickSkipped: "skipped", TickTooLate: "too late" };

/** The states that a list of runs is filtered by. Occurrences that never run have their own, and aren't among the failed. */
export const LISTED_STATES = ["running", "interrupted", "succeeded", "failed", "skipped", "too-late"] as const;

/** A state that a list of runs is filtered by. */
export type ListedState = (typeof LISTED_STATES)[number];

/** Returns why an occurrence of a schedule never runs: `skipped` or `too late`; undefined of any other run. */
export function neverRuns({ state, errorName = "" }: Pick<RunInspection, "state" | "errorName">): "skipped" | "too late" | undefined {
  return state === "failed" ? NEVER_RUN[errorName] : undefined;
}

/** Returns the state that lists the run. */
export function listedStateOf(run: Pick<RunInspection, "state" | "errorName">): ListedState {
  const never = neverRuns(run);
  return never === "too late" ? "too-late" : (never ?? run.state);
}

/** Returns the state in which the service stores the runs that `listed` lists: it has one for all that won't run again without an outcome. */
export function storedStateOf(listed: ListedState): RunInspection["state"] {
  return listed === "skipped" || listed === "too-late" ? "failed" : listed;
}

/** True if the run has failed as often as callers try by default: by that limit it is refused until somebody resets it. */
export function hasUsedUp({ state, retryable, attempt }: Attempts): boolean {
  return state === "failed" && retryable === true && attempt >= DEFAULT_ATTEMPTS;
}

/** Returns the run's state, of an occurrence that never runs why, and for a failed run if a further caller may run it again. More attempts than the default had another limit. */
export function stateOf(run: Attempts): string {
  const { state, retryable, attempt } = run;
  const never = neverRuns(run);
  if (never !== undefined) return never;
  if (hasUsedUp(run)) return `failed ${attempt} times, ${attempt > DEFAULT_ATTEMPTS ? "past the default limit" : "refused until reset"}`;
  return state === "failed" && retryable === true ? "failed, can be retried" : state;
}

/** Returns the time since the start of the latest attempt, in ms; undefined if it isn't known. */
export function startedAgoMs({ heldMs, endedAgoMs, tookMs }: Pick<RunInspection, "heldMs" | "endedAgoMs" | "tookMs">): number | undefined {
  return heldMs ?? (endedAgoMs === undefined || tookMs === undefined ? undefined : endedAgoMs + tookMs);
}

/** Returns a time that has passed in words, `3m ago`; `-` if it isn't known. */
export function agoText(agoMs: number | undefined): string {
  return agoMs === undefined ? "-" : `${formatDuration(agoMs)} ago`;
}

/** Returns the time for which the outcome is still stored; `""` if there is none. */
export function keptText({ keptForMs }: Pick<RunInspection, "keptForMs">): string {
  return keptForMs === undefined ? "" : keptForMs === "forever" ? "ever" : formatDuration(keptForMs);
}

/** Returns when the latest attempt began or ended, for how long it lasted, and for how long its outcome is still stored; `""` if nothing is known. */
export function lastsOf(run: Pick<RunInspection, "heldMs" | "remainingMs" | "endedAgoMs" | "tookMs" | "keptForMs">): string {
  const { heldMs, remainingMs, endedAgoMs, tookMs, keptForMs } = run;
  const rest = remainingMs === undefined ? "" : `, for ${formatDuration(remainingMs)} more unless it is renewed`;
  if (heldMs !== undefined) return `running for ${formatDuration(heldMs)}${rest}`;
  const ended = endedAgoMs === undefined ? [] : [`ended ${agoText(endedAgoMs)}`];
  const took = tookMs === undefined ? [] : [`took ${formatDuration(tookMs)}`];
  return [...ended, ...took, ...(keptForMs === undefined ? [] : [`kept for ${keptText(run)}`])].join(", ");
}

/** Returns a person's next step with an interrupted run; `""` of any other. */
export function nextOf({ state, checkpoint }: Pick<RunInspection, "state" | "checkpoint">): string {
  if (state !== "interrupted") return "";
  return `start it again, unless something does by itself: that takes over${checkpoint === undefined ? "" : " from this checkpoint"}. Until then it stays unfinished`;
}

/** Returns the run as JSON, with its error as name and message. */
export function jsonOf({ error, ...run }: RunInspection): object {
  return { ...run, ...(error && { error: { name: error.name, message: error.message } }) };
}
