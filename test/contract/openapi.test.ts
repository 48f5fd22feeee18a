/** The OpenAPI document: it describes exactly the routes that are served, and is as strict as the service itself. */
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { VERSION } from "../../lib/core/version.js";
import { decodeBody } from "../../lib/contract/decode.js";
import { Key } from "../../lib/contract/fields.js";
import { ListQuery, REQUESTS, RunListQuery } from "../../lib/contract/requests.js";
import { ROUTES } from "../../lib/contract/routes.js";
import { openapi } from "../../lib/contract/openapi.js";
import { ACQUIRE, COMPLETE_RUN, directService, START } from "../support/direct-service.js";
import { type JsonSchema, expanded, fits } from "../support/json-schema.js";

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
}
interface Operation {
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly description: string;
    readonly content: Readonly<Record<string, { readonly schema: { readonly $ref: string } }>>;
  };
  readonly responses: Readonly<Record<string, { readonly headers?: object; readonly content?: object; readonly links?: object }>>;
}
interface Link {
  readonly operationId: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly requestBody?: string;
  readonly "x-members"?: Readonly<Record<string, string>>;
}
interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly security: readonly object[];
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, Readonly<Record<string, string>>>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly links: Readonly<Record<string, Link>>;
  };
}

const document = openapi() as unknown as Document;
const schemas = expanded(document.components.schemas);
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ routeKey: `${method.toUpperCase()} ${path}`, path, operation })),
);
const byId = new Map(operations.map(({ operation }) => [operation.operationId, operation]));

