/** Runs in a form for people or programs. */
import type { LogLine } from "../../lib/dynamodb.js";
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

/** The outcome in a line of the log. */
type ToldOutcome = Pick<LogLine, "outcome" | "errorName">;

/** Returns the outcome in a line of the log: of an occurrence that never runs why, and of a failure the name of its error. */
export function outcomeText({ outcome, errorName = "" }: ToldOutcome): string {
  return neverRuns({ state: "failed", errorName }) ?? [outcome, errorName].filter(Boolean).join(" ");
}

/** True if a line of the log tells of an attempt that failed. */
export function tellsFailure({ outcome = "succeeded", errorName = "" }: ToldOutcome): boolean {
  return outcome !== "succeeded" && neverRuns({ state: "failed", errorName }) === undefined;
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

type Kind = RunInspection["state"] | "skipped" | "too late" | "retryable" | "used up" | "past the default";

/** The words for each kind of run: as a state, and at the end of a sentence about it. */
const WORDS: Readonly<Record<Kind, (attempt: number) => readonly [state: string, sentence: string]>> = {
  running: () => ["running", "is running"],
  interrupted: () => ["interrupted", "was interrupted"],
  succeeded: () => ["succeeded", "succeeded"],
  failed: () => ["failed", "failed"],
  skipped: () => ["skipped", "was skipped"],
  "too late": () => ["too late", "came too late"],
  retryable: () => ["failed, can be retried", "failed, and can be retried"],
  "used up": (attempt) => [`failed ${attempt} times, refused until reset`, `failed ${attempt} times, and is refused until it is reset`],
  // More attempts than the default had another limit.
  "past the default": (attempt) => [`failed ${attempt} times, past the default limit`, `failed ${attempt} times, past the default limit`],
};

function wordsOf(run: Attempts): readonly [state: string, sentence: string] {
  const { state, retryable, attempt } = run;
  const kind = hasUsedUp(run) ? (attempt > DEFAULT_ATTEMPTS ? "past the default" : "used up") : state;
  return WORDS[neverRuns(run) ?? (kind === "failed" && retryable === true ? "retryable" : kind)](attempt);
}

/** Returns the run's state, of an occurrence that never runs why, and for a failed run if a further caller may run it again. */
export function stateOf(run: Attempts): string {
  return wordsOf(run)[0];
}

/** Returns the same as the end of a sentence about the run: `failed, and can be retried`. */
export function becameOf(run: Attempts): string {
  return wordsOf(run)[1];
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

/** Returns when the latest attempt began or ended, for how long it lasted, and for how long its outcome is still stored, as a sentence about it ends. */
export function lastsOf(run: Pick<RunInspection, "heldMs" | "remainingMs" | "endedAgoMs" | "tookMs" | "keptForMs">): string {
  const { heldMs, remainingMs, endedAgoMs, tookMs, keptForMs } = run;
  const rest = remainingMs === undefined ? "" : `, and ends in ${formatDuration(remainingMs)} unless it is renewed`;
  if (heldMs !== undefined) return `has run for ${formatDuration(heldMs)}${rest}`;
  const ended = endedAgoMs === undefined ? [] : [`ended ${agoText(endedAgoMs)}`];
  const took = tookMs === undefined ? [] : [`took ${formatDuration(tookMs)}`];
  return [...ended, ...took, ...(keptForMs === undefined ? [] : [`is kept for ${keptText(run)}`])]
    .join(", ")
    .replace(/, (?=[^,]*$)/, " and ");
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
