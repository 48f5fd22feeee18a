/**
 * The port to the records. A store carries out the core's decisions, each change as one conditional write that leaves the record as the
 * core decides. It adds no rule of its own.
 */
import { brand } from "../core/brand.js";
import type { Acquire, AnswerTo, Command, LeaseEvent } from "../core/commands.js";
import type { Kind, RecordParameters, WakeTarget } from "../core/api/locks.js";
import { type Refusal, refuse } from "../core/errors.js";
import { LIMITS } from "../core/limits.js";
import type { LimitRecord, Shut, Take, Taken } from "../core/rate.js";
import type { LockRecord, Payload } from "../core/record.js";
import type { ClockReading } from "../core/time.js";

/** The address of a record: a tenant's namespace, the kind, then the key. A lock and a run never share a record. */
export interface Address {
  readonly namespace: string;
  readonly kind: Kind;
  readonly key: string;
}

export type LimitName = Omit<Address, "kind">;

/** A payload that is stored in an item of its own. */
export type StoredPayload = Pick<Payload, "digest"> & { readonly ttlAtSec: number };

/** A command on one of several keys. */
export interface Part<C extends Command = Command> {
  readonly address: Address;
  readonly command: C;
}

/** The result of a command, once written. */
export interface Applied<C extends Command> {
  readonly answer: AnswerTo<C>;
  readonly events: readonly LeaseEvent[];
}

/** A query for one page of keys in order, each strictly after `after`. */
export interface ListQuery {
  readonly namespace: string;
  readonly kind: Kind;
  readonly prefix: string;
  readonly after: string;
  readonly max: number;
}

/** The records found, and the key after which the next page begins; absent at the end. */
export interface Page<Stored> {
  readonly items: readonly { readonly key: string; readonly record: Stored }[];
  readonly next?: string;
}
/** A page of locks or runs. */
export type ListPage = Page<LockRecord>;

export interface LimitQuery extends Omit<ListQuery, "kind"> {
  /** A limit that is full by this time is left out. */
  readonly fullAfterMs: number;
}

/** `shared`: all callers of a table share one namespace. `tenants`: each tenant has its own. */
export type TableTenancy = "shared" | "tenants";

/** Reads the clocks that a decision depends on. Called again for every decision of a request. */
export type ReadClocks = () => ClockReading;

/** The limits of a table. A limit has an item of its own, beside the lock and the run of its name. */
export interface LimitStore {
  /**
   * Decides a take and writes it. A take that is sent twice is charged twice.
   * @throws StoreUnavailable when the table can't be reached, as {@link LockStore.apply}
   */
  take(name: LimitName, take: Take, clocks: ReadClocks): Promise<Taken | Refusal>;
  /** Lets nothing start from a limit for a time. Sent twice, it lasts for as long from the second. @throws StoreUnavailable as a take */
  shut(name: LimitName, shut: Shut, clocks: ReadClocks): Promise<Taken | Refusal>;
  /** Makes every bucket of a limit full. Returns it as it is then; undefined if there is none. */
  reset(name: LimitName): Promise<LimitRecord | undefined>;
  /** Returns the limit by a strongly consistent read; undefined if nothing was ever taken, or long ago. */
  read(name: LimitName): Promise<LimitRecord | undefined>;
  /** Lists limits whose buckets were not full at `fullAfterMs`, for display. */
  list(query: LimitQuery): Promise<Page<LimitRecord>>;
}

/** A waiter that sleeps: the acquire by which an agent claims the key for it, and whom the agent tells. */
export interface Sleeper {
  readonly address: Address;
  readonly acquire: Acquire;
  /**
   * The targets of all its requests, in no order: no clock tells surely which of two is the later, and only one of them still waits. Bearer
   * secrets of the caller: no log, error or view may show them.
   */
  readonly targets: readonly WakeTarget[];
  /** The time at which its wait ends. */
  readonly untilMs: number;
  /** The time at which it was stored, before it was queued. */
  readonly putAtMs: number;
  /** Epoch seconds after which garbage collection may remove it. */
  readonly ttlAtSec: number;
}

/** A lease that is tied to an execution, which an agent renews while that runs. */
export interface TiedLease extends Pick<Sleeper, "address" | "ttlAtSec"> {
  readonly leaseId: string;
  /** The principal of its holder. */
  readonly principal: string;
  readonly executionArn: string;
  /** The time at which it was stored, before it was acquired. */
  readonly putAtMs: number;
}

function principalOf(kept: Sleeper | TiedLease): string {
  return "acquire" in kept ? kept.acquire.principal : kept.principal;
}

/** Decides what is kept of a leaseId after another request: a sleeper's targets add up. Or returns the refusal of that request. */
export function keptTogether(before: Sleeper | TiedLease | undefined, kept: Sleeper | TiedLease): Sleeper | TiedLease | Refusal {
  if (!before) return kept;
  if (principalOf(before) !== principalOf(kept)) return refuse("forbidden");
  if ("executionArn" in kept || "executionArn" in before) {
    const isSame = "executionArn" in kept && "executionArn" in before && kept.executionArn === before.executionArn;
    return isSame ? kept : reused("is tied to another execution");
  }
  if (before.acquire.requestHash !== kept.acquire.requestHash) return reused("sleeps with other parameters");
  const targets = new Map([...before.targets, ...kept.targets].map((target) => [JSON.stringify(target), target]));
  if (targets.size > LIMITS.targetsMax) return reused(`has ${LIMITS.targetsMax} targets already`);
  return { ...kept, targets: [...targets.values()] };
}

