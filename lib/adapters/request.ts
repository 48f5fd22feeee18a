/**
 * A request as a run: its key, and what must be equal when it is repeated. The key is the service, a mark, the caller, the route, and the
 * key that the request brings. So no caller gets another's response, no service another's, and no header names a run that the application
 * started by itself.
 */
import { fromEnvironment } from "../client/wire/environment.js";
import { InvalidRequestError } from "../client/wire/errors.js";
import { checkKey } from "../client/calls/options.js";
import { refused } from "../client/wire/checks.js";
import { keyWithin, markedKey } from "../core/key.js";

/** The options for the parts of a key that a request doesn't choose. `Asked` are the arguments by which the application sees a request. */
export interface KeyOptions<Asked extends readonly unknown[]> {
  /**
   * The name of the service whose requests these are: 1 to 64 characters of `A-Z a-z 0-9 . _ : -`. It is the first part of every key, so
   * services that share a table never share a response, and `grantClient(fn, { prefix: "orders_" })` fits the service `orders`. A `_` in it
   * is written `~5F`, as `key()` does.
   * @default in Lambda the function's name (`AWS_LAMBDA_FUNCTION_NAME`); elsewhere it is required
   */
  readonly service?: string | undefined;
  /**
   * Names the caller, as your authentication knows it: the subject of a token, never the token. The `Idempotency-Key` is chosen by the
   * caller, so without this, one caller could get another caller's response. A caller without a name, and one that looks like a credential,
   * is an error, and nothing runs. `"none"`: there are no callers to tell apart; whoever knows a key gets its response.
   */
  readonly caller: ((...asked: Asked) => string) | "none";
}

/** Where a request goes. */
export interface Target {
  /** The method; empty if nobody told it. */
  readonly method: string;
  /** The path, as sent. */
  readonly path: string;
  /** The pattern of the route that serves it, such as `/orders/:id`. @default not told */
  readonly pattern?: string | undefined;
}

/** The parts of a request that its key and its comparison are made of, as a host reads them. */
export interface RequestParts extends Target {
  /** The `Idempotency-Key` header, as sent; several as a list. */
  readonly idempotencyKey: string | undefined;
  /** Returns what the request asks for besides where it goes, such as query and body; never headers. Its errors are the sender's mistake. */
  readonly content: () => object;
}

/** Makes the keys of one service's runs. */
export interface RequestKeys<Asked extends readonly unknown[]> {
  /** Returns the key of a request; `own` is the part that it chooses. @throws InvalidRequestError if its caller can't be in a key */
  ofRequest(asked: Asked, target: Target, own: string): string;
  /** Returns the key of an event without a caller: the key `named`, below the service. @throws InvalidRequestError if it is no key */
  ofEvent(named: string): string;
  /** Returns the key of the limit `name` for the caller of a request. @throws InvalidRequestError if its caller can't be in a key */
  ofLimit(asked: Asked, name: string, rates: string): string;
}

/** Methods that change nothing, and so need no key. */
const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS"];
/** Stand after the service, where no part of `key()` can look like them. */
const MARK = "http";
const LIMIT_MARK = "limit";
/** A beginning with a mark: `key()` writes `~` only before a byte in hexadecimal. */
const MARKED = /^~[^0-9A-F]/;
/** Stands for a method that nobody told. */
const UNKNOWN = "-";
const NAME = /^[\w.:-]{1,64}$/;
/** In a pattern: it doesn't say which route of several it is. */
const WILDCARD = /\*|\+\}/;
/** In a segment of a pattern: it stands for text of the request. */
const PARAMETER = /[:{}()?+*!]/;
/** Secrets, which people would read in keys, and which change while their caller stays the same. */
const CREDENTIALS: readonly (readonly [what: string, pattern: RegExp])[] = [
  ["an Authorization header", /^(?:apikey|aws4-hmac-sha256|basic|bearer|digest|dpop|negotiate|token)\s/i],
  ["a JSON Web Token", /(?:^|[^\w-])eyJ[\w-]{10,}\.[\w-]*\./],
];

/** True if requests of this method change nothing. */
export function isSafe(method: string): boolean {
  return SAFE.includes(method);
}

/** Returns the maker of keys with these options. @throws InvalidRequestError naming the invalid option */
export function requestKeys<Asked extends readonly unknown[]>({ service, caller }: KeyOptions<Asked>): RequestKeys<Asked> {
  const name = service ?? fromEnvironment("AWS_LAMBDA_FUNCTION_NAME");
  if (name === undefined)
    throw new InvalidRequestError(
      'service: name the service whose requests these are, such as "orders"; only in Lambda it has a default, the function\'s name',
      "service",
    );
  checkName("service", name);
  if (caller !== "none" && typeof caller !== "function")
    throw refused("caller", caller, 'it must be a function that names the caller of a request, or "none"');
  const callersOf = (asked: Asked): readonly string[] => (caller === "none" ? [] : [callerOf(caller(...asked))]);
  return {
    ofRequest(asked, target, own) {
      return markedKey(name, MARK, ...callersOf(asked), target.method || UNKNOWN, placeOf(target).route, own);
    },
    ofLimit(asked, limit, rates) {
      return markedKey(name, LIMIT_MARK, limit, rates, ...callersOf(asked));
    },
    ofEvent(named) {
      checkKey(named);
      if (MARKED.test(named))
        throw refused("key", named, "a key that key() makes doesn't begin like this; requests over HTTP have such keys");
      return keyWithin(name, named);
    },
  };
}

