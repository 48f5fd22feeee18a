/** Operators of a service with tenants: they see that a key may be another tenant's, and name the tenant. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createLockClient, type LockClient } from "../../lib/index.js";
import { run } from "./in-process.js";
import { type Service, serve } from "./service.js";

let service: Service;
let shop: LockClient;
/** The namespace of the tenant `shop%~`, and of who runs the command line. */
let theirs: string;
let own: string;

beforeAll(async () => {
  service = await serve({ HOLDFAST_TENANT: "role" });
  shop = createLockClient({ url: service.url, headers: { "x-holdfast-principal": "shop~a%b" } });
  const namespaceOf = async (locks: LockClient): Promise<string> => (await locks.list()).namespace;
  [theirs, own] = [await namespaceOf(shop), await namespaceOf(service.locks)];
});
afterAll(async () => {
  await shop.close();
  await service.close();
});

const holdfast = (...args: readonly string[]) => run(args, service.env);
const OTHERS =
  "Other tenants have keys of the same name: an operator names theirs by --namespace, which the log's lines have (docs/operating.md).\n";

describe("a key that another tenant holds", () => {
  it("is free for an operator who names no tenant, and each command says in which namespace", async () => {
    await using _lease = await shop.acquire("ORDER_blind");
    expect(theirs).toContain("%");
    expect(await holdfast("break", "ORDER_blind", "--reason", "stuck")).toEqual({
      status: 66,
      stdout: "",
      stderr: `holdfast: nobody holds ORDER_blind in namespace ${own}\n${OTHERS}`,
    });
    expect((await holdfast("show", "ORDER_blind")).stderr).toBe(`holdfast: namespace ${own}. ${OTHERS}`);
    expect((await holdfast("show", "--run", "ORDER_blind")).stderr).toMatch(new RegExp(`\\n${OTHERS.replaceAll(/[()]/g, "\\$&")}$`));
  });

  it("is seen and broken by an operator who names the tenant, whatever characters are in its name", async () => {
    const lease = await shop.acquire("ORDER_stuck", { owner: "shop-1" });
    expect((await holdfast("ls", "--namespace", theirs)).stdout).toContain("shop-1");
    expect((await holdfast("show", "ORDER_stuck", "--namespace", theirs)).stdout).toContain("shop-1");
    const broken = await holdfast("break", "ORDER_stuck", "--namespace", theirs, "--reason", "stuck", "--drain", "0s");
    expect(broken).toMatchObject({ status: 0, stdout: expect.stringContaining("the hold of shop-1") });
    await expect(lease.renew()).rejects.toMatchObject({ reason: "broken" });
    expect(service.lines).toContainEqual(
      expect.objectContaining({ event: "ended", by: "local/local", namespace: theirs, reason: "broken: stuck" }),
    );
  });

  it("is not held by an operator in the tenant's name", async () => {
    expect(await holdfast("lock", "ORDER_mine", "--namespace", theirs, "--", "true")).toMatchObject({
      status: 64,
      stderr: expect.stringContaining("--namespace: a service knows its caller's own"),
    });
  });
});

it("a service without tenants has no operators of them, and says what to do instead", async () => {
  const shared = await serve();
  const { status, stderr } = await run(["ls", "--namespace", "acme"], shared.env);
  await shared.close();
  expect({ status, next: stderr.split("\n")[1] }).toEqual({
    status: 78,
    next: expect.stringMatching(/^Has this service tenants, and operators of them .*: --table NAME --namespace NAME\.$/),
  });
});
