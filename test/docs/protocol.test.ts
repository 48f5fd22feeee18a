/** "Protocol": the item of a held key, as a golden item has it. To accept a change: `npx vitest run test/docs/protocol -u`. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { FORMAT_VERSION } from "../../lib/store/dynamo/format.js";
import { HOLD } from "../../lib/store/dynamo/layout.js";
import { ROOT } from "../tidy/tree.js";
import { table } from "./generated.js";
import { expectMade } from "./made-page.js";

const LAYOUT = readFileSync(join(ROOT, "lib/store/dynamo/item.ts"), "utf8");
/** A line of the layout's list of attributes, which has one or two. */
const LINE = /^ \* {3}(\S+) +(\S.*?)(?: {2,}(\S+) +(\S.*))?$/gm;
/** The meaning of each attribute, in the layout's own words. */
const MEANINGS = new Map(
  [...LAYOUT.matchAll(LINE)].flatMap(([, name = "", meaning = "", other = "", ofOther = ""]): [string, string][] => [
    [name, meaning],
    [other, ofOther],
  ]),
);

type Item = Readonly<Record<string, unknown>>;

/** Returns a row for each attribute, those of the hold in their places. @throws Error for one without a meaning */
function rowsOf(item: Item): readonly (readonly string[])[] {
  return Object.keys(item)
    .sort((a, b) => order(a) - order(b))
    .flatMap((name) => {
      const meaning = MEANINGS.get(name);
      if (meaning === undefined) throw new Error(`the layout doesn't say what ${name} is`);
      return name === "h" ? [[`\`${name}\``, "", meaning], ...holdRows(item[name] as Item)] : [row(name, item[name], meaning)];
    });
}

/** Returns a row for each attribute of the first hold. */
function holdRows(holds: Item): readonly (readonly string[])[] {
  const [[leaseId, hold]] = Object.entries(holds) as [[string, Item]];
  const members = new Map(Object.entries(HOLD.pathsIn("h")).map(([member, path]) => [path, member]));
  return Object.entries(hold).map(([name, value]) => {
    const member = members.get(`h.${name}`);
    if (member === undefined) throw new Error(`the layout has no ${name} of a hold`);
    return row(`h.${leaseId.slice(0, 8)}….${name}`, value, `\`${member}\``);
  });
}

function row(name: string, value: unknown, meaning: string): readonly string[] {
  const shown = typeof value === "string" ? value : JSON.stringify(value);
  return [`\`${name}\``, shown === "" ? "" : `\`${shown}\``, meaning];
}

/** The key first, then in the order in which the layout lists them. */
function order(name: string): number {
  return [...MEANINGS.keys()].indexOf(name);
}

function heldItem(): Item {
  const golden = JSON.parse(readFileSync(join(ROOT, `test/upgrade/golden/format-${FORMAT_VERSION}.json`), "utf8")) as Record<
    string,
    readonly { readonly item: Item }[]
  >;
  return golden["held"]![0]!.item;
}

it("the page has the item of a held key, with what each attribute is", () =>
  expectMade("docs/protocol.md", { "the item of a held key": table(["attribute", "value", "what it is"], rowsOf(heldItem())) }));

it("control: an attribute that the layout doesn't name is an error", () => {
  expect(() => rowsOf({ ...heldItem(), zz: 1 })).toThrow("zz");
  expect(() => rowsOf({ ...heldItem(), h: { id: { zz: 1 } } })).toThrow("zz");
});
