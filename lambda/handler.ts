/**
 * The function behind the HTTP API (payload format 2.0). Only this file depends on API Gateway: it takes the route key and path parameters
 * (never the raw path), the caller from the authorizer, and the gateway's clock.
 */
import { refuse } from "../lib/core/errors.js";
import { gatewayClocks } from "../lib/service/clocks.js";
import type { ServiceDeps } from "../lib/service/request.js";
import { lockService } from "../lib/service/service.js";
import type { Tenancy } from "./tenancy.js";
import { callerOf } from "./caller.js";
import { type HttpEvent, type HttpResult, problem } from "./http.js";
import { instanceOf, serve } from "./operations.js";
import { methodsOf, operationAt, PATHS } from "./routes.js";

/** The dependencies of the handler. */
export interface HandlerDeps extends ServiceDeps {
  /** Called for every failure that is answered with 500; the answer itself has no details. The error may quote a record, with its ids. */
  readonly onFailure: (error: unknown, requestId: string) => void;
  /** The tenants, each with its own namespace. @default none: all callers share one namespace */
  readonly tenancy?: Tenancy;
}

const MOUNT = "The function must be mounted behind an API Gateway HTTP API, with payload format 2.0 and the routes of the OpenAPI document";

/**
 * Creates a handler for every route of the API. Mount it behind an API Gateway HTTP API with payload format 2.0, a route for each path and
 * method of the OpenAPI document, and an authorizer (IAM or JWT) on each. The construct `LockService` creates exactly that. Whoever may
 * invoke the function directly can forge every caller, so let only the API invoke it (docs/threat-model.md). REST APIs, function URLs,
 * load balancers and `{proxy+}` routes are not supported: their events are answered with a 500 that says so. The handler never throws: a
 * failure is answered with a 500 without details, and `onFailure` is called.
 */
export function createHandler({ onFailure, tenancy, ...deps }: HandlerDeps): (event: HttpEvent) => Promise<HttpResult> {
  const report = (error: unknown, requestId = ""): void => {
    try {
      onFailure(error, requestId);
    } catch {
      // The caller gets its answer anyway.
    }
  };
  return async (event) => {
    if (!isHttpEvent(event)) {
      report(new Error(`${MOUNT}; this event is of another kind`));
      return problem(refuse("internal", { definite: true, retry: "never", detail: MOUNT }), undefined);
    }
    const instance = instanceOf(event);
    try {
      const { routeKey } = event;
      const operation = operationAt(routeKey);
      if (!operation) return unrouted(routeKey, instance);
      const caller = callerOf(event, tenancy);
      if (!caller) return problem(refuse("forbidden", { detail: "No authorizer vouches for the caller" }), instance);
      const api = lockService(deps, caller, gatewayClocks(deps.clock, event.requestContext.timeEpoch));
      const result = await serve(operation, event, api);
      return "code" in result ? problem(result, instance) : result;
    } catch (error) {
      report(error, event.requestContext.requestId);
      return problem(refuse("internal"), instance);
    }
  };
}

/** True if this is an event of an HTTP API. A handler mounted elsewhere can get anything. */
function isHttpEvent(event: unknown): event is HttpEvent {
  if (typeof event !== "object" || event === null) return false;
  const { version, routeKey, requestContext, headers } = event as { readonly [member in keyof HttpEvent]?: unknown };
  const areObjects = [requestContext, headers].every((member) => typeof member === "object" && member !== null);
  return version === "2.0" && typeof routeKey === "string" && areObjects;
}

/** Answers requests without a route: the stack's `ANY` routes for unsupported methods of a path, and `$default` for any other path. */
function unrouted(routeKey: string, instance: string | undefined): HttpResult {
  const path = routeKey.replace(/^ANY /, "");
  if (path === routeKey || !PATHS.includes(path))
    return problem(refuse("not-found", { detail: "The API has no such path", field: "url" }), instance);
  return problem(refuse("method-not-allowed"), instance, { allow: methodsOf(path).join(", ") });
}
