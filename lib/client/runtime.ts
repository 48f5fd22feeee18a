/** The runtime of a client in production: the machine's clocks and secure randomness. */
import { type Clock, systemClock } from "../core/time.js";
import type { ServiceApi } from "../core/api/runs.js";
import type { OuterDeps } from "./acquire/acquire.js";
import { LeaseIds } from "./acquire/lease-ids.js";

/** Returns everything that a client needs to call `api` on this machine. */
export function systemRuntime(api: ServiceApi, clock: Clock = systemClock): OuterDeps {
  return { api, clock, random: secureRandom, ids: new LeaseIds(clock, randomBytes) };
}

/** Bytes drawn from the generator at once: one call costs as much as the signature of a request. */
const POOL_BYTES = 4096;
let pool = new Uint8Array(0);
let used = 0;

/** Returns up to {@link POOL_BYTES} bytes of a cryptographically secure generator: a leaseId proves a hold. Each byte is used once. */
export function randomBytes(count: number): Uint8Array {
  if (used + count > pool.length) {
    pool = crypto.getRandomValues(new Uint8Array(POOL_BYTES));
    used = 0;
  }
  const bytes = pool.slice(used, used + count);
  pool.fill(0, used, (used += count));
  return bytes;
}

/** Returns a random number from 0 to 1. */
export function secureRandom(): number {
  const [a = 0, b = 0, c = 0, d = 0] = randomBytes(4);
  return (a * 2 ** 24 + b * 2 ** 16 + c * 2 ** 8 + d) / 2 ** 32;
}
