/** The operations on many leases in one request: sets, which are granted whole or not at all (S13), and heartbeats of unrelated leases. */
import type { Held, LeaseState } from "../commands.js";
import type { Refusal } from "../errors.js";
import type { LeaseId } from "../lease-id.js";
import type { AcquireParameters, CallOptions, RenewRequest } from "./locks.js";
import type { Mode } from "../record.js";

/** Acquires all of these keys under one leaseId, or none. A repeated key counts once. */
export interface AcquireSetRequest extends Omit<AcquireParameters, "mode" | "limit" | "permits" | "priority"> {
  readonly leaseId: LeaseId;
  readonly locks: readonly { readonly key: string; readonly mode?: Mode | undefined }[];
}

/** Identifies a set by its leaseId and its keys. */
export interface SetRef {
  readonly leaseId: LeaseId;
  readonly keys: readonly string[];
}

/** A heartbeat of a whole set. */
export interface RenewSetRequest extends SetRef {
  readonly leaseMs?: number | undefined;
}

/** Every key of the set is held. `remainingMs` is the smallest of any key. */
export interface SetHeld {
  readonly ok: true;
  readonly how: "granted" | "replayed" | "renewed";
  readonly leaseId: LeaseId;
  readonly fencingTokens: Readonly<Record<string, number>>;
  readonly leaseMs: number;
  readonly remainingMs: number;
  readonly renewAfterMs: number;
  readonly serverTimeMs: number;
}

/** The state of each key's lease after a release. */
export interface SetEnded {
  readonly ok: true;
  readonly states: Readonly<Record<string, LeaseState>>;
}

/** One answer per heartbeat, in the order of the request. */
export interface Renewed {
  readonly ok: true;
  readonly results: readonly (Held | Refusal)[];
}

/** Every operation on many leases. */
export interface SetApi {
  /** A refusal names the `blocking` keys. */
  acquireSet(request: AcquireSetRequest, options?: CallOptions): Promise<SetHeld | Refusal>;
  /** A refusal names the `lost` keys; the others are renewed. */
  renewSet(request: RenewSetRequest, options?: CallOptions): Promise<SetHeld | Refusal>;
  releaseSet(request: SetRef, options?: CallOptions): Promise<SetEnded | Refusal>;
  renewMany(request: { readonly leases: readonly RenewRequest[] }, options?: CallOptions): Promise<Renewed | Refusal>;
}
