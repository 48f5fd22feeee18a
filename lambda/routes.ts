/**
 * Every route of the API, once: the handler dispatches by route key, the stack deploys the same list, and
 * each route has a duty, the function that serves it.
 */

/** The operations, by the HTTP API's route key. */
export const ROUTES = {
  "PUT /v1/locks/{key}/leases/{leaseId}": "acquire",
  "GET /v1/locks/{key}/leases/{leaseId}": "check",
  "DELETE /v1/locks/{key}/leases/{leaseId}": "release",
  "POST /v1/locks/{key}/leases/{leaseId}/renew": "renew",
  "POST /v1/locks/{key}/leases/{leaseId}/mode": "changeMode",
  "POST /v1/locks/{key}/leases/{leaseId}/transfer": "transfer",
  "GET /v1/locks/{key}": "inspect",
  "POST /v1/locks/{key}/break": "break",
  "GET /v1/locks": "list",
  "PUT /v1/lock-sets/{leaseId}": "acquireSet",
  "POST /v1/lock-sets/{leaseId}/renew": "renewSet",
  "POST /v1/lock-sets/{leaseId}/release": "releaseSet",
  "POST /v1/renewals": "renewMany",
  "PUT /v1/runs/{key}/leases/{leaseId}": "start",
  "GET /v1/runs/{key}/leases/{leaseId}": "checkRun",
  "DELETE /v1/runs/{key}/leases/{leaseId}": "abandonRun",
  "POST /v1/runs/{key}/leases/{leaseId}/renew": "renewRun",
  "PUT /v1/runs/{key}/leases/{leaseId}/outcome": "complete",
  "GET /v1/runs/{key}": "run",
  "POST /v1/runs/{key}/reset": "resetRun",
  "GET /v1/runs": "runs",
  "GET /v1/health": "health",
  "GET /v1/openapi.json": "openapi",
} as const;

/** `METHOD /path/{parameter}` as the gateway names a route. */
export type RouteKey = keyof typeof ROUTES;

/** What a route does. */
export type RouteName = (typeof ROUTES)[RouteKey];

/**
 * Who serves a route, each a function of its own in the stack: `acquire` whoever wants in (and may be kept
 * waiting), `hold` whoever holds, so that no crowd before the door keeps a holder from its heartbeat, and
 * `admin` who looks over or ends what others hold.
 */
export type Duty = "acquire" | "hold" | "admin";

/** The duty of each route. What matches no route (405, 404) is `acquire`'s. */
export const DUTIES: Readonly<Record<RouteName, Duty>> = {
  acquire: "acquire",
  acquireSet: "acquire",
  start: "acquire",
  inspect: "acquire",
  run: "acquire",
  health: "acquire",
  openapi: "acquire",
  check: "hold",
  release: "hold",
  renew: "hold",
  changeMode: "hold",
  transfer: "hold",
  renewSet: "hold",
  releaseSet: "hold",
  renewMany: "hold",
  checkRun: "hold",
  abandonRun: "hold",
  renewRun: "hold",
  complete: "hold",
  break: "admin",
  list: "admin",
  resetRun: "admin",
  runs: "admin",
};

/** The duty of a gateway's route key, also of `ANY …` and `$default`. */
export function dutyOf(routeKey: string): Duty {
  return Object.hasOwn(ROUTES, routeKey) ? DUTIES[ROUTES[routeKey as RouteKey]] : "acquire";
}

/** The methods a path takes, for 405 and its `Allow`. */
export function methodsOf(path: string): readonly string[] {
  return Object.keys(ROUTES)
    .map((routeKey) => routeKey.split(" ", 2) as [string, string])
    .filter(([, routed]) => routed === path)
    .map(([method]) => method);
}

/** Every path, once. Each also has an `ANY` route, so that the service itself answers 405. */
export const PATHS: readonly string[] = [...new Set(Object.keys(ROUTES).map((routeKey) => routeKey.slice(routeKey.indexOf(" ") + 1)))];
