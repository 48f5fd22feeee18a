/**
 * Many keys as one lease: granted all or nothing, kept alive together, and lost as soon as one of them is. It is implemented as one
 * ordinary lease whose service calls operate on the set.
 */
/// <reference lib="esnext.disposable" preserve="true" />
import type { Held, LeaseState, LeaseView } from "../../core/commands.js";
import { DETAILS } from "../../core/details.js";
import { pick } from "../../core/members.js";
import type { Refusal } from "../../core/errors.js";
import type { LeaseId } from "../../core/lease-id.js";
import type { CallOptions } from "../../core/api/locks.js";
import type { Mode } from "../../core/record.js";
import type { ServiceApi } from "../../core/api/runs.js";
import type { AcquireSetRequest, SetHeld } from "../../core/api/sets.js";
import type { HeldLease } from "./lease.js";
import type { State } from "./lease-types.js";

/** A key of a set; plain text means exclusive mode. */
export type SetKey = string | { readonly key: string; readonly mode?: Mode | undefined };

/** A hold on many keys. Release it, or let `await using` do so, which throws LockLostError unless all keys were held to the end. */
export interface LeaseSet extends AsyncDisposable {
  readonly keys: readonly string[];
  readonly leaseId: LeaseId;
  /** The token of each key. */
  readonly fencingTokens: Readonly<Record<string, number>>;
  readonly state: State;
  /** Aborts with LockLostError before another client can be granted any of the keys, and when the set is released. */
  readonly signal: AbortSignal;
  /** The time for which all keys may still be treated as held without a renewal, in ms. */
  remainingMs(): number;
  /** True if every key is held, computed at each call. */
  isHeld(): boolean;
  /** @throws LockLostError if one of the keys is not held. */
  assertHeld(): void;
  /** Says that the work gets on, as {@link Lease.progress} does. Returns true if every key is held. */
  progress(): boolean;
  /** Extends every lease now; never shortens one. @throws LockLostError if one of them has ended. */
  renew(options?: { readonly leaseMs?: number | undefined }): Promise<void>;
  /** Frees every key. Returns how each hold ended. Safe to repeat. */
  release(): Promise<Readonly<Record<string, LeaseState>>>;
}

/** The operations of a lease, carried out on a set of keys. */
export interface SetAsLease {
  readonly api: ServiceApi;
  readonly acquire: (request: Omit<AcquireSetRequest, "locks">, options: CallOptions) => Promise<Held | Refusal>;
  /** The tokens and end states of the set's keys. */
  readonly tokens: () => Readonly<Record<string, number>>;
  readonly states: () => Readonly<Record<string, LeaseState>>;
}

/** The end states from worst to best: the worst key decides the state of the whole set. */
const WORST: readonly LeaseState[] = ["lost", "unknown", "never", "expired", "transferred", "released"];

/** Returns the set of `locks` with the interface of one lease called `name`. */
export function setAsLease(api: ServiceApi, name: string, locks: AcquireSetRequest["locks"]): SetAsLease {
  const keys = locks.map(({ key }) => key);
  let tokens: Readonly<Record<string, number>> = {};
  let states: Readonly<Record<string, LeaseState>> = {};

  function asLease(set: SetHeld, owner = ""): Held {
    tokens = set.fencingTokens;
    const { leaseId, leaseMs, remainingMs, renewAfterMs, serverTimeMs, how } = set;
    const fencingToken = Math.max(...Object.values(tokens));
    const common = { key: name, leaseId, owner, mode: "exclusive", permits: 1, holdCount: 1, fencingToken } as const;
    // A set has no version, and servers have different clocks: of two answers, the one with the longer time counts.
    const lease: LeaseView = { ...common, leaseMs, remainingMs, renewAfterMs, version: 0, serverTimeMs };
    return { ok: true, how, lease };
  }

  const renew: ServiceApi["renew"] = async ({ leaseId, leaseMs }, options) => {
    const answer = await api.renewSet({ leaseId, keys, leaseMs }, options);
    return answer.ok ? asLease(answer) : answer;
  };
  return {
    api: {
      ...api,
      renew,
      // A renewal reports whether the set is still held, and never shortens it.
      check: renew,
      async release({ leaseId }, options) {
        const answer = await api.releaseSet({ leaseId, keys }, options);
        if (!answer.ok) return answer;
        states = answer.states;
        const ended = new Set(Object.values(states));
        return { ok: true, state: WORST.find((state) => ended.has(state)) ?? "unknown" };
      },
    },
    acquire: async ({ leaseId, leaseMs, scope, ...details }, options) => {
      const answer = await api.acquireSet({ ...pick(details, DETAILS), leaseId, locks, leaseMs, scope }, options);
      return answer.ok ? asLease(answer, details.owner) : answer;
    },
    tokens: () => tokens,
    states: () => states,
  };
}

/** Returns `lease` as a set, with the keys named as their caller names them. */
export function leaseSetOf(
  lease: HeldLease,
  { names, set }: { readonly names: ReadonlyMap<string, string>; readonly set: SetAsLease },
): LeaseSet {
  const called = <T>(byKey: Readonly<Record<string, T>>): Readonly<Record<string, T>> =>
    Object.fromEntries(Object.entries(byKey).map(([key, value]) => [names.get(key) ?? key, value]));
  return {
    keys: [...names.values()],
    get leaseId() {
      return lease.leaseId;
    },
    get fencingTokens() {
      return called(set.tokens());
    },
    get state() {
      return lease.state;
    },
    signal: lease.signal,
    remainingMs: () => lease.remainingMs(),
    isHeld: () => lease.isHeld(),
    assertHeld: () => lease.assertHeld(),
    progress: () => lease.progress(),
    renew: (options) => lease.renew(options),
    async release() {
      await lease.release();
      return called(set.states());
    },
    [Symbol.asyncDispose]: () => lease[Symbol.asyncDispose](),
  };
}