describe("the document", () => {
  it("is OpenAPI 3.1 of this version, and plain JSON", () => {
    expect([document.openapi, document.info.version]).toEqual(["3.1.0", VERSION]);
    expect(JSON.parse(JSON.stringify(document))).toEqual(document);
  });

  it("has exactly the routes that are served, each by the name of its operation", () => {
    expect(Object.fromEntries(operations.map(({ routeKey, operation }) => [operation.operationId, routeKey]))).toEqual(ROUTES);
    expect(byId.size).toBe(operations.length);
  });

  it("names nothing that it doesn't have", () => {
    const names = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g)].map(([, name = ""]) => name);
    expect(names.length).toBeGreaterThan(0);
    const { schemas, links } = document.components;
    const there = Object.entries({ schemas, links }).flatMap(([kind, named]) =>
      Object.keys(named).map((name) => `#/components/${kind}/${name}`),
    );
    expect([...new Set(names)].sort()).toEqual(there.sort());
  });

  it("has links to operations, with all parameters of their paths and fields of their bodies", () => {
    for (const { operationId, parameters, "x-members": members = {} } of Object.values(document.components.links)) {
      const target = byId.get(operationId)!;
      const inPath = target.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => name);
      expect(Object.keys(parameters).sort(), operationId).toEqual(inPath.sort());
      const { $ref = "" } = target.requestBody?.content["application/json"]?.schema ?? {};
      const fields = schemas[$ref.replace("#/components/schemas/", "")]?.["properties"] ?? {};
      expect(Object.keys(fields), operationId).toEqual(expect.arrayContaining(Object.keys(members)));
    }
  });

  it("has only what the generators of clients take: types with their literals, alternatives with names, no body of a link but text", () => {
    const wrong: string[] = [];
    const walk = (where: string, schema: JsonSchema): void => {
      if ("const" in schema) wrong.push(`${where}: a const`);
      if ("enum" in schema && !("type" in schema)) wrong.push(`${where}: an enum without a type`);
      if (schema["type"] === "object" && !schema["properties"] && !schema["additionalProperties"])
        wrong.push(`${where}: an object of nothing`);
      const alternatives = (schema["oneOf"] ?? schema["anyOf"] ?? []) as readonly JsonSchema[];
      // Alternatives that only name required members are rules, and no types.
      if (alternatives.some(({ properties }) => properties)) wrong.push(`${where}: an alternative without a name`);
      if (schema["oneOf"] && alternatives.some(({ $ref }) => $ref) && !schema["discriminator"]) wrong.push(`${where}: no discriminator`);
      const inner = {
        ...(schema["properties"] as object),
        ...(alternatives as object),
        items: schema["items"],
        map: schema["additionalProperties"],
      };
      for (const [name, part] of Object.entries(inner)) if (typeof part === "object") walk(`${where}.${name}`, part as JsonSchema);
    };
    for (const [name, schema] of Object.entries(document.components.schemas)) walk(name, schema);
    for (const [name, { requestBody = "" }] of Object.entries(document.components.links))
      if (typeof requestBody !== "string") wrong.push(`the link ${name}: a body that is no text`);
    expect(wrong).toEqual([]);
  });

  it("leads to no two types of one name: a generator names a type by its schema or operation, and the member or parameter", () => {
    const isNamed = ({ enum: words, type, properties }: JsonSchema): boolean =>
      words !== undefined || (type === "object" && properties !== undefined);
    const ofSchemas = Object.entries(document.components.schemas).flatMap(([name, { properties = {} }]) =>
      Object.entries(properties as Readonly<Record<string, JsonSchema>>).flatMap(([member, schema]) =>
        isNamed(schema) ? [name + member] : [],
      ),
    );
    const ofOperations = operations.flatMap(({ operation: { operationId, parameters } }) =>
      parameters.flatMap(({ name, schema }) => (isNamed(schema) ? [operationId + name] : [])),
    );
    const names = [...Object.keys(document.components.schemas), ...ofSchemas, ...ofOperations].map((name) => name.toLowerCase());
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
  });

  it("has links from every answer that grants a lease to what a holder can do with it", () => {
    const linked = (id: string, status: number): readonly string[] => Object.keys(byId.get(id)!.responses[status]!.links ?? {});
    for (const status of [200, 201]) expect(linked("acquire", status)).toEqual(expect.arrayContaining(["renew", "release", "transfer"]));
    expect(linked("acquire", 202)).toEqual(expect.arrayContaining(["poll", "check", "release"]));
    expect(linked("acquireSet", 201)).toEqual(["renewSet", "releaseSet"]);
    expect(linked("start", 201)).toEqual(expect.arrayContaining(["renewRun", "complete", "abandonRun"]));
  });

  it.each(operations)("describes each parameter of $routeKey, and a success and its refusals", ({ path, operation }) => {
    const inPath = operation.parameters.filter((parameter) => parameter.in === "path");
    expect(inPath.map(({ name, required }) => `${name} ${required}`)).toEqual(
      [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => `${name} true`),
    );
    const statuses = Object.keys(operation.responses);
    expect(statuses.some((status) => status.startsWith("2"))).toBe(true);
    expect(statuses).toEqual(expect.arrayContaining(["400", "401", "403", "500", "503"]));
  });

  it("needs a body exactly where the service does", () => {
    const needed = operations.filter(({ operation }) => operation.requestBody?.required).map(({ operation }) => operation.operationId);
    const those =
      "changeMode transfer wait notify break acquireSet renewSet releaseSet renewMany complete resetRun take shutLimit resetLimit";
    expect(needed.join(" ")).toBe(those);
    const { TransferRequest, WaitRequest, NotifyRequest, BreakRequest, OutcomeRequest, ResetRequest, TakeRequest } = REQUESTS;
    for (const schema of [TransferRequest, WaitRequest, NotifyRequest, BreakRequest, OutcomeRequest, ResetRequest, TakeRequest])
      expect(v.is(schema, {})).toBe(false);
    const { AcquireRequest, RenewRequest, StartRequest, RenewRunRequest } = REQUESTS;
    expect([AcquireRequest, RenewRequest, StartRequest, RenewRunRequest].map((schema) => v.is(schema, {}))).toEqual(Array(4).fill(true));
  });

  it("tells of the headers that carry an answer", () => {
    const headersOf = (id: string, status: string): readonly string[] => Object.keys(byId.get(id)?.responses[status]?.headers ?? {});
    expect(headersOf("release", "204")).toEqual(["Lease-State"]);
    expect(headersOf("acquire", "200")).toEqual(["ETag", "Idempotent-Replayed"]);
    expect(headersOf("acquire", "423")).toEqual(["Retry-After"]);
    expect(headersOf("acquire", "410")).toEqual([]);
    expect(byId.get("inspect")?.parameters.map(({ name }) => name)).toEqual(["key", "If-None-Match", "Prefer"]);
    expect(headersOf("start", "201")).toEqual(["ETag", "Idempotent-Replayed"]);
    expect(headersOf("start", "409")).toEqual(["Retry-After"]);
    expect(headersOf("complete", "200")).toEqual(["Idempotent-Replayed"]);
    expect(headersOf("abandonRun", "204")).toEqual(["Lease-State"]);
    expect(headersOf("resetRun", "409")).toEqual(["Retry-After"]);
    expect(byId.get("start")?.parameters.map(({ name }) => name)).toEqual(["key", "leaseId", "Prefer"]);
    expect(byId.get("run")?.parameters.map(({ name }) => name)).toEqual(["key", "If-None-Match", "Prefer"]);
  });

  it.each([
    ["start", ["200", "201", "400", "401", "403", "409", "410", "413", "415", "422", "429", "500", "503"]],
    ["renewRun", ["200", "400", "401", "403", "410", "413", "415", "429", "500", "503"]],
    ["complete", ["200", "400", "401", "403", "409", "410", "413", "415", "429", "500", "503"]],
    ["run", ["200", "304", "400", "401", "403", "404", "413", "415", "429", "500", "503"]],
    ["runs", ["200", "400", "401", "403", "413", "415", "429", "500", "503"]],
    ["resetRun", ["200", "400", "401", "403", "404", "409", "412", "413", "415", "429", "500", "503"]],
    ["shutLimit", ["200", "400", "401", "403", "409", "413", "415", "429", "500", "503"]],
    ["resetLimit", ["200", "400", "401", "403", "404", "413", "415", "429", "500", "503"]],
  ])("has every status that %s has", (id, statuses) => {
    expect(Object.keys(byId.get(id)?.responses ?? {}).sort()).toEqual(statuses);
  });

  it("says how callers are known, and what the gateway answers to others", () => {
    const { securitySchemes } = document.components;
    expect(Object.values(securitySchemes).map(({ type, scheme, name }) => [type, scheme ?? name])).toEqual([
      ["apiKey", "Authorization"],
      ["http", "bearer"],
    ]);
    expect(document.security).toEqual(Object.keys(securitySchemes).map((name) => ({ [name]: [] })));
    for (const { operation, routeKey } of operations)
      expect(JSON.stringify(operation.responses["401"]?.content), routeKey).toContain("#/components/schemas/GatewayAnswer");
    expect(fits(schemas["GatewayAnswer"]!, { message: "Unauthorized" })).toBe(true);
  });

  it("says how large each body may be", () => {
    const sizes = operations.flatMap(({ operation }) =>
      operation.requestBody ? [[operation.operationId, operation.requestBody.description]] : [],
    );
    const small = `At most ${LIMITS.bodyBytes} bytes.`;
    expect(sizes.filter(([, size]) => size !== small)).toEqual([["complete", `At most ${LIMITS.outcomeBodyBytes} bytes.`]]);
    expect(sizes.length).toBeGreaterThan(10);
  });
});

