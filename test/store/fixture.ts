/**
 * One key of a store with simulated time. Every command is decided at the clock reading that is set when it is sent. So
 * nothing here waits, and a clock error is a number in a test.
 */
import type { AnswerTo, Command, Held, LeaseView, Waiting } from "../../lib/core/commands.js";
import type { Refusal } from "../../lib/core/errors.js";
import { type LeaseId, leaseIdFrom } from "../../lib/core/lease-id.js";
import type { Meta } from "../../lib/core/details.js";
import type { LockRecord, Mode } from "../../lib/core/record.js";
import { createPolicy } from "../../lib/core/policy.js";
import { type ClockReading, systemClock } from "../../lib/core/time.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import type { Address, Applied, LockStore } from "../../lib/store/port.js";

/** The policy of every store under test. */
export const POLICY = createPolicy();
/** The time at which each test begins, as an epoch time in ms. */
export const START_MS = Date.UTC(2027, 0, 1);
/** An arbitrary lease length, in ms. Not the default, because the guess of a renewal assumes the default. */
export const LEASE_MS = 10_000;
/** The margin after the expiry of a lease of {@link LEASE_MS} before a takeover, in ms. */
export const MARGIN_MS = POLICY.marginMs(LEASE_MS);

/** A leaseId with the time `ms` after {@link START_MS}. Ids of the same time are ordered by `order`. */
export function leaseId(order: number, ms = 0): LeaseId {
  return leaseIdFrom(START_MS + ms, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, order >> 8, order));
}

/** Leases of the tests, in the order of their ids. */
export const [A, B, C, D] = [leaseId(1), leaseId(2), leaseId(3), leaseId(4)] as const;

/** The options of an acquire besides its leaseId. */
export interface AcquireOptions {
  readonly by?: string;
  readonly owner?: string;
  readonly leaseMs?: number;
  readonly requestHash?: string;
  readonly mode?: Mode;
  readonly limit?: number;
  readonly permits?: number;
  readonly scope?: string;
  readonly priority?: number;
  readonly meta?: Meta;
  readonly sleepMs?: number;
}

/** The options of the other commands. */
export interface Options {
  readonly by?: string;
  readonly leaseMs?: number;
  readonly meta?: Meta;
}

let scenes = 0;

/** A key that no other test uses, at {@link START_MS}. */
export class Fixture {
  /** The readings of the two server clocks. */
  clocks: ClockReading = { earliestMs: START_MS, latestMs: START_MS };
  readonly address: Address;

  constructor(
    readonly store: LockStore,
    { namespace = freshNamespace(), kind = "locks", key = "ORDER_1" }: Partial<Address> = {},
  ) {
    this.address = { namespace, kind, key };
  }

  /** Sets the clocks: the earliest at `ms` after the start, the latest `aheadMs` beyond. */
  at(ms: number, aheadMs = 0): this {
    this.clocks = { earliestMs: START_MS + ms, latestMs: START_MS + ms + aheadMs };
    return this;
  }

  apply<T extends Command>(command: T): Promise<Applied<T>> {
    const reading = this.clocks;
    return this.store.apply(this.address, command, () => reading);
  }

  /** Acquires without waiting. */
  async acquire(id: LeaseId, options: AcquireOptions = {}): Promise<Held | Refusal> {
    const answer = await this.ask(id, options);
    if (answer.ok && "state" in answer) throw new Error(`${id} waits, and did not ask to`);
    return answer;
  }

  queue(id: LeaseId, options: AcquireOptions = {}): Promise<Held | Waiting | Refusal> {
    return this.ask(id, { ...options, wait: true });
  }

  async ask(
    id: LeaseId,
    { by = "P", requestHash = "same", ...given }: AcquireOptions & { readonly wait?: true },
  ): Promise<Held | Waiting | Refusal> {
    const { key } = this.address;
    const usual = { owner: "", leaseMs: LEASE_MS, mode: "exclusive", limit: 1, permits: 1, priority: 0 } as const;
    return (await this.apply({ type: "acquire", key, leaseId: id, principal: by, requestHash, ...usual, ...given })).answer;
  }

  async renew(id: LeaseId, { by = "P", ...given }: Options = {}): Promise<Held | Refusal> {
    return (await this.apply({ type: "renew", key: this.address.key, leaseId: id, principal: by, ...given })).answer;
  }

  async release(id: LeaseId, { by = "P" }: Options = {}): Promise<AnswerTo<Command & { type: "release" }>> {
    return (await this.apply({ type: "release", key: this.address.key, leaseId: id, principal: by })).answer;
  }

  async transfer(
    id: LeaseId,
    toLeaseId: LeaseId,
    { by = "P", ...given }: Options & { readonly toOwner?: string } = {},
  ): Promise<Held | Refusal> {
    return (await this.apply({ type: "transfer", key: this.address.key, leaseId: id, principal: by, toLeaseId, ...given })).answer;
  }

  /** Breaks the hold with this token, by default the hold granted last. */
  async breakHold(token?: number, drainMs?: number): Promise<AnswerTo<Command & { type: "break" }>> {
    const fencingToken = token ?? (await this.read())?.fencingToken ?? 0;
    return (await this.apply({ type: "break", key: this.address.key, fencingToken, ...(drainMs !== undefined && { drainMs }) })).answer;
  }

  read(): Promise<LockRecord | undefined> {
    return this.store.read(this.address);
  }
}

/** A table, as far as a store needs it. */
interface StoreTable {
  readonly calls: TableCalls;
  readonly tableName: string;
}

/** A store on a table, with the policy of all stores under test: a process of its own, which has seen nothing. */
export function dynamoStoreOn({ calls, tableName }: StoreTable, random = () => 0.5, transactions = true): LockStore {
  return createDynamoStore({ calls, tableName, policy: POLICY, clock: systemClock, random, transactions });
}

/** The methods of a store, to spread: a spread of the store itself leaves out those of a class. */
export function methodsOf(store: LockStore): LockStore {
  return {
    parameters: store.parameters,
    limits: store.limits,
    tenancy: (mine) => store.tenancy(mine),
    doors: () => store.doors(),
    apply: (address, command, clocks) => store.apply(address, command, clocks),
    applyAll: (parts, clocks) => store.applyAll(parts, clocks),
    read: (address) => store.read(address),
    list: (query) => store.list(query),
    keepPayload: (address, payload, text) => store.keepPayload(address, payload, text),
    readPayload: (address, digest) => store.readPayload(address, digest),
  };
}

/** A fresh namespace that is no prefix of another. */
export function freshNamespace(): string {
  return `t${process.pid}.${++scenes}.`;
}

/** An answer in a word or two. */
export function outcomeOf(answer: AnswerTo<Command>): string {
  if (!answer.ok) return answer.reason ? `${answer.code}: ${answer.reason}` : answer.code;
  if ("how" in answer) return answer.how;
  if ("state" in answer) return answer.state;
  return "breakInMs" in answer ? (answer.breakInMs > 0 ? "breaking" : "broken") : "reset";
}

/** The lease in an answer that must report a held lease. */
export function leaseIn(answer: Held | Waiting | Refusal): LeaseView {
  if (!answer.ok || !("lease" in answer)) throw new Error(`not held: ${outcomeOf(answer)}`);
  return answer.lease;
}

/** A memory that writes without a condition, for controls. */
export function carelessStore(random = () => 0.5): LockStore {
  const table = createMemoryTable();
  const careless: typeof table = {
    ...table,
    replace(address, next) {
      table.remove(address);
      return table.replace(address, next, undefined);
    },
  };
  return createMemoryStore({ policy: POLICY, table: careless, random });
}
