/** The rules for every request over HTTP: its body, its path and its method, and the errors for breaking them. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

const BODY_BYTES = 16 * 1024;

export function bodies({ it, itWith }: Suite, { freshKey, newId, send, get, release }: Calls): void {
  const url = (): string => `/v1/locks/${freshKey()}/leases/${newId()}`;

  it("with an unknown field, a wrong type or a number out of range are 400, naming the field and the rule", async () => {
    for (const [body, field] of [
      [{ ttl: 5 }, "ttl"],
      [{ waitMs: 5 }, "waitMs"],
      [{ leaseMs: "5000" }, "leaseMs"],
      [{ leaseMs: 999 }, "leaseMs"],
      [{ leaseMs: 86_400_001 }, "leaseMs"],
      [{ leaseMs: 5_000.5 }, "leaseMs"],
      [{ leaseMs: null }, "leaseMs"],
      [{ owner: "x".repeat(257) }, "owner"],
      [{ mode: "upgradeable" }, "mode"],
      [{ limit: 0 }, "limit"],
      [{ permits: 1_001 }, "permits"],
      [{ priority: 10 }, "priority"],
      [{ meta: [1] }, "meta"],
      [{ meta: { a: "x".repeat(1024) } }, "meta"],
    ] as const) {
      const refused = await send("PUT", url(), { body });
      expect([...told(refused), refused.body.field, refused.body.retry], JSON.stringify(body)).toEqual([
        400,
        "invalid-request",
        field,
        "never",
      ]);
      expect(refused.body.detail).toMatch(new RegExp(`^${field}: \\S`));
    }
  });

  it("that are no JSON object are 400", async () => {
    for (const body of ['{"leaseMs":', "[]", "5", "null", "leaseMs=5000"]) {
      expect(told(await send("PUT", url(), { body }))).toEqual([400, "invalid-request"]);
    }
  });

  it("of a lease's other calls are held to their own form, too", async () => {
    const lease = url();
    for (const [verb, body, field] of [
      ["renew", { owner: "x" }, "owner"],
      ["renew", { leaseMs: 0 }, "leaseMs"],
      ["mode", { mode: "shared" }, "fencingToken"],
      ["mode", { fencingToken: 1 }, "mode"],
      ["transfer", { leaseId: newId(), to: "x" }, "to"],
      ["wait", { leaseId: newId() }, "condition"],
      ["wait", { condition: "x", leaseId: newId(), mode: "exclusive" }, "mode"],
      ["notify", { condition: "x", sequence: 0 }, "sequence"],
      ["notify", { condition: "", sequence: 1 }, "condition"],
    ] as const) {
      const refused = await send("POST", `${lease}/${verb}`, { body });
      expect([...told(refused), refused.body.field], `${verb} ${JSON.stringify(body)}`).toEqual([400, "invalid-request", field]);
    }
  });

  it("over 16 KB are 413, and up to it are read", async () => {
    const sized = (bytes: number): string => `{"x":"${"a".repeat(bytes - 8)}"}`;
    expect(told(await send("PUT", url(), { body: sized(BODY_BYTES) }))).toEqual([400, "invalid-request"]);
    const refused = await send("PUT", url(), { body: sized(BODY_BYTES + 1) });
    expect([...told(refused), refused.body.definite]).toEqual([413, "too-large", true]);
  });

  it("of another media type are 415, and JSON may say its charset", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      expect(told(await send("PUT", url(), { body: "{}", headers: { "content-type": type } }))).toEqual([415, "unsupported-media-type"]);
    }
    const lease = url();
    expect((await send("PUT", lease, { body: "{}", headers: { "content-type": "application/json; charset=utf-8" } })).status).toBe(201);
    expect(await release({ url: lease })).toBe("released");
  });

  async function refusesQueries(queries: readonly (readonly [query: string, field: string])[]): Promise<void> {
    for (const [query, field] of queries) {
      const refused = await get(query);
      expect([...told(refused), refused.body.field], query).toEqual([400, "invalid-request", field]);
    }
  }

  it("and queries alike: 400, naming the parameter", () =>
    refusesQueries([
      ["/v1/health?deep=yes", "deep"],
      ["/v1/health?caller=me", "caller"],
    ]));

  itWith("operators", "and the queries of lists alike", () =>
    refusesQueries([
      ["/v1/locks?max=0", "max"],
      ["/v1/locks?max=101", "max"],
      ["/v1/locks?limit=5", "limit"],
      ["/v1/locks?prefix=a%20b", "prefix"],
      ["/v1/runs?state=done", "state"],
    ]),
  );
}

/** Paths and methods. */
export function paths({ it }: Suite, { fixture, freshKey, newId, send, get, hold, release }: Calls): void {
  it("may be percent-encoded, in either case: it is the same key", async () => {
    const key = `${freshKey()}:a~b.c-d`;
    const encoded = key.replaceAll(":", "%3A").replaceAll("~", "%7E").replace("a", "%61");
    const leaseId = newId();
    const held = await send("PUT", `/v1/locks/${encoded}/leases/${leaseId}`, { body: {} });
    expect([held.status, held.body.key]).toEqual([201, key]);
    expect((await get(`/v1/locks/${key}`)).body.fencingToken).toBe(held.body.fencingToken);
    expect((await get(`/v1/locks/${encoded.replace("%3A", "%3a")}/leases/${leaseId}`)).body.key).toBe(key);
    expect(await release({ url: `/v1/locks/${key}/leases/${leaseId}` })).toBe("released");
  });

  it("take keys of every allowed character, and of 200 of them", async () => {
    const punctuated = `${freshKey()}.:~-A9_`;
    const longest = `${freshKey()}~${"x".repeat(200)}`.slice(0, 200);
    for (const key of [punctuated, longest]) expect((await hold(key)).body.key).toBe(key);
  });

  it("with another key are 400, naming key, decoded once", async () => {
    for (const key of ["a%20b", "%C3%A9", "a%253Ab", "a%0A", "x".repeat(201)]) {
      for (const path of [`/v1/locks/${key}`, `/v1/locks/${key}/leases/${newId()}`, `/v1/runs/${key}`]) {
        const refused = await get(path);
        expect([...told(refused), refused.body.field], path).toEqual([400, "invalid-request", "key"]);
      }
    }
  });

  it("with what is no leaseId are 400, naming leaseId", async () => {
    for (const leaseId of [newId().toUpperCase(), "3f2b8e5c-1c1d-4e7a-9a54-5d0b3c9f7f10", "my-lease"]) {
      for (const path of [`/v1/locks/${freshKey()}/leases/${leaseId}`, `/v1/lock-sets/${leaseId}`]) {
        const refused = await send("PUT", path, { body: path.includes("sets") ? { keys: ["a"] } : {} });
        expect([...told(refused), refused.body.field], path).toEqual([400, "invalid-request", "leaseId"]);
      }
    }
  });

  it("that the API doesn't have are 404, as a problem document", async () => {
    for (const path of ["/", "/v1", "/v2/health", "/v1/lock/a", "/v1/locks/a/leases", "/v1/runs/a/break", "/v1/openapi.yaml"]) {
      expect(told(await get(path)), path).toEqual([404, "not-found"]);
    }
  });

  it("under a method that they don't take are 405, with the methods that they do", async () => {
    for (const [template, methods] of Object.entries(fixture().document.paths)) {
      const path = template.replace("{key}", freshKey()).replace("{leaseId}", newId());
      const refused = await send("PATCH", path, { body: {} });
      expect(told(refused), template).toEqual([405, "method-not-allowed"]);
      const allowed = (refused.headers["allow"] ?? "").split(/,\s*/).sort();
      expect(allowed, template).toEqual(
        Object.keys(methods)
          .map((method) => method.toUpperCase())
          .sort(),
      );
    }
  });
}

