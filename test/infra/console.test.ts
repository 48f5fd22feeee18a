/** The console in the stack: the routes that it opens, and those that it doesn't. The recorded template has all that it adds (templates.test.ts). */
import { fileURLToPath } from "node:url";
import { DomainName } from "aws-cdk-lib/aws-apigatewayv2";
import { Certificate } from "aws-cdk-lib/aws-certificatemanager";
import { describe, expect, it } from "vitest";
import { bundleHosted } from "../../console/bundle.js";
import { serveFiles } from "../../console/hosted.js";
import { PAGE_PATHS } from "../../infra/api.js";
import { dutyOf } from "../../lambda/routes.js";
import { routesOf } from "./resources.js";
import { synthesizeOwn } from "./synthesize.js";

await bundleHosted(fileURLToPath(new URL("../../infra/console", import.meta.url)));

const jwt = { issuer: "https://id.example.com/", audience: ["locks"], scopes: ["locks:use"] } as const;
const without = synthesizeOwn(() => ({ jwt }));
const made = synthesizeOwn(() => ({ jwt, console: true }));
const PAGE_ROUTES = PAGE_PATHS.map((path) => `GET ${path}`);

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
