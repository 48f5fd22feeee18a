/**
 * The operations of the API: the route of each, and its duty. The client sends by these routes, and the service, the stack, the permissions
 * and the local gateway follow them. operations.ts has the rest of each row. The compiler asks for it there, and for the duty here.
 */

/** Each operation's route, as API Gateway writes it: `METHOD /path/{parameter}`. */
export const ROUTES = {
  acquire: "PUT /v1/locks/{key}/leases/{leaseId}",
  check: "GET /v1/locks/{key}/leases/{leaseId}",
  release: "DELETE /v1/locks/{key}/leases/{leaseId}",
  renew: "POST /v1/locks/{key}/leases/{leaseId}/renew",
  changeMode: "POST /v1/locks/{key}/leases/{leaseId}/mode",
  transfer: "POST /v1/locks/{key}/leases/{leaseId}/transfer",
  wait: "POST /v1/locks/{key}/leases/{leaseId}/wait",
  notify: "POST /v1/locks/{key}/leases/{leaseId}/notify",
  inspect: "GET /v1/locks/{key}",
  break: "POST /v1/locks/{key}/break",
  list: "GET /v1/locks",
  acquireSet: "PUT /v1/lock-sets/{leaseId}",
  renewSet: "POST /v1/lock-sets/{leaseId}/renew",
  releaseSet: "POST /v1/lock-sets/{leaseId}/release",
  renewMany: "POST /v1/renewals",
  start: "PUT /v1/runs/{key}/leases/{leaseId}",
  checkRun: "GET /v1/runs/{key}/leases/{leaseId}",
  abandonRun: "DELETE /v1/runs/{key}/leases/{leaseId}",
  renewRun: "POST /v1/runs/{key}/leases/{leaseId}/renew",
  complete: "PUT /v1/runs/{key}/leases/{leaseId}/outcome",
  run: "GET /v1/runs/{key}",
  resetRun: "POST /v1/runs/{key}/reset",
  runs: "GET /v1/runs",
  take: "POST /v1/limits/{key}/takes",
  shutLimit: "POST /v1/limits/{key}/shut",
  limit: "GET /v1/limits/{key}",
  resetLimit: "POST /v1/limits/{key}/reset",
  limits: "GET /v1/limits",
  health: "GET /v1/health",
  openapi: "GET /v1/openapi.json",
} as const;

export type OperationName = keyof typeof ROUTES;

/** `METHOD /path/{parameter}`, the gateway's name of a route. */
export type RouteKey = (typeof ROUTES)[OperationName];

/** The parameters in the path of an operation. */
export type PathOf<Name extends OperationName> = InPath<(typeof ROUTES)[Name]>;

type InPath<Route extends string> = Route extends `${string}{${infer Parameter}}${infer Rest}`
  ? { readonly [Its in Parameter]: string } & InPath<Rest>
  : object;

/**
 * The group of a route. Each duty has its own function in the stack: `acquire` for callers that request a lease (and may wait), `hold` for
 * holders, so that many waiters can't block their heartbeats, and `admin` for operators that inspect or end other holders' leases.
 */
export type Duty = "acquire" | "hold" | "admin";

/** The duty of each operation. */
export const DUTIES: Readonly<Record<OperationName, Duty>> = {
  acquire: "acquire",
  check: "hold",
  release: "hold",
  renew: "hold",
  changeMode: "hold",
  transfer: "hold",
  wait: "hold",
  notify: "hold",
  inspect: "acquire",
  break: "admin",
  list: "admin",
  acquireSet: "acquire",
  renewSet: "hold",
  releaseSet: "hold",
  renewMany: "hold",
  start: "acquire",
  checkRun: "hold",
  abandonRun: "hold",
  renewRun: "hold",
  complete: "hold",
  run: "acquire",
  resetRun: "admin",
  runs: "admin",
  take: "acquire",
  shutLimit: "acquire",
  limit: "acquire",
  resetLimit: "admin",
  limits: "admin",
  health: "acquire",
  openapi: "acquire",
};
