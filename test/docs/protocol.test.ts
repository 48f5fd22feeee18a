/**
 * "Protocol": the item of a held key as the store writes it, as a picture and as a table, and what each way to it costs. To accept a change:
 * `npx vitest run test/docs/protocol -u`.
 */
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { itemBytes } from "../support/item-bytes.js";
import { partsOf, readPage, table } from "./generated.js";
import { type Item, type Row, heldItem, rowsOf } from "./held-item.js";
import { expectMade } from "./made-page.js";
import { pictureOf } from "./pictures/item.js";
import { FOLDER, ITEM } from "./pictures/pictures.js";

const WRITE_UNIT_BYTES = 1024;

let item: Item;
beforeAll(async () => {
  item = await heldItem();
});

/** A row of the table, whose attribute has its path, with the beginning of a leaseId. */
function inTable({ within, name, value, meaning }: Row): readonly string[] {
  const path = [...within.map((part) => (part.length > 8 ? `${part.slice(0, 8)}…` : part)), name].join(".").replace(/^q\./, "q[0].");
  return [`\`${path}\``, value === undefined ? "" : `\`${value}\``, meaning];
}

/** The row of docs/costs.md for a lock that nobody else wants: what a million of them cost, by the heading of its column. */
function costOfAMillion(way: string): string {
  const [head = [], , ...rows] = partsOf(readPage("docs/costs.md"))
    ["locks"]!.split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const cost = rows.find((cells) => cells[1] === "nobody else wants it")?.[head.indexOf(way)];
  if (cost === undefined) throw new Error(`docs/costs.md doesn't say what a lock costs: ${way}`);
  return cost;
}

const ways = (): string =>
  table(
    ["The way to the item", "Where the core runs", "[A million locks](costs.md#a-million-locks)"],
    [
      ["[straight on the table](on-the-table.md)", "in your process, by the SDK", costOfAMillion("direct")],
      ["[over HTTP](over-http.md), through an API", "in a function of the stack", costOfAMillion("by the API")],
      ["over HTTP, through a [function URL](into-your-account.md)", "in a function of the stack", costOfAMillion("function URL")],
      ["[`holdfast dev`](start-here.md), on your machine", "in one process, with a table in memory", "nothing"],
    ],
  );

describe("the page", () => {
  it("has the item of a held key, with what each attribute is, and what each way to it costs", () =>
    expectMade("docs/protocol.md", {
      "the item of a held key": table(["attribute", "value", "what it is"], rowsOf(item).map(inTable)),
      "the ways to it": ways(),
    }));

  it("has the picture of that item", async () => {
    const bytes = itemBytes(item);
    const units = Math.ceil(bytes / WRITE_UNIT_BYTES);
    const title = "ORDER_1231, held and waited for";
    const about = `One item of ${bytes} bytes: a write of it is ${units} write ${units === 1 ? "unit" : "units"}`;
    await expect(pictureOf({ title, about, rows: rowsOf(item) })).toMatchFileSnapshot(join(FOLDER, ITEM));
  });

  it("control: there is no cost of a way that docs/costs.md doesn't have", () => {
    expect(() => costOfAMillion("by post")).toThrow("by post");
  });
});

describe("the rows of an item", () => {
  it("control: an attribute that the layout doesn't name is an error", () => {
    expect(() => rowsOf({ ...item, zz: 1 })).toThrow("zz");
    expect(() => rowsOf({ ...item, h: { id: { zz: 1 } } })).toThrow("zz");
    expect(() => rowsOf({ ...item, q: [{ zz: 1, g: {} }] })).toThrow("zz");
  });
});
