/**
 * `holdfast/testing`: the same client in memory, for users' own tests. It runs the real service and the real store, on a table in memory,
 * with a virtual clock to advance and faults to inject. Nothing waits in real time and nothing is random but the leaseIds.
 */
import { LeaseIds } from "./client/ask/lease-ids.js";
import { type ClientOptions, checkClient } from "./client/calls/client-options.js";
import { ofType, unchecked } from "./client/wire/checks.js";
import { InvalidRequestError } from "./client/wire/errors.js";
import type { LockClient } from "./client/calls/lock-client.js";
import { createClient } from "./client/client.js";
import { createPolicy } from "./core/policy.js";
import { randomBytes } from "./core/random.js";
import { type Clock, backgroundClock } from "./core/time.js";
import { oneClock } from "./service/clocks.js";
import { serviceOnEachCall } from "./service/service.js";
import type { Log } from "./service/log.js";
import type { LockStore } from "./store/port.js";
import { Faults } from "./testing/faults.js";
import { createStoreInMemory } from "./testing/served-table.js";
import { VirtualClock } from "./testing/virtual-clock.js";

export * from "./index.js";
export { type Operation, Faults } from "./testing/faults.js";
export { VirtualClock } from "./testing/virtual-clock.js";

/** Options of a client in memory. Clients with the same `store` and `clock` contend with each other. */
export interface TestClientOptions extends ClientOptions {
  readonly clock?: VirtualClock | undefined;
  readonly store?: LockStore | undefined;
  /**
   * Gives the store DynamoDB's latency, units and throttles, in the clock's time: for load tests. Not with `store`. @default false
   */
  readonly likeDynamodb?: boolean | undefined;
  readonly principal?: string | undefined;
  readonly log?: Log | undefined;
}

/** A client with the clock, faults and store that a test controls. */
export interface TestLockClient extends LockClient {
  readonly clock: VirtualClock;
  readonly faults: Faults;
  /** Pass it to another client to make the two contend. */
  readonly store: LockStore;
}

/** Creates a client whose locks are in memory and whose time stands still until `clock` is advanced. */
export function createLockClient(options: TestClientOptions = {}): TestLockClient {
  checkClient(options, {
    clock: unchecked,
    store: unchecked,
    principal: unchecked,
    log: unchecked,
    likeDynamodb: ofType("boolean"),
  });
  const { clock = new VirtualClock(), principal = "test/client", log = () => undefined, likeDynamodb = false } = options;
  if (likeDynamodb && options.store) throw new InvalidRequestError("likeDynamodb: not with store, which has its table", "likeDynamodb");
  const { store = storeIn(clock, likeDynamodb) } = options;
  const faults = new Faults();
  const caller = { principal, namespace: "test", requestId: "test" };
  const api = faults.inFrontOf(serviceOnEachCall({ store, log, clock }, caller, () => oneClock(trueClock(clock))));
  const ids = new LeaseIds(clock, randomBytes);
  const client = createClient({ api, clock, random: () => 0.5, ids, transport: "memory" }, options);
  return Object.assign(client, { clock, faults, store });
}

function storeIn(clock: VirtualClock, likeDynamodb: boolean): LockStore {
  const table = { policy: createPolicy(), clock: trueClock(clock) };
  return createStoreInMemory(likeDynamodb ? { ...table, likeDynamodb, random: repeatable() } : table);
}

/** Returns numbers from 0 to 1 that are the same in each run (Park and Miller). */
function repeatable(): () => number {
  let state = 1_234_567_890;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** The service's clock, which shows true time: only the client's wall clock can jump. */
function trueClock(virtual: VirtualClock): Clock {
  return { ...backgroundClock(virtual), wallMs: () => Math.floor(virtual.monotonicMs()) };
}
