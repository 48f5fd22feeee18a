/**
 * HTTP events, as API Gateway, a function URL, a load balancer, VPC Lattice or a custom template passes them to a function: recognizes
 * requests, reads what they ask for, and shapes the answers. Nothing here depends on locks or runs.
 */
import { contentOf } from "../web/content.js";
import type { HttpAnswer } from "../web/problem.js";
import type { Target } from "../web/request-key.js";

/** The fields that are read here of a request event: from a REST API, an HTTP API, a function URL or a load balancer. */
export interface HttpRequest {
  /** VPC Lattice sends a list for each header. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | null;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[] | undefined>> | null;
  readonly httpMethod?: string;
  /** The method, of VPC Lattice. */
  readonly method?: unknown;
  readonly path?: string;
  /** The route's pattern, of a REST API. */
  readonly resource?: string;
  /** The route's method and pattern, of an HTTP API. */
  readonly routeKey?: string;
  readonly queryStringParameters?: unknown;
  readonly multiValueQueryStringParameters?: unknown;
  readonly rawPath?: string;
  readonly rawQueryString?: string;
  readonly requestContext?: { readonly http?: { readonly method?: string } };
  /** The body as received, or as a parser left it. */
  readonly body?: unknown;
  readonly isBase64Encoded?: boolean;
}

/** An {@link HttpAnswer} if events of this type are requests, else never. */
export type AnswerTo<Event> = Event extends
  | { readonly httpMethod: string }
  | { readonly requestContext: { readonly http: { readonly method: string } } }
  | { readonly headers: object | null }
  ? HttpAnswer
  : never;

/**
 * True if the event is a request whose sender waits for an answer: it has a method, where AWS gateways put it, or headers. No other AWS
 * event has these at its top level. A caller that forwards a request, for example to a state machine, should leave them out.
 */
export function isHttp(event: unknown): event is HttpRequest {
  if (typeof event !== "object" || event === null) return false;
  const { headers, multiValueHeaders } = event as Partial<Record<keyof HttpRequest, unknown>>;
  return saysMethod(event) || isObject(headers) || isObject(multiValueHeaders);
}

/** True if the event is from a REST API, an HTTP API, a function URL or a load balancer: its fields and its answer format are known. */
export function saysMethod(event: HttpRequest): boolean {
  const { httpMethod, requestContext } = event;
  return typeof httpMethod === "string" || isObject(requestContext?.http);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the request's headers, by lower-case name; the first value of a repeated header. */
export function headersOf({ headers, multiValueHeaders }: HttpRequest): Readonly<Record<string, string | undefined>> {
  const sent = Object.entries(headers ?? multiValueHeaders ?? {});
  return Object.fromEntries(sent.map(([name, values]) => [name.toLowerCase(), typeof values === "string" ? values : values?.[0]]));
}

/** Returns where the request goes. An event that isn't a gateway's may not say so: then its method is empty, its path the root. */
export function targetOf(event: HttpRequest): Target {
  const { httpMethod, requestContext, method, rawPath, path, resource, routeKey } = event;
  const texts = (...given: readonly unknown[]): string | undefined => given.find((one) => typeof one === "string");
  return {
    method: texts(httpMethod, requestContext?.http?.method, method) ?? "",
    path: texts(rawPath, path) ?? "/",
    pattern: texts(resource) ?? /^\S+ (\/.*)$/.exec(texts(routeKey) ?? "")?.[1],
  };
}

/**
 * Returns the content of the request, besides where it goes. It is the same when the request is sent again, whatever its headers. If the
 * event doesn't have its method where the gateways put it, its fields are unknown, so the result has all of them but headers and context.
 */
export function contentAsked(event: HttpRequest): object {
  if (!saysMethod(event)) {
    const { headers: _headers, multiValueHeaders: _sent, requestContext: _context, isBase64Encoded: _encoded, ...asked } = event;
    return { ...asked, body: bodyOf(event) };
  }
  const { rawQueryString, multiValueQueryStringParameters, queryStringParameters } = event;
  return {
    // The single-value field has only the last value of a repeated parameter.
    query: rawQueryString ?? multiValueQueryStringParameters ?? queryStringParameters ?? undefined,
    body: bodyOf(event),
  };
}

function bodyOf({ body, isBase64Encoded }: HttpRequest): unknown {
  if (typeof body !== "string") return body ?? undefined;
  return isBase64Encoded === true ? contentOf(Buffer.from(body, "base64")) : contentOf(body);
}

/**
 * Returns the status of a handler's response. Gateways take it as a number or as text; NaN if it is neither. Undefined if the response has
 * no status or isn't HTTP.
 */
export function statusOf(response: unknown): number | undefined {
  const { statusCode } = (typeof response === "object" && response !== null ? response : {}) as { readonly statusCode?: unknown };
  if (statusCode === undefined || typeof statusCode === "number") return statusCode;
  return typeof statusCode === "string" && /^\d{3}$/.test(statusCode) ? Number(statusCode) : Number.NaN;
}

/** Returns the headers of `answer` merged with `added`, which replaces headers of the same name. */
export function withHeaders(answer: unknown, added: Readonly<Record<string, string>>): Record<string, string> {
  const { headers } = (answer ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const others = Object.entries(headers ?? {}).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(others), ...added };
}

/** Returns a handler's response as an answer that can carry headers. Gateways treat a response without a status as the body of a 200. */
export function answerFrom(response: unknown): object {
  if (statusOf(response) !== undefined) return response as object;
  const body = typeof response === "string" ? response : JSON.stringify(response);
  return { statusCode: 200, headers: { "content-type": "application/json" }, body };
}
