/**
 * Which route a request meets, as API Gateway decides it: the method's own route of the path before the
 * path's `ANY` route, and `$default` where no path matches.
 */
import createRouter from "find-my-way";
import { PATHS, ROUTES } from "../../lambda/routes.js";

/** A route, and what its path's parameters are, percent-decoded. */
export interface RouteMatch {
  readonly routeKey: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
}

/** Longer than any URL that Node takes: how long a parameter may be is the service's to say. */
const MAX_PARAMETER_CHARS = 65_536;

const NOTHING = (): undefined => undefined;

const router = createRouter({ maxParamLength: MAX_PARAMETER_CHARS, onBadUrl: NOTHING });
for (const path of PATHS) router.on("GET", path.replaceAll(/\{(\w+)\}/g, ":$1"), NOTHING, { path });

/** The route of `method` on the percent-encoded path; undefined when its encoding is broken. */
export function matchRoute(method: string, encodedPath: string): RouteMatch | undefined {
  if (!isDecodable(encodedPath)) return undefined;
  // Paths alone are the router's: all of them are under one method of it.
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
