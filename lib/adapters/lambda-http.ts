/**
 * HTTP events, as API Gateway, a function URL, a load balancer, VPC Lattice or a custom template passes them to a function: recognizes
 * requests, reads what they ask for, and shapes the answers. Only this file knows their fields.
 */
import { headerIn } from "../client/calls/batch.js";
import { REPLAYED } from "./once.js";
import type { HttpAnswer } from "./problem.js";
import { type RequestParts, contentOf, contentOfParsed } from "./request.js";

/**
 * The fields that are read here. `resource` is the route's pattern in a REST API, `routeKey` its method and pattern in an HTTP API, and
 * `method` the method in VPC Lattice, which sends a list for each header. The body is as received, or as a parser left it.
 */
interface HttpEvent extends Readonly<Partial<Record<Field, unknown>>> {
  readonly headers?: EventHeaders | null;
  readonly multiValueHeaders?: EventHeaders | null;
  readonly requestContext?: { readonly http?: { readonly method?: unknown } } | null;
}

type EventHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;
type Field = "httpMethod" | "method" | "path" | "rawPath" | "resource" | "routeKey" | "body" | "isBase64Encoded" | Query;
type Query = "rawQueryString" | "multiValueQueryStringParameters" | "queryStringParameters";

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
export function isHttp(event: unknown): event is HttpEvent {
  return (
    isObject(event) && (saysMethod(event) || isObject((event as HttpEvent).headers) || isObject((event as HttpEvent).multiValueHeaders))
  );
}

/** True if the event is from a REST API, an HTTP API, a function URL or a load balancer: its fields and its answer format are known. */
function saysMethod({ httpMethod, requestContext }: HttpEvent): boolean {
  return typeof httpMethod === "string" || isObject(requestContext?.http);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the parts of a request; undefined for another event. An event may not say where it goes: no method, and the root. */
export function requestOf(event: unknown): RequestParts | undefined {
  if (!isHttp(event)) return undefined;
  const { httpMethod, requestContext, method, rawPath, path, resource, routeKey, headers, multiValueHeaders } = event;
  return {
    method: textOf(httpMethod, requestContext?.http?.method, method) ?? "",
    path: textOf(rawPath, path) ?? "/",
    pattern: textOf(resource) ?? /^\S+ (\/.*)$/.exec(textOf(routeKey) ?? "")?.[1],
    // A REST API has the last value of a header in `headers`, and all of them in the other.
    idempotencyKey: headerIn("idempotency-key", multiValueHeaders ?? {}) ?? headerIn("idempotency-key", headers ?? {}),
    content: () => contentIn(event),
  };
}

function textOf(...values: readonly unknown[]): string | undefined {
  return values.find((one) => typeof one === "string");
}

/**
 * Returns the content of a request. It is the same when the request is sent again, whatever its headers. If the event doesn't have its
 * method where the gateways put it, its fields are unknown, so the result has all of them but headers and context.
 */
function contentIn(event: HttpEvent): object {
  const { headers, multiValueHeaders, requestContext: _context, isBase64Encoded, body: sent, ...others } = event;
  const type = headerIn("content-type", multiValueHeaders ?? {}) ?? headerIn("content-type", headers ?? {});
  const isText = typeof sent === "string";
  const body = isText
    ? contentOf(isBase64Encoded === true ? Buffer.from(sent, "base64") : sent, type)
    : contentOfParsed(sent ?? undefined, type);
  if (!saysMethod(event)) return { ...others, body };
  // The single-value field has only the last value of a repeated parameter.
  const { rawQueryString, multiValueQueryStringParameters, queryStringParameters } = event;
  return { query: rawQueryString ?? multiValueQueryStringParameters ?? queryStringParameters ?? undefined, body };
}

/**
 * Returns the status of a handler's response. Gateways take it as a number or as text; NaN if it is neither. Undefined if the response has
 * no status or isn't HTTP.
 */
export function statusOf(response: unknown): number | undefined {
  const { statusCode } = (isObject(response) ? response : {}) as { readonly statusCode?: unknown };
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

/** Returns the response without its cookies, which belong to one exchange, and to whoever has them. */
export function withoutCookies(response: unknown): unknown {
  if (statusOf(response) === undefined) return response;
  const { cookies: _cookies, headers, multiValueHeaders, ...rest } = response as Readonly<Record<string, unknown>>;
  const fields = Object.entries({ headers, multiValueHeaders }).filter(([, named]) => named !== undefined);
  return { ...rest, ...Object.fromEntries(fields.map(([name, named]) => [name, isObject(named) ? withoutCookie(named) : named])) };
}

function withoutCookie(headers: object): object {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== "set-cookie"));
}

/** Returns a replayed response, marked as one. Gateways take a response without a status for the body of a 200; others are left alone. */
export function replayOf(response: unknown, event: unknown): unknown {
  if (response === undefined || !isHttp(event)) return response;
  if (statusOf(response) !== undefined) return { ...(response as object), headers: withHeaders(response, REPLAYED) };
  if (!saysMethod(event)) return response;
  const body = typeof response === "string" ? response : JSON.stringify(response);
  return { statusCode: 200, headers: { "content-type": "application/json", ...REPLAYED }, body };
}
