/** The rules for every request over HTTP: its body, its path and its method, and the errors for breaking them. */
import { expect } from "vitest";
import { type Calls, told } from "../calls.js";
import type { Suite } from "../suite.js";

export function bodies({ it }: Suite, { freshKey, newId, send, release }: Calls): void {
  const url = (): string => `/v1/locks/${freshKey()}/leases/${newId()}`;

  it("of another form are 400, naming the field and the rule", async () => {
    const refused = await send("PUT", url(), { body: { ttl: 5 } });
    expect([...told(refused), refused.body.field, refused.body.retry]).toEqual([400, "invalid-request", "ttl", "never"]);
    expect(refused.body.detail).toMatch(/^ttl: \S/);
  });

  it("of another media type are 415, and JSON may say its charset", async () => {
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      expect(told(await send("PUT", url(), { body: "{}", headers: { "content-type": type } }))).toEqual([415, "unsupported-media-type"]);
    }
    const lease = url();
    expect((await send("PUT", lease, { body: "{}", headers: { "content-type": "application/json; charset=utf-8" } })).status).toBe(201);
    expect(await release({ url: lease })).toBe("released");
  });
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

  it("describes itself by OpenAPI 3.1, with its problem", async () => {
    const { document } = fixture();
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.components.schemas).toHaveProperty("Problem");
    expect(Object.keys(document.paths)).toContain("/v1/locks/{key}/leases/{leaseId}");
  });
}
