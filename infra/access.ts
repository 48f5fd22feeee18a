/**
 * The permissions of callers: the API routes that they may call, or the part of the table that they may access. Every permission of an
 * external caller is granted here.
 */
import { Token } from "aws-cdk-lib";
import type { HttpApi } from "aws-cdk-lib/aws-apigatewayv2";
import { type Duty, type OperationName, ROUTES } from "../lib/contract/routes.js";
import { OPERATORS_ROUTE } from "../lambda/operators.js";
import { dutyOf, ROUTE_KEYS } from "../lambda/routes.js";
import { NAMESPACE, SHARED_NAMESPACE } from "../lib/service/caller.js";
import { TENANCY_KEY } from "../lib/store/dynamo/item.js";
import { TABLE } from "../lib/store/dynamo/table.js";

/** A set of actions on resources. */
export interface Right {
  readonly actions: string[];
  readonly resourceArns: string[];
  readonly conditions?: Record<string, Record<string, unknown>>;
}

/** The API's only stage. */
const STAGE = "$default";
const KEY_PARAMETER = "{key}";
/** A valid key prefix. It contains no wildcard, and no character that leaves its segment of the path. */
const PREFIX = /^[A-Za-z0-9._:~-]{1,200}$/;

/**
 * Returns the permission to call the routes of these duties. With a prefix, it covers only keys that begin with it, and so excludes routes
 * with keys in the body, which IAM does not inspect.
 * @throws Error if the prefix is invalid for keys.
 */
export function callRight(api: HttpApi, duties: readonly Duty[], prefix?: string): Right {
  if (prefix !== undefined) checkPrefix(prefix);
  const routes = ROUTE_KEYS.filter((routeKey) => duties.includes(dutyOf(routeKey))).map(
    (routeKey) => routeKey.split(" ") as [method: string, path: string],
  );
  const allowed =
    prefix === undefined
      ? routes.map(([method, path]) => [method, path.replaceAll(/\{\w+\}/g, "*")] as const)
      : routes.flatMap(([method, path]) => underPrefix(path, prefix).map((narrowed) => [method, narrowed] as const));
  return {
    actions: ["execute-api:Invoke"],
    resourceArns: allowed.map(([method, path]) => api.arnForExecuteApi(method, path, STAGE)),
  };
}

/** Checks a prefix. @throws Error if no key can begin with it */
export function checkPrefix(prefix: string): void {
  if (PREFIX.test(prefix)) return;
  throw new Error(`prefix: no key can begin with ${JSON.stringify(prefix)}; keys are made of A-Z a-z 0-9 . _ : ~ -`);
}

/** Returns the permission of operators: to look at, break and reset the keys of every tenant, and nothing else. */
export function operatorsRight(api: HttpApi): Right {
  const [, path = ""] = OPERATORS_ROUTE.split(" ");
  return { actions: ["execute-api:Invoke"], resourceArns: [api.arnForExecuteApi("*", path.replace(/\{.*/, "*"), STAGE)] };
}

/** Returns the permission for one operation on leases: of this key alone, or of any if it isn't known yet. */
export function leaseRight(api: HttpApi, operation: OperationName, key?: string): Right {
  const [method = "", path = ""] = ROUTES[operation].split(" ");
  const forms = key === undefined ? ["*"] : [...new Set([key, encodeURIComponent(key)])];
  return {
    actions: ["execute-api:Invoke"],
    resourceArns: forms.map((form) => api.arnForExecuteApi(method, path.replace(KEY_PARAMETER, form).replaceAll(/\{\w+\}/g, "*"), STAGE)),
  };
}

/** Returns the path narrowed to keys with the prefix, plain and percent-encoded. The service's own paths reveal no key and stay allowed. */
function underPrefix(path: string, prefix: string): string[] {
  if (path === "/v1/health" || path === "/v1/openapi.json") return [path];
  if (!path.includes(KEY_PARAMETER)) return [];
  const forms = [...new Set([prefix, encodeURIComponent(prefix)])];
  return forms.map((form) => path.replace(KEY_PARAMETER, `${form}*`).replaceAll(/\{\w+\}/g, "*"));
}

/**
 * Returns the permissions of a client directly on the table: the items of one namespace, and the item that records whether the table has
 * tenants, which a tenant's client may only read. A table in several Regions has an ARN in each. `ForAllValues` is also true for a request
 * without any key (a Scan), hence the `Null` condition.
 * @throws Error if the namespace is invalid.
 */
export function tableRights(tableArns: readonly string[], namespace: string): readonly [items: Right, tenancy: Right] {
  if (!Token.isUnresolved(namespace) && !NAMESPACE.test(namespace)) {
    throw new Error("namespace: must be 1 to 200 characters of A-Z a-z 0-9 . _ : ~ % -");
  }
  const rightTo = (leadingKey: string, actions: string[]): Right => ({
    actions,
    resourceArns: [...tableArns],
    conditions: {
      "ForAllValues:StringLike": { "dynamodb:LeadingKeys": [leadingKey] },
      Null: { "dynamodb:LeadingKeys": "false" },
    },
  });
  return [
    rightTo(`${namespace}/*`, ["dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"]),
    rightTo(TENANCY_KEY[TABLE.partitionKey], ["dynamodb:GetItem", ...(namespace === SHARED_NAMESPACE ? ["dynamodb:UpdateItem"] : [])]),
  ];
}
