/**
 * The service of a history: function instances with their own clocks on one backend. The handler, the service, the store and the core are
 * the production code.
 */
import { createHandler } from "../../lambda/handler.js";
import type { Backend, Surroundings } from "./backend.js";
import { drawClockError } from "./faults.js";
import type { HandlerProcess } from "./network.js";
import { Process } from "./world.js";

/** Creates a function instance: the production handler with its own clock. @param hasAgent true if an agent wakes sleepers: requests to sleep are taken */
export function makeHandler(
  { world, random, faultProfile, oracle }: Surroundings,
  backend: Backend,
  name = "function",
  hasAgent = false,
): HandlerProcess {
  const process = new Process(world, {
    name,
    wallErrorMs: drawClockError(random, faultProfile.mix.handlerErrorMs, faultProfile.mix.clocksAtExtremes),
  });
  const { store, sleepers } = backend.recordsFor(process);
  return {
    process,
    handle: createHandler({
      ...{ store, clock: process, log: () => undefined, ...(hasAgent && { sleepers }) },
      onFailure: (error) => oracle.fail("internal", String(error)),
    }),
  };
}
