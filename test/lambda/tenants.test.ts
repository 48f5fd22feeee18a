/** The namespace of a caller: per account, role or claim, as the deployment configures it. Two tenants never share a namespace. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Tenancy } from "../../lambda/tenancy.js";
import { callerOf, whyNoCaller } from "../../lambda/caller.js";
import { NAMESPACE } from "../../lib/service/caller.js";
import { shardKey } from "../../lib/store/dynamo/item.js";
import { ACQUIRE } from "../support/direct-service.js";
import { ALICE, httpEvent } from "../support/http-event.js";

const callerIn = (tenancy: Tenancy | undefined, authorizer: unknown) => callerOf(httpEvent(ACQUIRE, { authorizer, timeEpoch: 0 }), tenancy);
const tokenOf = (claims: object): unknown => ({ jwt: { claims: { iss: "https://id.example.com", sub: "user|7", ...claims } } });

describe("a namespace", () => {
  it.each<[tenancy: Tenancy | undefined, authorizer: unknown, namespace: string | undefined]>([
    [undefined, ALICE, "default"],
    [undefined, tokenOf({}), "default"],
    ["account", ALICE, "111122223333"],
    ["role", ALICE, "111122223333:AROAALICE"],
    ["account", tokenOf({}), "https%3A%2F%2Fid.example.com"],
    ["role", tokenOf({}), "https%3A%2F%2Fid.example.com:user%7C7"],
    [{ claim: "tenant" }, tokenOf({ tenant: "acme/eu" }), "https%3A%2F%2Fid.example.com:acme%2Feu"],
    [{ claim: "tenant" }, tokenOf({}), undefined],
    [{ claim: "tenant" }, tokenOf({ tenant: "" }), undefined],
    [{ claim: "tenant" }, tokenOf({ tenant: ["acme"] }), undefined],
    [{ claim: "tenant" }, tokenOf({ tenant: "\ud800" }), undefined],
    [{ claim: "tenant" }, tokenOf({ tenant: "x".repeat(801) }), undefined],
    [{ claim: "toString" }, tokenOf({}), undefined],
    [{ claim: "tenant" }, ALICE, undefined],
  ])("by %j of %j is %s", (tenancy, authorizer, namespace) => {
    expect(callerIn(tenancy, authorizer)?.namespace).toBe(namespace);
  });

  it("is another for every other tenant, whatever characters their names have, and so is each partition key", () => {
    const name = fc.string({
      unit: fc.constantFrom("a", "b", ":", "/", "%", "2", "F", "3", "A", ".", "*", "ä"),
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(fc.tuple(name, name), fc.tuple(name, name), ([iss, tenant], [otherIss, otherTenant]) => {
        const [one, other] = [
          callerIn({ claim: "t" }, { jwt: { claims: { iss, sub: "s", t: tenant } } }),
          callerIn({ claim: "t" }, { jwt: { claims: { iss: otherIss, sub: "s", t: otherTenant } } }),
        ];
        const isSame = iss === otherIss && tenant === otherTenant;
        expect(one!.namespace === other!.namespace).toBe(isSame);
        expect(shardKey(one!.namespace, "locks", 0) === shardKey(other!.namespace, "locks", 0)).toBe(isSame);
        expect(one!.namespace.split("/")).toHaveLength(1);
        expect(callerIn("account", { jwt: { claims: { iss, sub: tenant } } })!.namespace).not.toBe(one!.namespace);
      }),
    );
  });

  it("fits into a partition key of 2,048 bytes at its longest, and an account's is one that a client on the table may name", () => {
    const longest = callerIn({ claim: "t" }, { jwt: { claims: { iss: "i".repeat(800), sub: "s", t: "t".repeat(800) } } });
    expect(Buffer.byteLength(shardKey(longest!.namespace, "payloads", 15))).toBeLessThanOrEqual(2_048);
    expect(callerIn("account", ALICE)!.namespace).toMatch(NAMESPACE);
  });

  it.each<[who: string, authorizer: unknown, why: string]>([
    ["a token without it", tokenOf({}), 'the claim "team" of a token, and the caller has none that names a tenant'],
    ["a token where it is no name", tokenOf({ team: ["acme"] }), 'the claim "team" of a token'],
    ["a caller of IAM", ALICE, 'the claim "team" of a token'],
    ["nobody", null, "No authorizer vouches for the caller"],
  ])("is none for %s, and the refusal names the claim where it is the reason", (_who, authorizer, why) => {
    const tenancy = { claim: "team" };
    expect(callerIn(tenancy, authorizer)).toBeUndefined();
    expect(whyNoCaller(httpEvent(ACQUIRE, { authorizer, timeEpoch: 0 }), tenancy)).toContain(why);
  });
});
