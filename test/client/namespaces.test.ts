/** One table and one namespace, however callers reach it; and an invalid namespace is rejected by name. */
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { ScanCommand } from "@aws-sdk/client-dynamodb";
import { engineClient } from "../../infra/local/engine-client.js";
import { type Gateway, startGateway } from "../../infra/local/gateway.js";
import { compose } from "../../lambda/compose.js";
import { toHandle } from "../../lib/client/hold/detached-lease.js";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import { FORMAT_VERSION } from "../../lib/store/dynamo/format.js";
import { ALICE } from "../support/http-event.js";
import { type FreshTable, freshTable } from "../support/engine.js";

let table: FreshTable;
const gateways: Gateway[] = [];
beforeEach(async () => {
  table = await freshTable();
});
afterAll(() => Promise.all(gateways.map((gateway) => gateway.close())));

/** A client of its own function on the table; `authorizer` is the gateway's identity data. */
async function overHttp(authorizer: unknown, env: Readonly<Record<string, string>> = {}): Promise<LockClient> {
  const handler = compose({ ...table.env, ...env }, { log: () => undefined });
  const gateway = await startGateway({
    handler: (event) => handler(authorizer === undefined ? event : { ...event, requestContext: { ...event.requestContext, authorizer } }),
    port: 0,
  });
  gateways.push(gateway);
  return createLockClient({ url: gateway.url });
}

/** A client directly on the table, in its own process. */
function onTable(namespace?: string): LockClient {
  return createTableClient({
    ...table.place,
    ...(namespace !== undefined && { namespace }),
  });
}

const ELSEWHERE = { iam: { accountId: "444455556666", userId: "AROAZOE:session-1" } };
const TOKEN = { jwt: { claims: { iss: "https://id.example.com", sub: "user|7", team: "red" } } };

const WAYS: readonly (readonly [name: string, come: () => Promise<LockClient> | LockClient])[] = [
  ["a role over HTTP", () => overHttp(ALICE)],
  ["a role of another account over HTTP", () => overHttp(ELSEWHERE)],
  ["a token over HTTP", () => overHttp(TOKEN)],
  ["the local gateway", () => overHttp(undefined)],
  ["holdfast/dynamodb", () => onTable()],
  ["holdfast/dynamodb with the namespace default", () => onTable("default")],
];
const [[here, HERE]] = WAYS as readonly [(typeof WAYS)[number]];
const PAIRS = WAYS.flatMap(([there, come]) => [[here, there, HERE, come] as const, [there, here, come, HERE] as const]);

describe("two clients of one table exclude each other:", () => {
  it.each(PAIRS)("%s and %s", async (_one, _other, first, second) => {
    const [holder, other] = [await first(), await second()];
    const lease = await holder.acquire("ORDER_1", { owner: "first" });
    expect(await other.tryAcquire("ORDER_1")).toBeNull();
    expect((await other.inspect("ORDER_1")).holders).toMatchObject([{ owner: "first" }]);
    expect(await other.list()).toMatchObject({ namespace: "default", items: [{ key: "ORDER_1" }] });
    await lease.release();
    await using _mine = await other.acquire("ORDER_1", { waitMs: 0 });
  });

  it("control: those of two tenants don't", async () => {
    const [one, other] = [await overHttp(ALICE, { HOLDFAST_TENANT: "account" }), await overHttp(ELSEWHERE, { HOLDFAST_TENANT: "account" })];
    await using _held = await one.acquire("ORDER_1");
    await using also = await other.acquire("ORDER_1", { waitMs: 0 });
    expect(also.isHeld()).toBe(true);
    expect(await other.list()).toMatchObject({ namespace: "444455556666", items: [{ key: "ORDER_1" }] });
  });

  it("and yet a lease is its principal's: nobody else renews or releases it (S15)", async () => {
    const [alice, zoe, direct] = [await overHttp(ALICE), await overHttp(ELSEWHERE), onTable()];
    const lease = await alice.acquire("ORDER_1");
    const handle = { key: "ORDER_1", leaseId: lease.leaseId };
    for (const thief of [zoe, direct]) {
      const taken = await stealing(thief, handle);
      expect(taken).toMatchObject({ code: "forbidden" });
    }
    expect(lease.isHeld()).toBe(true);
    await lease.renew();
    expect(await lease.release()).toBe("released");
  });
});

