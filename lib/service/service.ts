/** The service: every operation, for one caller and by the clocks of one request. */
import { apiBy, callOf } from "../core/api/call.js";
import type { ServiceApi } from "../core/api/runs.js";
import type { Caller } from "./caller.js";
import type { RequestClocks } from "./clocks.js";
import { limitOperations } from "./limits.js";
import { lockOperations } from "./locks.js";
import { type ServiceDeps, RequestContext } from "./request-context.js";
import { runOperations } from "./runs.js";
import { setOperations } from "./sets.js";

/** Makes the operations of `caller`. Each reads the clocks itself, as a function does for every request. */
export function serviceOnEachCall(deps: ServiceDeps, caller: Caller, clocks: () => RequestClocks): ServiceApi {
  const now = (): ServiceApi => lockService(deps, caller, clocks());
  return apiBy(now(), (operation, request, options) => callOf(now())(operation, request, options));
}

/** Makes the operations of `caller`, by these clocks. */
export function lockService(deps: ServiceDeps, caller: Caller, clocks: RequestClocks): ServiceApi {
  const served = new RequestContext(deps, caller, clocks);
  const locks = lockOperations(served);
  const runs = runOperations(served);
  const renew: ServiceApi["renew"] = (request) => (request.kind === "runs" ? runs : locks).renew(request);
  // Made for each request: a literal that spreads several objects takes five times as long.
  return Object.assign(setOperations(served, locks), locks, runs, Object.assign(limitOperations(served), { renew }));
}
