/**
 * Guarantees for every response, whatever the request: the response is documented, an error is a problem document with
 * advice, and nothing in it reveals a leaseId or a scope that the request didn't name.
 */
import { expect } from "vitest";
import { LEASE_ID } from "../support/lease-ids.js";
import type { Reply } from "../support/reply.js";
import { type Document, checkDocumented, pathOf } from "./document.js";

/** A request as it was sent. */
export interface Asked {
  readonly method: string;
  /** With its query, percent-encoded as sent. */
  readonly path: string;
  readonly text?: string | undefined;
  /** All scopes ever sent: no response may contain them. */
  readonly scopes: Iterable<string>;
}

const KEY_OF_PATH = /^\/v1\/(locks|runs|limits)\/([^/?]+)/;
const KEY = /^[A-Za-z0-9._:~-]{1,200}$/;
const ADVICE = ["same", "later", "new-lease", "never"];

/** Checks a response against these guarantees. */
export function checkPromises(document: Document, asked: Asked, reply: Reply): void {
  const { method, path, text = "" } = asked;
  const said = `${JSON.stringify(reply.headers)} ${reply.text}`;
  const named = `${path} ${text}`.toLowerCase();
  for (const [leaseId] of said.matchAll(LEASE_ID)) expect(named, "a leaseId that the request didn't name").toContain(leaseId.toLowerCase());
  for (const scope of asked.scopes) expect(said, "a scope").not.toContain(scope);
  checkDocumented(document, method, path, reply);
  if (reply.status >= 400) return checkProblem(document, asked, reply);
  if (reply.status === 204 || reply.status === 304) expect(reply.text, `${method} ${reply.status} has no body`).toBe("");
  else expect(reply.headers["content-type"]).toBe("application/json");
}

function checkProblem(document: Document, { path }: Asked, { status, headers, body, text }: Reply): void {
  expect(headers["content-type"], text).toBe("application/problem+json");
  const { type, title, code, definite, retry, retryAfterMs, instance } = body;
  expect(body, text).toMatchObject({ status, code: expect.stringMatching(/^[a-z]+(-[a-z]+)*$/), detail: expect.stringMatching(/\S/) });
  expect(String(type), text).toMatch(new RegExp(`/problems/${code}$`));
  expect(String(title), text).toMatch(/^[A-Z]/);
  expect(typeof definite, text).toBe("boolean");
  expect(ADVICE, text).toContain(retry);
  if (status < 500) expect(definite, `${text}: a refusal of the service is definite`).toBe(true);
  expect(headers["retry-after"], text).toBe(retryAfterMs === undefined ? undefined : String(Math.ceil(retryAfterMs / 1000)));
  expect(instance, `${path} ${text}`).toBe(instanceOf(document, path));
}

/** The path of the key itself, spelled as in the request; undefined if the path has no key. */
function instanceOf(document: Document, path: string): string | undefined {
  const [, kind, encoded = ""] = KEY_OF_PATH.exec(path) ?? [];
  const key = decodeURIComponent(encoded);
  return kind === undefined || !KEY.test(key) || pathOf(document, path) === undefined ? undefined : `/v1/${kind}/${key}`;
}
