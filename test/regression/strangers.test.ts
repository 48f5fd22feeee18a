/**
 * Requests that were accepted, or failed, because of their caller. Regressions: a stranger's repeated transfer revealed
 * the new holder's lease; a token's claim that is not well-formed text was a 500; and path parameters were unescaped
 * twice, so that two paths named one key.
 */
import { describe, expect, it } from "vitest";
import { callerOf } from "../../lambda/caller.js";
import { ACQUIRE, directService, RELEASE } from "../support/direct-service.js";
import { ALICE, BOB, httpEvent } from "../support/http-event.js";

const TRANSFER = "POST /v1/locks/{key}/leases/{leaseId}/transfer";
const CAROL = { iam: { accountId: "111122223333", userId: "AROACAROL:session-1" } };
/** Half of a surrogate pair: text that UTF-8 can't encode. */
const LONE = "user-\uD800";

describe("a transfer that is repeated", () => {
  it("by a third principal, once the new lease is another's, is 403 and tells nothing of it", async () => {
    const { ask, newId } = directService();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    const to = { leaseId: newId() };
    expect((await ask(TRANSFER, { leaseId, body: to })).status).toBe(200);
    expect((await ask(ACQUIRE, { leaseId: to.leaseId, authorizer: BOB })).status).toBe(200);
    for (const authorizer of [CAROL, ALICE]) {
      const { status, body } = await ask(TRANSFER, { leaseId, body: to, authorizer });
      expect([status, body.code]).toEqual([403, "forbidden"]);
      expect(JSON.stringify(body)).not.toContain("fencingToken");
    }
  });

  it("by its sender before anybody took the lease is answered as the first time", async () => {
    const { ask, newId } = directService();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    const to = { leaseId: newId() };
    const first = await ask(TRANSFER, { leaseId, body: to });
    const again = await ask(TRANSFER, { leaseId, body: to });
    expect([again.status, again.body.fencingToken]).toEqual([200, first.body.fencingToken]);
  });
});

describe("a caller whose name is no well-formed text", () => {
  it.each<[what: string, authorizer: unknown]>([
    ["a token's subject", { jwt: { claims: { iss: "https://id.example.com/", sub: LONE } } }],
    ["a token's issuer", { jwt: { claims: { iss: LONE, sub: "user|7" } } }],
    ["a role", { iam: { accountId: "111122223333", userId: LONE } }],
  ])("(%s) is nobody: 403, and no failure of the service", async (_what, authorizer) => {
    const { ask, newId, failures } = directService();
    expect(callerOf(httpEvent(ACQUIRE, { authorizer, timeEpoch: 0 }))).toBeUndefined();
    const { status, body } = await ask(ACQUIRE, { leaseId: newId(), authorizer });
    expect([status, body.code]).toEqual([403, "forbidden"]);
    expect(failures).toEqual([]);
  });
});

describe("a path parameter", () => {
  it.each(["ORDER%5F1", "%4FRDER_1", "a%3Ab", "%252e", "%zz"])("is taken as the gateway gave it, so %s is no key", async (key) => {
    const { ask, newId } = directService();
    const { status, body } = await ask(ACQUIRE, { key, leaseId: newId() });
    expect([status, body.code, body.field]).toEqual([400, "invalid-request", "key"]);
    expect((await ask("GET /v1/locks", {})).body.items).toEqual([]);
  });

  it("that names a lease is no other lease's when it is escaped", async () => {
    const { ask, newId } = directService();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    const { status, body } = await ask(RELEASE, { leaseId: leaseId.replace("-", "%2D") });
    expect([status, body.field]).toEqual([400, "leaseId"]);
  });
});
