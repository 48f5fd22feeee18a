/**
 * The operations on locks, as a caller requests them. The service implements this interface over a store, and the SDK's
 * HTTP transport implements it over the wire. So a client behaves the same in both cases.
 *
 * An answered operation resolves, refusals included. An operation without a response (a broken connection, a timeout)
 * rejects with {@link NoResponse}: it may or may not have happened.
 */
import { brand } from "../brand.js";
import type { Acquire, Breaking, Ended, Held, Notifying, Waiting } from "../commands.js";
import type { Refusal } from "../errors.js";
import type { LeaseId } from "../lease-id.js";
import type { Meta } from "../details.js";
import type { Mode } from "../record.js";
import type { Inspection } from "../lock/views.js";

/** The kind of object that a key names. A lock and a run of the same key are independent. */
export type Kind = "locks" | "runs";

/** Identifies one lease of one key. */
export interface LeaseRef {
  /** @default "locks" */
  readonly kind?: Kind | undefined;
  readonly key: string;
  readonly leaseId: LeaseId;
}

/** The parameters of an acquire: those of its command that a caller chooses. One that is left out takes the service's default. */
export type AcquireParameters = {
  readonly [Name in Exclude<keyof Acquire, "type" | keyof LeaseRef | "principal" | "requestHash" | "wait" | "sleepMs">]?:
    Acquire[Name] | undefined;
};

/** Whom an agent tells that a waiter which sleeps has the key: a task of Step Functions or a callback of a durable function, one of both. A secret. */
export interface WakeTarget {
  readonly taskToken?: string | undefined;
  readonly callbackId?: string | undefined;
}

/** The execution that a lease is tied to: one of Step Functions, or a durable one of Lambda. */
export interface Tie {
  readonly executionArn: string;
}

/** An acquire. Its scope is the text of which the command has the digest. */
export interface AcquireRequest extends LeaseRef, AcquireParameters {
  /** Queue for the key if it is not available. The answer comes at once, and says when to ask again. Absent: don't queue. */
  readonly waitMs?: number | undefined;
  /** With `waitMs`: wait asleep for that many ms. The key is never granted by this request, and this target is told of the grant. */
  readonly wake?: WakeTarget | undefined;
  /** The agent renews the lease while this execution runs, and releases it once that is over. */
  readonly tie?: Tie | undefined;
}

/** A reader that becomes the writer, or a writer that becomes a reader. */
export interface ModeRequest extends LeaseRef {
  readonly mode: Mode;
  /** The lease's token before the change. */
  readonly fencingToken: number;
}

/** A heartbeat. Without `leaseMs`, it renews by the lease's own length. */
export interface RenewRequest extends LeaseRef {
  readonly leaseMs?: number | undefined;
  readonly meta?: Meta | undefined;
  /** For a run: its progress, as JSON. `undefined` leaves the stored checkpoint unchanged. */
  readonly checkpoint?: unknown;
  /** The checkpoint's position among those of this lease, so that a late duplicate does not undo a later one. */
  readonly sequence?: number | undefined;
}

/** Frees the key, and takes it back as the lease `to` after a notify of the condition. */
export interface ConditionRequest extends LeaseRef {
  readonly condition: string;
  /** The acquire by which the key is taken back. Its later requests, by `acquire`, must have the same members. */
  readonly to: Pick<AcquireRequest, "leaseId"> & Omit<AcquireParameters, "mode" | "limit" | "permits">;
}

/** Wakes a lease that waits for the condition, or all that do. */
export interface NotifyRequest extends LeaseRef {
  readonly condition: string;
  /**
   * 1 for the lease's first notify, and one more for each new one. A repeated request has the same, and wakes no other. Without it, each
   * request is a new notify.
   */
  readonly sequence?: number | undefined;
  readonly all?: boolean | undefined;
}

/** A transfer of the hold to the lease `to`. */
export interface TransferRequest extends LeaseRef {
  readonly to: {
    readonly leaseId: LeaseId;
    readonly owner?: string | undefined;
    readonly leaseMs?: number | undefined;
    readonly meta?: Meta | undefined;
  };
}

/** An operator's end to the hold with this token. */
export interface BreakRequest {
  readonly key: string;
  readonly fencingToken: number;
  readonly reason: string;
  readonly drainMs?: number | undefined;
}

/** A read of one key, or of one run. */
export interface InspectRequest {
  readonly key: string;
  /** The tag of an earlier read: if nothing changed since, the answer says only that. */
  readonly ifNoneMatch?: string | undefined;
  /** With `ifNoneMatch`: the time to wait for a change, in ms. The service has a shorter limit of its own. @default 0 */
  readonly waitMs?: number | undefined;
}

/** The result of a read of one key. */
export type Inspected =
  | { readonly ok: true; readonly tag: string; readonly inspection: Inspection }
  | { readonly ok: true; readonly tag: string; readonly unchanged: true };

/** A request for a page of what begins with a prefix. */
export interface PageRequest {
  readonly prefix?: string | undefined;
  readonly max?: number | undefined;
  readonly cursor?: string | undefined;
}

/** A request for a page of held keys. */
export interface ListRequest extends PageRequest {
  readonly owner?: string | undefined;
}

