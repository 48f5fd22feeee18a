/** Requests as the gateway passes them to the handler (payload format 2.0). Parts that a test leaves out have defaults. */
import type { HttpEvent } from "../../lambda/http.js";

/** The options of a request. */
export interface EventParts {
  readonly key?: string;
  readonly leaseId?: string;
  /** Text and bytes are sent unchanged, everything else as JSON. */
  readonly body?: unknown;
  readonly base64?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string>>;
  /** Null: the route has no authorizer. @default {@link ALICE} */
  readonly authorizer?: unknown;
  /** The gateway's clock. Null: there is no gateway. */
  readonly timeEpoch: number | null;
  readonly rawPath?: string;
}

/** A role's session, as the IAM authorizer describes it. */
export const ALICE = { iam: { accountId: "111122223333", userId: "AROAALICE:session-1" } };
/** Another role of the same account. */
export const BOB = { iam: { accountId: "111122223333", userId: "AROABOB:session-1" } };

/** Creates the event of a request that matched `routeKey`. */
export function httpEvent(routeKey: string, parts: EventParts): HttpEvent {
  const { key, leaseId, body, base64 = false, headers = {}, query, authorizer = ALICE, timeEpoch, rawPath = "/" } = parts;
  const text = body === undefined || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const named = Object.entries({ key, leaseId }).filter(([, value]) => value !== undefined);
  const [method = "", routePath = ""] = routeKey.split(" ", 2);
  const context = {
    accountId: "111122223333",
    apiId: "api",
    ...(authorizer !== null && { authorizer }),
    domainName: "api.example.com",
    domainPrefix: "api",
    http: { method, path: rawPath, protocol: "HTTP/1.1", sourceIp: "192.0.2.1", userAgent: "test" },
    requestId: "request-1",
    routeKey,
    stage: "$default",
    time: "01/Jan/2027:00:00:00 +0000",
    ...(timeEpoch !== null && { timeEpoch }),
  };
  return {
    version: "2.0",
    routeKey,
    rawPath,
    rawQueryString: "",
    headers: { host: "api.example.com", ...(text !== undefined && { "content-type": "application/json" }), ...headers },
    ...(query && { queryStringParameters: { ...query } }),
    ...(routePath.includes("{") && { pathParameters: Object.fromEntries(named) }),
    ...(text !== undefined && { body: base64 ? Buffer.from(text).toString("base64") : String(text) }),
    isBase64Encoded: base64,
    requestContext: context as HttpEvent["requestContext"],
  };
}
