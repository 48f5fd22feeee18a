/**
 * Matches requests to routes as API Gateway does: the method's own route of the path, then the path's `ANY` route, and `$default` if no
 * path matches.
 */
import createRouter from "find-my-way";
import { PATHS, ROUTES } from "../../lambda/routes.js";

/** A route with its percent-decoded path parameters. */
export interface RouteMatch {
  readonly routeKey: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
}

/** Longer than any URL that Node accepts: the service itself limits the length of parameters. */
const MAX_PARAMETER_CHARS = 65_536;

const NOTHING = (): undefined => undefined;

const router = createRouter({ maxParamLength: MAX_PARAMETER_CHARS, onBadUrl: NOTHING });
for (const path of PATHS) router.on("GET", path.replaceAll(/\{(\w+)\}/g, ":$1"), NOTHING, { path });

/** Returns the route of `method` on the percent-encoded path; undefined if the encoding is invalid. */
export function matchRoute(method: string, encodedPath: string): RouteMatch | undefined {
  if (!isDecodable(encodedPath)) return undefined;
  // The router only matches paths, so all are registered under one method.
  const found = router.find("GET", encodedPath);
  const pathParameters = (found?.params ?? {}) as Record<string, string>;
  const values = Object.values(pathParameters);
  if (!found || values.includes("")) return { routeKey: "$default" };
  const { path } = found.store as { path: string };
  const own = `${method} ${path}`;
  return { routeKey: Object.hasOwn(ROUTES, own) ? own : `ANY ${path}`, ...(values.length > 0 && { pathParameters }) };
}

function isDecodable(encodedPath: string): boolean {
  try {
    decodeURIComponent(encodedPath);
    return true;
  } catch {
    return false;
  }
}
