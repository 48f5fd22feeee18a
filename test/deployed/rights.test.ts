/** The rights of callers and of functions, as IAM decides on them: enough, and no more. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inject, describe, expect, it } from "vitest";
import { FUNCTION_DIRECTORY } from "../../infra/bundle.js";
import { zipOf } from "../../infra/zip.js";
import { createLockClient as createDirectClient } from "../../lib/dynamodb.js";
import { httpApi } from "../../lib/client/wire/http.js";
import type { ServiceApi } from "../../lib/core/api/runs.js";
import { callsOf } from "../e2e/calls.js";
import { declareConformance } from "../e2e/conformance.js";
import { signerOf, targetOf } from "../e2e/deployed.js";
import { openFixture } from "../e2e/fixture.js";
import { listed } from "../e2e/suite.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { assume, call, inXml, invoke, lambda, query, urlFunctionOf } from "./aws.js";
import { type Door, deployedBy, deployedOf, outputsOf } from "./callers.js";
import { REGION, without } from "./emulator.js";
import { VARIANTS } from "./variants.js";

/** The code of a refusal; undefined without one. */
async function refusalOf(work: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    const { code, name } = error as { readonly code?: string; readonly name: string };
    return code ?? name;
  }
}

describe("grantClient by prefix", () => {
  it("lets a function that is deployed beside the service take the locks of its prefix, and no other", async () => {
    const { checkoutName: checkout = "" } = outputsOf("iam");
    expect(await invoke(checkout, { key: "ORDER_1231" })).toEqual({ token: expect.any(Number) });
    expect(await invoke(checkout, { key: "PAYMENT_1" })).toEqual({ refused: "forbidden" });
  });
});

describe("grantDirect", () => {
  const direct = async () => {
    const { TableName = "" } = outputsOf("iam");
    const credentials = await assume("iam-direct");
    const locks = createDirectClient({ tableName: TableName, endpoint: inject("endpoint"), region: REGION, credentials });
    return { TableName, credentials, locks };
  };

  it("lets a client use the items of one namespace straight on the table", async () => {
    const { locks } = await direct();
    expect(await locks.withLock("DIRECT_1", async ({ fencingToken }) => fencingToken)).toBeGreaterThan(0);
    await locks.close();
  });

  it("refuses other partition keys, and whatever could delete or list", async () => {
    const { TableName, credentials } = await direct();
    const read = (p: string) =>
      refusalOf(() => call("dynamodb", "GetItem", { TableName, Key: { p: { S: p }, k: { S: "k" } } }, credentials));
    expect(await read("default/DIRECT_1")).toBeUndefined();
    expect(await read("other/DIRECT_1")).toMatch(/AccessDenied/);
    for (const [operation, more] of [
      ["Scan", {}],
      ["PutItem", { Item: { p: { S: "default/x" }, k: { S: "k" } } }],
      ["DeleteItem", { Key: { p: { S: "default/x" }, k: { S: "k" } } }],
    ] as const)
      expect(await refusalOf(() => call("dynamodb", operation, { TableName, ...more }, credentials)), operation).toMatch(/AccessDenied/);
  });

  it("control: without the emulator's row of leading keys, the policy lets nobody in", async () => {
    const { locks } = await direct();
    expect(await without("leading_keys", () => refusalOf(() => locks.acquire("DIRECT_2")))).toBe("not-configured");
    await locks.close();
  });
});

/** The requests that a function URL refuses everybody. */
const OPERATORS = ["list", "break"];

/** Calls each function for each thing that its role lets it do. Returns the names of the calls that were refused. */
async function refusedOf(api: ServiceApi): Promise<readonly string[]> {
  const ref = { key: `ROLE_${Date.now()}`, leaseId: leaseIdAt(Date.now()) };
  const acquired = await api.acquire(ref);
  const fencingToken = acquired.ok && "lease" in acquired ? acquired.lease.fencingToken : 0;
  const answers = {
    acquire: acquired,
    inspect: await api.inspect({ key: ref.key }),
    check: await api.check(ref),
    renew: await api.renew(ref),
    list: await api.list({}),
    break: await api.breakHold({ key: ref.key, reason: "a test", fencingToken }),
  };
  return Object.entries(answers).flatMap(([name, { ok }]) => (ok ? [] : [name]));
}

