/** The conformance tests through a function URL for all keys, which refuses the operators' routes: each is a test of its refusal. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { aliasOf } from "../../lambda/function-url.js";
import { DUTIES, type OperationName, ROUTES } from "../../lib/contract/routes.js";
import { conformance } from "./conformance.js";
import { type WholeTarget, twoAccounts } from "./two-accounts.js";

const ALL_KEYS = aliasOf({});

conformance("a function URL for all keys", () => twoAccounts(ALL_KEYS));

describe("a function URL for all keys serves no operator", () => {
  let api: WholeTarget, url: WholeTarget;
  beforeAll(async () => void ([api, url] = await Promise.all([twoAccounts(), twoAccounts(ALL_KEYS)])));
  afterAll(() => Promise.all([api.close(), url.close()]));

  const operators = Object.entries(ROUTES).filter(([operation]) => DUTIES[operation as OperationName] === "admin");
  it.each(operators)("%s is 403; control: the API takes it", async (_operation, route) => {
    const [method, path] = route.replace("{key}", "ORDER_1").split(" ") as [string, string];
    const init = method === "GET" ? {} : { body: "{}", headers: { "content-type": "application/json" } };
    const refused = await fetch(url.url + path, { method, ...init });
    expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([403, "forbidden"]);
    expect((await fetch(api.url + path, { method, ...init })).status).not.toBe(403);
  });
});