/** Returns the response to a client that uses another client's leaseId. */
async function stealing(client: LockClient, { key, leaseId }: { key: string; leaseId: string }): Promise<unknown> {
  return client.attach(toHandle({ key, leaseId, leaseMs: 30_000 })).catch((error: unknown) => error);
}

describe("a namespace that can't be right is refused by name, before anything is granted:", () => {
  const ASKS: readonly (readonly [what: string, ask: (locks: LockClient) => Promise<unknown>])[] = [
    ["an acquire", (locks) => locks.acquire("ORDER_1")],
    ["a set", (locks) => locks.acquireAll(["ORDER_1", "ORDER_2"])],
    ["a run", (locks) => locks.runOnce("RUN_1", () => "ran")],
    ["a look", (locks) => locks.inspect("ORDER_1")],
    ["a list", (locks) => locks.list()],
  ];
  const shared = 'namespace: "acme" can\'t be right: all callers of this table share the namespace "default"';
  const tenants = 'namespace: "default" can\'t be right: this table has tenants, each with a namespace of its own';

  it.each(ASKS)("a client that names one on a table without tenants, for %s", async (_what, ask) => {
    await (await overHttp(ALICE)).acquire("ORDER_0");
    await expect(ask(onTable("acme"))).rejects.toMatchObject({ code: "not-configured", message: expect.stringContaining(shared) });
  });

  it.each(ASKS)("a client that names none on a table with tenants, for %s", async (_what, ask) => {
    await (await overHttp(ALICE, { HOLDFAST_TENANT: "role" })).acquire("ORDER_0");
    await expect(ask(onTable())).rejects.toMatchObject({ code: "not-configured", message: expect.stringContaining(tenants) });
  });

  it("a service whose configuration asks for tenants on a table that has none, and the other way round", async () => {
    await onTable().acquire("ORDER_0");
    await expect((await overHttp(ALICE, { HOLDFAST_TENANT: "account" })).acquire("ORDER_1")).rejects.toMatchObject({
      code: "not-configured",
      message: expect.stringContaining('namespace: "111122223333" can\'t be right'),
    });
    table = await freshTable();
    await onTable("acme").acquire("ORDER_0");
    await expect((await overHttp(ALICE)).acquire("ORDER_1")).rejects.toMatchObject({ code: "not-configured" });
  });

  it("control: tenants that name theirs come in, each to its own keys", async () => {
    const [one, other] = [onTable("acme"), onTable("globex")];
    await using _held = await one.acquire("ORDER_1");
    await using also = await other.acquire("ORDER_1", { waitMs: 0 });
    expect(also.isHeld()).toBe(true);
    expect(await (await overHttp(ALICE, { HOLDFAST_TENANT: "role" })).tryAcquire("ORDER_1")).not.toBeNull();
  });

  it("of many that come first at once, one kind comes in and all of the other are refused", async () => {
    const clients = Array.from({ length: 8 }, (_, at) => onTable(at % 2 === 0 ? undefined : "acme"));
    const came = await Promise.allSettled(clients.map((client, at) => client.acquire(`ORDER_${at}`)));
    const kinds = came.map(({ status }, at) => `${at % 2} ${status}`);
    expect([
      ["0 fulfilled", "1 rejected"],
      ["0 rejected", "1 fulfilled"],
    ]).toContainEqual([...new Set(kinds)].toSorted());
  });
});

describe("what the table says of its namespaces", () => {
  it("is one item, which is kept for ever, and asked for once by each process", async () => {
    const requests: string[] = [];
    const client = engineClient(table.endpoint);
    client.middlewareStack.add(
      (next, context) => (args) => {
        requests.push(context.commandName ?? "");
        return next(args);
      },
      { step: "initialize" },
    );
    await onTable().tryAcquire("ORDER_0");
    const locks = createTableClient({ tableName: table.tableName, client });
    for (let at = 1; at <= 3; at++) await (await locks.acquire(`ORDER_${at}`)).release();
    // A process makes one read before its first write, and then only writes.
    expect(requests).toEqual(["GetItemCommand", ...Array<string>(6).fill("UpdateItemCommand")]);
    const { Items = [] } = await client.send(new ScanCommand({ TableName: table.tableName }));
    const tenancy = { p: { S: "/table" }, k: { S: "tenancy" }, fv: { N: String(FORMAT_VERSION) }, tn: { S: "shared" } };
    expect(Items.filter(({ p }) => p?.S === "/table")).toEqual([tenancy]);
  });
});
