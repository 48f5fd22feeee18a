/**
 * Several services on localhost, one for each Region of a table in memory: what a global table with multi-Region strong consistency is to its
 * callers. Each Region can be cut off and comes back, over HTTP at its own address.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { createHandler } from "../../lambda/handler.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import { systemClock } from "../../lib/core/time.js";
import type { Log } from "../../lib/service/log.js";
import type { Door, DoorState } from "../../lib/testing/regions.js";
import { storesInRegions } from "../../lib/testing/served-table.js";
import type { Gateway, Page } from "./gateway.js";
import { type LocalServiceOptions, startOnOneOf } from "./local-service.js";

/** The path at which a Region says its state, and takes another. */
export const REGION_PATH = "/dev/region";

/** The states by name: a Region that is `silent` is cut off from its callers too, and one that is `isolated` from the other Regions alone. */
const STATES: readonly DoorState[] = ["open", "silent", "isolated"];

/** A running service of one Region. */
export interface RegionalService extends Gateway {
  readonly region: string;
}

/** Starts a service for each Region, on ports that follow each other. @throws StartError if no port can be had */
export async function startServicesInRegions(
  regions: readonly string[],
  { ports, allowedHosts, log, onFailure }: Pick<LocalServiceOptions, "ports" | "allowedHosts" | "onFailure"> & { readonly log: Log },
): Promise<readonly RegionalService[]> {
  const stores = storesInRegions(regions, createPolicy());
  const services: RegionalService[] = [];
  let free = ports;
  for (const { door, store, urls } of stores) {
    const handler = createHandler({ store, clock: systemClock, log, onFailure, serverWaitMs: LIMITS.serverWaitMs });
    const gateway = await startOnOneOf(free, { handler, allowedHosts, onError: onFailure });
    // The next one, unless any free port may be taken.
    free = free.includes(0) ? free : [gateway.port + 1, ...free.filter((port) => port > gateway.port + 1)];
    urls.push(gateway.url);
    const service: RegionalService = {
      ...gateway,
      region: door.region,
      mount: (page) => gateway.mount((request, response) => plug(door, request, response) || page(request, response)),
    };
    service.mount(() => false);
    services.push(service);
  }
  return services;
}

/** Takes the requests for the state of the Region, and while it is silent all others: those are never answered. */
function plug(door: Door, request: IncomingMessage, response: ServerResponse): ReturnType<Page> {
  const [path, query] = (request.url ?? "").split("?", 2);
  if (path !== REGION_PATH) return door.state === "silent";
  const wanted = new URLSearchParams(query).get("state");
  const state = STATES.find((one) => one === wanted);
  if (request.method === "POST" && state === undefined) {
    response.writeHead(400).end(`state: must be one of ${STATES.join(", ")}, given ${JSON.stringify(wanted)}\n`);
    return true;
  }
  if (state !== undefined && request.method === "POST") door.state = state;
  response.writeHead(200, { "content-type": "text/plain" }).end(`${door.region} is ${door.state}\n`);
  return true;
}
