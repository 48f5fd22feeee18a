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

/** The form of a request where the route of its operation's own name doesn't give it. */
interface Row {
  /** The route, if it has another name. */
  readonly route?: OperationName;
  /** The route for the lease of a run. */
  readonly ofRun?: OperationName;
  /** The object whose members stand in the body beside the others. */
  readonly spread?: "to" | "outcome";
  /** Where the wait stands. `header-from-0`: an acquire that waits for 0 s queues too. @default the header, from 1 s on */
  readonly wait?: "body" | "header-from-0";
}

/** The client sends by these and by the routes alone: operations.ts, with the rest of each operation's row, would bring all schemas with it. */
const ROWS: Partial<Record<Operation, Row>> = {
  acquire: { wait: "header-from-0" },
  check: { ofRun: "checkRun" },
  release: { ofRun: "abandonRun" },
  renew: { ofRun: "renewRun" },
  transfer: { spread: "to" },
  waitForCondition: { route: "wait", spread: "to" },
  breakHold: { route: "break" },
  complete: { spread: "outcome" },
  take: { wait: "body" },
};

/** The members of requests that are not sent under their own name beside the others. */
interface Special {
  readonly kind?: LeaseRef["kind"];
  readonly waitMs?: number | undefined;
  readonly ifNoneMatch?: string | undefined;
}

/**
 * Encodes a request by its route and its row. The path has the members that the route names. Keys need no escaping: their alphabet was chosen
 * for that. Headers have the wait and the known tag. All others are the body of a PUT or a POST, and the query of a GET that names no key.
 */
export function encode<Name extends Operation>(operation: Name, request: RequestOf<Name>): Encoded {
  const { kind, waitMs, ifNoneMatch, ...members }: Special & Readonly<Record<string, unknown>> = { ...request };
  const row: Row = ROWS[operation] ?? {};
  const route = ROUTES[(kind === "runs" ? row.ofRun : row.route) ?? (operation as OperationName)];
  const [method = "", template = ""] = route.split(" ");
  const path = template.replace(/\{(\w+)\}/g, (_parameter, member: string) => String(members[member]));
  const isSent = (member: string): boolean => members[member] !== undefined && member !== row.spread && !route.includes(`{${member}}`);
  const others = Object.entries(members).filter(([member]) => isSent(member));
  const seconds = Math.floor((waitMs ?? -1) / 1000);
  const prefers = row.wait === "header-from-0" ? seconds >= 0 : seconds > 0 && row.wait !== "body";
  const headers: Record<string, string> = {
    ...(ifNoneMatch !== undefined && { "if-none-match": ifNoneMatch }),
    ...(prefers && { prefer: `wait=${seconds}` }),
  };
  if (method.startsWith("P")) {
    const spread = row.spread && (members[row.spread] as object);
    return { method, path, headers, body: { ...Object.fromEntries(others), ...spread, ...(row.wait === "body" && { waitMs }) } };
  }
  // URLSearchParams would encode a space as `+`, which breaks signatures.
  const query = path === template ? others.map(([member, value]) => `${member}=${encodeURIComponent(String(value))}`).join("&") : "";
  return { method, path: path + (query && `?${query}`), headers };
}
