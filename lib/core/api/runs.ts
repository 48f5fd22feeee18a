/**
 * The operations on runs, as a caller asks for them; beside {@link LockApi}, and served like it. Values
 * (results, errors, checkpoints) are JSON here: `undefined` is none, `null` is null. A run's lease is
 * renewed, looked at and given up like a lock's, by its `kind`.
 */
import type { Held, Recorded } from "../commands.js";
import type { Refusal } from "../errors.js";
import type { CallOptions, LeaseRef, LockApi } from "./locks.js";
import type { SetApi } from "./sets.js";
import type { RunView } from "../lock/views.js";

/** Run the work of a key, or be told what came of it; what is left out takes the service's default. */
export interface StartRequest extends LeaseRef {
  readonly leaseMs?: number | undefined;
  readonly owner?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly keepResultMs?: number | "forever" | undefined;
  readonly maxAttempts?: number | undefined;
  /** Wait this long for the outcome of another's run, as far as the service does. */
  readonly waitMs?: number | undefined;
}

/** You run. */
export interface Started {
  readonly ok: true;
  readonly state: "running";
  readonly how: "granted" | "replayed";
  readonly lease: Held["lease"];
  readonly attempt: number;
  readonly takeover: boolean;
  readonly checkpoint?: unknown;
}

/** What came of the work when it was run. */
export interface Replayed {
  readonly ok: true;
  readonly state: "succeeded" | "failed";
  readonly attempt: number;
  readonly result?: unknown;
  readonly error?: unknown;
  /** There was a result, too large to be kept. */
  readonly resultOmitted?: true;
}

/** What an attempt came to. */
export type OutcomeSaid =
  | { readonly state: "succeeded"; readonly result?: unknown; readonly resultOmitted?: true | undefined }
  | { readonly state: "failed"; readonly error?: unknown; readonly retryable: boolean };

/** Record it, and end the lease. */
export interface CompleteRequest extends LeaseRef {
  readonly outcome: OutcomeSaid;
}

/** A look at one run. */
export interface RunRequest {
  readonly key: string;
  /** The tag of an earlier look: if nothing changed since, the answer says only that. */
  readonly ifNoneMatch?: string | undefined;
  /** Wait this long for a change, as far as the service does. */
  readonly waitMs?: number | undefined;
}

/** What a look found. */
export type RunFound =
  | { readonly ok: true; readonly tag: string; readonly run: RunView }
  | { readonly ok: true; readonly tag: string; readonly unchanged: true };

/** A page of runs. */
export interface RunListRequest {
  readonly prefix?: string | undefined;
  readonly state?: RunView["state"] | undefined;
  readonly max?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Runs in the order of their keys, without their values; `cursor` asks for the next page. */
export interface RunsListed {
  readonly ok: true;
  readonly items: readonly RunView[];
  readonly cursor?: string;
}

/** Every operation on runs. */
export interface RunApi {
  start(request: StartRequest, options?: CallOptions): Promise<Started | Replayed | Refusal>;
  complete(request: CompleteRequest, options?: CallOptions): Promise<Recorded | Refusal>;
  run(request: RunRequest, options?: CallOptions): Promise<RunFound | Refusal>;
  runs(request: RunListRequest, options?: CallOptions): Promise<RunsListed | Refusal>;
  resetRun(request: { readonly key: string; readonly reason: string }, options?: CallOptions): Promise<{ readonly ok: true } | Refusal>;
}

/** Everything that can be asked of the service. */
export interface ServiceApi extends LockApi, SetApi, RunApi {}
