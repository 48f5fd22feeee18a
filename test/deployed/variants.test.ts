/** The effects of the construct's options in a deployed stack. */
import { describe, expect, it } from "vitest";
import { createLockClient } from "../../lib/index.js";
import { ask } from "../e2e/deployed/asking.js";
import { signerOf, targetOf } from "../e2e/deployed.js";
import { callsOf } from "../e2e/calls.js";
import { openFixture } from "../e2e/fixture.js";
import { declareDeployed } from "../e2e/only-deployed.js";
import { signed } from "../e2e/signed.js";
import { listed } from "../e2e/suite.js";
import { call, invoke, lambda } from "./aws.js";
import { deployedOf, outputsOf, tokenOf } from "./callers.js";
import { ACCOUNT, without } from "./emulator.js";
import { CLIENT_PREFIX, RESERVED, VARIANTS } from "./variants.js";

const deployedAs = (stack: string) => deployedOf(stack, VARIANTS[stack]!);

describe("a stack with every option for IAM", () => {
  it("gives locks", async () => {
    const deployed = await deployedAs("all");
    const locks = createLockClient({ url: deployed.url, sign: signerOf(deployed) });
    expect(await locks.withLock("ALL_1", async ({ fencingToken }) => fencingToken)).toBeGreaterThan(0);
    await locks.close();
  });

  it("gives them to a function of a VPC with a NAT gateway", async () => {
    const { insideName = "" } = outputsOf("all");
    expect(await invoke(insideName, { key: `${CLIENT_PREFIX}INSIDE` })).toEqual({ token: expect.any(Number) });
  });

  it("reserves the functions' concurrency", async () => {
    const reserved = await Promise.all(
      Object.keys(RESERVED).map(async (duty) => {
        const path = `/2019-09-30/functions/${outputsOf("all")[`${duty}Function`]}/concurrency`;
        return [duty, (await lambda<{ readonly ReservedConcurrentExecutions: number }>("GET", path)).ReservedConcurrentExecutions];
      }),
    );
    expect(Object.fromEntries(reserved)).toEqual(RESERVED);
  });
});

describe("a stage that throttles", () => {
  const throttling = async (): Promise<void> => {
    const deployed = { ...(await deployedAs("tenant-account")), burst: 60 };
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

  it("refuses what is over its rate by 429", throttling);

  it("control: the same test fails where the emulator's row of throttles is off", async () => {
    await without("throttle", () => expect(throttling()).rejects.toThrow(/expected/));
  });
});

describe("tenants", () => {
  it.each([
    ["account", "share a namespace among the roles of an account", [ACCOUNT]],
    ["claim", "have one for each value of a token's claim", () => ["OperatorId", "DeputyId"].map((id) => outputsOf("tenant-claim")[id])],
  ] as const)("by %s %s, named after it", async (kind, _what, names) => {
    const stack = `tenant-${kind}`;
    const deployed = await deployedAs(stack);
    const key = `TENANT_${Date.now()}`;
    const [first, other] = [undefined, deployed.second].map((caller) =>
      createLockClient({ url: deployed.url, sign: signerOf(deployed, caller) }),
    );
    const expected = typeof names === "function" ? names() : names;
    const lease = await first!.acquire(key);
    const second = await other!.tryAcquire(key);
    expect(second !== null).toBe(expected.length > 1);
    await Promise.all([lease.release(), second?.release()]);
    await Promise.all([first!.close(), other!.close()]);
    const { Items } = await call<{ readonly Items: readonly { readonly p: { readonly S: string } }[] }>("dynamodb", "Scan", {
      TableName: outputsOf(stack)["TableName"],
    });
    const namespaces = Items.filter((item) => JSON.stringify(item).includes(key)).map(({ p }) => p.S.replace(/\/.*$|^[^/]*:/g, ""));
    expect(new Set(namespaces)).toEqual(new Set(expected));
  });
});

describe("callers with tokens", () => {
  const statusOf = async (client: string, path: string): Promise<number> => {
    const deployed = await deployedAs("tokens");
    return (await ask(deployed.url, signed(signerOf(deployed, await tokenOf("tokens", client))), "GET", path)).status;
  };

  it("may list with the operators' scope alone, and open a key, as the console does", async () => {
    expect([await statusOf("Operator", "/v1/locks"), await statusOf("Operator", "/v1/locks/KEY_1")]).toEqual([200, 200]);
  });

  it("may use locks with the scope for it, and not list them", async () => {
    expect([await statusOf("User", "/v1/locks/KEY_1"), await statusOf("User", "/v1/locks")]).toEqual([200, 403]);
  });

  it("find the console, whose files need no token", async () => {
    const { Url } = outputsOf("tokens");
    const page = await fetch(`${Url}/console`);
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    // Without its row, the emulator sends null for the path parameters that this path lacks.
    expect(await without("absent_path_parameters", async () => (await fetch(`${Url}/console`)).status)).toBe(200);
    expect((await fetch(`${Url}/console/console.js`)).status).toBe(200);
  });
});
