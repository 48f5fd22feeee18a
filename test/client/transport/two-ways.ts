/**
 * A client with two ways, in one process with simulated time: the real failover over two real services on one store, which stand for the
 * service over HTTP and the table. The test controls the wire of each.
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import type { LockClientEvent } from "../../../lib/client/wire/events.js";
import type { ClientOptions } from "../../../lib/client/calls/client-options.js";
import { createClient } from "../../../lib/client/client.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { randomBytes } from "../../../lib/core/random.js";
import { failover } from "../../../lib/client/wire/failover.js";
import type { CallerIdentity, Via } from "../../../lib/core/api/locks.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { createPolicy } from "../../../lib/core/policy.js";
import { oneClock } from "../../../lib/service/clocks.js";
import { serviceOnEachCall } from "../../../lib/service/service.js";
import type { LockStore } from "../../../lib/store/port.js";
import { createMemoryLimits, createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { VirtualClock } from "../../../lib/testing.js";
import { type Fate, type Wire, createWire } from "../wire.js";

/** The caller at the service, as the gateway authenticates it. */
export const CALLER = { namespace: "default", principal: "account/role" };

/** The parts that a test controls. */
export interface TwoWays {
  readonly clock: VirtualClock;
  readonly store: LockStore;
  /** The store of the table's way. */
  readonly tableStore: LockStore;
  readonly service: Wire;
  /** The wire to the table, under the identity that the client used there. */
  readonly table: Wire;
  /** The principals under which the table was used. */
  readonly principals: readonly string[];
  readonly locks: LockClient;
  readonly events: readonly LockClientEvent[];
  /** Another client of the service, as another caller. */
  readonly rival: LockClient;
  /** Every request to the service gets this fate. Undefined removes it. */
  fail(fate: Fate | undefined): void;
}

/** The parts of a client that a test replaces. */
export interface TwoWaysOptions {
  /** @default "auto" */
  readonly via?: Via;
  /** The identity that the service tells; undefined: it is too old to tell one. @default the caller's */
  readonly told?: Partial<CallerIdentity> | undefined;
  /** The identity that the client was configured with. */
  readonly configured?: Partial<CallerIdentity>;
  /** The store of the table's way. @default the service's */
  readonly tableStore?: (clock: VirtualClock) => LockStore;
  /** The identity under which the table is really used. @default as told */
  readonly onTableAs?: Partial<CallerIdentity>;
  /** True if the comparison of the two ways is deceived about that identity. @default false */
  readonly isDeceived?: boolean;
  /** True for a client without a URL. */
  readonly withoutService?: boolean;
}

const PARAMETERS = { format: 0, clockErrorMs: createPolicy().clockErrorMs, retentionMs: createPolicy().retentionMs };

export const memoryStore = (clock: VirtualClock): LockStore => createMemoryStore({ policy: createPolicy(), clock });

/** Creates the service, the table and a client of both. */
export function twoWays(options: TwoWaysOptions = {}): TwoWays {
  const { via = "auto", told = {}, configured = {}, onTableAs = {}, withoutService = false } = options;
  const clock = new VirtualClock();
  const store = memoryStore(clock);
  const tableStore = options.tableStore?.(clock) ?? store;
  const isTold = !("told" in options) || options.told !== undefined;
  const telling = serviceOf(store, clock, CALLER);
  const service = createWire(
    {
      ...telling,
      async health(request, asked) {
        const answer = await telling.health(request, asked);
        const { caller, ...rest } = { caller: undefined, ...answer };
        return caller && isTold ? { ...rest, caller: { ...caller, ...told } } : rest;
      },
    },
    clock,
  );
  const principals: string[] = [];
  let table: Wire | undefined;
  const onTable = (identity: CallerIdentity): ServiceApi => {
    principals.push(identity.principal);
    const api = serviceOf(tableStore, clock, { ...identity, ...onTableAs });
    table ??= createWire({ ...api, ...(options.isDeceived && { check: serviceOf(tableStore, clock, identity).check }) }, clock);
    return table.api;
  };
  const events: LockClientEvent[] = [];
  const tell = (event: LockClientEvent): void => void events.push(event);
  const { api, use } = failover({
    ...{ via, clock, emit: tell, random: () => 0.5 },
    ways: [...(withoutService ? [] : [{ kind: "service" as const, open: () => service.api }]), { kind: "table", open: onTable }],
    own: { namespace: "default", principal: "direct", ...PARAMETERS, ...configured },
    configured: ["format", ...(Object.keys(configured) as (keyof CallerIdentity)[])],
  });
  const runtime = { clock, random: () => 0.5, ids: new LeaseIds(clock, randomBytes) };
  return {
    ...{ clock, store, tableStore, service, principals, events },
    get table() {
      if (!table) throw new Error("the table was not used");
      return table;
    },
    locks: createClient({ ...runtime, api, use }, { onEvent: tell }),
    rival: rivalOn(store, clock),
    fail: (fate) => (Object.keys(service.api) as (keyof ServiceApi)[]).forEach((operation) => service.always(operation, fate)),
  };
}

