/** The items that the stories leave in the table: written by this version, or read from a file that a version recorded. */
import { type AttributeValue, PutItemCommand, ScanCommand } from "@aws-sdk/client-dynamodb";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type FreshTable, freshTable } from "../support/engine.js";
import { LOCK_STORIES } from "./lock-stories.js";
import { RUN_STORIES } from "./run-stories.js";
import { type Story, START_MS, tellerOf } from "./teller.js";

/** An item in its wire form. */
export type WireItem = Record<string, AttributeValue>;

/** A story's items, and the time at which it left them, in epoch ms. */
export interface Stored {
  readonly atMs: number;
  readonly items: readonly WireItem[];
}

/** The directory with a file for each version whose items differ from those of the version before. */
export const FOLDER = fileURLToPath(new URL("items", import.meta.url));

/** Every story. */
export const STORIES: readonly Story[] = [...LOCK_STORIES, ...RUN_STORIES];

/** The recorded versions, the oldest first. */
export const RECORDED: readonly string[] = readdirSync(FOLDER)
  .map((file) => file.replace(/\.json$/, ""))
  .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));

/** The items that a version wrote, by the story's name. */
export function recordedBy(version: string): Readonly<Record<string, Stored>> {
  return JSON.parse(readFileSync(join(FOLDER, `${version}.json`), "utf8")) as Record<string, Stored>;
}

/** The text of a file of items, one a line. */
export function textOf(stored: Readonly<Record<string, Stored>>): string {
  const stories = Object.entries(stored).map(
    ([name, { atMs, items }]) =>
      `${JSON.stringify(name)}: { "atMs": ${atMs}, "items": [\n${items.map((item) => JSON.stringify(item)).join(",\n")}\n] }`,
  );
  return `{\n${stories.join(",\n")}\n}\n`;
}

/** Writes the items of all stories with the code as it is. */
export async function written(): Promise<Readonly<Record<string, Stored>>> {
  const { client, calls, tableName } = await freshTable();
  const stored: Record<string, Stored> = {};
  const known = new Set<string>();
  for (const story of STORIES) {
    const teller = tellerOf(story, calls, tableName, START_MS);
    await story.writes(teller);
    const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName, ConsistentRead: true }));
    const left = new Map(Items.map((item) => [`${item["p"]?.S} ${item["k"]?.S}`, sorted(item)]));
    const names = [...left.keys()].filter((name) => !known.has(name)).sort();
    stored[story.name] = { atMs: teller.clock.wallMs(), items: names.map((name) => left.get(name)!) };
    for (const name of names) known.add(name);
  }
  client.destroy();
  return stored;
}

/** Puts the items into the table, and lets the story go on from them. @throws if an answer isn't the expected one. */
export async function continued(story: Story, { atMs, items }: Stored, { client, calls, tableName }: FreshTable): Promise<void> {
  for (const Item of items) await client.send(new PutItemCommand({ TableName: tableName, Item }));
  await story.continues(tellerOf(story, calls, tableName, atMs));
}

/** Sorts the names of attributes, whose order means nothing. */
function sorted<T>(value: T): T {
  if (Array.isArray(value)) return value.map(sorted) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, sorted(member as unknown)])) as T;
}
