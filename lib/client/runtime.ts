/** The runtime of a client in production: the machine's clocks and secure randomness. */
import { systemClock } from "../core/time.js";
import type { Clock } from "../core/time.js";
import type { ServiceApi } from "../core/api/runs.js";
import type { OuterDeps } from "./acquire/acquire.js";
import { LeaseIds } from "./acquire/lease-ids.js";

/** Returns everything that a client needs to call `api` on this machine. */
export function systemRuntime(api: ServiceApi, clock: Clock = systemClock): OuterDeps {
  return { api, clock, random: secureRandom, ids: new LeaseIds(clock, randomBytes) };
}

/** Returns bytes of a cryptographically secure generator: a leaseId proves a hold. */
export function randomBytes(count: number): Uint8Array {
  return crypto.getRandomValues(new Uint8Array(count));
}

/** Returns a random number from 0 to 1. */
export function secureRandom(): number {
  const [value = 0] = crypto.getRandomValues(new Uint32Array(1));
  return value / 2 ** 32;
}
