/**
 * The real client, service and core in one process with simulated time. The test controls the wire between client and
 * service. The service reads the true time: only the client's clocks may be wrong.
 */
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import type { ClientOptions } from "../../lib/client/calls/client-options.js";
import type { LockClientEvent } from "../../lib/client/wire/events.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import { createClient } from "../../lib/client/client.js";
import type { Lease } from "../../lib/client/hold/lease-types.js";
import { randomBytes } from "../../lib/core/random.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Clock } from "../../lib/core/time.js";
import { oneClock } from "../../lib/service/clocks.js";
import { serviceOnEachCall } from "../../lib/service/service.js";
import type { LockStore } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing.js";
import { type Wire, createWire } from "./wire.js";

/** The parts that a test controls. */
export interface Harness {
  readonly clock: VirtualClock;
  readonly store: LockStore;
  /** The wire between `locks` and the service. The rival has its own wire. */
  readonly wire: Wire;
  readonly locks: LockClient;
  readonly events: readonly LockClientEvent[];
  /** A client of the same service with a perfect wire. */
  readonly rival: LockClient;
}

export interface HarnessOptions extends Omit<ClientOptions, "onEvent"> {
  /** Jitter, from 0 to 1. @default 0.5 */
  readonly random?: () => number;
  /** The clock for the client's ids and lease deadlines. @default the harness's own */
  readonly clientClock?: (clock: VirtualClock) => Clock;
}

/** Creates a service and two clients of it. */
export function createHarness({ random = () => 0.5, clientClock, ...options }: HarnessOptions = {}): Harness {
  const clock = new VirtualClock();
  const service: Clock = { ...timersOf(clock), wallMs: () => clock.monotonicMs(), monotonicMs: () => clock.monotonicMs() };
  const store = createMemoryStore({ policy: createPolicy(), clock: service });
  const wire = createWire(serviceOn(store, service), clock);
  const events: LockClientEvent[] = [];
  const own = clientClock?.(clock) ?? clock;
  const join = (api: ServiceApi, by: Clock, more: ClientOptions): LockClient =>
    createClient({ api, clock: by, random, ids: new LeaseIds(by, randomBytes) }, more);
  return {
    clock,
    store,
    wire,
    locks: join(wire.api, own, { ...options, onEvent: (event) => events.push(event) }),
    events,
    rival: join(serviceOn(store, service), service, { owner: "rival" }),
  };
}

/** True if all accessors of a lease agree at this moment. */
export function isConsistent(lease: Lease): boolean {
  const state = lease.state;
  const held = lease.isHeld();
  const asserted = !throws(() => lease.assertHeld());
  return (
    held === (state === "held" || state === "unknown") &&
    held === asserted &&
    held === lease.remainingMs() > 0 &&
    held === !lease.signal.aborted
  );
}

function throws(task: () => void): boolean {
  try {
    task();
    return false;
  } catch {
    return true;
  }
}

function timersOf(clock: VirtualClock): Pick<Clock, "after" | "inBackground"> {
  return { after: (delayMs, task) => clock.after(delayMs, task), inBackground: (delayMs, task) => clock.inBackground(delayMs, task) };
}

/** The service's operations. Each reads the clock itself, like a function for every request. */
function serviceOn(store: LockStore, clock: Clock): ServiceApi {
  const caller = { principal: "test/client", namespace: "test", requestId: "test" };
  return serviceOnEachCall({ store, log: () => undefined, clock }, caller, () => oneClock(clock));
}