function reused(what: string): Refusal {
  return refuse("lease-reused", { detail: `This leaseId ${what}` });
}

/** Some of the sleepers and tied leases, and the place after which the next of them are. */
export interface SleeperPage {
  readonly sleepers: readonly Sleeper[];
  readonly ties: readonly TiedLease[];
  /** Why others of the page can't be read. */
  readonly unreadable: readonly UnreadableRecord[];
  readonly next?: string;
}

/**
 * The sleepers and the tied leases of a table: all that an agent looks after. Each has an item of its own, since a record is charged with every
 * write, and a target is long. A lease that sleeps and is tied has two, so neither is changed or deleted with the other.
 */
export interface SleeperStore {
  /**
   * Stores one, before its acquire, and adds its targets to those of earlier requests. Returns the refusal of what is not stored: the acquire
   * must not be sent then, since nobody would tell its target.
   * @throws StoreUnavailable
   */
  put(kept: Sleeper | TiedLease): Promise<Refusal | undefined>;
  /** Returns a page of all, in the order of their keys. @throws StoreUnavailable */
  list(after?: string): Promise<SleeperPage>;
  /** Returns the sleeper of a lease; undefined if there is none. @throws StoreUnavailable */
  read(address: Address, leaseId: string): Promise<Sleeper | undefined>;
  /** Removes one, unless it has been stored anew since it was listed. @throws StoreUnavailable */
  delete(kept: Sleeper | TiedLease): Promise<void>;
}

/** One table of records. */
export interface LockStore {
  readonly limits: LimitStore;
  /** The parameters that all stores on the same records must share. */
  readonly parameters: RecordParameters;
  /**
   * Decides `command` on the record at `address` and writes the outcome, atomically.
   * @throws StoreUnavailable when the table can't be reached. The write may have happened, unless the error is `definite`.
   */
  apply<C extends Command>(address: Address, command: C, clocks: ReadClocks): Promise<Applied<C>>;
  /**
   * Decides an acquire of each of several keys: if every answer is ok, all are held, else none is. An undefined outcome was not decided, because
   * the refusal of another part came first. Without transactions, an answer that is ok beside a refusal was true for a moment.
   * @throws StoreUnavailable
   */
  applyAll(parts: readonly Part<Acquire>[], clocks: ReadClocks): Promise<readonly (Applied<Acquire> | undefined)[]>;
  /**
   * Returns the tenancy that the table records. If it records none yet, writes `mine` and returns it. Costs one read
   * per store, since the recorded tenancy never changes while the table is in use.
   * @throws StoreUnavailable
   */
  tenancy(mine: TableTenancy): Promise<TableTenancy>;
  /**
   * Returns the doors that are written in the table, by a strongly consistent read. The store writes its own first, if they are missing.
   * @throws StoreUnavailable
   */
  doors(): Promise<readonly string[]>;
  /** Returns the record by a strongly consistent read; undefined when the key has none. */
  read(address: Address): Promise<LockRecord | undefined>;
  /** Lists keys whose records have a hold or a run. For display: no decision about ownership depends on it. */
  list(query: ListQuery): Promise<ListPage>;
  /**
   * Stores a large payload of the key in an item of its own, named by its digest, until `ttlAtSec` at least. Call it
   * before the record refers to the payload: an orphan is collected as garbage, but a missing payload would be a loss.
   * Without `text` it only extends the life of the item.
   * @throws StoreUnavailable
   */
  keepPayload(address: Address, payload: StoredPayload, text?: string): Promise<void>;
  /** Returns the text of such a payload; undefined when it was collected. */
  readPayload(address: Address, digest: string): Promise<string | undefined>;
}

/** The table could not be reached, or could not carry out the request. */
export class StoreUnavailable extends Error {
  static {
    brand(this, "StoreUnavailable");
  }
  override readonly name: string = "StoreUnavailable";
  constructor(
    message: string,
    /** True if it is certain that nothing was written. */
    readonly definite: boolean,
    /** True if the table asked for fewer requests. */
    readonly throttled: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Others kept changing the key under the request. It has certainly written nothing. This is no outage: the others use the key. */
export class KeyContended extends StoreUnavailable {
  static {
    brand(this, "KeyContended");
  }
  override readonly name = "KeyContended";
  constructor(message: string, options?: ErrorOptions) {
    super(message, true, true, options);
  }
}

/** The table, the endpoint, the credentials or the region are wrong: no later attempt can succeed until they are corrected. */
export class StoreNotConfigured extends StoreUnavailable {
  static {
    brand(this, "StoreNotConfigured");
  }
  override readonly name = "StoreNotConfigured";
  /** True if the request may be sent again for a while: what answered is not the table, which may pass. */
  readonly isAskedAgain: boolean;
  constructor(
    message: string,
    definite: boolean,
    { isAskedAgain = false, ...options }: ErrorOptions & { readonly isAskedAgain?: boolean } = {},
  ) {
    super(message, definite, false, options);
    this.isAskedAgain = isAskedAgain;
  }
}

/** A record of the table that this version can't read, so it must not decide anything on it. It is no outage: the table answered. */
export class UnreadableRecord extends Error {
  static {
    brand(this, "UnreadableRecord");
  }
  override readonly name = "UnreadableRecord";
  /** True if it is certain that nothing was written. */
  readonly definite: boolean;
  constructor(
    /** Another format, or a damaged attribute. */
    readonly code: "newer-format" | "older-format" | "unreadable-record",
    message: string,
    { definite = true, ...options }: ErrorOptions & { readonly definite?: boolean } = {},
  ) {
    super(message, options);
    this.definite = definite;
  }
}
