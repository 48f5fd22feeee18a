/**
 * The function behind the HTTP API or a function URL (payload format 2.0). Only `lambda/` depends on the gateway: it takes the
 * route key and path parameters, the caller from the authorizer, and the gateway's clock. function-url.ts makes the former two of a function
 * URL's path. The raw path only says whether a request without a route is 404 or 405.
 */
import { refuse } from "../lib/core/errors.js";
import { gatewayClocks } from "../lib/service/clocks.js";
import { refusalLine } from "../lib/service/log.js";
import type { ServiceDeps } from "../lib/service/request-context.js";
import { lockService } from "../lib/service/service.js";
import type { Tenancy } from "./tenancy.js";
import { callerOf, whyNoCaller } from "./caller.js";
import { type Invocation, aliasOf, grantOf, outsideGrant, routed } from "./function-url.js";
import { type HttpEvent, type HttpResult, problem } from "./http.js";
import { instanceOf, kindOf, serve } from "./serve.js";
import { operatorsRequest } from "./operators.js";
import { matchPath } from "./match-route.js";
import { methodsOf, operationAt } from "./routes.js";

/** The dependencies of the handler. */
export interface HandlerDeps extends ServiceDeps {
  /** Called for every failure that is answered with 500; the answer itself has no details. The error may quote a record, with its ids. */
  readonly onFailure: (error: unknown, requestId: string) => void;
  /** The tenants, each with its own namespace. @default none: all callers share one namespace */
  readonly tenancy?: Tenancy;
  /** The gateway that invokes the function. The deployment says it, never an event. @default "api" */
  readonly mount?: Mount;
}

/** A gateway: an HTTP API, or the function URLs of aliases. */
export type Mount = "api" | "function-url";

const API_MOUNT =
  "The function must be mounted behind an API Gateway HTTP API, with payload format 2.0 and the routes of the OpenAPI document";
const URL_MOUNT = "The function must be called by the URL of an alias that the construct made";

/**
 * Creates a handler for every route of the API. Mount it behind an API Gateway HTTP API with payload format 2.0, a route for each path and
 * method of the OpenAPI document, and an authorizer (IAM or JWT) on each; or, with `mount: "function-url"`, behind function URLs of aliases
 * that say what their callers may do. The construct `LockService` creates exactly that. Whoever may invoke the function directly can forge
 * every caller, so let only a gateway invoke it (docs/threat-model.md). Events of REST APIs and load balancers are answered with a 500 that
 * says so, those of `{proxy+}` routes and of a function URL without that mount with 404. The handler never throws: a failure is answered
 * with a 500 without details, and `onFailure` is called.
 */
export function createHandler({
  onFailure,
  tenancy,
  mount = "api",
  ...deps
}: HandlerDeps): (event: HttpEvent, invocation?: Invocation) => Promise<HttpResult> {
  const report = (error: unknown, requestId = ""): void => {
    try {
      onFailure(error, requestId);
    } catch {
      // The caller gets its answer anyway.
    }
  };
  const mismounted = (rule: string, found: string): HttpResult => {
    report(new Error(`${rule}; ${found}`));
    return problem(refuse("internal", { definite: true, retry: "never", detail: rule }), undefined);
  };
  return async (received, invocation = {}) => {
    if (!isHttpEvent(received)) return mismounted(API_MOUNT, "this event is of another kind");
    const grant = mount === "api" ? undefined : grantOf(invocation);
    if (mount !== "api" && !grant) return mismounted(URL_MOUNT, `it was invoked as ${invocation.invokedFunctionArn}`);
    const operators = grant || !tenancy ? undefined : operatorsRequest(received);
    if (operators && "code" in operators) return problem(operators, undefined);
    const event = operators?.event ?? (grant ? routed(received) : received);
    if (!event) return problem(refuse("invalid-request", { detail: "The path can't be decoded", field: "url" }), undefined);
    const instance = instanceOf(event);
    try {
      const { routeKey } = event;
      const operation = operationAt(routeKey);
      if (!operation) return unrouted(event);
      // An operator's own tenant doesn't count: the gateway lets operators in by a right that no tenant needs.
      const ownTenancy = operators ? undefined : tenancy;
      const ownCaller = callerOf(event, ownTenancy);
      if (!ownCaller) return problem(refuse("forbidden", { detail: whyNoCaller(event, ownTenancy) }), instance);
      const caller = operators ? { ...ownCaller, namespace: operators.namespace } : ownCaller;
      const key = event.pathParameters?.["key"];
      const outside = grant && outsideGrant(grant, operation, key);
      if (outside) {
        // There is no access log before a function URL, so this line is the only record of who tries.
        const request = { kind: kindOf(routeKey), key: key ?? "" };
        deps.log(refusalLine(request, outside, caller, deps.clock.wallMs(), aliasOf(grant)));
        return problem(outside, instance);
      }
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

/** Answers requests without a route: 405 if the path has other methods, else 404. Nothing else is decided by the raw path. */
function unrouted(event: HttpEvent): HttpResult {
  const { method } = event.requestContext.http;
  const { path, parameters } = matchPath(event.rawPath) ?? { path: "", parameters: {} };
  const methods = methodsOf(path);
  if (methods.length === 0 || methods.includes(method))
    return problem(refuse("not-found", { detail: "The API has no such path", field: "url" }), undefined);
  const asked = { ...event, routeKey: `${method} ${path}`, pathParameters: parameters };
  return problem(refuse("method-not-allowed"), instanceOf(asked), { allow: methods.join(", ") });
}
