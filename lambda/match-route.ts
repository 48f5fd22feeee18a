/**
 * Matches requests to routes as API Gateway does, for the local gateway and for function URLs, which have no routes: the method's own route
 * of the path, then the path's `ANY` route, and `$default` if no path matches.
 */
import { operationAt, PATHS } from "./routes.js";

/** A route with its percent-decoded path parameters. */
export interface RouteMatch {
  readonly routeKey: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
}

/** Each path with its pattern. A parameter is one segment of at least one character; no two patterns match the same path. */
const PATTERNS = PATHS.map((path) => [path, new RegExp(`^${escaped(path).replaceAll(/\\\{(\w+)\\\}/g, "(?<$1>[^/]+)")}$`)] as const);

/** Returns the route of `method` on the percent-encoded path; undefined if the encoding is invalid. */
export function matchRoute(method: string, encodedPath: string): RouteMatch | undefined {
  if (!isDecodable(encodedPath)) return undefined;
  for (const [path, pattern] of PATTERNS) {
    const found = pattern.exec(encodedPath);
    if (!found) continue;
    const own = `${method} ${path}`;
    const parameters = Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)] as const);
    return {
      routeKey: operationAt(own) ? own : `ANY ${path}`,
      ...(parameters.length > 0 && { pathParameters: Object.fromEntries(parameters) }),
    };
  }
  return { routeKey: "$default" };
}

function escaped(text: string): string {
  return text.replaceAll(/[.{}]/g, "\\$&");
}

function isDecodable(encodedPath: string): boolean {
  try {
    decodeURIComponent(encodedPath);
    return true;
  } catch {
    return false;
  }
}
