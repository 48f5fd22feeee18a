/**
 * The in-memory table of the simulation refuses the same requests as DynamoDB. Where the embedded engine refuses them too, both are
 * compared.
 */
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteCommand,
  UpdateCommand,
} from "@aws-sdk/lib-dynamodb";
import { beforeAll, describe, expect, it } from "vitest";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { freshTable } from "../support/engine.js";
import { sdkClientOf } from "./dynamo/sdk-client.js";
import { DynamoTable } from "../../lib/testing/table/table.js";

const TOKEN_LASTS_MS = 10 * 60_000;

/** The table under test, the embedded engine's table, and the table's time. */
class Tables {
  nowMs = Date.UTC(2027, 0, 1);
  readonly memory = new DynamoTable({ tableName: "simulated", ...TABLE }, () => this.nowMs);
  readonly documents = documentsOf(sdkClientOf(this.memory));
  engine: { readonly documents: DynamoDBDocumentClient; readonly tableName: string } | undefined;
}

function documentsOf(client: DynamoDBClient): DynamoDBDocumentClient {
  return DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
}

const Key = { p: "x/locks/0", k: "ORDER_1" };
const ITEM = {
  ...Key,
  v: 1,
  name: "n",
  q: [{ u: 1 }, { u: 2 }],
  qi: ["a", "b"],
  h: { me: { e: 5 } },
  w: new Set(["a", "b"]),
  t: "text",
  x: 100,
};

/** An update's parameters. A name or a value counts as given if an expression uses it. */
interface Given {
  readonly condition?: string;
  readonly update?: string;
  readonly names?: Readonly<Record<string, string>>;
  readonly values?: Readonly<Record<string, unknown>>;
}

interface Deviation {
  readonly laxer?: true;
}

function inputOf({ condition, update, names, values }: Given, TableName: string) {
  return {
    TableName,
    Key,
    ...(condition !== undefined && { ConditionExpression: condition }),
    ...(update !== undefined && { UpdateExpression: update }),
    ...(names && { ExpressionAttributeNames: { ...names } }),
    ...(values && { ExpressionAttributeValues: { ...values } }),
  };
}

