/** The second door: IAM decides who may call a function URL, and the alias's name says for which keys. Nothing else leads to its function. */
import { describe, expect, it } from "vitest";
import { aliasOf } from "../../lambda/function-url.js";
import { createLockClient } from "../../lib/index.js";
import { leaseIdAt } from "../support/lease-ids.js";
import type { Caller } from "../e2e/deployed.js";
import { signerOf, targetOf } from "../e2e/deployed.js";
import { ask } from "../e2e/deployed/asking.js";
import { callsOf } from "../e2e/calls.js";
import { openFixture } from "../e2e/fixture.js";
import { declareDeployed } from "../e2e/only-deployed.js";
import { signed } from "../e2e/signed.js";
import { listed } from "../e2e/suite.js";
import { assume, invoke, lambda, query, urlFunctionOf } from "./aws.js";
import { deployedBy, outputsOf, urlOf } from "./callers.js";
import { ACCOUNT, REGION, without } from "./emulator.js";
import { PREFIXES, roleOfPrefix, VARIANTS } from "./variants.js";

const STACK = "iam";
const FLOODED = "tenant-role";
const by = (stack: string) => deployedBy("function-url", stack, VARIANTS[stack]!);

/** The end of a request by a function URL: its status, and who refused it. */
async function take(url: string, caller: Caller, key: string): Promise<string> {
  const send = signed(signerOf(await by(STACK), caller));
  const { status, body } = await ask(url, send, "PUT", `/v1/locks/${key}/leases/${leaseIdAt(Date.now())}`, {});
  return `${status}${status < 400 ? "" : body.code === undefined ? " by IAM" : ` by the service: ${body.code}`}`;
}

let made = 0;
const keyOf = (prefix: string): string => `${prefix}9~${Date.now()}-${++made}`;

describe("a client of a prefix", () => {
  it.each(PREFIXES)("%s takes its keys by its own URL, no others there, and nothing by another URL", async (prefix) => {
    const client = await assume(`${STACK}-${roleOfPrefix(prefix)}`);
    for (const one of PREFIXES) {
      const key = keyOf(one);
      const own = key.startsWith(prefix) ? "201" : "403 by the service: forbidden";
      expect(await take(urlOf(STACK, prefix), client, key), `its own URL, ${key}`).toBe(own);
      if (one !== prefix) expect(await take(urlOf(STACK, one), client, key), `the URL of ${one}`).toBe("403 by IAM");
    }
    expect(await take(urlOf(STACK), client, keyOf(prefix)), "the URL of all keys").toBe("403 by IAM");
  });

  it("may be a function beside the service, which finds its URL in its environment", async () => {
    const { byUrlName = "" } = outputsOf(STACK);
    expect(await invoke(byUrlName, { key: keyOf("ORDER_") })).toEqual({ token: expect.any(Number) });
    expect(await invoke(byUrlName, { key: keyOf("PAYMENT_") })).toEqual({ refused: "forbidden" });
  });
});

/** An event that says it came by a function URL, from an operator. */
function forged(): object {
  const rawPath = `/v1/locks/${keyOf("ORDER_")}/leases/${leaseIdAt(Date.now())}`;
  const authorizer = { iam: { accountId: ACCOUNT, userId: "AROAOPERATOR:one" } };
  const requestContext = { authorizer, requestId: "forged", timeEpoch: Date.now(), http: { method: "PUT", path: rawPath } };
  const headers = { "content-type": "application/json" };
  return { version: "2.0", routeKey: "$default", rawPath, rawQueryString: "", headers, body: "{}", isBase64Encoded: false, requestContext };
}

const QUALIFIERS = ["", "$LATEST", "1", ...[undefined, "ORDER_", "REFUND_"].map((prefix) => aliasOf({ prefix }))];
const qualified = async (qualifier: string): Promise<string> => [await urlFunctionOf(STACK), qualifier].filter(Boolean).join(":");

