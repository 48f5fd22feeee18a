/** The true history of a run: its attempts with how each ended, and every outcome with the times at which it was stored. */
import type { Run as RunRecord } from "../../../lib/core/record.js";

/** One attempt, since the write that started it. */
export interface Attempt {
  readonly leaseId: string;
  readonly token: number;
  readonly number: number;
  readonly takeover: boolean;
  readonly fingerprint: string;
  /** The JSON text of the checkpoint to resume from. */
  readonly checkpoint: string | undefined;
  /** True if its function was called. */
  isBegun: boolean;
  /** The last checkpoint whose save was confirmed to its client. */
  savedSerial: number;
  /** `silent`: it was taken over before it reported how it ended. */
  end?: "outcome" | "silent";
}

/** A run's end as a client reports or receives it. `text` is the JSON of the result or the error. */
export interface Said {
  readonly state: "succeeded" | "failed" | "retry";
  readonly text: string | undefined;
}

/** A final outcome, and the instants between which it was in the table. */
export interface FinalOutcome {
  readonly state: "succeeded" | "failed";
  readonly text: string | undefined;
  readonly recordedBy: string;
  readonly attempt: number;
  readonly fingerprint: string;
  /** In true time, counted from the decision to record it. */
  readonly keptUntilMs: number;
  readonly sinceMs: number;
  untilMs: number;
}

/** A replay that a client got for a request sent at `sinceMs`. */
export interface Told {
  readonly state: "succeeded" | "failed";
  readonly text: string | undefined;
  readonly attempt: number;
  readonly sinceMs: number;
}

/** All events of one key. */
export interface RunTruth {
  /** The attempts since the run was last forgotten, without those that were abandoned before their work began. */
  attempts: Attempt[];
  checkpoint: string | undefined;
  current: FinalOutcome | undefined;
  readonly outcomes: FinalOutcome[];
  readonly byToken: Map<number, Attempt>;
  /** The outcome that each lease recorded, final or not. */
  readonly recorded: Map<string, string | undefined>;
}

/** Returns the state before any attempt. */
export function newRunTruth(): RunTruth {
  return { attempts: [], checkpoint: undefined, current: undefined, outcomes: [], byToken: new Map(), recorded: new Map() };
}

/** Resets the key: it is unused from true time `atMs` on. */
export function forget(truth: RunTruth, atMs: number): void {
  if (truth.current) truth.current.untilMs = atMs;
  truth.current = undefined;
  truth.attempts = [];
  truth.checkpoint = undefined;
}

/** Returns the run's fingerprint: the first that an attempt gave. Empty if no attempt gave one. */
export function fingerprintOf({ attempts }: RunTruth): string {
  return attempts.find(({ fingerprint }) => fingerprint !== "")?.fingerprint ?? "";
}

/** Returns the outcome in the body of a request that records it. */
export function saidOf({ state, retryable, result, error }: Readonly<Record<string, unknown>>): Said {
  if (state === "succeeded") return { state, text: JSON.stringify(result) };
  return { state: retryable === true ? "retry" : "failed", text: JSON.stringify(error) };
}

/** True if the record still has this outcome. Ignores its value. */
export function heldOutcome({ state, attempt, recordedBy }: FinalOutcome, run: RunRecord | undefined): boolean {
  return run?.state === state && run.attempt === attempt && run.outcome?.recordedBy === recordedBy;
}

/** True if this is the reported outcome and it was in the table after the request was sent. */
export function wasSo({ state, text, attempt, untilMs }: FinalOutcome, told: Told): boolean {
  return state === told.state && text === told.text && attempt === told.attempt && untilMs >= told.sinceMs;
}

/** Returns the number that the simulated work gave to a checkpoint. The numbers rise. */
export function serialOf(checkpoint: string | undefined): number {
  return checkpoint === undefined ? 0 : (JSON.parse(checkpoint) as { readonly serial: number }).serial;
}

/** Returns the payload that the simulated work put into a result or an error. Empty: it had none. */
export function aboutOf(text: string | undefined): string {
  const said = JSON.parse(text ?? "{}") as { readonly about?: string; readonly message?: string };
  return said.about ?? (said.message === undefined ? "" : aboutOf(said.message));
}