describe("the role of a function", () => {
  it("is enough, and no more: with one action taken away, a call of it fails, and with all of them none", async () => {
    const apiBy = async (door: Door) => {
      const deployed = await deployedBy(door, "changed", VARIANTS["changed"]!);
      return httpApi({ url: deployed.url, sign: signerOf(deployed), fetch });
    };
    const [api, url] = [await apiBy("api"), await apiBy("function-url")];
    expect([await refusedOf(api), await refusedOf(url)]).toEqual([[], OPERATORS]);
    const missed: Record<string, readonly string[]> = {};
    for (const duty of ["acquire", "hold", "admin", "url"]) {
      const name = duty === "url" ? await urlFunctionOf("changed") : outputsOf("changed")[`${duty}Function`];
      const { Role } = await lambda<{ readonly Role: string }>("GET", `/2015-03-31/functions/${name}/configuration`);
      const policy = { RoleName: Role.replace(/^.*\//, ""), PolicyName: "table" };
      const put = (document: unknown) => query("iam", "PutRolePolicy", { ...policy, PolicyDocument: JSON.stringify(document) });
      const xml = await query("iam", "GetRolePolicy", policy);
      const document = JSON.parse(decodeURIComponent(inXml(xml, "PolicyDocument"))) as { Statement: [{ Action: string | string[] }] };
      const actions = [document.Statement[0].Action].flat();
      for (const action of actions) {
        const others = actions.filter((other) => other !== action);
        await put({ ...document, Statement: [{ ...document.Statement[0], Action: others }] });
        missed[`${duty} ${action}`] = await refusedOf(duty === "url" ? url : api);
        await put(document);
      }
    }
    expect(missed).toEqual({
      "acquire dynamodb:GetItem": expect.arrayContaining(["inspect"]),
      "acquire dynamodb:UpdateItem": expect.arrayContaining(["acquire"]),
      "hold dynamodb:GetItem": expect.arrayContaining(["check"]),
      "hold dynamodb:UpdateItem": expect.arrayContaining(["renew"]),
      "admin dynamodb:GetItem": expect.arrayContaining(["break"]),
      "admin dynamodb:Query": ["list"],
      "admin dynamodb:UpdateItem": ["break"],
      "url dynamodb:GetItem": ["inspect", "check", ...OPERATORS],
      "url dynamodb:UpdateItem": ["acquire", "check", "renew", ...OPERATORS],
    });
  });
});

describe("control: a function that grants a lease to all who ask", () => {
  it("fails the race for one key", async () => {
    const deployed = await deployedOf("changed", VARIANTS["changed"]!);
    const files = Object.fromEntries(
      readdirSync(FUNCTION_DIRECTORY)
        .filter((name) => name.endsWith(".mjs"))
        .map((name) => [name === "index.mjs" ? "whole.mjs" : name, readFileSync(join(FUNCTION_DIRECTORY, name))]),
    );
    const broken = `import { handler as whole } from "./whole.mjs";
      export const handler = async (event) => {
        const answer = await whole(event);
        if (answer.statusCode !== 423) return answer;
        const [, , , key, , leaseId] = event.rawPath.split("/");
        return { statusCode: 201, headers: { "content-type": "application/json" }, body: JSON.stringify({ key, leaseId }) };
      };`;
    const ZipFile = zipOf({ ...files, "index.mjs": Buffer.from(broken) }).toString("base64");
    await lambda("PUT", `/2015-03-31/functions/${outputsOf("changed")["acquireFunction"]}/code`, { ZipFile });
    const fixture = await openFixture(targetOf(deployed));
    const tests = listed((suite) =>
      declareConformance(
        suite,
        callsOf(() => fixture),
      ),
    );
    const race = tests.find(({ name }) => name.startsWith("many at once > for one key grant it to exactly one"));
    await expect(race!.run()).rejects.toThrow(/expected/);
    await fixture.close();
  });
});
