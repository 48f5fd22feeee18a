/** Errors on the wire: every refusal reaches the client unchanged, and a gateway's own errors are understood. */
import * as v from "valibot";
import { describe, expect, it } from "vitest";
import { type ErrorCode, type RefusalDetails, ERRORS, refuse } from "../../lib/core/errors.js";
import { ANSWERS } from "../../lib/contract/answers.js";
import { fromProblem, toProblem } from "../../lib/contract/problem.js";

const CODES = Object.keys(ERRORS) as ErrorCode[];
/** A refusal with every optional field. */
const EVERYTHING: Required<RefusalDetails> = {
  detail: "One sentence.",
  retryAfterMs: 1_871,
  holders: [{ owner: "checkout-7", mode: "exclusive", permits: 1, fencingToken: 7, heldMs: 1_160, remainingMs: 840 }],
  holdersOmitted: 3,
  reason: "taken",
  blocking: ["a"],
  lost: ["b"],
  field: "leaseMs",
  serverTimeMs: 1_795_177_821_463,
  leaseIdAboveMs: 1_795_177_821_000,
  definite: false,
  retry: "never",
};

const overTheWire = (body: unknown): unknown => JSON.parse(JSON.stringify(body));

describe.each(CODES)("the refusal %s", (code) => {
  it.each<[what: string, details: RefusalDetails]>([
    ["bare", {}],
    ["with all that it may carry", EVERYTHING],
  ])("goes out as a problem document and comes back the same, %s", (_what, details) => {
    const refusal = refuse(code, details);
    const body = overTheWire(toProblem(refusal, "/v1/locks/ORDER_1"));
    expect(v.safeParse(ANSWERS.Problem, body).issues).toBeUndefined();
    expect(body).toMatchObject({
      type: `/problems/${code}`,
      status: ERRORS[code].status,
      title: ERRORS[code].title,
      instance: "/v1/locks/ORDER_1",
    });
    expect(fromProblem(ERRORS[code].status, body)).toEqual(refusal);
  });

  it("is told by its code alone, whatever status it came with", () => {
    const refusal = refuse(code);
    for (const status of [400, 404, 500, 502]) expect(fromProblem(status, overTheWire(toProblem(refusal, undefined)))).toEqual(refusal);
  });
});

describe("the registry", () => {
  it("has statuses of errors, and says of each what to do", () => {
    for (const [code, { status, definite, retry, title }] of Object.entries(ERRORS)) {
      expect([code, status >= 400 && status < 600, title.length > 0]).toEqual([code, true, true]);
      // A request that may have happened may only be repeated unchanged.
      if (!definite) expect([code, retry]).toEqual([code, "same"]);
    }
  });

  it("leaves out what a refusal doesn't carry", () => {
    expect(Object.keys(toProblem(refuse("locked"), undefined)).sort()).toEqual([
      "code",
      "definite",
      "detail",
      "retry",
      "status",
      "title",
      "type",
    ]);
  });
});

describe("an error without a problem document", () => {
  it.each([
    [401, "not-configured", "never"],
    [403, "forbidden", "never"],
    [404, "not-found", "never"],
    [413, "too-large", "never"],
    [429, "throttled", "later"],
  ])("of status %i is the gateway's, and definite", (status, code, retry) => {
    for (const body of [undefined, { message: "Forbidden" }, "text", null, [], { code: "nonsense" }, { code: "toString" }]) {
      expect(fromProblem(status, body)).toMatchObject({ ok: false, code, definite: true, retry });
    }
  });

  it.each<[status: number, message: string, code: string]>([
    [403, "The security token included in the request is expired", "not-configured"],
    [403, "The security token included in the request is invalid.", "not-configured"],
    [403, "Missing Authentication Token", "not-configured"],
    [403, "The request signature we calculated does not match the signature you provided.", "not-configured"],
    [401, "Unauthorized", "not-configured"],
    [403, "Forbidden", "forbidden"],
    [403, "User: arn:aws:iam::111122223333:user/zoe is not authorized to perform: execute-api:Invoke", "forbidden"],
  ])("of status %i passes on %j, as %s", (status, message, code) => {
    for (const body of [{ message }, { Message: message }]) {
      expect(fromProblem(status, body)).toMatchObject({
        code,
        definite: true,
        retry: "never",
        detail: `The gateway answered ${status} before the service was reached: ${message}`,
      });
    }
  });

  it("passes on no leaseId, one line only, and not much of it", () => {
    const leaseId = "01a2ce8b-d400-7145-b733-952723412670";
    const message = `not authorized on resource: arn:aws:execute-api:*/PUT/v1/locks/k/leases/${leaseId}\nPUT\n/v1/locks`;
    expect(fromProblem(403, { message })?.detail).toMatch(/: not authorized on resource: \S+\/leases\/…$/);
    expect(fromProblem(403, { message: "x".repeat(5000) })?.detail.length).toBeLessThan(300);
    for (const body of ["<html>", { message: 7 }, { message: "" }, null])
      expect(fromProblem(403, body)?.detail).toBe("The gateway answered 403 before the service was reached");
  });

  it.each([500, 502, 503, 504, 400, 410, 418, 423])("of status %i says nothing about what happened", (status) => {
    for (const body of [undefined, { message: "Internal Server Error" }, "text", null, { code: 7 }])
      expect(fromProblem(status, body)).toBeUndefined();
  });
});
