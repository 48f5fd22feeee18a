/** The namespace that an operator names: a tenant's alone, whatever the path says. */
import { describe, expect, it } from "vitest";
import { OPERATORS_ROUTE } from "../../lambda/operators.js";
import { httpEvent } from "../support/http-event.js";
import { compose } from "../../lambda/compose.js";
import { createPolicy } from "../../lib/core/policy.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";

const clock = new VirtualClock();
const store = createMemoryStore({ policy: createPolicy(), clock });
const handlerWith = (env: object) => compose({ ...env }, { store, clock, print: () => undefined });
const event = (namespace: string, path: string, method = "GET") => {
  const { requestContext, ...rest } = httpEvent(OPERATORS_ROUTE, { timeEpoch: clock.wallMs() });
  return { ...rest, pathParameters: { namespace, path }, requestContext: { ...requestContext, http: { ...requestContext.http, method } } };
};
const handler = handlerWith({ HOLDFAST_TENANT: "account" });

describe("an operator's path", () => {
  it.each([
    ["acme", "acme"],
    ["idp~253A~252F:a", "idp%3A%2F:a"],
    ["a~7E25", "a~25"],
  ])("that names %s is of the namespace %s", async (segment, namespace) => {
    const { statusCode, body } = await handler(event(segment, "locks"));
    expect([statusCode, JSON.parse(body!)]).toMatchObject([200, { namespace }]);
  });

  it.each(["", "default", "acme/locks", "acme/payloads", "/table", "a b", "ä", "x".repeat(1602)])(
    "that names %j, which no tenant has, is refused",
    async (segment) => {
      const { statusCode, body } = await handler(event(segment, "locks"));
      expect([statusCode, JSON.parse(body!)]).toMatchObject([400, { code: "invalid-request", field: "namespace" }]);
    },
  );

  it.each([
    ["", "GET", 404],
    ["nothing", "GET", 404],
    ["locks/a/b/c", "GET", 404],
    ["locks/%zz", "GET", 404],
    ["locks/ORDER_1/break", "PUT", 405],
  ])("that ends in %j is answered to %s with %i", async (path, method, status) => {
    expect((await handler(event("acme", path, method))).statusCode).toBe(status);
  });

  it("is none of a service without tenants, or behind function URLs", async () => {
    expect((await handlerWith({})(event("acme", "locks"))).statusCode).toBe(404);
    const byUrl = handlerWith({ HOLDFAST_TENANT: "account", HOLDFAST_MOUNT: "function-url" });
    const { rawPath: _raw, ...rest } = event("acme", "locks");
    const arn = { invokedFunctionArn: "arn:aws:lambda:us-east-1:111122223333:function:f:clients" };
    expect((await byUrl({ ...rest, rawPath: "/namespaces/acme/v1/locks" }, arn)).statusCode).toBe(404);
  });

  it("needs no claim of the operator's own, and an authorizer that vouches", async () => {
    const byClaim = handlerWith({ HOLDFAST_TENANT: "claim:team" });
    const asked = (authorizer: unknown) => {
      const asking = event("acme", "locks");
      return byClaim({ ...asking, requestContext: { ...asking.requestContext, authorizer } });
    };
    expect((await asked({ jwt: { claims: { iss: "i", sub: "s" } } })).statusCode).toBe(200);
    expect((await asked({})).statusCode).toBe(403);
  });
});
