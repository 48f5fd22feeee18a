/** Problem responses: they have the members of the service's problems, and the statuses of its registry. */
import { describe, expect, it } from "vitest";
import { type ErrorCode, ERRORS, refuse } from "../../lib/core/errors.js";
import { type ProblemCode, problemAnswer, PROBLEMS, refusalBefore } from "../../lib/adapters/problem.js";
import { errorOf } from "../../lib/client/wire/errors.js";
import { fromProblem, PROBLEM_TYPE } from "../../lib/contract/problem.js";
import { isHttp, withHeaders } from "../../lib/adapters/lambda-http.js";
import { requestOfLattice, requestV1, requestV2, SCHEDULED } from "./events.js";

const CODES = Object.keys(PROBLEMS) as ProblemCode[];
/** Between client and service, a lost lease is 410. For the application's user, nothing is gone for good. */
const OTHERWISE: readonly string[] = ["lease-lost"];

describe("a problem", () => {
  it.each(CODES.filter((code) => code in ERRORS && !OTHERWISE.includes(code)))("%s has the status that the service gives it", (code) => {
    expect(PROBLEMS[code].status).toBe(ERRORS[code as ErrorCode].status);
  });

  it.each(CODES)("%s reads as one of the service's own", (code) => {
    const { statusCode, headers, body } = problemAnswer(code, { retryAfterMs: 1871, detail: "why" });
    const problem = JSON.parse(body) as Record<string, unknown>;
    expect(fromProblem(statusCode, problem)).toMatchObject({ ok: false, code, detail: "why" });
    expect([headers["content-type"], problem["status"], problem["type"]]).toEqual([PROBLEM_TYPE, statusCode, `/problems/${code}`]);
    const later = problem["retry"] === "later";
    expect([headers["retry-after"], problem["retryAfterMs"]]).toEqual(later ? ["2", 1871] : [undefined, undefined]);
  });

  it("that nobody knows the end of says a second, and never none", () => {
    expect(problemAnswer("locked").headers["retry-after"]).toBe("1");
    expect(problemAnswer("locked", { retryAfterMs: 0 }).headers["retry-after"]).toBe("1");
  });
});

describe("a handler that did not run", () => {
  it.each(["unavailable", "throttled", "clock-skew", "internal", "newer-format"] as const)(
    "for %s is answered 503: it may be tried again",
    (code) => {
      expect(refusalBefore(errorOf(refuse(code), "acquire"), "locked")).toMatchObject({ statusCode: 503, headers: { "retry-after": "1" } });
    },
  );

  it.each(["not-configured", "older-format", "unreadable-record", "clock-unknown", "forbidden"] as const)(
    "for %s fails in the application: no retry mends it",
    (code) => {
      expect(refusalBefore(errorOf(refuse(code), "acquire"), "locked")).toBeUndefined();
    },
  );
});

describe("an event", () => {
  it.each<[what: string, event: unknown, is: boolean]>([
    ["of an HTTP API", requestV2(), true],
    ["of a REST API or a load balancer", requestV1(), true],
    ["of a schedule", SCHEDULED, false],
    ["of a queue", { Records: [] }, false],
    ["that opens a WebSocket, whose caller is told whether it is open", { requestContext: { routeKey: "$connect" }, headers: {} }, true],
    ["of a WebSocket", { requestContext: { routeKey: "$default", connectionId: "c" }, body: "{}" }, false],
    ["of VPC Lattice", requestOfLattice(), true],
    ["that says no more than headers and body", { headers: {}, body: "{}" }, true],
    ["with headers of which each was sent several times", { multiValueHeaders: {} }, true],
    ["whose headers are a record's", { headers: [{ traceId: [1, 2] }], value: "" }, false],
    ["of AppSync, which is answered by its resolver", { request: { headers: {} }, arguments: {} }, false],
    ["that is null", null, false],
    ["that is text", "POST", false],
  ])("%s", (_what, event, is) => {
    expect(isHttp(event)).toBe(is);
  });
});

it("a header takes the place of one that is written otherwise", () => {
  expect(withHeaders({ headers: { "Content-Type": "text/html", vary: "origin" } }, { "content-type": "a/b" })).toEqual({
    "content-type": "a/b",
    vary: "origin",
  });
  expect(withHeaders(undefined, { "content-type": "a/b" })).toEqual({ "content-type": "a/b" });
});
