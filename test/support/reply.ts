/**
 * A reply, and the guarantees for every reply, whatever the request: the OpenAPI document lists it, it fits its schema,
 * it is small, and it names no lease that the request didn't name.
 */
import * as v from "valibot";
import { expect } from "vitest";
import type { HttpResult } from "../../lambda/http.js";
import { ERRORS } from "../../lib/core/errors.js";
import { LIMITS } from "../../lib/core/limits.js";
import { operationAt } from "../../lambda/routes.js";
import { type ProblemBody, ANSWERS } from "../../lib/contract/answers.js";
import type { OperationDoc } from "../../lib/contract/operation.js";
import { OPERATIONS } from "../../lib/contract/operations.js";
import { ALWAYS, openapi } from "../../lib/contract/openapi.js";
import { LEASE_ID } from "./lease-ids.js";

/** The response. */
export interface Reply {
  readonly status: number;
  /** The headers by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The JSON in `text`; undefined without a body. */
  readonly body: ReturnType<JSON["parse"]>;
}

/** The largest reply. A refusal may repeat the names of the request's own fields. */
const MAX_REPLY_CHARS = 128 * 1024;
/** The largest OpenAPI document. */
const MAX_DOCUMENT_CHARS = 160 * 1024;
/** The largest reply with a run's result and checkpoint, with escaped characters. */
const MAX_RUN_CHARS = 2 * (LIMITS.resultBytes + LIMITS.checkpointBytes);
/** The largest reply with holders and waiters, of one key or of a page of keys. */
const MAX_LOOK_CHARS = LIMITS.pageBytes + 1024;
const MAX_CHARS: Readonly<Record<string, number>> = {
  Run: MAX_RUN_CHARS,
  StartedOrReplayed: MAX_RUN_CHARS,
  Inspection: MAX_LOOK_CHARS,
  List: MAX_LOOK_CHARS,
};
const SCHEMAS: Readonly<Record<string, v.GenericSchema>> = ANSWERS;
const DOCUMENT = openapi() as { readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>> };

/** Converts the handler's result to a reply. */
export function replyOf({ statusCode, headers = {}, body = "" }: HttpResult): Reply {
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)]);
  return replyFrom(statusCode, Object.fromEntries(named) as Record<string, string>, body);
}

/** Creates a reply from these parts. @throws SyntaxError if the body isn't JSON. */
export function replyFrom(status: number, headers: Readonly<Record<string, string>>, text: string): Reply {
  return { status, headers, text, body: text === "" ? undefined : JSON.parse(text) };
}

/** Checks `reply` against the guarantees for all replies of `routeKey`. `asked` is the whole request as text. */
export function checkReply(routeKey: string, reply: Reply, asked: string): void {
  const { status, headers, text, body } = reply;
  const said = `${JSON.stringify(headers)} ${text}`;
  const name = operationAt(routeKey);
  const doc: OperationDoc | undefined = name && name !== "openapi" ? OPERATIONS[name] : undefined;
  const schema = doc?.answers[status] ?? "";
  expect(said.length).toBeLessThan(name === "openapi" ? MAX_DOCUMENT_CHARS : (MAX_CHARS[schema] ?? MAX_REPLY_CHARS));
  for (const [leaseId] of said.matchAll(LEASE_ID))
    expect(asked.toLowerCase(), "a lease that the request didn't name").toContain(leaseId.toLowerCase());

  if (status !== 405 && routeKey !== "$default") {
    const [method = "", path = ""] = routeKey.split(" ", 2);
    expect(Object.keys(DOCUMENT.paths[path]?.[method.toLowerCase()]?.responses ?? {}), `${routeKey} answers ${status}`).toContain(
      String(status),
    );
  }
  if (status >= 400) {
    const { code } = body as ProblemBody;
    const documented: readonly string[] = [...(doc?.refusals ?? []), ...ALWAYS];
    if (status !== 405 && routeKey !== "$default") expect(documented, `${routeKey} refuses with ${code}`).toContain(code);
    return checkProblem(reply);
  }
  if (status === 204 || status === 304) expect(text).toBe("");
  else expect(headers["content-type"]).toBe("application/json");
  const fits = SCHEMAS[schema] && v.safeParse(SCHEMAS[schema], body);
  expect(fits?.issues, `${routeKey} ${status} ${text}`).toBeUndefined();
}

function checkProblem({ status, headers, text, body }: Reply): void {
  expect(headers["content-type"]).toBe("application/problem+json");
  expect(v.safeParse(ANSWERS.Problem, body).issues, text).toBeUndefined();
  const { code, instance = "", retryAfterMs } = body as ProblemBody;
  expect(body).toMatchObject({ status, type: `/problems/${code}`, title: ERRORS[code].title });
  expect(ERRORS[code].status).toBe(status);
  expect(instance).toMatch(/^(?:\/v1\/(?:locks|runs|limits)\/[A-Za-z0-9._:~-]+)?$/);
  expect(headers["retry-after"]).toBe(retryAfterMs === undefined ? undefined : String(Math.ceil(retryAfterMs / 1000)));
}