/** `laxer`: AWS refuses the request, and the embedded engine accepts it. */
const REFUSED: readonly (Given & Deviation & { readonly what: string; readonly says: RegExp })[] = [
  { what: "an unused value", update: "SET a = :a", values: { ":a": 1, ":b": 2 }, says: /ExpressionAttributeValues unused.*:b/ },
  { what: "an unused name", update: "SET a = :a", values: { ":a": 1 }, names: { "#b": "b" }, says: /ExpressionAttributeNames unused.*#b/ },
  { what: "an undefined value", update: "SET a = :a", says: /value used in expression is not defined.*:a/ },
  { what: "an undefined name", update: "SET #a = :a", values: { ":a": 1 }, says: /name used in the document path is not defined.*#a/ },
  { what: "no values at all", update: "SET a = b", values: {}, says: /ExpressionAttributeValues must not be empty/ },
  { what: "an empty expression", update: "", says: /can not be empty/ },
  { what: "a reserved word", update: "SET owner = :a", values: { ":a": 1 }, says: /reserved keyword.*owner/ },
  { what: "a section twice", update: "SET a = :a SET b = :a", values: { ":a": 1 }, says: /only be used once/ },
  { what: "a path and its parent", update: "SET h = :a, h.me = :a", values: { ":a": 1 }, says: /overlap/ },
  { what: "a path twice", update: "SET v = :a REMOVE v", values: { ":a": 1 }, says: /overlap/ },
  { what: "a list's element and a map's member", update: "SET q[0] = :a, q.u = :a", values: { ":a": 1 }, says: /conflict/ },
  { what: "an update of the key", update: "SET k = :a", values: { ":a": "b" }, says: /part of the key/ },
  { what: "a missing parent", update: "SET nothing.here = :a", values: { ":a": 1 }, says: /document path.*invalid for update/ },
  { what: "a missing parent's removal", update: "REMOVE nothing.here", says: /document path.*invalid for update/, laxer: true },
  { what: "an element of what is no list", update: "REMOVE v[0]", says: /document path.*invalid for update/, laxer: true },
  {
    what: "an element's member beyond the end",
    update: "SET q[7].u = :a",
    values: { ":a": 1 },
    says: /document path.*invalid for update/,
    laxer: true,
  },
  { what: "an operand that is not there", update: "SET a = nothing + :a", values: { ":a": 1 }, says: /does not exist in the item/ },
  { what: "a sum of texts", update: "SET a = t + :a", values: { ":a": 1 }, says: /incorrect data type/ },
  { what: "a list appended to a number", update: "SET q = list_append(v, :a)", values: { ":a": [] }, says: /incorrect data type/ },
  { what: "a text added to a set", update: "ADD w :a", values: { ":a": "c" }, says: /Incorrect operand type.*ADD/ },
  { what: "a set added to a text", update: "ADD t :a", values: { ":a": new Set(["c"]) }, says: /incorrect data type/ },
  { what: "a set that is added and replaced", update: "SET w = :a ADD w :a", values: { ":a": new Set(["c"]) }, says: /overlap/ },
  { what: "an addition of what the item has", update: "ADD w w", says: /[Ss]yntax error/ },
  { what: "a set in an order", condition: "w < :a", values: { ":a": new Set(["c"]) }, says: /Incorrect operand type.*</, laxer: true },
  { what: "a map in an order", condition: "h < :a", values: { ":a": {} }, says: /Incorrect operand type.*</, laxer: true },
  { what: "a path beside itself", condition: "v = v", says: /must be distinct/, laxer: true },
  { what: "parentheses in parentheses", condition: "((v = :a))", values: { ":a": 1 }, says: /redundant parentheses/ },
  { what: "bounds the wrong way round", condition: "v BETWEEN :a AND :b", values: { ":a": 2, ":b": 1 }, says: /upper bound/ },
  { what: "bounds of two types", condition: "v BETWEEN :a AND :b", values: { ":a": 2, ":b": "1" }, says: /same data type/ },
  { what: "a size as a truth", condition: "size(q)", says: /[Ss]yntax error/ },
  { what: "a condition without its end", condition: "v = :a AND", values: { ":a": 1 }, says: /[Ss]yntax error/ },
  {
    what: "an expression of more than 4 KB",
    condition: `v = :a${" OR v = :a".repeat(450)}`,
    values: { ":a": 1 },
    says: /Expression size has exceeded/,
  },
  { what: "an item of more than 400 KB", update: "SET a = :a", values: { ":a": "x".repeat(410_000) }, says: /Item size.*exceeded/ },
];

/** Conditions, and their results on {@link ITEM}. */
const CONDITIONS: readonly (Given & { readonly condition: string; readonly holds: boolean })[] = [
  { condition: "attribute_exists(h.me.e) AND attribute_not_exists(h.you)", holds: true },
  { condition: "NOT (nothing = :a)", values: { ":a": 1 }, holds: true },
  { condition: "nothing <> :a", values: { ":a": 1 }, holds: true },
  { condition: "nothing < :a", values: { ":a": 1 }, holds: false },
  { condition: "v < :a", values: { ":a": "2" }, holds: false },
  { condition: "v <> :a", values: { ":a": "1" }, holds: true },
  { condition: "t < :a", values: { ":a": "u" }, holds: true },
  { condition: "size(q) = :a AND size(t) = :b AND size(h) = :c", values: { ":a": 2, ":b": 4, ":c": 1 }, holds: true },
  { condition: "size(nothing) < :a", values: { ":a": 9 }, holds: false },
  { condition: "contains(qi, :a) AND NOT contains(qi, :b)", values: { ":a": "a", ":b": "c" }, holds: true },
  { condition: "contains(w, :a) AND NOT contains(w, :b) AND size(w) = :c", values: { ":a": "a", ":b": "c", ":c": 2 }, holds: true },
  { condition: "size(w) < :a OR contains(w, :b)", values: { ":a": 2, ":b": "" }, holds: false },
  { condition: "w = :a", values: { ":a": new Set(["b", "a"]) }, holds: true },
  { condition: "w = :a OR w = :b", values: { ":a": new Set(["a"]), ":b": ["a", "b"] }, holds: false },
  { condition: "q[1].u > :a OR q[9].u > :a", values: { ":a": 1 }, holds: true },
  { condition: "q = :a", values: { ":a": [{ u: 1 }, { u: 2 }] }, holds: true },
  { condition: "q = :a", values: { ":a": [{ u: 2 }, { u: 1 }] }, holds: false },
  { condition: "v = :a OR v = :b AND v = :c", values: { ":a": 1, ":b": 2, ":c": 3 }, holds: true },
  { condition: "v IN (:a, :b)", values: { ":a": 7, ":b": 1 }, holds: true },
  { condition: "#n = :a", names: { "#n": "name" }, values: { ":a": "n" }, holds: true },
];

/** Updates, and their results on {@link ITEM}. `laxer`: the embedded engine handles indices in a list differently. */
const UPDATES: readonly (Given & Deviation & { readonly update: string; readonly leaves: object })[] = [
  { update: "SET a = v + :a, v = v - :a", values: { ":a": 2 }, leaves: { a: 3, v: -1 } },
  { update: "SET a = if_not_exists(t, :a), b = if_not_exists(nothing, :a)", values: { ":a": 2 }, leaves: { a: "text", b: 2 } },
  { update: "SET q = list_append(q, :a)", values: { ":a": [1] }, leaves: { q: [{ u: 1 }, { u: 2 }, 1] } },
  { update: "SET q[9] = :a", values: { ":a": 1 }, leaves: { q: [{ u: 1 }, { u: 2 }, 1] }, laxer: true },
  { update: "SET h = q[0] REMOVE q[0], qi[0], qi[1]", leaves: { h: { u: 1 }, q: [{ u: 2 }], qi: [] }, laxer: true },
  { update: "SET t = w ADD w :a", values: { ":a": new Set(["b", "c"]) }, leaves: { t: new Set(["a", "b"]), w: new Set(["a", "b", "c"]) } },
  { update: "ADD nothing :a REMOVE w", values: { ":a": new Set(["c"]) }, leaves: { nothing: new Set(["c"]), w: undefined } },
  { update: "REMOVE q[9], h.nobody, nothing", leaves: {} },
  {
    update: "SET h.#y = :a, t = v, v = t",
    names: { "#y": "you" },
    values: { ":a": 1 },
    leaves: { h: { me: { e: 5 }, you: 1 }, t: 1, v: "text" },
  },
];

describe("the simulation's table", () => {
  const tables = new Tables();
  beforeAll(async () => {
    const { client, tableName } = await freshTable();
    tables.engine = { documents: documentsOf(client), tableName };
  });

  const memory = () => ({ documents: tables.documents, tableName: "simulated" });

  /** Returns both tables' results of the same update, or deletion, of {@link ITEM}. */
  async function both(given: Given, isDeletion = false): Promise<readonly { readonly error?: Error; readonly item?: unknown }[]> {
    return Promise.all(
      [memory(), tables.engine!].map(async (one) => {
        await one.documents.send(new PutCommand({ TableName: one.tableName, Item: ITEM }));
        try {
          const input = inputOf(given, one.tableName);
          await one.documents.send(isDeletion ? new DeleteCommand(input) : new UpdateCommand(input));
        } catch (error) {
          return { error: error as Error };
        }
        return { item: (await one.documents.send(new GetCommand({ TableName: one.tableName, Key, ConsistentRead: true }))).Item };
      }),
    );
  }

  it.each(REFUSED)("refuses $what", async ({ says, laxer, ...given }) => {
    const [memory, engine] = await both(given);
    expect(memory?.error?.name).toBe("ValidationException");
    expect(memory?.error?.message).toMatch(says);
    if (!laxer) expect(engine?.error?.name).toBe("ValidationException");
  });

  it.each(CONDITIONS)("holds $condition for $holds", async ({ holds, ...given }) => {
    for (const { error } of await both(given)) expect(error?.name).toBe(holds ? undefined : "ConditionalCheckFailedException");
  });

  it.each(CONDITIONS)("deletes on $condition for $holds", async ({ holds, ...given }) => {
    for (const { error, item } of await both(given, true))
      expect([error?.name, item]).toEqual([holds ? undefined : "ConditionalCheckFailedException", undefined]);
  });

  it.each(REFUSED.filter(({ update }) => update === undefined))("refuses a deletion with $what", async ({ says, laxer, ...given }) => {
    const [memory, engine] = await both(given, true);
    expect(memory?.error?.message).toMatch(says);
    if (!laxer) expect(engine?.error?.name).toBe("ValidationException");
  });

  it("deletes an item and brings it back if asked, deletes nothing where nothing is, and refuses by a condition what isn't there", async () => {
    for (const { documents, tableName: TableName } of [memory(), tables.engine!]) {
      const remove = (given: object = {}) => documents.send(new DeleteCommand({ TableName, Key, ...given }));
      await documents.send(new PutCommand({ TableName, Item: ITEM }));
      expect(await remove({ ReturnValues: "ALL_OLD" })).toMatchObject({ Attributes: ITEM });
      expect((await remove({ ReturnValues: "ALL_OLD" })).Attributes).toBeUndefined();
      const refusal = { ConditionExpression: "x = :x", ExpressionAttributeValues: { ":x": 100 } };
      await expect(remove(refusal)).rejects.toMatchObject({ name: "ConditionalCheckFailedException" });
      await documents.send(new PutCommand({ TableName, Item: ITEM }));
      const asked = { ...refusal, ConditionExpression: "x < :x", ReturnValuesOnConditionCheckFailure: "ALL_OLD" };
      await expect(remove(asked)).rejects.toMatchObject({ Item: { x: { N: "100" } } });
    }
    await expect(documentsOf(sdkClientOf(tables.memory)).send(new DeleteCommand({ TableName: "another", Key }))).rejects.toMatchObject({
      name: "ResourceNotFoundException",
    });
  });

  it.each(UPDATES)("carries out $update", async ({ leaves, laxer, ...given }) => {
    const done = { error: undefined, item: { ...ITEM, ...leaves } };
    const [memory, engine] = await both(given);
    expect(memory).toEqual(done);
    if (!laxer) expect(engine).toEqual(done);
  });

  it("stores neither an empty set nor one of numbers, and adds no numbers", () => {
    const put = (w: ReadonlySet<unknown>) => tables.memory.put({ TableName: "simulated", Item: { ...Key, w } });
    expect(() => put(new Set())).toThrow(expect.objectContaining({ name: "ValidationException" }));
    expect(() => put(new Set([1]))).toThrow("no sets but those of texts");
    const added = { UpdateExpression: "ADD v :a", ExpressionAttributeValues: { ":a": 1 } };
    expect(() => tables.memory.update({ TableName: "simulated", Key, ...added })).toThrow("no ADD of numbers");
  });

  it("brings the old item back in wire form with a refusal that asked for it, and nothing where nothing was", async () => {
    const { documents } = tables;
    await documents.send(new PutCommand({ TableName: "simulated", Item: ITEM }));
    const refusalOf = (key: object, wanted?: "ALL_OLD") =>
      documents
        .send(
          new UpdateCommand({
            ...inputOf({ condition: "attribute_exists(nothing)" }, "simulated"),
            Key: key,
            ...(wanted && { ReturnValuesOnConditionCheckFailure: wanted }),
          }),
        )
        .then(
          () => undefined,
          (error: unknown) => (error as { readonly Item?: Record<string, unknown> }).Item,
        );
    expect(await refusalOf(Key, "ALL_OLD")).toMatchObject({
      v: { N: "1" },
      q: { L: [{ M: { u: { N: "1" } } }, {}] },
      t: { S: "text" },
      w: { SS: ["a", "b"] },
    });
    expect(await refusalOf(Key)).toBeUndefined();
    expect(await refusalOf({ ...Key, k: "OTHER" }, "ALL_OLD")).toBeUndefined();
  });

  it("writes a transaction whole or not at all, says why each part refused, and does it once for a token", async () => {
    const { documents, memory } = tables;
    const part = (k: string, condition: string) => ({
      Update: {
        TableName: "simulated",
        Key: { ...Key, k },
        ConditionExpression: condition,
        UpdateExpression: "SET v = if_not_exists(v, :zero) + :one",
        ExpressionAttributeValues: { ":zero": 0, ":one": 1 },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      },
    });
    const send = (ClientRequestToken: string, ...TransactItems: ReturnType<typeof part>[]) =>
      documents.send(new TransactWriteCommand({ TransactItems, ClientRequestToken }));
    const versions = () => [...memory.items()].filter(({ k }) => k === "T1" || k === "T2" || k === "T3").map(({ k, v }) => [k, v]);
    await send("1", part("T1", "attribute_not_exists(v)"), part("T2", "attribute_not_exists(v)"));
    const again = [part("T1", "attribute_not_exists(v)"), part("T2", "attribute_not_exists(v)")];
    await send("1", ...again);
    expect(versions()).toEqual([
      ["T1", 1],
      ["T2", 1],
    ]);
    await expect(send("1", part("T3", "attribute_not_exists(v)"))).rejects.toMatchObject({ name: "IdempotentParameterMismatchException" });
    await expect(send("2", part("T1", "attribute_not_exists(v)"), part("T3", "attribute_not_exists(v)"))).rejects.toMatchObject({
      name: "TransactionCanceledException",
      CancellationReasons: [{ Code: "ConditionalCheckFailed", Item: { v: { N: "1" } } }, { Code: "None" }],
    });
    await expect(send("3", part("T1", "attribute_exists(v)"), part("T1", "attribute_exists(v)"))).rejects.toThrow(
      /multiple operations on one item/,
    );
    expect(versions()).toHaveLength(2);
    tables.nowMs += TOKEN_LASTS_MS;
    await expect(send("1", ...again)).rejects.toMatchObject({ name: "TransactionCanceledException" });
  });

  it("answers a query a page at a time, filters what was counted, and names the key to go on from", async () => {
    const { documents } = tables;
    for (const [at, k] of ["a", "b", "c", "d"].entries())
      await documents.send(new PutCommand({ TableName: "simulated", Item: { p: "query", k, v: at } }));
    const input = {
      TableName: "simulated",
      KeyConditionExpression: "p = :p AND k BETWEEN :from AND :to",
      FilterExpression: "v > :v",
      ExpressionAttributeValues: { ":p": "query", ":from": "b", ":to": "z", ":v": 1 },
    };
    const first = await documents.send(new QueryCommand({ ...input, Limit: 2 }));
    expect([first.Items, first.LastEvaluatedKey]).toEqual([[{ p: "query", k: "c", v: 2 }], { p: "query", k: "c" }]);
    const second = await documents.send(new QueryCommand({ ...input, Limit: 2, ExclusiveStartKey: first.LastEvaluatedKey }));
    expect([second.Items, second.LastEvaluatedKey]).toEqual([[{ p: "query", k: "d", v: 3 }], undefined]);
    await expect(documents.send(new QueryCommand({ ...input, FilterExpression: "k > :v" }))).rejects.toThrow(/non-primary key attributes/);
    const backwards = { ...input.ExpressionAttributeValues, ":from": "z", ":to": "b" };
    await expect(documents.send(new QueryCommand({ ...input, ExpressionAttributeValues: backwards }))).rejects.toThrow(/upper bound/);
  });

  it("scans all segments a page at a time, with a filter on any attribute, and only the attributes that were asked for", async () => {
    for (const { documents, tableName: TableName } of [memory(), tables.engine!]) {
      const names = Array.from({ length: 20 }, (_, at) => `scan-${at}`);
      for (const [x, p] of names.entries()) await documents.send(new PutCommand({ TableName, Item: { p, k: "k", x, t: "text" } }));
      const found: unknown[] = [];
      for (let Segment = 0; Segment < 3; Segment++) {
        let ExclusiveStartKey: Record<string, unknown> | undefined;
        do {
          const page = await documents.send(
            new ScanCommand({
              ...{ TableName, Segment, TotalSegments: 3, Limit: 4, ProjectionExpression: "p, #x", ExpressionAttributeNames: { "#x": "x" } },
              ...{
                FilterExpression: "#x < :x AND p > :p AND p < :q",
                ExpressionAttributeValues: { ":x": 15, ":p": "scan", ":q": "scan~" },
              },
              ...(ExclusiveStartKey && { ExclusiveStartKey }),
            }),
          );
          expect(page.Items!.length).toBeLessThanOrEqual(4);
          found.push(...page.Items!);
          ExclusiveStartKey = page.LastEvaluatedKey;
        } while (ExclusiveStartKey);
      }
      const inOrder = (found as { readonly x: number }[]).toSorted((a, b) => a.x - b.x);
      expect(inOrder).toEqual(names.slice(0, 15).map((p, x) => ({ p, x })));
      for (const wrong of [{ Segment: 3, TotalSegments: 3 }, { Segment: 0 }, { Limit: 0 }])
        await expect(documents.send(new ScanCommand({ TableName, ...wrong }))).rejects.toMatchObject({ name: "ValidationException" });
    }
  });

  it("lets go what is past its time to live, and says nothing of another table", async () => {
    const { documents, memory } = tables;
    await documents.send(new PutCommand({ TableName: "simulated", Item: { ...ITEM, p: "ttl", x: 1_800_000_000 } }));
    expect(memory.expire(1_800_000_000)).toEqual([]);
    expect(memory.expire(1_800_000_001, () => false)).toEqual([]);
    expect(memory.expire(1_800_000_001)).toMatchObject([{ p: "ttl" }]);
    await expect(documents.send(new GetCommand({ TableName: "another", Key }))).rejects.toMatchObject({
      name: "ResourceNotFoundException",
    });
  });
});
