/** Lambda events, as far as the wrappers read them: requests of several kinds, and a schedule. */
import type { HttpAnswer } from "../../lib/middy.js";

/** A request of an HTTP API or a function URL. */
export interface RequestV2 {
  readonly version: "2.0";
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly isBase64Encoded: boolean;
  readonly requestContext: { readonly http: { readonly method: string } };
}

/** A request of a REST API or a load balancer. */
export interface RequestV1 {
  readonly httpMethod: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>> | null;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[]>>;
  readonly queryStringParameters: null;
  readonly body: string;
  readonly isBase64Encoded: boolean;
  readonly requestContext: object;
}

/** The options of a request. */
export interface RequestParts {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly base64?: boolean;
}

const encode = (text: string, base64: boolean): string => (base64 ? Buffer.from(text).toString("base64") : text);

/** `POST /orders` to an HTTP API. */
export function requestV2({ body = { order: 1 }, headers = {}, path = "/orders", base64 = false }: RequestParts = {}): RequestV2 {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const requestContext = { http: { method: "POST" } };
  return {
    version: "2.0",
    rawPath: path,
    rawQueryString: "",
    headers,
    body: encode(text, base64),
    isBase64Encoded: base64,
    requestContext,
  };
}

/** `POST /orders` to a REST API. */
export function requestV1({ body = { order: 1 }, headers = {}, path = "/orders", base64 = false }: RequestParts = {}): RequestV1 {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const rest = { queryStringParameters: null, requestContext: { stage: "prod" } };
  return { httpMethod: "POST", path, headers, body: encode(text, base64), isBase64Encoded: base64, ...rest };
}

/** A request from a custom template, or from a direct invocation: no member marks it as a request. */
export interface RequestMade {
  readonly headers: Readonly<Record<string, string>>;
  readonly path: string;
  readonly body: string;
  readonly isBase64Encoded: boolean;
}

/** A request without a method. */
export function requestMade({ body = { order: 1 }, headers = {}, path = "/orders", base64 = false }: RequestParts = {}): RequestMade {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { headers, path, body: encode(text, base64), isBase64Encoded: base64 };
}

let sent = 0;

/**
 * `POST /orders` to VPC Lattice (version 2.0), which has its method at the top level and lists of headers. Its context
 * differs each time.
 */
export function requestOfLattice({ headers = {}, ...parts }: RequestParts = {}): object {
  const lists = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
  const requestContext = { identity: {}, timeEpoch: String(1690497599177430 + ++sent) };
  return { version: "2.0", method: "POST", ...requestMade(parts), headers: lists, queryStringParameters: {}, requestContext };
}

/** The event of a schedule: no caller waits for a response. */
export const SCHEDULED = { source: "aws.events", detail: { order: 1 } } as const;

/** The problem document of a response, with its status and headers. */
export function problemOf(answer: unknown): Record<string, unknown> {
  const { statusCode, headers, body } = answer as HttpAnswer;
  const problem = JSON.parse(body) as Record<string, unknown>;
  return { statusCode, contentType: headers["content-type"], retryAfter: headers["retry-after"], ...problem };
}
