/** A client of the simulated service, in a process of its own. */
import { LeaseIds } from "../../lib/client/ask/lease-ids.js";
import { createClient } from "../../lib/client/client.js";
import { httpApi } from "../../lib/client/wire/http.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { type FaultMix, drawClockError } from "./faults.js";
import type { Network } from "./network.js";
import type { Random } from "./random.js";
import type { WaitOracle } from "./oracles/wait-oracle.js";
import type { Actor } from "./stage.js";
import { type World, Process } from "./world.js";

/** Creates a client of that principal, behind the network, with clocks that its faults allow. */
export function makeActor(world: World, random: Random, mix: FaultMix, network: Network, waits: WaitOracle, index: number): Actor {
  const name = `client-${index}`;
  const process = new Process(world, {
    name,
    wallErrorMs: drawClockError(random, mix.clientWallErrorMs),
    rateError: random.pick([-1, 1, 0]) * DEFAULTS.clockRateError,
    stopsWhenPaused: mix.stopsMonotonic,
  });
  const send = network.fetchFor(process, name);
  const watch = waits.watch();
  const api = watch.around(httpApi({ url: "http://simulated", fetch: send }));
  const ids = new LeaseIds(process, (count) => random.bytes(count));
  return { process, send, watch, client: createClient({ api, clock: process, random: () => random.unit(), ids }) };
}
