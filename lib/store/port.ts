/**
 * The port behind which records live. A store carries out what the core decides, each change as one
 * conditional write on the version that was seen; it adds no rule of its own.
 */
import type { AnswerTo, Command, LeaseEvent } from "../core/commands.js";
import type { Kind } from "../core/api/locks.js";
import type { LockRecord, Payload } from "../core/record.js";
import type { ClockReading } from "../core/time.js";

/** Where a record lives: a tenant's namespace, what the key names, then the key. A lock and a run never share one. */
export interface Address {
  readonly namespace: string;
  readonly kind: Kind;
  readonly key: string;
}

/** A payload that is kept on an item of its own. */
export type StoredPayload = Pick<Payload, "digest"> & { readonly ttlAtSec: number };

/** A command on one of several keys. */
export interface Part<C extends Command = Command> {
  readonly address: Address;
  readonly command: C;
}

/** What a command came to, once written. */
export interface Applied<C extends Command> {
  readonly answer: AnswerTo<C>;
  readonly events: readonly LeaseEvent[];
}

/** A page of keys in order, each strictly after `after`. */
export interface ListQuery {
  readonly namespace: string;
  readonly kind: Kind;
  readonly prefix: string;
  readonly after: string;
  readonly max: number;
}

/** Records found, and the key after which to go on; absent at the end. */
export interface ListPage {
  readonly items: readonly { readonly key: string; readonly record: LockRecord }[];
  readonly next?: string;
}

/** Whether all callers of a table share one namespace, or the table has tenants with a namespace each. */
export type TableTenancy = "shared" | "tenants";

/** The clocks a decision is made by; read again for every decision of a request. */
export type ReadClocks = () => ClockReading;

/** One table of records. */
export interface LockStore {
  /**
   * Decides `command` on the record at `address` and writes the outcome, atomically.
   * @throws StoreUnavailable when the table can't be reached; the write may have happened if it says so.
   */
  apply<C extends Command>(address: Address, command: C, clocks: ReadClocks): Promise<Applied<C>>;
  /**
   * The same of several keys in one transaction: only if every answer is ok is anything written, and then
   * everything. An undefined outcome was not decided, because another one's refusal came first.
   * @throws StoreUnavailable
   */
  applyAll<C extends Command>(parts: readonly Part<C>[], clocks: ReadClocks): Promise<readonly (Applied<C> | undefined)[]>;
  /**
   * The tenancy of the table: as it is recorded there, or, on a table that records none yet, `mine`, recorded now.
   * Costs one read for each store, since a record never changes while anybody uses the table.
   * @throws StoreUnavailable
   */
  tenancy(mine: TableTenancy): Promise<TableTenancy>;
  /** The record, strongly consistent; undefined when the key has none. */
  read(address: Address): Promise<LockRecord | undefined>;
  /** Keys whose records have a hold or a run. Shows; never decides who owns what. */
  list(query: ListQuery): Promise<ListPage>;
  /**
   * Keeps a large payload of the key on an item of its own, named by its digest, until `ttlAtSec` at least.
   * Before the record speaks of it: an orphan is garbage and collected, a missing one would be a loss.
   * Without `text` it only keeps for longer what is there.
   * @throws StoreUnavailable
   */
  keepPayload(address: Address, payload: StoredPayload, text?: string): Promise<void>;
  /** The text of such a payload; undefined when it was collected. */
  readPayload(address: Address, digest: string): Promise<string | undefined>;
}

/** The table could not be reached, or kept changing under the request. */
export class StoreUnavailable extends Error {
  override readonly name: string = "StoreUnavailable";
  constructor(
    message: string,
    /** Whether it is certain that nothing was written. */
    readonly definite: boolean,
    /** Whether the table asked for fewer requests. */
    readonly throttled: boolean,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The table, the credentials or the region are wrong: no later attempt can succeed until somebody corrects them. */
export class StoreNotConfigured extends StoreUnavailable {
  override readonly name = "StoreNotConfigured";
}

/** The record was written by a newer major version of the format: nothing may be decided on it. */
export class NewerFormat extends Error {
  override readonly name = "NewerFormat";
}
