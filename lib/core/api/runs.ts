/**
 * The operations on runs, as a caller requests them: the counterpart of {@link LockApi}. Values (results, errors,
 * checkpoints) are JSON here: `undefined` is no value, `null` is null. A run's lease is renewed, checked and released
 * like a lock's, with its `kind`.
 */
import type { Held, Recorded } from "../commands.js";
import type { Refusal } from "../errors.js";
import type { LimitApi } from "./limits.js";
import type { CallOptions, InspectRequest, LeaseRef, LockApi, PageRequest } from "./locks.js";
import type { SetApi } from "./sets.js";
import type { RunView } from "../lock/views.js";

/** Runs the work of a key, or returns its outcome. A member that is left out takes the service's default. */
export interface StartRequest extends LeaseRef {
  readonly leaseMs?: number | undefined;
  readonly owner?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly keepResultMs?: number | "forever" | undefined;
  readonly maxAttempts?: number | undefined;
  /** The time to wait for the outcome of another caller's run, in ms. The service has a limit of its own. */
  readonly waitMs?: number | undefined;
}

/** This caller runs the work. */
export interface Started {
  readonly ok: true;
  readonly state: "running";
  readonly how: "granted" | "replayed";
  readonly lease: Held["lease"];
  readonly attempt: number;
  readonly takeover: boolean;
  readonly checkpoint?: unknown;
}

/** The recorded outcome of the work. */
export interface Replayed {
  readonly ok: true;
  readonly state: "succeeded" | "failed";
  readonly attempt: number;
  readonly result?: unknown;
  readonly error?: unknown;
  /** There was a result, but it was too large to store. */
  readonly resultOmitted?: true;
}

/** The outcome of an attempt, as its caller reports it. */
export type OutcomeInput =
  | { readonly state: "succeeded"; readonly result?: unknown; readonly resultOmitted?: true | undefined }
  | { readonly state: "failed"; readonly error?: unknown; readonly retryable: boolean };

/** Records the outcome, and ends the lease. */
export interface CompleteRequest extends LeaseRef {
  readonly outcome: OutcomeInput;
}

/** The result of a read of one run. */
export type RunFound =
  | { readonly ok: true; readonly tag: string; readonly run: RunView }
  | { readonly ok: true; readonly tag: string; readonly unchanged: true };

export interface RunListRequest extends PageRequest {
  readonly state?: RunView["state"] | undefined;
}

/** Runs in the order of their keys, without their values; `cursor` requests the next page. */
export interface RunsListed {
  readonly ok: true;
  readonly items: readonly RunView[];
  readonly cursor?: string;
}

/** A request to forget a run: the latest, or the one of a token. */
export interface ResetRunRequest {
  readonly key: string;
  readonly reason: string;
  readonly fencingToken?: number | undefined;
}

/** Every operation on runs. */
export interface RunApi {
  start(request: StartRequest, options?: CallOptions): Promise<Started | Replayed | Refusal>;
  complete(request: CompleteRequest, options?: CallOptions): Promise<Recorded | Refusal>;
  run(request: InspectRequest, options?: CallOptions): Promise<RunFound | Refusal>;
  runs(request: RunListRequest, options?: CallOptions): Promise<RunsListed | Refusal>;
  resetRun(request: ResetRunRequest, options?: CallOptions): Promise<{ readonly ok: true } | Refusal>;
}

/** Every operation of the service. */
export interface ServiceApi extends LockApi, SetApi, RunApi, LimitApi {}
