/** The fault proxy in front of an engine does what tests plan, and counts what AWS would charge. */
import { type DynamoDBClient, GetItemCommand, ListTablesCommand, PutItemCommand, UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { freshTable } from "../../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";

const Key = { p: { S: "p" }, k: { S: "k" } };

let proxy: FaultProxy;
let client: DynamoDBClient;
let TableName: string;

beforeEach(async () => {
  proxy = await startFaultProxy();
  ({ client, tableName: TableName } = await freshTable(proxy.endpoint, { maxAttempts: 1 }));
});

afterEach(async () => {
  client.destroy();
  await proxy.close();
});

const add = () =>
  client.send(
    new UpdateItemCommand({
      TableName,
      Key,
      UpdateExpression: "ADD n :one",
      ExpressionAttributeValues: { ":one": { N: "1" } },
      ReturnValues: "ALL_NEW",
    }),
  );
const read = async () => (await client.send(new GetItemCommand({ TableName, Key, ConsistentRead: true }))).Item?.["n"]?.N;

describe("a fault", () => {
  it("loses the reply of a write that happened", async () => {
    const lost = proxy.plan({ kind: "lose-reply" }, { when: ({ target }) => target === "UpdateItem" });
    await expect(add()).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect([await read(), lost.struck]).toEqual(["1", 1]);
  });

  it("so makes the SDK's own retry write again", async () => {
    const patient = await freshTable(proxy.endpoint);
    TableName = patient.tableName;
    client.destroy();
    client = patient.client;
    proxy.plan({ kind: "lose-reply" });
    expect((await add()).Attributes?.["n"]?.N).toBe("2");
    expect(proxy.ledger.requests).toEqual({ UpdateItem: 2 });
  });

  it("loses a request before the engine sees it", async () => {
    proxy.plan({ kind: "lose-request" });
    await expect(add()).rejects.toThrow(/socket hang up|ECONNRESET/);
    expect([await read(), proxy.ledger.requests]).toEqual([undefined, { GetItem: 1 }]);
  });

  it("answers for the engine, as often as it is ordered", async () => {
    proxy.plan({ kind: "answer" }, { times: 2 });
    proxy.plan({ kind: "answer", status: 400, errorName: "ThrottlingException" });
    await expect(add()).rejects.toMatchObject({ name: "InternalServerError", $metadata: { httpStatusCode: 500 } });
    await expect(add()).rejects.toMatchObject({ name: "InternalServerError" });
    await expect(add()).rejects.toMatchObject({ name: "ThrottlingException" });
    await add();
    expect(proxy.ledger.requests).toEqual({ UpdateItem: 1 });
  });

  it("holds a request up, so that a later one overtakes it", async () => {
    const gate = openable();
    const held = proxy.plan({ kind: "hold-request", until: gate.opened });
    const late = add();
    await held.first;
    expect((await add()).Attributes?.["n"]?.N).toBe("1");
    gate.open();
    expect((await late).Attributes?.["n"]?.N).toBe("2");
  });

  it("holds a reply up, of a write that happened already", async () => {
    const gate = openable();
    const held = proxy.plan({ kind: "hold-reply", until: gate.opened });
    const slow = add();
    await held.first;
    expect(await read()).toBe("1");
    gate.open();
    await slow;
  });

  it("answers for the engine after the engine has carried the request out", async () => {
    proxy.plan({ kind: "answer", carriedOut: true });
    await expect(add()).rejects.toMatchObject({ name: "InternalServerError" });
    expect(await read()).toBe("1");
  });

  it("has a request carried out twice, and answers it once", async () => {
    proxy.plan({ kind: "duplicate", againAfterMs: 0 });
    expect((await add()).Attributes?.["n"]?.N).toBe("1");
    await expect.poll(read).toBe("2");
  });

  it("is drawn for each request that has no plan, between any client and server", async () => {
    const drawn: string[] = [];
    const front = await startFaultProxy(
      () => proxy.endpoint,
      ({ target }) => {
        drawn.push(target);
        return drawn.length === 1 ? { kind: "answer", status: 503 } : undefined;
      },
    );
    expect([(await fetch(front.endpoint)).status, (await fetch(front.endpoint)).status]).toEqual([503, 200]);
    expect([drawn, front.ledger.requests]).toEqual([["GET", "GET"], { GET: 1 }]);
    await front.close();
  });

  it("meets only requests that its rule fits, by their input too", async () => {
    const none = proxy.plan({ kind: "lose-request" }, { when: ({ body }) => body.Key?.k.S === "other" });
    await add();
    expect(none.struck).toBe(0);
  });
});

describe("the ledger", () => {
  it("counts a write unit for each KB that is written, and half a read unit for a read that may be old", async () => {
    await client.send(new PutItemCommand({ TableName, Item: { ...Key, text: { S: "x".repeat(1500) } } }));
    expect(proxy.ledger).toMatchObject({ requests: { PutItem: 1 }, writeUnits: 2, readUnits: 0, refusedWrites: 0 });
    await client.send(new GetItemCommand({ TableName, Key }));
    expect(proxy.ledger).toMatchObject({ writeUnits: 2, readUnits: 0.5 });
    proxy.ledger.clear();
    expect(proxy.ledger).toMatchObject({ requests: {}, writeUnits: 0, readUnits: 0 });
  });

  it.each([
    [900, 1],
    [1500, 2],
  ])("charges a refused write by the item that is there: %d bytes are %d units", async (bytes, writeUnits) => {
    const Item = { ...Key, text: { S: "x".repeat(bytes) }, list: { L: [{ N: "12" }, { M: { a: { BOOL: true } } }] } };
    await client.send(new PutItemCommand({ TableName, Item }));
    proxy.ledger.clear();
    const refused = new PutItemCommand({
      TableName,
      Item: Key,
      ConditionExpression: "attribute_not_exists(p)",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    await expect(client.send(refused)).rejects.toMatchObject({ name: "ConditionalCheckFailedException" });
    expect(proxy.ledger).toMatchObject({ writeUnits, refusedWrites: 1 });
  });

  it("counts operations that consume nothing, and leaves their input alone", async () => {
    await client.send(new ListTablesCommand({}));
    expect(proxy.ledger).toMatchObject({ requests: { ListTables: 1 }, writeUnits: 0, readUnits: 0 });
  });
});

function openable() {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