const TO = "01a1fadb-2b13-71b0-b423-0517604dd9ad";
const BREAK = { reason: "stuck", fencingToken: 7 };
const SCHEMAS = {
  acquire: REQUESTS.AcquireRequest,
  renew: REQUESTS.RenewRequest,
  transfer: REQUESTS.TransferRequest,
  wait: REQUESTS.WaitRequest,
  notify: REQUESTS.NotifyRequest,
  break: REQUESTS.BreakRequest,
  start: REQUESTS.StartRequest,
  renewRun: REQUESTS.RenewRunRequest,
  complete: REQUESTS.OutcomeRequest,
  resetRun: REQUESTS.ResetRequest,
  resetLimit: REQUESTS.ResetRequest,
  shutLimit: REQUESTS.ShutRequest,
} as const;
/** Bodies, and true if the service accepts them. */
const BODIES: readonly (readonly [operation: keyof typeof SCHEMAS, good: boolean, body: object])[] = [
  ["acquire", true, {}],
  ["acquire", true, { leaseMs: 1_000, owner: "x".repeat(256), mode: "exclusive", permits: 1, meta: { a: [{ b: null }] } }],
  ["acquire", true, { leaseMs: 86_400_000, owner: "" }],
  ["acquire", false, { leaseMs: 999 }],
  ["acquire", false, { leaseMs: 86_400_001 }],
  ["acquire", false, { leaseMs: 5_000.5 }],
  ["acquire", false, { leaseMs: "5000" }],
  ["acquire", false, { leaseMs: null }],
  ["acquire", false, { owner: 7 }],
  ["acquire", false, { owner: "x".repeat(257) }],
  ["acquire", true, { mode: "shared" }],
  ["acquire", true, { limit: 3, permits: 2 }],
  ["acquire", false, { mode: "upgradeable" }],
  ["acquire", true, { scope: "x".repeat(16) }],
  ["acquire", false, { scope: "x".repeat(15) }],
  ["acquire", false, { scope: `${"x".repeat(14)}𝒳` }],
  ["acquire", true, { scope: `${"x".repeat(15)}𝒳` }],
  ["acquire", false, { permits: 0 }],
  ["acquire", false, { meta: [] }],
  ["acquire", false, { meta: "text" }],
  ["acquire", false, { meta: null }],
  ["acquire", false, { leaseMS: 5_000 }],
  ["acquire", false, JSON.parse('{"__proto__":1}') as object],
  ["renew", true, { leaseMs: 5_000, meta: {} }],
  ["renew", false, { owner: "x" }],
  ["transfer", true, { leaseId: TO, owner: "x", leaseMs: 5_000, meta: { step: 2 } }],
  ["transfer", false, {}],
  ["transfer", false, { leaseId: TO.toUpperCase() }],
  ["transfer", false, { leaseId: TO.replace("-7", "-4") }],
  ["transfer", false, { leaseId: `${TO}\n` }],
  ["transfer", false, { leaseId: TO, mode: "shared" }],
  ["wait", true, { condition: "not empty", leaseId: TO }],
  ["wait", true, { condition: "x".repeat(64), leaseId: TO, leaseMs: 5_000, owner: "x", scope: "x".repeat(16), priority: 9, meta: {} }],
  ["wait", false, { condition: "x".repeat(65), leaseId: TO }],
  ["wait", false, { condition: "", leaseId: TO }],
  ["wait", false, { condition: "x" }],
  ["wait", false, { condition: "x", leaseId: TO, limit: 1 }],
  ["notify", true, { condition: "x" }],
  ["notify", true, { condition: "x", sequence: 2, all: true }],
  ["notify", false, { sequence: 1 }],
  ["notify", false, { condition: "x", sequence: 0 }],
  ["notify", false, { condition: "x", sequence: 1, all: "yes" }],
  ["notify", false, { condition: "x", mode: "exclusive" }],
  ["break", true, { ...BREAK, drainMs: 0 }],
  ["break", true, { ...BREAK, fencingToken: Number.MAX_SAFE_INTEGER }],
  ["break", false, { ...BREAK, reason: "" }],
  ["break", false, { ...BREAK, fencingToken: 2 ** 53 }],
  ["break", false, { ...BREAK, fencingToken: -1 }],
  ["break", false, { reason: "stuck" }],
  ["break", false, { fencingToken: 7 }],
  ["break", false, { ...BREAK, drainMs: 86_400_001 }],
  ["start", true, {}],
  ["start", true, { fingerprint: "x".repeat(128), leaseMs: 1_000, keepResultMs: 60_000, maxAttempts: 0, owner: "" }],
  ["start", true, { keepResultMs: 31_536_000_000, maxAttempts: 1_000_000 }],
  ["start", true, { keepResultMs: "forever" }],
  ["start", false, { keepResultMs: "for ever" }],
  ["start", false, { keepResultMs: 59_999 }],
  ["start", false, { keepResultMs: 31_536_000_001 }],
  ["start", false, { keepResultMs: 60_000.5 }],
  ["start", false, { maxAttempts: -1 }],
  ["start", false, { maxAttempts: 1_000_001 }],
  ["start", false, { fingerprint: "" }],
  ["start", false, { fingerprint: "x".repeat(129) }],
  ["start", false, { mode: "exclusive" }],
  ["start", false, { meta: {} }],
  ["renewRun", true, { leaseMs: 5_000, checkpoint: null }],
  ["renewRun", true, { checkpoint: { a: [1, "b", null] } }],
  ["renewRun", false, { meta: {} }],
  ["complete", true, { state: "succeeded" }],
  ["complete", true, { state: "succeeded", result: null }],
  ["complete", true, { state: "succeeded", resultOmitted: true }],
  ["complete", true, { state: "failed", error: { a: 1 }, retryable: true }],
  ["complete", true, { state: "failed", error: null, retryable: false }],
  ["complete", false, {}],
  ["complete", false, { state: "running" }],
  ["complete", false, { state: "failed", error: 1 }],
  ["complete", false, { state: "failed", error: "no", retryable: "yes" }],
  ["complete", false, { state: "succeeded", retryable: false }],
  ["complete", false, { state: "succeeded", error: 1 }],
  ["complete", false, { state: "failed", result: 1, retryable: true }],
  ["complete", false, { state: "succeeded", resultOmitted: false }],
  ["resetRun", true, { reason: "x".repeat(256) }],
  ["resetRun", false, {}],
  ["resetLimit", true, { reason: "x" }],
  ["resetLimit", false, {}],
  ["shutLimit", true, { rates: [{ count: 1, perMs: 1000 }], forMs: 86_400_000, reason: "x" }],
  ["shutLimit", false, { rates: [{ count: 1, perMs: 1000 }], forMs: 0, reason: "x" }],
  ["shutLimit", false, { rates: [{ count: 1, perMs: 1000 }], forMs: 1 }],
  ["shutLimit", false, { rates: [], forMs: 1, reason: "x" }],
  ["resetRun", false, { reason: "" }],
  ["resetRun", false, { reason: "x", key: "y" }],
];