/** Gives the role `forger` a policy of one statement on an alias, and no other. */
async function letForger(Action: string, prefix: string, Condition?: object): Promise<void> {
  const Resource = `arn:aws:lambda:${REGION}:${ACCOUNT}:function:${await qualified(aliasOf({ prefix }))}`;
  const PolicyDocument = JSON.stringify({
    Version: "2012-10-17",
    Statement: [{ Effect: "Allow", Action, Resource, ...(Condition && { Condition }) }],
  });
  await query("iam", "PutRolePolicy", { RoleName: `${STACK}-forger`, PolicyName: "forger", PolicyDocument });
}

describe("a direct invocation with a forged event", () => {
  it.each(["client", "first"].flatMap((role) => QUALIFIERS.map((qualifier) => [role, qualifier] as const)))(
    "by the role %s is denied: %s",
    async (role, qualifier) => {
      const credentials = await assume(`${STACK}-${role}`);
      await expect(invoke(await qualified(qualifier), forged(), credentials)).rejects.toMatchObject({
        name: expect.stringMatching(/^AccessDenied/),
        status: 403,
      });
    },
  );

  it("control: by whom IAM lets invoke without the condition, it is served as whoever the event names", async () => {
    await letForger("lambda:InvokeFunction", "ORDER_");
    const forger = await assume(`${STACK}-forger`);
    expect(await invoke(await qualified(aliasOf({ prefix: "ORDER_" })), forged(), forger)).toMatchObject({ statusCode: 201 });
  });

  it("without an alias serves nothing, even if IAM lets it in", async () => {
    expect(await invoke(await qualified(""), forged())).toMatchObject({ statusCode: 500 });
  });
});

describe("a function URL", () => {
  const isByUrl = { StringEquals: { "lambda:FunctionUrlAuthType": "AWS_IAM" } };

  it("asks for both actions: a policy of before October 2025 opens nothing; control: where the second isn't asked for, it does", async () => {
    await letForger("lambda:InvokeFunctionUrl", "REFUND_", isByUrl);
    const forger = await assume(`${STACK}-forger`);
    expect(await take(urlOf(STACK, "REFUND_"), forger, keyOf("REFUND_"))).toBe("403 by IAM");
    await without("rights_of_a_function_url", async () =>
      expect(await take(urlOf(STACK, "REFUND_"), forger, keyOf("REFUND_"))).toBe("201"),
    );
  });
});

describe("a flood on a function URL", () => {
  const flood = async (): Promise<void> => {
    const deployed = { ...(await by(FLOODED)), burst: 60 };
    const fixture = await openFixture(targetOf(deployed));
    const tests = listed((suite) =>
      declareDeployed(
        suite,
        callsOf(() => fixture),
        () => deployed,
      ),
    );
    await tests.find(({ name }) => name.startsWith("throttling > "))!.run();
  };

  it("is throttled by reserved concurrency, and the API's holders keep their leases", async () => {
    const api = await deployedBy("api", FLOODED, VARIANTS[FLOODED]!);
    const locks = createLockClient({ url: api.url, sign: signerOf(api), leaseMs: 5000 });
    const lease = await locks.acquire(keyOf("FLOOD_"));
    await flood();
    await lease.renew();
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    await locks.close();
  });

  it("control: without reserved concurrency nothing is throttled, and with 0 nothing is served", async () => {
    const path = `/2017-10-31/functions/${await urlFunctionOf(FLOODED)}/concurrency`;
    const { url, first } = await by(FLOODED);
    const status = async () => (await ask(url, signed(signerOf(await by(FLOODED), first)), "GET", "/v1/health")).status;
    await lambda("DELETE", path);
    await expect(flood()).rejects.toThrow(/expected/);
    await lambda("PUT", path, { ReservedConcurrentExecutions: 0 });
    expect(await status()).toBe(429);
    await lambda("PUT", path, { ReservedConcurrentExecutions: 1 });
    expect(await status()).toBe(200);
  });
});
