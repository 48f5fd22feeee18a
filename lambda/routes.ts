/** The routes of the API as API Gateway knows them: the function dispatches by route key, and the stack deploys the same list. */
import { type Duty, type OperationName, type RouteKey, DUTIES, ROUTES } from "../lib/contract/routes.js";

export const ROUTE_KEYS: readonly RouteKey[] = Object.values(ROUTES);

const BY_ROUTE: ReadonlyMap<string, OperationName> = new Map(Object.entries(ROUTES).map(([name, route]) => [route, name as OperationName]));

/** Returns the operation of a route key; undefined if the API has no such route. */
export function operationAt(routeKey: string): OperationName | undefined {
  return BY_ROUTE.get(routeKey);
}

/** Returns the duty of a gateway's route key. Requests without a route (`$default`: 405, 404) belong to `acquire`. */
export function dutyOf(routeKey: string): Duty {
  const name = operationAt(routeKey);
  return name ? DUTIES[name] : "acquire";
}

/** Returns the methods of a path, for 405 and its `Allow` header. */
export function methodsOf(path: string): readonly string[] {
  return ROUTE_KEYS.map((routeKey) => routeKey.split(" ", 2) as [string, string])
    .filter(([, routed]) => routed === path)
    .map(([method]) => method);
}

/** Every path, once. */
export const PATHS: readonly string[] = [...new Set(ROUTE_KEYS.map((routeKey) => routeKey.slice(routeKey.indexOf(" ") + 1)))];
