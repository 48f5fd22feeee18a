/** The runtime of a client in production: the machine's clocks and secure randomness. */
import { randomBytes, randomNumber } from "../core/random.js";
import { type Clock, systemClock } from "../core/time.js";
import type { ServiceApi } from "../core/api/runs.js";
import type { OuterDeps } from "./client.js";
import { LeaseIds } from "./ask/lease-ids.js";

/** Returns everything that a client needs to call `api` on this machine. */
export function systemRuntime(api: ServiceApi, clock: Clock = systemClock): OuterDeps {
  return { api, clock, random: randomNumber, ids: new LeaseIds(clock, randomBytes) };
}