/** Held keys in order; `cursor` requests the next page. A page may be short or empty without being the last. */
export interface Listed {
  readonly ok: true;
  readonly items: readonly Inspection[];
  readonly cursor?: string;
  /** The namespace that was listed. */
  readonly namespace: string;
}

/** The parameters that every process must share that decides on the same records. */
export interface RecordParameters {
  /** The major version of the records' format. */
  readonly format: number;
  /** E, in ms, from which takeover margins are made. */
  readonly clockErrorMs: number;
  readonly retentionMs: number;
}

/** The caller as the service knows it: a second way to the records needs the same, or it would be a stranger to the caller's leases. */
export interface CallerIdentity extends RecordParameters {
  readonly namespace: string;
  readonly principal: string;
}

/** A way to the locks, or the choice between both by what can be reached. */
export type Via = "service" | "table" | "auto";

/** A switch in a query, as it is on the wire. */
type Flag = "0" | "1";

/** A request for the service's state. */
export interface HealthRequest {
  /** `"1"` reads the table too. @default "0" */
  readonly deep?: Flag | undefined;
  /** `"1"` reads the table too, and answers with the caller's identity. @default "0" */
  readonly caller?: Flag | undefined;
}

/** The service is up. */
export interface Health {
  readonly ok: true;
  readonly status: "ok";
  readonly version: string;
  readonly serverTimeMs: number;
  /** The caller's identity, if it was asked for. */
  readonly caller?: CallerIdentity;
  /** The URLs of the services that use the same table, as far as they were told them, if the caller's identity was asked for. */
  readonly doors?: readonly string[];
  /** The way of new requests, and since when in epoch ms. Only of a client with several ways. */
  readonly via?: "service" | "table";
  readonly viaSinceMs?: number;
  /** The URL of the service that answered, or the Region in which the table did. Only of a client with several ways. */
  readonly door?: string;
  /**
   * The state of the ways that are not in use, of a client with several. `ready`: at least one may take over. `pending`: no lease was found at
   * another one yet. `refused`: none is used, and why. Beside `ready` and `pending`, `why` tells of one that is not used.
   */
  readonly failover?: { readonly state: "pending" | "ready" | "refused"; readonly why?: string };
}

/** Options for one attempt of a call. */
export interface CallOptions {
  /** Aborts the attempt. The operation may still happen. */
  readonly signal?: AbortSignal;
}

/** Every operation on locks, and on the leases of runs. */
export interface LockApi {
  /** Answers `Waiting` only if the request asked to wait, or its id is in the queue already. */
  acquire(request: AcquireRequest, options?: CallOptions): Promise<Held | Waiting | Refusal>;
  renew(request: RenewRequest, options?: CallOptions): Promise<Held | Refusal>;
  release(request: LeaseRef, options?: CallOptions): Promise<Ended | Refusal>;
  check(request: LeaseRef, options?: CallOptions): Promise<Held | Waiting | Refusal>;
  changeMode(request: ModeRequest, options?: CallOptions): Promise<Held | Refusal>;
  /** Answers `Waiting` with the condition. Nothing is held then. */
  waitForCondition(request: ConditionRequest, options?: CallOptions): Promise<Waiting | Refusal>;
  notify(request: NotifyRequest, options?: CallOptions): Promise<Notifying | Refusal>;
  transfer(request: TransferRequest, options?: CallOptions): Promise<Held | Refusal>;
  breakHold(request: BreakRequest, options?: CallOptions): Promise<Breaking | Refusal>;
  inspect(request: InspectRequest, options?: CallOptions): Promise<Inspected | Refusal>;
  list(request: ListRequest, options?: CallOptions): Promise<Listed | Refusal>;
  health(request: HealthRequest, options?: CallOptions): Promise<Health | Refusal>;
}

/** The details of an attempt without a response. */
interface Unanswered extends ErrorOptions {
  /** The time after which a gateway asks for the next attempt, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** True if a connection that was kept from before broke: the other side had closed it, which says nothing about the service. */
  readonly isStale?: boolean | undefined;
  /** The HTTP status of an answer that is none of the service. */
  readonly httpStatus?: number | undefined;
  /** True if something answered that is not the service: no outage. */
  readonly isStranger?: boolean | undefined;
  /** True if another way may carry it out, where it has not failed. */
  readonly hasOtherWay?: boolean | undefined;
}

/** No response of the service arrived: the operation may or may not have happened. */
export class NoResponse extends Error {
  static {
    brand(this, "NoResponse");
  }
  override readonly name = "NoResponse";
  readonly retryAfterMs: Unanswered["retryAfterMs"];
  readonly httpStatus: Unanswered["httpStatus"];
  readonly isStale: boolean;
  readonly isStranger: boolean;
  readonly hasOtherWay: boolean;

  constructor(
    message: string,
    { retryAfterMs, httpStatus, isStale = false, isStranger = false, hasOtherWay = false, ...options }: Unanswered = {},
  ) {
    super(message, options);
    this.retryAfterMs = retryAfterMs;
    this.httpStatus = httpStatus;
    this.isStale = isStale;
    this.isStranger = isStranger;
    this.hasOtherWay = hasOtherWay;
  }
}
