/**
 * The routes of the API. The handler dispatches by route key, and the stack deploys the same list. Each route has a duty, which decides the
 * function that serves it. A new route also needs its handler (operations.ts), its document and message (lib/wire/operation-docs.ts,
 * lib/wire/messages.ts), and its call in lib/core/api, lib/service and lib/client/transport/http.ts; for users of the SDK also in
 * lib/client/lock-client.ts. The stack, the local gateway and the permissions follow from this list. Its tests: a row in
 * test/lambda/authorization-matrix.ts, test/client/transport/http-transport.test.ts, test/lambda/handler.test.ts and
 * test/e2e/conformance/requests.ts.
 */

/** The operations, by the HTTP API's route key. */
export const ROUTES = {
  "PUT /v1/locks/{key}/leases/{leaseId}": "acquire",
  "GET /v1/locks/{key}/leases/{leaseId}": "check",
  "DELETE /v1/locks/{key}/leases/{leaseId}": "release",
  "POST /v1/locks/{key}/leases/{leaseId}/renew": "renew",
  "POST /v1/locks/{key}/leases/{leaseId}/mode": "changeMode",
  "POST /v1/locks/{key}/leases/{leaseId}/transfer": "transfer",
  "POST /v1/locks/{key}/leases/{leaseId}/wait": "wait",
  "POST /v1/locks/{key}/leases/{leaseId}/notify": "notify",
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

/** `METHOD /path/{parameter}`, the gateway's name of a route. */
export type RouteKey = keyof typeof ROUTES;

/** The operation of a route. */
export type RouteName = (typeof ROUTES)[RouteKey];

/**
 * The group of a route. Each duty has its own function in the stack: `acquire` for callers that request a lease (and may wait), `hold` for
 * holders, so that a crowd of waiters can't block their heartbeats, and `admin` for operators that inspect or end other holders' leases.
 */
export type Duty = "acquire" | "hold" | "admin";

/** The duty of each route. Requests without a route (405, 404) belong to `acquire`. */
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
  wait: "hold",
  notify: "hold",
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

/** Returns the duty of a gateway's route key, including `ANY …` and `$default`. */
export function dutyOf(routeKey: string): Duty {
  return Object.hasOwn(ROUTES, routeKey) ? DUTIES[ROUTES[routeKey as RouteKey]] : "acquire";
}

/** Returns the methods of a path, for 405 and its `Allow` header. */
export function methodsOf(path: string): readonly string[] {
  return Object.keys(ROUTES)
    .map((routeKey) => routeKey.split(" ", 2) as [string, string])
    .filter(([, routed]) => routed === path)
    .map(([method]) => method);
}

/** Every path, once. Each also has an `ANY` route, so that the service itself answers 405. */
export const PATHS: readonly string[] = [...new Set(Object.keys(ROUTES).map((routeKey) => routeKey.slice(routeKey.indexOf(" ") + 1)))];
