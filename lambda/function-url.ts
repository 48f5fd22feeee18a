/**
 * The rule of the function URLs (decision 063). IAM lets a caller use a URL or not, and sees neither method nor path. So each grant has an
 * alias of the function with a URL of its own, and the alias's name says which keys its callers may use. Lambda says by which alias the
 * function was invoked. Without an alias that `aliasOf` gives, nothing is served.
 */
import { type Refusal, refuse } from "../lib/core/errors.js";
import { DUTIES, type OperationName } from "../lib/contract/routes.js";
import type { HttpEvent } from "./http.js";
import { matchRoute } from "./match-route.js";

/** The part of an invocation's context that the rule reads. */
export interface Invocation {
  /** The ARN by which the function was invoked, with the alias. Invocations of one environment may come by several aliases. */
  readonly invokedFunctionArn?: string | undefined;
}

/** The right of an alias's callers: a client's operations, on keys with this prefix if there is one. */
export interface AliasGrant {
  readonly prefix?: string | undefined;
}

const ALL_KEYS = "clients";
const OF_PREFIX = "prefix-";
/** The longest name of an alias, in characters: https://docs.aws.amazon.com/lambda/latest/api/API_CreateAlias.html */
export const ALIAS_MAX_CHARS = 128;

/**
 * Returns the name of the alias of a grant. In a prefix, each character that the name of an alias can't have becomes `_` and two hexadecimal
 * digits, and so does `_` itself: no two prefixes have the same alias.
 */
export function aliasOf({ prefix }: AliasGrant): string {
  if (prefix === undefined) return ALL_KEYS;
  return OF_PREFIX + prefix.replaceAll(/[^A-Za-z0-9-]/g, (char) => `_${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

/** Returns the grant of the alias in the invocation's ARN; undefined without an alias, or if {@link aliasOf} doesn't give its name. */
export function grantOf({ invokedFunctionArn = "" }: Invocation): AliasGrant | undefined {
  // arn:PARTITION:lambda:REGION:ACCOUNT:function:NAME:ALIAS
  const [, , , , , , , alias, ...more] = invokedFunctionArn.split(":");
  if (more.length > 0) return undefined;
  if (alias === ALL_KEYS) return {};
  if (!alias?.startsWith(OF_PREFIX)) return undefined;
  const prefix = alias.slice(OF_PREFIX.length).replaceAll(/_([0-9a-f]{2})/g, (_, hex: string) => String.fromCharCode(parseInt(hex, 16)));
  return prefix !== "" && aliasOf({ prefix }) === alias ? { prefix } : undefined;
}

/**
 * Returns the event with the route and the path parameters that API Gateway would give it, made of its method and path alone; undefined if
 * its path can't be decoded. Route and parameters that the event brings are ignored.
 */
export function routed(event: HttpEvent): HttpEvent | undefined {
  const { routeKey: _route, pathParameters: _parameters, ...rest } = event;
  const match = matchRoute(event.requestContext.http.method, event.rawPath);
  return match && { ...rest, ...match };
}

/** The operations that concern no key. */
const NAMES_NO_KEY: readonly OperationName[] = ["health", "openapi"];

/**
 * Returns the refusal of an operation that `grant` doesn't cover. No alias covers the operators' operations. A prefix covers only operations
 * with such a key in the path, as the API's grants do (infra/access.ts): a new operation without one is refused.
 */
export function outsideGrant({ prefix }: AliasGrant, operation: OperationName, key: string | undefined): Refusal | undefined {
  if (DUTIES[operation] === "admin")
    return refuse("forbidden", { detail: "Function URLs serve no operators: call the API to break, list and reset" });
  if (prefix === undefined || NAMES_NO_KEY.includes(operation) || key?.startsWith(prefix) === true) return undefined;
  const others = key === undefined ? "; a set of keys needs the URL for all keys, or the API" : "";
  return refuse("forbidden", { detail: `This function URL serves keys that begin with ${JSON.stringify(prefix)}, in the path${others}` });
}
