/** A run as it really was: its attempts and how each of them ended, and every outcome, with when it was so. */
import type { Run as RunRecord } from "../../lib/core/record.js";

/** One attempt, from the write that started it. */
export interface Attempt {
  readonly leaseId: string;
  readonly token: number;
  readonly number: number;
  readonly takeover: boolean;
  readonly fingerprint: string;
  /** The JSON text that it was to begin from. */
  readonly checkpoint: string | undefined;
  /** Whether its function was called. */
  isBegun: boolean;
  /** The last checkpoint that its client was told is saved. */
  savedSerial: number;
  /** `silent`: it was taken over without having said how it ended. */
  end?: "outcome" | "silent";
}

/** What a client says or is told of a run's end; `text` is the JSON of the result or the error. */
export interface Said {
  readonly state: "succeeded" | "failed" | "retry";
  readonly text: string | undefined;
}

/** A final outcome, and between which instants it was in the table. */
export interface FinalOutcome {
  readonly state: "succeeded" | "failed";
  readonly text: string | undefined;
  readonly recordedBy: string;
  readonly attempt: number;
  readonly fingerprint: string;
  /** By true time, from the decision to record it. */
  readonly keptUntilMs: number;
  readonly sinceMs: number;
  untilMs: number;
}

/** A replay, as somebody was told it who asked at `sinceMs`. */
export interface Told {
  readonly state: "succeeded" | "failed";
  readonly text: string | undefined;
  readonly attempt: number;
  readonly sinceMs: number;
}

/** Everything that happened under one key. */
export interface RunTruth {
  /** Since the run was last forgotten; without those that were given up before their work began. */
  attempts: Attempt[];
  checkpoint: string | undefined;
  current: FinalOutcome | undefined;
  readonly outcomes: FinalOutcome[];
  readonly byToken: Map<number, Attempt>;
  /** What each lease recorded, final or not. */
  readonly recorded: Map<string, string | undefined>;
}

/** Nothing ran yet. */
export function newRunTruth(): RunTruth {
  return { attempts: [], checkpoint: undefined, current: undefined, outcomes: [], byToken: new Map(), recorded: new Map() };
}

/** From true time `atMs` on the key is as new. */
export function forget(truth: RunTruth, atMs: number): void {
  if (truth.current) truth.current.untilMs = atMs;
  truth.current = undefined;
  truth.attempts = [];
  truth.checkpoint = undefined;
}

/** What the run is about: what the first attempt that said so said. Empty: nobody did. */
export function fingerprintOf({ attempts }: RunTruth): string {
  return attempts.find(({ fingerprint }) => fingerprint !== "")?.fingerprint ?? "";
}

/** The outcome in the body of a request that wants it recorded. */
export function saidOf({ state, retryable, result, error }: Readonly<Record<string, unknown>>): Said {
  if (state === "succeeded") return { state, text: JSON.stringify(result) };
  return { state: retryable === true ? "retry" : "failed", text: JSON.stringify(error) };
}

/** Whether the record still has this outcome, its value aside. */
export function heldOutcome({ state, attempt, recordedBy }: FinalOutcome, run: RunRecord | undefined): boolean {
  return run?.state === state && run.attempt === attempt && run.outcome?.recordedBy === recordedBy;
}

/** Whether this is the outcome that was told, and was in the table after it was asked for. */
export function wasSo({ state, text, attempt, untilMs }: FinalOutcome, told: Told): boolean {
  return state === told.state && text === told.text && attempt === told.attempt && untilMs >= told.sinceMs;
}

/** The number that the simulated work gives to its checkpoints: they grow. */
export function serialOf(checkpoint: string | undefined): number {
  return checkpoint === undefined ? 0 : (JSON.parse(checkpoint) as { readonly serial: number }).serial;
}

/** The payload that the simulated work says a result or an error is about. Empty: it had none. */
export function aboutOf(text: string | undefined): string {
  const said = JSON.parse(text ?? "{}") as { readonly about?: string; readonly message?: string };
  return said.about ?? (said.message === undefined ? "" : aboutOf(said.message));
}
