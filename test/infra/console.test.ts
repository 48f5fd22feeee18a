/** The console in the stack: absent unless it is asked for; with it, two open routes with files, a function without rights, and nothing else. */
import { fileURLToPath } from "node:url";
import type { Template } from "aws-cdk-lib/assertions";
import { DomainName } from "aws-cdk-lib/aws-apigatewayv2";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { describe, expect, it } from "vitest";
import { bundleHosted } from "../../console/bundle.js";
import { serveFiles } from "../../console/hosted.js";
import { PAGE_PATHS } from "../../infra/api.js";
import { dutyOf } from "../../lambda/routes.js";
import { type Resource, all, functionOf, only, routesOf, statementsOf } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

await bundleHosted(fileURLToPath(new URL("../../infra/console", import.meta.url)));

const jwt = { issuer: "https://id.example.com/", audience: ["locks"], scopes: ["locks:use"] } as const;
const without = synthesizeOwn(() => ({ jwt }));
const made = synthesizeOwn(() => ({ jwt, console: true }));
const PAGE_ROUTES = PAGE_PATHS.map((path) => `GET ${path}`);

/** The resources of a template, as text, by their ids. */
function resourcesOf(template: Template): Readonly<Record<string, string>> {
  const { Resources } = template.toJSON() as { readonly Resources: Readonly<Record<string, Resource>> };
  return Object.fromEntries(Object.entries(Resources).map(([id, resource]) => [id, JSON.stringify(resource)]));
}

describe("without console", () => {
  it.each([
    ["the repository's stack", devTemplate()],
    ["callers with tokens", without],
  ])("there is no route, no function and no word of it: %s", (_name, template) => {
    expect(Object.keys(routesOf(template)).filter((routeKey) => routeKey.includes("console"))).toEqual([]);
    expect(all(template, "AWS::Lambda::Function")).toHaveLength(3);
    expect(JSON.stringify(template.toJSON())).not.toMatch(/console/i);
  });

  it("console: false is the same template", () => {
    expect(resourcesOf(synthesizeOwn(() => ({ jwt, console: false })))).toEqual(resourcesOf(without));
  });
});

describe("with console", () => {
  it("every route keeps its authorizer and its scopes; two are open, which only read files", () => {
    const { [PAGE_ROUTES[0]!]: page, [PAGE_ROUTES[1]!]: file, ...others } = routesOf(made);
    const ofTheApi = routesOf(without);
    expect(Object.keys(others).sort()).toEqual(Object.keys(ofTheApi).sort());
    for (const [routeKey, { AuthorizationType, AuthorizationScopes }] of Object.entries(others)) {
      expect(AuthorizationType, routeKey).toBe("JWT");
      expect(AuthorizationScopes, routeKey).toEqual(dutyOf(routeKey) === "admin" ? ["locks:admin"] : ["locks:use", "locks:admin"]);
    }
    for (const open of [page, file]) expect(open).toMatchObject({ AuthorizationType: "NONE" });
    for (const open of [page, file]) expect(open?.["AuthorizationScopes"] ?? []).toEqual([]);
  });

  it("the open routes end at a function that has no rights, no variables, and no way to the table", () => {
    const [pageId, page] = functionOf(made, "page");
    for (const routeKey of PAGE_ROUTES) {
      const target = JSON.stringify(routesOf(made)[routeKey]?.Target);
      const [, integration] = all(made, "AWS::ApiGatewayV2::Integration").find(([id]) => target.includes(`"${id}"`))!;
      expect(integration.Properties.IntegrationUri).toEqual({ "Fn::GetAtt": [pageId, "Arn"] });
    }
    expect(page.Properties).not.toHaveProperty("Environment");
    const [roleId] = (page.Properties.Role as { "Fn::GetAtt": [string, string] })["Fn::GetAtt"];
    const [, role] = all(made, "AWS::IAM::Role").find(([id]) => id === roleId)!;
    expect(statementsOf(role)).toEqual([]);
    expect(role.Properties).not.toHaveProperty("ManagedPolicyArns");
    expect(all(made, "AWS::IAM::Policy")).toEqual([]);
    expect(all(made, "AWS::Logs::LogGroup")).toHaveLength(2);
  });

  it("only the gateway invokes it, for its two routes alone", () => {
    const [pageId] = functionOf(made, "page");
    const permissions = all(made, "AWS::Lambda::Permission")
      .map(([, { Properties }]) => Properties)
      .filter(({ FunctionName }) => JSON.stringify(FunctionName).includes(`"${pageId}"`));
    const ends = permissions.map(({ SourceArn }) => (SourceArn as { "Fn::Join": [string, unknown[]] })["Fn::Join"][1].at(-1));
    expect(permissions.every(({ Principal }) => Principal === "apigateway.amazonaws.com")).toBe(true);
    expect(ends.sort()).toEqual(["/*/*/console", "/*/*/console/{file}"]);
  });

  it("the open routes have a small rate of their own, which leaves the functions' concurrency to holders", () => {
    const { RouteSettings } = only(made, "AWS::ApiGatewayV2::Stage")[1].Properties as {
      readonly RouteSettings: Readonly<Record<string, { readonly ThrottlingRateLimit: number }>>;
    };
    for (const routeKey of PAGE_ROUTES) expect(RouteSettings[routeKey]?.ThrottlingRateLimit).toBeLessThanOrEqual(20);
  });

  it("nothing else of the template changes", () => {
    const [before, after] = [resourcesOf(without), resourcesOf(made)];
    const changed = Object.keys(before).filter((id) => before[id] !== after[id]);
    expect(changed.map((id) => id.replace(/[0-9A-F]{8}$/, ""))).toEqual(["LocksStage"]);
    const added = Object.keys(after).filter((id) => !(id in before));
    expect(added.every((id) => /page|console/i.test(id))).toBe(true);
  });
});

describe("the function of the files", () => {
  it.each([{}, { pathParameters: null }])("serves the page for an event without a path parameter: %j", async (event) => {
    const serve = serveFiles({ page: { type: "text/html", body: "the page" } });
    expect(await serve(event)).toMatchObject({ statusCode: 200, body: "the page" });
  });
});

describe("console is refused", () => {
  it("without jwt, because a browser can't sign, with the command that can", () => {
    expect(() => synthesizeOwn(() => ({ console: true }))).toThrow(
      "console: a browser can't sign with IAM, so it needs jwt; without it, `holdfast ui` signs",
    );
  });

  it("below a mapping key, where its page would not be at /console of the host", () => {
    const mapped = () =>
      synthesizeOwn((stack) => {
        const certificate = Certificate.fromCertificateArn(stack, "Certificate", "arn:aws:acm:eu-west-1:111122223333:certificate/c");
        const domainName = new DomainName(stack, "Domain", { domainName: "locks.example.com", certificate });
        return { jwt, console: true, domain: { domainName, mappingKey: "v" } };
      });
    expect(mapped).toThrow("console: its page is at /console of the host");
  });
});
