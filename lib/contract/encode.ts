/** Puts a client's request into the form of HTTP, by the route of its operation. lambda/serve.ts does the reverse. */
import type { Operation, RequestOf } from "../core/api/call.js";
import type { LeaseRef } from "../core/api/locks.js";
import { type OperationName, ROUTES } from "./routes.js";

/** A request in the form of HTTP. */
export interface Encoded {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: object;
}

/** The members of requests that are not sent under their own name beside the others. */
interface Special {
  readonly kind?: LeaseRef["kind"];
  readonly waitMs?: number | undefined;
  readonly ifNoneMatch?: string | undefined;
  readonly to?: object;
  readonly outcome?: object;
}

/** The routes whose names differ from the operation's. */
const NAMES: Partial<Record<Operation, OperationName>> = { waitForCondition: "wait", breakHold: "break" };
/** The routes of the leases of runs. */
const OF_RUNS: Partial<Record<Operation, OperationName>> = { check: "checkRun", release: "abandonRun", renew: "renewRun" };

/**
 * Encodes a request. The path has the members that the route names. Keys need no escaping: their alphabet was chosen for that. Headers have
 * the wait and the known tag. All others are the body of a PUT or a POST, and the query of a GET that names no key.
 */
export function encode<Name extends Operation>(operation: Name, request: RequestOf<Name>): Encoded {
  const { kind, waitMs, ifNoneMatch, to, outcome, ...members }: Special & Readonly<Record<string, unknown>> = { ...request };
  const route = ROUTES[(kind === "runs" ? OF_RUNS[operation] : NAMES[operation]) ?? (operation as OperationName)];
  const [method = "", template = ""] = route.split(" ");
  const path = template.replace(/\{(\w+)\}/g, (_parameter, member: string) => String(members[member]));
  const others = Object.entries(members).filter(([member, value]) => value !== undefined && !route.includes(`{${member}}`));
  const seconds = Math.floor((waitMs ?? -1) / 1000);
  const headers: Record<string, string> = {
    ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
    // An acquire that waits for 0 s queues too.
    ...((seconds > 0 || (seconds === 0 && operation === "acquire")) && { prefer: `wait=${seconds}` }),
  };
  if (operation === "take") return { method, path, headers: {}, body: { ...Object.fromEntries(others), waitMs } };
  if (method.startsWith("P")) return { method, path, headers, body: { ...Object.fromEntries(others), ...to, ...outcome } };
  // URLSearchParams would encode a space as `+`, which breaks signatures.
  const query = path === template ? others.map(([member, value]) => `${member}=${encodeURIComponent(String(value))}`).join("&") : "";
  return { method, path: path + (query && `?${query}`), headers };
}
