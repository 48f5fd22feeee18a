/** The payment examples that need no run: a status guard, a transaction, and naturally idempotent writes. */
import { type UpdateCommandInput, UpdateCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { addStock, createNamed, createUnnamed, setStock } from "../../examples/payments/by-nature.js";
import { casesIn } from "../../examples/payments/cases.js";
import { providerAt } from "../../examples/payments/provider.js";
import { type ProviderServer, startProvider } from "../../examples/payments/provider-server.js";
import { pay } from "../../examples/payments/status-guard.js";
import { type Table, read } from "../../examples/payments/table.js";
import { type Till, openTill } from "../../examples/payments/till.js";
import { payByCard } from "../../examples/payments/transaction.js";

let till: Till;
/** A provider without idempotency keys. */
let keyless: ProviderServer;

beforeAll(async () => {
  till = await openTill({ endpoint: inject("engineEndpoint") });
  keyless = await startProvider({ ignoresKeys: true });
});
afterAll(async () => {
  await keyless.close();
  await till.close();
});

/** The input of an update, or of a transaction of updates. */
type Input = UpdateCommandInput & { readonly TransactItems?: readonly { readonly Update: UpdateCommandInput }[] };

/** The same table with a change to each command. */
function altered({ documents, TableName }: Table, send: (command: { readonly input: Input }) => Promise<unknown>): Table {
  return { documents: Object.assign(Object.create(documents), { send }), TableName };
}

describe("a status guard", () => {
  const pays = (cases = casesIn(till.table), payment: string) => [1, 2, 3].map(() => pay(cases, providerAt(keyless.url), payment));

  it("lets one of three payers charge", async () => {
    const cases = casesIn(till.table);
    await cases.open("guard-1", 4900);
    const before = keyless.moved.length;
    const told = await Promise.all(pays(cases, "guard-1"));
    expect(told).toContain("PAID");
    expect(keyless.moved.slice(before)).toEqual([4900]);
    expect(await cases.get("guard-1")).toMatchObject({ status: "PAID" });
  });

  it("control: without its condition all of them charge", async () => {
    const { documents } = till.table;
    const always = altered(till.table, ({ input }) =>
      documents.send(new UpdateCommand({ ...input, ConditionExpression: `${input.ConditionExpression} OR attribute_exists(id)` })),
    );
    await casesIn(till.table).open("guard-2", 4900);
    const guarded = casesIn(till.table);
    const before = keyless.moved.length;
    await Promise.all(pays({ ...guarded, move: casesIn(always).move }, "guard-2"));
    expect(keyless.moved.slice(before)).toEqual([4900, 4900, 4900]);
  });
});

describe("a transaction", () => {
  async function cardWith(balance: number, name: string) {
    await createNamed(till.table, `order-${name}`, "camera");
    await setBalance(`card-${name}`, balance);
    return { order: `order-${name}`, card: `card-${name}` };
  }
  async function setBalance(id: string, balance: number): Promise<void> {
    const { documents, TableName } = till.table;
    const change = { UpdateExpression: "SET balance = :balance", ExpressionAttributeValues: { ":balance": balance } };
    await documents.send(new UpdateCommand({ TableName, Key: { id }, ...change }));
  }
  const left = async (card: string): Promise<unknown> => (await read(till.table, card))?.["balance"];
  const paidBy = async (order: string): Promise<unknown> => (await read(till.table, order))?.["paidBy"];

  it("pays once when it is sent twice", async () => {
    const { order, card } = await cardWith(50, "a");
    expect([await payByCard(till.table, order, card, 30), await payByCard(till.table, order, card, 30)]).toEqual([true, false]);
    expect([await left(card), await paidBy(order)]).toEqual([20, card]);
  });

  it("control: as two writes it leaves an order that nobody paid for", async () => {
    const { documents } = till.table;
    const { order, card } = await cardWith(20, "c");
    const oneByOne = altered(till.table, async ({ input }) => {
      for (const { Update } of input.TransactItems ?? []) await documents.send(new UpdateCommand(Update));
    });
    await expect(payByCard(oneByOne, order, card, 30)).rejects.toThrow("conditional request failed");
    expect([await left(card), await paidBy(order)]).toEqual([20, card]);
  });
});

describe("sent twice", () => {
  it("a create makes two things, unless the caller names the thing", async () => {
    const [first, second] = [await createUnnamed(till.table, "camera"), await createUnnamed(till.table, "camera")];
    expect(first).not.toBe(second);
    const twice = [await createNamed(till.table, "named", "camera"), await createNamed(till.table, "named", "console")];
    expect(twice).toEqual([true, false]);
    expect(await read(till.table, "named")).toEqual({ id: "named", product: "camera" });
  });

  it.each([
    ["that sets comes to the same", setStock, 5],
    ["that adds does not", addStock, 10],
  ] as const)("an update %s", async (name, update, pieces) => {
    for (const _ of [1, 2]) await update(till.table, name, 5);
    expect(await read(till.table, name)).toMatchObject({ pieces });
  });
});
