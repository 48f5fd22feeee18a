/**
 * HTTP as API Gateway, a function URL, a load balancer, VPC Lattice or a template of one's own hands it to a function:
 * which events are requests, what they ask for, and what is answered. Nothing here knows of locks or runs.
 */

/** As much of a request's event as is read here: of a REST API, an HTTP API, a function URL, a load balancer. */
export interface HttpRequest {
  /** VPC Lattice has a list for each. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>> | null;
  readonly multiValueHeaders?: Readonly<Record<string, readonly string[] | undefined>> | null;
  readonly httpMethod?: string;
  readonly path?: string;
  readonly queryStringParameters?: unknown;
  readonly multiValueQueryStringParameters?: unknown;
  readonly rawPath?: string;
  readonly rawQueryString?: string;
  readonly requestContext?: { readonly http?: { readonly method?: string } };
  /** As it came, or as a parser left it. */
  readonly body?: unknown;
  readonly isBase64Encoded?: boolean;
}

/** An answer, as every gateway takes it. */
export interface HttpAnswer {
  statusCode: number;
  headers: Record<string, string>;
  body: string;
}

/** An {@link HttpAnswer} where events of this type are requests, and nothing otherwise. */
export type AnswerTo<Event> = Event extends
  | { readonly httpMethod: string }
  | { readonly requestContext: { readonly http: { readonly method: string } } }
  | { readonly headers: object | null }
  ? HttpAnswer
  : never;

/**
 * How long a request waits for a key, or for another's answer, unless its handler says otherwise: gateways cut it
 * off after half a minute, and people before.
 */
export const HTTP_WAIT_MS = 5000;

/**
 * Whether the event is a request that somebody waits for: one with a method, where the gateways of AWS put it, or with
 * headers. No other event of AWS has those at its top; what is handed on to a state machine should leave them out.
 */
export function isHttp(event: unknown): event is HttpRequest {
  if (typeof event !== "object" || event === null) return false;
  const { headers, multiValueHeaders } = event as Partial<Record<keyof HttpRequest, unknown>>;
  return saysMethod(event) || isObject(headers) || isObject(multiValueHeaders);
}

/** Whether it is of a REST API, an HTTP API, a function URL or a load balancer: its parts are known, and what it takes for an answer. */
export function saysMethod(event: HttpRequest): boolean {
  const { httpMethod, requestContext } = event;
  return typeof httpMethod === "string" || isObject(requestContext?.http);
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The request's headers; of one that was sent several times, the first. */
export function headersOf({ headers, multiValueHeaders }: HttpRequest): Readonly<Record<string, string | undefined>> {
  const sent = Object.entries(headers ?? multiValueHeaders ?? {});
  return Object.fromEntries(sent.map(([name, values]) => [name, typeof values === "string" ? values : values?.[0]]));
}

/**
 * What the request asks for: the same when it is sent again, whatever its headers. Of one that doesn't say its method
 * where the gateways do, nobody knows which member is what: all but its headers and context.
 */
export function askedOf(event: HttpRequest): unknown {
  if (!saysMethod(event)) {
    const { headers: _headers, multiValueHeaders: _sent, requestContext: _context, isBase64Encoded: _encoded, ...asked } = event;
    return { ...asked, body: bodyOf(event) };
  }
  const { httpMethod, path, rawPath, rawQueryString, requestContext } = event;
  const { multiValueQueryStringParameters, queryStringParameters } = event;
  return {
    method: httpMethod ?? requestContext?.http?.method,
    path: rawPath ?? path,
    // Of a parameter that was sent several times, the plain member has the last value alone.
    query: rawQueryString ?? multiValueQueryStringParameters ?? queryStringParameters ?? undefined,
    body: bodyOf(event),
  };
}

/**
 * The body as JSON, so that spaces and the order of members make no difference; else as it came. Its text also where a number in
 * it is none of JavaScript's: the ids 9007199254740993 and 9007199254740992 would be one and the same.
 */
function bodyOf({ body, isBase64Encoded }: HttpRequest): unknown {
  if (typeof body !== "string") return body ?? undefined;
  try {
    const text = isBase64Encoded === true ? UTF8.decode(Buffer.from(body, "base64")) : body;
    const json = JSON.parse(text) as unknown;
    return numbersIn(text).every(isExact) ? json : text;
  } catch {
    return body;
  }
}

/** Refuses bytes that are no UTF-8: decoded, all of them would be the same. */
const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** The numbers of a JSON text, as they are written. */
function numbersIn(text: string): readonly string[] {
  const withoutStrings = text.replaceAll(/\\./g, "").replaceAll(/"[^"]*"/g, "");
  return withoutStrings.match(/-?\d[\d.eE+-]*/g) ?? [];
}

/** Longer than this nobody writes a number that JavaScript has; and no digits of an attacker's are gone through. */
const EXACT_CHARS = 40;

/** Whether JavaScript has the very number that is written, and not one near it. */
function isExact(written: string): boolean {
  return written.length <= EXACT_CHARS && decimalOf(written) === decimalOf(String(Number(written)));
}

/** One form for all ways to write a decimal number: its digits, and its exponent. */
function decimalOf(written: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = 0] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(written) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  return significant && `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}

/** The status that a handler answered with; undefined where it left that to the gateway, or is not asked over HTTP. */
export function statusOf(response: unknown): number | undefined {
  const { statusCode } = (typeof response === "object" && response !== null ? response : {}) as { readonly statusCode?: unknown };
  return typeof statusCode === "number" ? statusCode : undefined;
}

/** The headers of an answer, with these in the place of any of the same names. */
export function withHeaders(answer: unknown, added: Readonly<Record<string, string>>): Record<string, string> {
  const { headers } = (answer ?? {}) as { readonly headers?: Readonly<Record<string, string>> };
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()));
  const others = Object.entries(headers ?? {}).filter(([name]) => !names.has(name.toLowerCase()));
  return { ...Object.fromEntries(others), ...added };
}

/** A handler's response as an answer that can carry headers: a gateway takes one without a status for the body of a 200. */
export function answerFrom(response: unknown): object {
  if (statusOf(response) !== undefined) return response as object;
  const body = typeof response === "string" ? response : JSON.stringify(response);
  return { statusCode: 200, headers: { "content-type": "application/json" }, body };
}
