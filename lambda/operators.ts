/**
 * The rule of operators of a service with tenants (decision 088). They name a tenant's namespace in the path, before the path of the request
 * itself: `/namespaces/acme/v1/locks/ORDER_1/break`. The gateway lets in only who has that right, by IAM or a scope of its own.
 */
import { type Refusal, refuse } from "../lib/core/errors.js";
import { DUTIES, type OperationName } from "../lib/contract/routes.js";
import { SHARED_NAMESPACE } from "../lib/service/caller.js";
import type { HttpEvent } from "./http.js";
import { type RouteMatch, matchRoute } from "./match-route.js";
import { operationAt } from "./routes.js";

/** The route of operators. It exists only where somebody was given the right. */
export const OPERATORS_ROUTE = "ANY /namespaces/{namespace}/v1/{path+}";

/** A namespace has no `/`, which ends it in the table's keys. The longest is made of two names of 800 characters (caller.ts). */
const NAMESPACE = /^[\w.:~%!'()*-]{1,1601}$/;

/** The operations beside those of the admin's duty: they only look. */
const LOOKS: readonly OperationName[] = ["inspect", "run", "limit", "health"];

/** A request about a tenant's keys. */
export interface OperatorsRequest {
  readonly namespace: string;
  readonly event: HttpEvent;
}

/** Returns what an operator asks, as if the tenant asked; undefined for a request of another route. */
export function operatorsRequest(event: HttpEvent): OperatorsRequest | Refusal | undefined {
  if (event.routeKey !== OPERATORS_ROUTE) return undefined;
  const { namespace: segment = "", path = "" } = event.pathParameters ?? {};
  const namespace = namespaceIn(segment);
  if (!NAMESPACE.test(namespace) || namespace === SHARED_NAMESPACE)
    return refuse("invalid-request", { detail: `namespace: ${JSON.stringify(namespace)} given; no tenant has it`, field: "namespace" });
  const { routeKey: _route, pathParameters: _parameters, ...rest } = event;
  const rawPath = `/v1/${path}`;
  const match = matchRoute(event.requestContext.http.method, rawPath) ?? { routeKey: "$default" };
  const operation = operationAt(match.routeKey);
  if (operation && DUTIES[operation] !== "admin" && !LOOKS.includes(operation))
    return refuse("forbidden", { detail: "An operator looks at a tenant's keys, breaks and resets, and holds none of them" });
  return { namespace, event: { ...rest, ...match, rawPath } };
}

/** Returns the match of {@link OPERATORS_ROUTE}, as a gateway that has it makes it; undefined for another path, or if it can't be decoded. */
export function matchOperators(encodedPath: string): RouteMatch | undefined {
  const [, namespace, path] = /^\/namespaces\/([^/]+)\/v1\/(.+)$/.exec(encodedPath) ?? [];
  if (namespace === undefined || path === undefined) return undefined;
  try {
    return { routeKey: OPERATORS_ROUTE, pathParameters: { namespace: decodeURIComponent(namespace), path: decodeURIComponent(path) } };
  } catch {
    return undefined;
  }
}

/** Returns the namespace of a segment of a path, in which `~25` stands for `%` and `~7E` for `~`: gateways decode a `%` differently. */
function namespaceIn(segment: string): string {
  return segment.replaceAll(/~(25|7E)/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}