/** The service's information about itself. */
export function service({ it }: Suite, { fixture, get }: Calls): void {
  it("is ok, with its version and its time, also when it is asked to read the table", async () => {
    for (const path of ["/v1/health", "/v1/health?deep=1", "/v1/health?deep=0"]) {
      const { status, body } = await get(path);
      expect([status, body.status, body.version]).toEqual([200, "ok", fixture().document.info.version]);
      expect(Number.isSafeInteger(body.serverTimeMs)).toBe(true);
    }
  });

  it("tells a caller its own identity, when it is asked for", async () => {
    const { status, body } = await get("/v1/health?caller=1");
    expect([status, typeof body.caller.namespace, typeof body.caller.principal]).toEqual([200, "string", "string"]);
    expect((await get("/v1/health?deep=1")).body.caller).toBeUndefined();
  });

  it("describes itself by OpenAPI 3.1: every call that the API has, and its problem", async () => {
    const { document } = fixture();
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.components.schemas).toHaveProperty("Problem");
    const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(calls).toEqual(expect.arrayContaining(CALLS));
  });
}

const LOCK = "/v1/locks/{key}/leases/{leaseId}";
const RUN = "/v1/runs/{key}/leases/{leaseId}";
const CALLS = [
  ...["PUT", "GET", "DELETE"].map((method) => `${method} ${LOCK}`),
  ...["renew", "mode", "transfer", "wait", "notify"].map((verb) => `POST ${LOCK}/${verb}`),
  ...["GET /v1/locks/{key}", "POST /v1/locks/{key}/break", "GET /v1/locks"],
  ...["PUT /v1/lock-sets/{leaseId}", "POST /v1/lock-sets/{leaseId}/renew", "POST /v1/lock-sets/{leaseId}/release", "POST /v1/renewals"],
  ...[`PUT ${RUN}`, `POST ${RUN}/renew`, `PUT ${RUN}/outcome`, "GET /v1/runs/{key}", "GET /v1/runs", "POST /v1/runs/{key}/reset"],
  ...["POST /v1/limits/{key}/takes", "POST /v1/limits/{key}/reset", "GET /v1/limits/{key}", "GET /v1/limits"],
  ...["GET /v1/health", "GET /v1/openapi.json"],
];