/** The parts of a client of several services that a test controls. */
export interface Doors {
  readonly clock: VirtualClock;
  /** The wires to the services, in the order of their URLs. */
  readonly wires: readonly Wire[];
  readonly events: readonly LockClientEvent[];
  readonly locks: LockClient;
  /** Another client of the same services and the same wires, with a beginning of its own. */
  readonly born: (options?: ClientOptions) => LockClient;
  /** A client of the first service alone, as a control. */
  readonly alone: LockClient;
  /** Every request to the service at this index gets this fate. Undefined removes it. */
  fail(at: number, fate: Fate | undefined): void;
}

export interface DoorsOptions {
  /** @default 2 */
  readonly count?: number;
  /** True if each service has a table of its own. @default false */
  readonly areApart?: boolean;
  /** The URLs that the table lists. @default all */
  readonly listed?: readonly string[];
  /** The members of the caller's identity that the last service tells unlike the others. */
  readonly told?: Partial<CallerIdentity>;
}

/** Returns the URL of the service at this index. */
export const urlAt = (index: number): string => `https://${"abc"[index]}.example/api`;

/** Creates several services of one table, and a client of all of them. */
export function severalDoors({ count = 2, areApart = false, listed, told = {} }: DoorsOptions = {}): Doors {
  const clock = new VirtualClock();
  const urls = Array.from({ length: count }, (_, index) => urlAt(index));
  const shared = createMemoryTable();
  const sharedLimits = createMemoryLimits();
  const wires = urls.map((url, index) => {
    const table = areApart ? createMemoryTable() : shared;
    const doors = listed ?? (areApart ? [url] : urls);
    const store = createMemoryStore({ policy: createPolicy(), clock, table, doors });
    const api = serviceOf({ ...store, ...(!areApart && { limits: sharedLimits }) }, clock, CALLER);
    const health: ServiceApi["health"] = async (request, options) => {
      const answer = await api.health(request, options);
      if (!answer.ok || !answer.caller || index < count - 1) return answer;
      return { ...answer, caller: { ...answer.caller, ...told } };
    };
    return createWire({ ...api, health }, clock);
  });
  const events: LockClientEvent[] = [];
  const tell = (event: LockClientEvent): void => void events.push(event);
  const client = (at: readonly number[], options?: ClientOptions): LockClient => {
    const { api } = failover({
      ...{ via: "service", clock, emit: tell, random: () => 0.5 },
      ways: at.map((index) => ({ kind: "service", door: urlAt(index), open: () => wires[index]!.api })),
      ...{ own: { namespace: "", principal: "", format: 0, clockErrorMs: 0, retentionMs: 0 }, configured: [] },
    });
    return createClient({ clock, random: () => 0.5, ids: new LeaseIds(clock, randomBytes), api }, { onEvent: tell, ...options });
  };
  const all = urls.map((_, index) => index);
  return {
    ...{ clock, wires, events, locks: client(all), born: (options) => client(all, options), alone: client([0]) },
    fail: (at, fate) => (Object.keys(wires[at]!.api) as (keyof ServiceApi)[]).forEach((operation) => wires[at]!.always(operation, fate)),
  };
}

/** Returns another caller's client of the records in `store`. */
export function rivalOn(store: LockStore, clock: VirtualClock): LockClient {
  const api = serviceOf(store, clock, { ...CALLER, principal: "account/rival" });
  return createClient({ clock, random: () => 0.5, ids: new LeaseIds(clock, randomBytes), api });
}

/** Returns the operations of one caller. Each reads the clock itself, like a function for every request. */
function serviceOf(store: LockStore, clock: VirtualClock, { namespace, principal }: typeof CALLER): ServiceApi {
  const caller = { namespace, principal, requestId: "test" };
  return serviceOnEachCall({ store, log: () => undefined, clock }, caller, () => oneClock(clock));
}
