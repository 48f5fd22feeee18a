/**
 * Golden items: for each kind and state of an item, what the code of a format wrote. `golden/format-N.json` has those of the format N, and never
 * changes again. A change of the layout turns this red, and the way to green is a new number (lib/store/dynamo/format.ts) with its reader:
 *
 *  1. raise FORMAT_VERSION, and read the items of the number before, or refuse them by name;
 *  2. write the items of the new number: `npx vitest run test/upgrade/golden-items -u`. It adds what is missing, and changes nothing that is there.
 */
import { readdirSync, readFileSync, existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, it } from "vitest";
import { format, resolveConfig } from "prettier";
import { doorsIn, FORMAT_VERSION, fromItem, OPTIONAL, payloadIn, tenancyIn, TOMBSTONES } from "../../lib/store/dynamo/item.js";
import { CHECKPOINT, HOLD, OFFER, PLACE, TOMBSTONE, UPGRADING } from "../../lib/store/dynamo/layout.js";
import { limitOf } from "../../lib/store/dynamo/limit-write.js";
import { createSleeperStore } from "../../lib/store/dynamo/sleeper-store.js";
import type { AllCalls } from "../../lib/store/dynamo/calls.js";
import type { UnreadableRecord } from "../../lib/store/port.js";
import { engineCalls, freshTable } from "../support/engine.js";
import { type PlainItem, writtenItems } from "./golden-scenes.js";

/** An item, and what was read from it. The code of a format that isn't read any more read nothing here. */
interface Golden {
  readonly item: PlainItem;
  readonly read?: unknown;
}

const FOLDER = join(import.meta.dirname, "golden");
const FILE = /^format-(\d+)\.json$/;
const FORMATS = readdirSync(FOLDER).flatMap((name) => FILE.exec(name)?.slice(1).map(Number) ?? []);

const fileOf = (version: number): string => join(FOLDER, `format-${version}.json`);
const goldenOf = (version: number): Readonly<Record<string, readonly Golden[]>> =>
  existsSync(fileOf(version)) ? (JSON.parse(readFileSync(fileOf(version), "utf8")) as Record<string, readonly Golden[]>) : {};

/** Reads an item as the store does, by the kind in its key. */
async function readAny(plain: PlainItem): Promise<unknown> {
  const item = Object.fromEntries(Object.entries(plain).map(([name, value]) => [name, isSet(value) ? new Set(value.set) : value]));
  const [, kind] = String(item["p"]).split("/");
  if (kind === "limits") return limitOf(item);
  if (kind === "payloads") return payloadIn(item);
  if (kind === "table") return "dr" in item ? [tenancyIn(item), doorsIn(item)] : tenancyIn(item);
  if (kind !== "sleepers") return fromItem(item);
  const calls = { query: async () => ({ Items: [item] }) } as unknown as AllCalls;
  const { sleepers, ties, unreadable } = await createSleeperStore({ calls, tableName: "golden" }).list();
  const [error] = unreadable;
  if (error) throw error;
  return [...sleepers, ...ties];
}

function isSet(value: unknown): value is { readonly set: readonly string[] } {
  return typeof value === "object" && value !== null && "set" in value;
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

/** All attributes of items and of their parts, at any depth. A leaseId is no attribute. */
function attributesIn(value: unknown): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  const names = Array.isArray(value) ? [] : Object.keys(value).filter((name) => name.length <= 3);
  return [...names, ...Object.values(value).flatMap(attributesIn)];
}

describe(`the items of format ${FORMAT_VERSION}, which this version writes`, () => {
  const golden = goldenOf(FORMAT_VERSION);
  const names = Object.keys(golden);
  let written: Awaited<ReturnType<typeof writtenItems>>;
  beforeAll(async () => {
    const { endpoint, tableName } = await freshTable();
    written = await writtenItems({ calls: engineCalls(endpoint), tableName });
  });

  it.runIf(inject("isRecording"))("are recorded where they are missing", async () => {
    const missing: Record<string, readonly Golden[]> = {};
    for (const [name, items] of Object.entries(written).filter(([name]) => !names.includes(name)))
      missing[name] = await Promise.all(items.map(async (item) => ({ item, read: plain(await readAny(item)) })));
    const file = fileOf(FORMAT_VERSION);
    const text = JSON.stringify({ ...golden, ...missing });
    writeFileSync(file, await format(text, { ...(await resolveConfig(file)), filepath: file }));
  });

  it("are one for each kind and state", () => {
    expect(Object.keys(written).sort(), "record what is missing by -u; no scene goes").toEqual(names.sort());
  });

  it.each(names)("are written as they were: %s", (name) => {
    expect(written[name], "the layout changed: see the top of this file").toEqual(golden[name]!.map(({ item }) => item));
  });

  it("have each attribute of the layout", () => {
    const parts = [HOLD, OFFER, PLACE, TOMBSTONE, UPGRADING, CHECKPOINT].flatMap(({ names }) => names);
    const all = new Set(Object.values(golden).flatMap((items) => items.flatMap(({ item }) => attributesIn(item))));
    expect([...OPTIONAL, ...TOMBSTONES, ...parts].filter((name) => !all.has(name))).toEqual([]);
  });
});

describe.each(FORMATS)("the items of format %s", (version) => {
  const entries = Object.entries(goldenOf(version)).flatMap(([name, items]) => items.map((golden) => [name, golden] as const));

  const isRead = version === FORMAT_VERSION;

  it.each(isRead ? entries : [])("are read as they were: %s", async (_name, { item, read }) => {
    expect(plain(await readAny(item))).toEqual(read);
  });

  it.each(isRead ? [] : entries)("are refused by name: %s", async (_name, { item }) => {
    const error = await readAny(item).catch((reason: unknown) => reason as UnreadableRecord);
    const number = (item["fv"] as number | undefined) ?? "no format number";
    expect(error).toMatchObject({ name: "UnreadableRecord", code: "older-format" });
    expect((error as Error).message).toContain(
      `${typeof number === "number" ? `format ${number}` : number}, and this version reads format`,
    );
  });
});

it("no file is of a format that this version doesn't know", () => {
  expect(Math.max(...FORMATS)).toBe(FORMAT_VERSION);
});
