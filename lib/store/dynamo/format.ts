/**
 * The number of the layout of an item, and the one way to read an item of any kind: its number first, then each of its attributes. What this
 * version can't read is an {@link UnreadableRecord}, and neither an outage nor a defect of this process.
 *
 * A change of the layout by which an item would be read differently gets the next number. Items of each number are in test/upgrade/golden.
 */
import { isA } from "../../core/brand.js";
import { UnreadableRecord } from "../port.js";
import { DamagedAttribute, type Item, at, safeInteger } from "./layout.js";
import { TABLE } from "./table.js";

/** The format of all items that this version writes, and of all that it reads. */
export const FORMAT_VERSION = 3;

/** The items by their partition keys. */
const NOUNS: Readonly<Record<string, string>> = {
  ...{ locks: "lock", runs: "run", limits: "limit", payloads: "payload" },
  ...{ sleepers: "sleeper or tied lease", table: "record of the table" },
};

/**
 * Reads an item by `read`, which knows the layout of this version.
 * @throws UnreadableRecord for another format, and for an attribute that is damaged. It names the item and the attribute, and no value
 */
export function readItem<Stored>(item: Item, read: (item: Item) => Stored): Stored {
  try {
    const format = item["fv"] === undefined ? 0 : at("fv", () => safeInteger(item["fv"]));
    if (format > FORMAT_VERSION)
      throw unreadable("newer-format", item, `has format ${format}, and this version reads format ${FORMAT_VERSION}`);
    if (format < FORMAT_VERSION)
      throw unreadable(
        "older-format",
        item,
        `has ${format === 0 ? "no format number" : `format ${format}`}, and this version reads format ${FORMAT_VERSION}`,
      );
    return read(item);
  } catch (error) {
    if (isA(error, UnreadableRecord)) throw error;
    const why = isA(error, DamagedAttribute) ? `has a damaged attribute "${error.path}", which ${error.message}` : "is damaged";
    throw unreadable("unreadable-record", item, why, error);
  }
}

/** Returns the item, or undefined for what an engine returns in place of an item that isn't there: nothing, or the bare key. */
export function present(item: Item | undefined): Item | undefined {
  const isBare = item && Object.keys(item).every((name) => name === TABLE.partitionKey || name === TABLE.sortKey);
  return isBare ? undefined : item;
}

/** Names the item, without what follows the key: a payload's digest, or a leaseId, which is a secret. */
function unreadable(code: UnreadableRecord["code"], item: Item, why: string, cause?: unknown): UnreadableRecord {
  const [, kind = ""] = String(item[TABLE.partitionKey]).split("/");
  const name = ((item[TABLE.sortKey] as string | undefined) ?? "").split("/");
  const key = kind === "sleepers" ? name.slice(0, 3).join("/") : (name[0] ?? "");
  return new UnreadableRecord(code, `the ${NOUNS[kind] ?? "record"} ${JSON.stringify(key)} ${why}`, { cause });
}
