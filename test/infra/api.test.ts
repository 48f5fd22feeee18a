/**
 * The API in front of the functions: every route has an authorizer, each route invokes the function of its duty, and no
 * log contains a path.
 */
import { describe, expect, it } from "vitest";
import { OPERATORS_ROUTE } from "../../lambda/operators.js";
import { dutyOf, operationAt, ROUTE_KEYS } from "../../lambda/routes.js";
import { all, arnLike, functionOf, only, routesOf } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

const template = devTemplate();
const EVERY_ROUTE = [...ROUTE_KEYS, "$default"];

describe("every route", () => {
  const routes = routesOf(template);

  it("is of the service, or $default, which takes what has none", () => {
    expect(Object.keys(routes).sort()).toEqual([...EVERY_ROUTE].sort());
  });

  it.each(EVERY_ROUTE)("%s asks for IAM", (routeKey) => {
    expect(routes[routeKey]?.AuthorizationType).toBe("AWS_IAM");
  });

  it.each(EVERY_ROUTE)("%s ends at the function of its duty, in payload format 2.0", (routeKey) => {
    const [, integrationId] = /^integrations\/,?(.*)$/.exec(joined(routes[routeKey]?.Target)) ?? [];
    const [, integration] = all(template, "AWS::ApiGatewayV2::Integration").find(([id]) => id === integrationId)!;
    expect(integration.Properties).toMatchObject({ IntegrationType: "AWS_PROXY", PayloadFormatVersion: "2.0" });
    expect(integration.Properties.IntegrationUri).toEqual({ "Fn::GetAtt": [functionOf(template, dutyOf(routeKey))[0], "Arn"] });
  });

  it("may be throttled apart: those that acquire have a rate of their own, and all others the stage's", () => {
    const { RouteSettings, DefaultRouteSettings } = only(template, "AWS::ApiGatewayV2::Stage")[1].Properties;
    expect(DefaultRouteSettings).toEqual({ ThrottlingRateLimit: 2_000, ThrottlingBurstLimit: 1_000 });
    expect(Object.keys(RouteSettings as object).sort()).toEqual([
      "PUT /v1/lock-sets/{leaseId}",
      "PUT /v1/locks/{key}/leases/{leaseId}",
      "PUT /v1/runs/{key}/leases/{leaseId}",
    ]);
  });
});

describe("the functions' permissions", () => {
  it("let the API, and nobody else, invoke each for every route of its duty; for $default too, which `*/*/*` leaves out", () => {
    const permissions = all(template, "AWS::Lambda::Permission").map(([, { Properties }]) => Properties);
    expect(permissions.every(({ Principal }) => Principal === "apigateway.amazonaws.com")).toBe(true);
    for (const routeKey of EVERY_ROUTE) {
      const [functionId] = functionOf(template, dutyOf(routeKey));
      const allowed = permissions
        .filter(({ FunctionName }) => (FunctionName as { "Fn::GetAtt": string[] })["Fn::GetAtt"][0] === functionId)
        .map(({ SourceArn }) => joined(SourceArn).split(",").at(-1)!);
      expect(allowed.filter((pattern) => arnLike(pattern, invocationSource(routeKey)), routeKey)).toHaveLength(1);
    }
    expect(arnLike("/*/*/*", invocationSource("$default"))).toBe(false);
  });
});

describe("callers with tokens", () => {
  const jwt = { issuer: "https://id.example.com/", audience: ["locks"], scopes: ["locks:use"] } as const;
  const made = synthesizeOwn(() => ({ jwt, tenant: "claim:tenant_id" }));

  it("need the admin's scope to break, list and reset, and the scope for use elsewhere", () => {
    for (const [routeKey, { AuthorizationScopes }] of Object.entries(routesOf(made))) {
      expect(AuthorizationScopes, routeKey).toEqual(dutyOf(routeKey) === "admin" ? ["locks:admin"] : ["locks:use", "locks:admin"]);
    }
    const admin = ROUTE_KEYS.filter((routeKey) => dutyOf(routeKey) === "admin");
    expect(admin.map(operationAt).sort()).toEqual(["break", "limits", "list", "resetLimit", "resetRun", "runs"]);
  });

  it("need a scope of its own to name another tenant; without one there is no such route", () => {
    const operated = synthesizeOwn(() => ({ jwt: { ...jwt, operatorScopes: ["locks:all-tenants"] }, tenant: "claim:tenant_id" }));
    expect(routesOf(operated)[OPERATORS_ROUTE]).toMatchObject({ AuthorizationType: "JWT", AuthorizationScopes: ["locks:all-tenants"] });
    expect(routesOf(made)[OPERATORS_ROUTE]).toBeUndefined();
    const refused = (scopes: readonly string[], tenant?: "account") => () =>
      synthesizeOwn(() => ({ jwt: { ...jwt, operatorScopes: scopes }, ...(tenant && { tenant }) }));
    expect(refused(["locks:all-tenants"])).toThrow("jwt.operatorScopes: operators name a tenant, so it needs tenant");
    for (const scope of ["locks:use", "locks:admin"])
      expect(refused([scope], "account")).toThrow(`jwt.operatorScopes: "${scope}" is a scope of tenants too`);
    expect(refused([], "account")).toThrow("jwt.operatorScopes: [] given");
  });

  it("have the claim named that parts tenants; a claim without tokens is refused, and so is a grant by IAM", () => {
    expect(functionOf(made, "acquire")[1].Properties.Environment).toMatchObject({ Variables: { HOLDFAST_TENANT: "claim:tenant_id" } });
    expect(() => synthesizeOwn(() => ({ tenant: "claim:tenant_id" }))).toThrow("tenant: a claim is in a token, so it needs jwt");
  });
});

describe("the access log", () => {
  const { AccessLogSettings } = only(template, "AWS::ApiGatewayV2::Stage")[1].Properties as {
    AccessLogSettings: { Format: string; DestinationArn: unknown };
  };

  it("has request id, route, status, latency and the gateway's own error, as JSON, and nothing more: each request pays for it", () => {
    expect(JSON.parse(AccessLogSettings.Format)).toEqual({
      requestId: "$context.requestId",
      routeKey: "$context.routeKey",
      status: "$context.status",
      latencyMs: "$context.responseLatency",
      error: "$context.error.responseType",
    });
    expect(AccessLogSettings.DestinationArn).toEqual({ "Fn::GetAtt": [expect.stringMatching(/^LocksAccessLog/), "Arn"] });
  });
});

describe("the API", () => {
  it("answers no browser", () => {
    expect(only(template, "AWS::ApiGatewayV2::Api")[1].Properties).not.toHaveProperty("CorsConfiguration");
  });
});

/** The result of `Fn::Join`, with the names of references in it. */
function joined(value: unknown): string {
  return String(
    (value as { "Fn::Join": [string, unknown[]] })["Fn::Join"][1].map((part) =>
      typeof part === "string" ? part : (part as { Ref: string }).Ref,
    ),
  );
}

/** The source ARN that the gateway uses to invoke for a route: stage, method and path, or stage and `$default`. */
function invocationSource(routeKey: string): string {
  const [method, path] = routeKey.split(" ");
  return path === undefined ? `/$default/${routeKey}` : `/$default/${method === "ANY" ? "*" : method}${path}`;
}