describe("the document and the service", () => {
  it.each(BODIES)("agree on a body of %s (%s): %j", (id, good, body) => {
    const name = byId.get(id)?.requestBody?.content["application/json"]?.schema.$ref.replace("#/components/schemas/", "") ?? "";
    expect(fits(schemas[name]!, body)).toBe(good);
    expect(decodeBody(SCHEMAS[id] as v.GenericSchema, JSON.stringify(body), "application/json").ok).toBe(good);
  });

  const SET = "PUT /v1/lock-sets/{leaseId}";
  it.each<[routeKey: string, name: string, good: boolean, body: object]>([
    [ACQUIRE, "AcquireRequest", false, { permits: 2 }],
    [ACQUIRE, "AcquireRequest", false, { permits: 2, mode: "exclusive" }],
    [ACQUIRE, "AcquireRequest", false, { permits: 2, limit: 1 }],
    [ACQUIRE, "AcquireRequest", true, { permits: 1 }],
    [ACQUIRE, "AcquireRequest", true, { permits: 3, limit: 3 }],
    [ACQUIRE, "AcquireRequest", false, { mode: "shared", limit: 2 }],
    [ACQUIRE, "AcquireRequest", false, { mode: "shared", permits: 2 }],
    [ACQUIRE, "AcquireRequest", true, { mode: "shared", limit: 1 }],
    [SET, "AcquireSetRequest", true, { keys: ["A"] }],
    [SET, "AcquireSetRequest", true, { locks: [{ key: "A", mode: "shared" }] }],
    [SET, "AcquireSetRequest", false, { keys: ["A"], locks: [{ key: "A" }] }],
    [SET, "AcquireSetRequest", false, {}],
    [SET, "AcquireSetRequest", false, { keys: [] }],
    [COMPLETE_RUN, "OutcomeRequest", true, { state: "succeeded", result: 1 }],
    [COMPLETE_RUN, "OutcomeRequest", true, { state: "succeeded", resultOmitted: true }],
    [COMPLETE_RUN, "OutcomeRequest", false, { state: "succeeded", result: 1, resultOmitted: true }],
  ])("agree on which fields go together in %s, %s (%s): %j", async (routeKey, name, good, body) => {
    expect(fits(schemas[name]!, body)).toBe(good);
    const { ask, newId } = directService();
    expect((await ask(routeKey, { leaseId: newId(), body })).status === 400).toBe(!good);
  });

  it("agree in words where JSON Schema can't compare: permits are at most the limit", () => {
    const { permits } = schemas["AcquireRequest"]!["properties"] as Record<string, { description: string }>;
    expect(permits?.description).toContain("at most `limit`");
  });

  it.each([
    [ACQUIRE, "AcquireRequest", ["leaseMs", "owner", "mode", "limit", "permits", "priority"]],
    [START, "StartRequest", ["leaseMs", "keepResultMs", "maxAttempts", "owner"]],
    [SET, "AcquireSetRequest", ["leaseMs", "owner"]],
  ])("agree on the defaults of %s: spelled out, it is the same request", async (routeKey, name, fields) => {
    const properties = schemas[name]!["properties"] as Record<string, { default?: unknown }>;
    const filled = Object.entries(properties).flatMap(([field, schema]) => ("default" in schema ? [[field, schema.default] as const] : []));
    expect(filled.map(([field]) => field)).toEqual(fields);
    const { ask, newId } = directService();
    const leaseId = newId();
    const keys = routeKey === SET ? { keys: ["A"] } : {};
    expect((await ask(routeKey, { leaseId, body: keys })).status).toBe(201);
    expect((await ask(routeKey, { leaseId, body: { ...keys, ...Object.fromEntries(filled) } })).status).toBe(200);
    expect((await ask(routeKey, { leaseId, body: { ...keys, leaseMs: 5_000 } })).status).toBe(422);
  });

  it.each([
    ["ORDER_1231", true],
    ["refund:42", true],
    ["...", true],
    ["x".repeat(200), true],
    ["x".repeat(201), false],
    ["", false],
    [".", false],
    ["..", false],
    ["a b", false],
    ["a/b", false],
    ["a\n", false],
    ["é", false],
  ])("agree on the key %j", (key, good) => {
    const { schema } = byId.get("inspect")!.parameters[0]!;
    expect([fits(schema, key), v.is(Key, key)]).toEqual([good, good]);
  });

  it.each([
    ["list", ListQuery],
    ["runs", RunListQuery],
  ] as const)("agree on what the query of %s may be", (id, query) => {
    const parameters = byId.get(id)?.parameters.map(({ name, schema }) => [name, schema] as const) ?? [];
    expect(parameters.map(([name]) => name)).toEqual(Object.keys(query.entries));
    const { max, state } = Object.fromEntries(parameters);
    expect(max).toHaveProperty("default", DEFAULTS.listMax);
    for (const [value, good] of [
      [0, false],
      [1, true],
      [100, true],
      [101, false],
    ] as const) {
      expect([fits(max!, value), v.is(query, { max: String(value) })]).toEqual([good, good]);
    }
    for (const value of id === "runs" ? ["running", "interrupted", "succeeded", "failed", "retry", ""] : []) {
      expect(fits(state!, value), value).toBe(v.is(query, { state: value }));
    }
  });
});
