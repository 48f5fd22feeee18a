/**
 * Controls of test/upgrade/items.test.ts: a version that no longer reads one attribute of the recorded items is found by
 * a story. Not reading an attribute is the same as not finding it, so each is renamed in the items in turn.
 */
import type { AttributeValue } from "@aws-sdk/client-dynamodb";
import { describe, expect, it } from "vitest";
import { freshTable } from "../support/engine.js";
import { type Stored, type WireItem, continued, RECORDED, recordedBy, STORIES } from "./stored.js";

/** Attributes that no answer depends on, each with the reason. */
const UNREAD: Readonly<Record<string, string>> = {
  co: "It tells the offers of a crowd from its leases. Without it, who comes to a crowd reads first.",
  fv: "Without it, an item has the first format.",
  "h.ID.pr": "It orders offers that are made together, and each of them is claimed by its own id.",
  hl: "It tells waiters the pace of the queue. Without it, they poll as if nobody had held the key before.",
  "q.m": "It lets a release offer the key to all readers at once. Without it, each is let in when it polls.",
  qv: "It tells two states of the queue apart that have one version. Without it, the queue counts as untouched.",
  "rn.c.x": "It spares a write that lets the item of a large checkpoint live longer.",
  "rn.o.x": "It spares a write that lets the item of a large outcome live longer.",
};

/** A part of an item, named the same in each item: ids and the numbers of tombstones don't count. */
function nameOf(parent: string, attribute: string): string {
  if (parent === "jt") return "jt.TOKEN";
  const general = /^[0-9a-f]{8}-/.test(attribute) ? "ID" : attribute.replace(/^r\d$/, "r0…r7");
  return parent === "" ? general : `${parent}.${general}`;
}

/** Calls `visit` for each attribute in the map, and renames those for which it returns true. */
function mapped(map: WireItem, visit: (name: string) => boolean, parent = ""): WireItem {
  return Object.fromEntries(
    Object.entries(map).map(([attribute, value]) => {
      const name = nameOf(parent, attribute);
      return [visit(name) ? `renamed-${attribute}` : attribute, within(value, visit, name)];
    }),
  );
}

function within(value: AttributeValue, visit: (name: string) => boolean, name: string): AttributeValue {
  if (value.M) return { M: mapped(value.M, visit, name) };
  return value.L ? { L: value.L.map((entry) => within(entry, visit, name)) } : value;
}

/** The names of all attributes, without the primary key's. */
function attributesOf(stored: readonly Stored[]): readonly string[] {
  const names = new Set<string>();
  const collect = (name: string): boolean => {
    names.add(name);
    return false;
  };
  for (const { items } of stored) for (const item of items) mapped(item, collect);
  return [...names].filter((name) => !["p", "k"].includes(name) && !name.endsWith("ID")).sort();
}

describe.each(RECORDED)("a version that doesn't read an attribute of version %s", async (version) => {
  const recorded = recordedBy(version);
  const table = await freshTable();

  /** Returns the first story that fails without the attribute. */
  async function storyAbout(attribute: string): Promise<string | undefined> {
    for (const story of STORIES) {
      const stored = recorded[story.name];
      if (!stored) continue;
      if (!attributesOf([stored]).includes(attribute)) continue;
      const items = stored.items.map((item) => mapped(item, (name) => name === attribute));
      const isServed = await continued(story, { ...stored, items }, table).then(
        () => true,
        () => false,
      );
      if (!isServed) return story.name;
    }
    return undefined;
  }

  const attributes = attributesOf(Object.values(recorded));
  it.each(attributes.filter((name) => !(name in UNREAD)))("control: a story fails without %s", async (attribute) => {
    expect(await storyAbout(attribute)).toBeDefined();
  });

  it("no reason is given for an attribute that is needed", async () => {
    expect(Object.keys(UNREAD).filter((name) => !attributes.includes(name))).toEqual([]);
    for (const name of Object.keys(UNREAD)) expect(await storyAbout(name), name).toBeUndefined();
  });
});
