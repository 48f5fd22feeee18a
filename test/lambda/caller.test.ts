/** The caller of a request: the identity that the route's authorizer vouched for. Nothing in the request itself counts. */
import { describe, expect, it } from "vitest";
import { callerOf } from "../../lambda/caller.js";
import { ACQUIRE, directService, RELEASE } from "../support/direct-service.js";
import { ALICE, BOB, httpEvent } from "../support/http-event.js";

const caller = (authorizer: unknown) => callerOf(httpEvent(ACQUIRE, { authorizer, timeEpoch: 0 }));

describe("the principal", () => {
  it.each<[what: string, authorizer: unknown, principal: string]>([
    ["a role, without its session", ALICE, "111122223333/AROAALICE"],
    ["a user", { iam: { accountId: "111122223333", userId: "AIDACKCEVSQ6C2EXAMPLE" } }, "111122223333/AIDACKCEVSQ6C2EXAMPLE"],
    ["a federated user, whole", { iam: { accountId: "111122223333", userId: "111122223333:zoe" } }, "111122223333/111122223333%3Azoe"],
    [
      "a token's issuer and subject",
      { jwt: { claims: { iss: "https://id.example.com/", sub: "user|7" } } },
      "https%3A%2F%2Fid.example.com%2F/user%7C7",
    ],
    ["a role before a token", { ...ALICE, jwt: { claims: { iss: "i", sub: "s" } } }, "111122223333/AROAALICE"],
  ])("is %s, in the namespace that all callers share", (_what, authorizer, principal) => {
    expect(caller(authorizer)).toEqual({ principal, namespace: "default", requestId: "request-1" });
  });

  it.each<[what: string, authorizer: unknown]>([
    ["no authorizer", null],
    ["an authorizer that says nothing", {}],
    ["a Lambda authorizer", { lambda: { accountId: "111122223333", userId: "AROAALICE" } }],
    ["an account alone", { iam: { accountId: "111122223333" } }],
    ["an empty user", { iam: { accountId: "111122223333", userId: "" } }],
    ["a session of no role", { iam: { accountId: "111122223333", userId: ":session" } }],
    ["a token without a subject", { jwt: { claims: { iss: "https://id.example.com" } } }],
    ["a token with an empty issuer", { jwt: { claims: { iss: "", sub: "s" } } }],
    ["a subject that is no text", { jwt: { claims: { iss: "i", sub: 7 } } }],
    // Text that UTF-8 can't encode was a failure of the service.
    ["half a surrogate pair as subject", { jwt: { claims: { iss: "i", sub: "user-\ud800" } } }],
    ["half a surrogate pair as issuer", { jwt: { claims: { iss: "\ud800", sub: "s" } } }],
    ["half a surrogate pair as role", { iam: { accountId: "111122223333", userId: "\ud800" } }],
  ])("is nobody with %s", (_what, authorizer) => {
    expect(caller(authorizer)).toBeUndefined();
  });

  it("is another for every other pair of account and user, however they are written", () => {
    const pairs = [
      ["a", "b/c"],
      ["a/b", "c"],
      ["a%2Fb", "c"],
      ["a", "b%2Fc"],
    ];
    const principals = pairs.map(([iss, sub]) => caller({ jwt: { claims: { iss, sub } } })?.principal);
    expect(new Set(principals).size).toBe(pairs.length);
  });
});

describe("a request", () => {
  it("is by whom the authorizer says, whatever the header x-holdfast-principal says", async () => {
    const { ask, newId, lines } = directService();
    const [leaseId, header] = [newId(), { "x-holdfast-principal": "111122223333/AROAALICE" }];
    expect((await ask(ACQUIRE, { leaseId, authorizer: null, headers: header })).status).toBe(403);
    expect(lines).toEqual([]);
    expect((await ask(ACQUIRE, { leaseId, headers: { "x-holdfast-principal": "mallory" } })).status).toBe(201);
    expect(lines.at(-1)?.principal).toBe("111122223333/AROAALICE");
    for (const name of ["x-holdfast-principal", "X-Holdfast-Principal"]) {
      for (const principal of ["AROAALICE", "111122223333/AROAALICE", "AROAALICE:session-1"]) {
        expect((await ask(RELEASE, { leaseId, authorizer: BOB, headers: { [name]: principal } })).status).toBe(403);
      }
    }
  });
});