/** @throws InvalidRequestError unless it can be the name of a service, or of a limit */
export function checkName(option: string, name: unknown): asserts name is string {
  if (typeof name !== "string" || !NAME.test(name)) throw refused(option, name, "it is 1 to 64 characters of A-Z a-z 0-9 . _ : -");
}

/** Returns what must be equal when a request is repeated: where it goes, and the rest of what it asks for. */
export function comparedOf(target: Target, content: object): unknown {
  return { method: target.method, path: placeOf(target).path, ...content };
}

/** Returns the caller's name. The error doesn't repeat a credential. */
function callerOf(name: unknown): string {
  if (typeof name !== "string" || name === "")
    throw new InvalidRequestError("caller: returned no text for this request; authenticate the request before this", "caller");
  const [what] = CREDENTIALS.find(([, pattern]) => pattern.test(name)) ?? [];
  if (what === undefined) return name;
  throw new InvalidRequestError(
    `caller: returned ${what} for this request; return the subject that it stands for: operators read keys, and a new token is the same caller`,
    "caller",
  );
}

/**
 * Returns the route for the key, and the path for the comparison.
 *
 * 1. A pattern names its route. Mounted routers tell only the end of it, so it is laid over the end of the path.
 * 2. Without one, the route is the path without what a router may ignore: its case and a slash at its end.
 * 3. The compared path is spelled as its pattern where that is plain text, and as sent elsewhere. So two requests are the same only if
 *    every router takes them for the same, and those that merely may be are refused instead of run twice.
 */
function placeOf({ path, pattern = "" }: Target): { readonly route: string; readonly path: string } {
  const sent = segmentsOf(path);
  const patternParts = segmentsOf(pattern);
  const mountedAt = sent.length - patternParts.length;
  if (pattern === "" || WILDCARD.test(pattern) || mountedAt < 0) return { route: textOf(sent).toLowerCase() || "/", path };
  const spelled = sent.map((segment, at) => {
    const own = patternParts[at - mountedAt];
    return own !== undefined && !PARAMETER.test(own) && own.toLowerCase() === segment.toLowerCase() ? own : segment;
  });
  return { route: textOf(sent.slice(0, mountedAt)).toLowerCase() + pattern, path: textOf(spelled) };
}

/** Returns the parts between the slashes, without those before the first and after the last. */
function segmentsOf(path: string): readonly string[] {
  const inner = path.replace(/^\//, "").replace(/\/$/, "");
  return inner === "" ? [] : inner.split("/");
}

function textOf(segments: readonly string[]): string {
  return segments.map((segment) => `/${segment}`).join("");
}

/** A body as it is compared. Its form is a part of it: the text `"abc"` isn't the JSON `"abc"`, and no bytes are their base64. */
type Content = { readonly json: unknown } | { readonly text: string } | { readonly base64: string };

/**
 * The longest text that is compared as JSON, in characters. Parsing and checking a longer one would keep the process from other work for
 * tens of milliseconds; it is compared as it was sent.
 */
const JSON_CHARS = 64 * 1024;

/** True if a body of this type is JSON. */
export function isJson(type: string | undefined): boolean {
  return /^\s*application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(type ?? "");
}

/**
 * Returns the content of a body as sent. An object or a list in JSON is compared as such, so that spaces and the order of members make no
 * difference, unless JavaScript can't represent a number in it exactly: the ids 9007199254740993 and 9007199254740992 would become equal.
 * Anything else is compared as text, to the byte; bytes that are no text as base64.
 * @param type the content type; a text of another than JSON is not read as JSON
 */
export function contentOf(body: string | Uint8Array, type?: string): Content {
  let text: string;
  try {
    text = typeof body === "string" ? body : UTF8.decode(body);
  } catch {
    return { base64: Buffer.from(body as Uint8Array).toString("base64") };
  }
  if (text.length > JSON_CHARS || (type !== undefined && !isJson(type)) || !/^\s*[[{]/.test(text)) return { text };
  try {
    const json = JSON.parse(text) as unknown;
    return numbersIn(text).every(isExact) ? { json } : { text };
  } catch {
    return { text };
  }
}

/** Returns the content of a body as a parser left it, which may be text or bytes. */
export function contentOfParsed(body: unknown, type: string | undefined): Content | undefined {
  if (body === undefined) return undefined;
  const isSent = body instanceof Uint8Array || (typeof body === "string" && !isJson(type));
  return isSent ? contentOf(body, type) : { json: body };
}

/** Rejects bytes that are not UTF-8: a lenient decoder would make them all the same. A byte order mark is a part of the text. */
const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function numbersIn(text: string): readonly string[] {
  const withoutStrings = text.replaceAll(/\\./g, "").replaceAll(/"[^"]*"/g, "");
  return withoutStrings.match(/-?\d[\d.eE+-]*/g) ?? [];
}

/**
 * The longest number that is checked, in characters. A number that JavaScript can represent is shorter, and the limit bounds the work on an
 * attacker's digits.
 */
const EXACT_CHARS = 40;

function isExact(written: string): boolean {
  return written.length <= EXACT_CHARS && decimalOf(written) === decimalOf(String(Number(written)));
}

/** Returns the same text for all ways to write a decimal number: its significant digits and its exponent. */
function decimalOf(written: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = 0] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(written) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  const significant = digits.replace(/0+$/, "");
  return significant && `${sign}${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`;
}
