/**
 * The operations, as a caller asks for them. The service implements this interface over a store; the
 * SDK's HTTP transport implements it over the wire. So a client is the same, wherever the locks live.
 *
 * An operation that was answered resolves, refusals included. One that was not answered (a broken
 * connection, a timeout) rejects with {@link NoResponse}: it may or may not have happened.
 */
import type { Breaking, Ended, Held, Waiting } from "../commands.js";
import type { Refusal } from "../errors.js";
import type { LeaseId } from "../lease-id.js";
import type { Meta, Mode } from "../record.js";
import type { Inspection } from "../lock/views.js";

/** What a key names. A lock and a run of the same key have nothing to do with each other. */
export type Kind = "locks" | "runs";

/** Names one lease of one key. */
export interface LeaseRef {
  /** @default "locks" */
  readonly kind?: Kind | undefined;
  readonly key: string;
  readonly leaseId: LeaseId;
}

/** An acquire; what is left out takes the service's default. */
export interface AcquireRequest extends LeaseRef {
  readonly leaseMs?: number | undefined;
  readonly owner?: string | undefined;
  readonly meta?: Meta | undefined;
  readonly mode?: Mode | undefined;
  /** How many permits the key has. */
  readonly limit?: number | undefined;
  readonly permits?: number | undefined;
  readonly scope?: string | undefined;
  /** In the queue, from 0 to 9: higher ones first. */
  readonly priority?: number | undefined;
  /** Queue for the key if it can't be had now; the service may keep the request for so long, if it is next. Absent: don't. */
  readonly waitMs?: number | undefined;
}

/** A reader that becomes the writer, or a writer that becomes a reader. */
export interface ModeRequest extends LeaseRef {
  readonly mode: Mode;
  /** The lease's token before the change. */
  readonly fencingToken: number;
}

/** A heartbeat; without `leaseMs` the lease's own length. */
export interface RenewRequest extends LeaseRef {
  readonly leaseMs?: number | undefined;
  readonly meta?: Meta | undefined;
  /** Of a run: how far it got, as JSON; `undefined` leaves what is there. */
  readonly checkpoint?: unknown;
  /** The checkpoint's place among those of this lease, so that a late duplicate does not undo a later one. */
  readonly sequence?: number | undefined;
}

/** A hand-over to the lease `to`. */
export interface TransferRequest extends LeaseRef {
  readonly to: { readonly leaseId: LeaseId; readonly owner?: string | undefined; readonly leaseMs?: number | undefined };
}

/** An operator's end to the hold with this token. */
export interface BreakRequest {
  readonly key: string;
  readonly fencingToken: number;
  readonly reason: string;
  readonly drainMs?: number | undefined;
}

/** A look at one key. */
export interface InspectRequest {
  readonly key: string;
  /** The tag of an earlier look: if nothing changed since, the answer says only that. */
  readonly ifNoneMatch?: string | undefined;
  /** With it: for how long to wait for a change, in ms; the service has a shorter end of its own. @default 0 */
  readonly waitMs?: number | undefined;
}

/** What a look found. */
export type Inspected =
  | { readonly ok: true; readonly tag: string; readonly inspection: Inspection }
  | { readonly ok: true; readonly tag: string; readonly unchanged: true };

/** A page of held keys. */
export interface ListRequest {
  readonly prefix?: string | undefined;
  readonly owner?: string | undefined;
  readonly max?: number | undefined;
  readonly cursor?: string | undefined;
}

/** Held keys in order; `cursor` asks for the next page. A page may be short, even empty, and not the last. */
export interface Listed {
  readonly ok: true;
  readonly items: readonly Inspection[];
  readonly cursor?: string;
  /** The namespace that was listed. Absent from a service of an older version. */
  readonly namespace?: string;
}

/** The service is up. */
export interface Health {
  readonly ok: true;
  readonly status: "ok";
  readonly version: string;
  readonly serverTimeMs: number;
}

/** How one attempt is bounded. */
export interface CallOptions {
  /** Gives the attempt up; the operation may still happen. */
  readonly signal?: AbortSignal;
}

/** Every operation on locks, and on the leases of runs. */
export interface LockApi {
  /** `Waiting` only to who asked to wait, or is in the queue since earlier. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<Held | Waiting | Refusal>;
  renew(request: RenewRequest, options?: CallOptions): Promise<Held | Refusal>;
  release(request: LeaseRef, options?: CallOptions): Promise<Ended | Refusal>;
  check(request: LeaseRef, options?: CallOptions): Promise<Held | Waiting | Refusal>;
  changeMode(request: ModeRequest, options?: CallOptions): Promise<Held | Refusal>;
  transfer(request: TransferRequest, options?: CallOptions): Promise<Held | Refusal>;
  breakHold(request: BreakRequest, options?: CallOptions): Promise<Breaking | Refusal>;
  inspect(request: InspectRequest, options?: CallOptions): Promise<Inspected | Refusal>;
  list(request: ListRequest, options?: CallOptions): Promise<Listed | Refusal>;
  health(request: { readonly deep?: boolean }, options?: CallOptions): Promise<Health | Refusal>;
}

/** No answer came: the operation may or may not have happened. */
export class NoResponse extends Error {
  override readonly name = "NoResponse";
}
