/**
 * Matches requests to routes as API Gateway does, for the local gateway and for function URLs, which have no routes: the method's own route
 * of the path, else `$default`.
 */
import { operationAt, PATHS } from "./routes.js";

/** A route with its percent-decoded path parameters. */
export interface RouteMatch {
  readonly routeKey: string;
  readonly pathParameters?: Readonly<Record<string, string>>;
}

/** Each path with its pattern. A parameter is one segment of at least one character; no two patterns match the same path. */
const PATTERNS = PATHS.map((path) => [path, new RegExp(`^${escaped(path).replaceAll(/\\\{(\w+)\\\}/g, "(?<$1>[^/]+)")}$`)] as const);

/** A path of the API that a request's path is one of, with its percent-decoded parameters. */
export interface PathMatch {
  readonly path: string;
  readonly parameters: Readonly<Record<string, string>>;
}

/** Returns the route of `method` on the percent-encoded path; undefined if the encoding is invalid. */
export function matchRoute(method: string, encodedPath: string): RouteMatch | undefined {
  if (!isDecodable(encodedPath)) return undefined;
  const found = matchPath(encodedPath);
  const routeKey = `${method} ${found?.path}`;
  if (!found || !operationAt(routeKey)) return { routeKey: "$default" };
  return { routeKey, ...(Object.keys(found.parameters).length > 0 && { pathParameters: found.parameters }) };
}

/** Returns the path of the API that `path` is one of, which may be encoded or not; undefined if there is none, or its encoding is invalid. */
export function matchPath(path: string): PathMatch | undefined {
  if (!isDecodable(path)) return undefined;
  for (const [template, pattern] of PATTERNS) {
    const found = pattern.exec(path);
    if (!found) continue;
    const parameters = Object.entries(found.groups ?? {}).map(([name, value]) => [name, decodeURIComponent(value)] as const);
    return { path: template, parameters: Object.fromEntries(parameters) };
  }
  return undefined;
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
