/**
 * The least number of characters of a text. Regression: units of UTF-16 were counted, so 15 characters were accepted as a
 * scope, which must have 16, if one of them was outside of the basic plane. The OpenAPI document said otherwise.
 */
import { describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/testing.js";
import { ACQUIRE, directService } from "../support/direct-service.js";

const TOO_SHORT = `${"x".repeat(14)}𝒳`;

describe("a scope of 15 characters, one of them outside of the basic plane", () => {
  it("is refused by the service", async () => {
    const { ask, newId } = directService();
    const { status, body } = await ask(ACQUIRE, { leaseId: newId(), body: { scope: TOO_SHORT } });
    expect([status, body.field]).toEqual([400, "scope"]);
    expect((await ask(ACQUIRE, { leaseId: newId(), body: { scope: `${TOO_SHORT}x` } })).status).toBe(201);
  });

  it("is refused by the client", () => {
    const locks = createLockClient();
    expect(() => locks.scope(TOO_SHORT)).toThrow(expect.objectContaining({ field: "scope" }));
    expect(() => locks.scope(`${TOO_SHORT}x`)).not.toThrow();
  });
});
