/**
 * The function behind the HTTP API (payload format 2.0). The only file that knows API Gateway: route
 * key and path parameters in, never the raw path; who calls, from the authorizer; the gateway's clock.
 */
import { refuse } from "../lib/core/errors.js";
import { gatewayClocks } from "../lib/service/clocks.js";
import type { ServiceDeps } from "../lib/service/request.js";
import { lockService } from "../lib/service/service.js";
import type { Tenancy } from "./caller.js";
import { callerOf } from "./caller.js";
import { problem } from "./http.js";
import type { HttpEvent, HttpResult } from "./http.js";
import { instanceOf, OPERATIONS } from "./operations.js";
import type { RouteKey } from "./routes.js";
import { methodsOf, ROUTES } from "./routes.js";

/** What the handler is made of. */
export interface HandlerDeps extends ServiceDeps {
  /** Told of every failure that is answered with 500; the answer itself says nothing of it. */
  readonly onFailure: (error: unknown, requestId: string) => void;
  /** Tenants, each with a namespace of its own, in which alone its callers meet. @default none: all callers share one namespace */
  readonly tenancy?: Tenancy;
}

/** A handler for every route of the API. Never throws: what goes wrong inside is a 500 without a word of it. */
export function createHandler({ onFailure, tenancy, ...deps }: HandlerDeps): (event: HttpEvent) => Promise<HttpResult> {
  return async (event) => {
    const instance = instanceOf(event);
    try {
      const { routeKey } = event;
      if (!Object.hasOwn(ROUTES, routeKey)) return unrouted(routeKey, instance);
      const caller = callerOf(event, tenancy);
      if (!caller) return problem(refuse("forbidden", { detail: "No authorizer vouches for the caller" }), instance);
      const api = lockService(deps, caller, gatewayClocks(deps.clock, event.requestContext.timeEpoch));
      const result = await OPERATIONS[ROUTES[routeKey as RouteKey]](event, api);
      return "code" in result ? problem(result, instance) : result;
    } catch (error) {
      onFailure(error, event.requestContext.requestId);
      return problem(refuse("internal"), instance);
    }
  };
}

/** The stack's `ANY` routes end here for a method the path doesn't take, and `$default` for any other path. */
function unrouted(routeKey: string, instance: string | undefined): HttpResult {
  const path = routeKey.startsWith("ANY ") ? routeKey.slice(4) : undefined;
  if (path === undefined) return problem(refuse("not-found", { detail: "The API has no such path", field: "url" }), instance);
  return problem(refuse("method-not-allowed"), instance, { allow: methodsOf(path).join(", ") });
}
