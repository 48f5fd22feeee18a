/** Puts a client's request into the form of HTTP, by the route of its operation. lambda/operations.ts does the reverse. */
import type { Kind } from "../core/api/locks.js";
import type { OperationName } from "./routes.js";
import { ROUTES } from "./routes.js";

/** The members of a request that are sent neither in its path nor in its body or query: the route says the kind, headers the others. */
export interface Aside {
  readonly kind?: Kind | undefined;
  readonly waitMs?: number | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/** A request in the form of HTTP. */
interface Encoded {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

/**
 * Encodes a request. The path has the members that the route names. Keys need no escaping: their alphabet was chosen for that. All other
 * members are the body of a PUT or a POST, in whose place `body` stands if it is given, and the query of a GET or a DELETE.
 */
export function encode(name: OperationName, { kind: _kind, waitMs, ifNoneMatch, ...request }: Aside & object, body?: object): Encoded {
  const [method = "", route = ""] = ROUTES[name].split(" ");
  const members: Readonly<Record<string, string | number | undefined>> = { ...request };
  const path = route.replace(/\{(\w+)\}/g, (_parameter, member: string) => String(members[member]));
  const others = Object.entries(members).filter(([member]) => !route.includes(`{${member}}`));
  const seconds = Math.floor((waitMs ?? -1) / 1000);
  const headers: Record<string, string> = {
    ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
    // An acquire that waits for 0 s queues too.
    ...((seconds > 0 || (seconds === 0 && name === "acquire")) && { prefer: `wait=${seconds}` }),
  };
  return method.startsWith("P")
    ? { method, path, headers, body: body ?? Object.fromEntries(others) }
    : { method, path: path + queryText(others), headers };
}

/** Returns the query string. URLSearchParams would encode a space as `+`, which breaks signatures. */
function queryText(members: readonly (readonly [name: string, value: string | number | undefined])[]): string {
  const given = members.flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]));
  return given.length > 0 ? `?${given.join("&")}` : "";
}
