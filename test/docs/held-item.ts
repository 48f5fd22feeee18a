/** The item of a key that is held and waited for, as the real service and store write it into a table in memory, and what each attribute is. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { leaseIdFrom } from "../../lib/core/lease-id.js";
import { createPolicy } from "../../lib/core/policy.js";
import { digestOfPrincipal, SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { oneClock } from "../../lib/service/clocks.js";
import { lockService } from "../../lib/service/service.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { HOLD, OFFER, OFFER_OF_PLACE, PLACE } from "../../lib/store/dynamo/layout.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { callsBy, carryOut } from "../../lib/testing/served-table.js";
import { type Input, DynamoTable } from "../../lib/testing/table/table.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ROOT } from "../tidy/tree.js";

/** The attributes of an item, or of a part of one. */
export type Item = Readonly<Record<string, unknown>>;

/** An attribute. */
export interface Row {
  /** The attribute that has it, and so on up to one of the item; none for one of the item. */
  readonly within: readonly string[];
  readonly name: string;
  /** Absent if it is a part, whose attributes follow. */
  readonly value?: string;
  readonly meaning: string;
}

/** The time of the first request. */
const START_MS = Date.UTC(2027, 0, 1);
/** The waiter comes so much later, in ms. */
const LATER_MS = 2_000;
const KEY = "ORDER_1231";

/** Has one client acquire the key and another one wait for it, and returns the key's item. */
export async function heldItem(): Promise<Item> {
  const clock = new VirtualClock(START_MS);
  const table = new DynamoTable({ tableName: "locks", ...TABLE }, () => clock.wallMs());
  const calls = callsBy(async (operation, input) => carryOut(table, operation, input as Input));
  const store = createDynamoStore({ calls, tableName: "locks", policy: createPolicy(), clock, random: () => 0 });
  const acquire = async (owner: string, random: number, waitMs?: number): Promise<void> => {
    const caller = { principal: digestOfPrincipal(owner), namespace: SHARED_NAMESPACE, requestId: "r" };
    const service = lockService({ store, log: () => undefined, clock }, caller, oneClock(clock));
    const leaseId = leaseIdFrom(
      clock.wallMs(),
      Uint8Array.from({ length: 10 }, (_, at) => (random * (at + 3)) % 256),
    );
    await clock.settle(service.acquire({ key: KEY, leaseId, owner, waitMs }));
  };
  await acquire("checkout-7", 151);
  await clock.advance(LATER_MS);
  await acquire("checkout-8", 173, 60_000);
  const item = [...table.items()].find(({ k }) => k === KEY);
  if (!item) throw new Error("the key has no item");
  return item;
}

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

/** Returns its attributes: the key first, then in the order in which the layout lists them. @throws Error for one without a meaning */
export function rowsOf(item: Item): readonly Row[] {
  const order = [...MEANINGS.keys()];
  const names = Object.keys(item).sort((a, b) => order.indexOf(a) - order.indexOf(b));
  return names.flatMap((name): readonly Row[] => {
    const meaning = MEANINGS.get(name);
    if (meaning === undefined) throw new Error(`the layout doesn't say what ${name} is`);
    const value = item[name];
    if (name === "h") return [{ within: [], name, meaning }, ...byLeaseId([name], value as Item, HOLD, "the holder's leaseId")];
    if (name !== "q" || (value as readonly Item[]).length === 0) return [{ within: [], name, value: shown(value), meaning }];
    const places = (value as readonly Item[]).flatMap((place) => placeRows([name], place));
    return [{ within: [], name, meaning }, ...places];
  });
}

/** Returns the rows of a place of the queue. */
function placeRows(within: readonly string[], { [OFFER_OF_PLACE]: offer, ...place }: Item): readonly Row[] {
  const future = { within, name: OFFER_OF_PLACE, meaning: "the waiter's future `h`" };
  const inside = byLeaseId([...within, OFFER_OF_PLACE], offer as Item, OFFER, "the waiter's leaseId");
  return [...memberRows(within, place, PLACE), future, ...inside];
}

interface Layout {
  readonly pathsIn: (path: string) => Readonly<Record<string, string>>;
}

/** Returns the rows of parts that stand below their leaseIds. */
function byLeaseId(within: readonly string[], parts: Item, layout: Layout, meaning: string): readonly Row[] {
  return Object.entries(parts).flatMap(([leaseId, part]) => [
    { within, name: leaseId, meaning },
    ...memberRows([...within, leaseId], part as Item, layout),
  ]);
}

/** Returns a row for each attribute of a part, with the name of its member. @throws Error for one that the layout doesn't have */
function memberRows(within: readonly string[], part: Item, layout: Layout): readonly Row[] {
  const members = new Map(Object.entries(layout.pathsIn("")).map(([member, path]) => [path.slice(1), member]));
  return Object.entries(part).map(([name, value]) => {
    const member = members.get(name);
    if (member === undefined) throw new Error(`the layout has no ${name} in ${within.join(".")}`);
    return { within, name, value: shown(value), meaning: `\`${member}\`` };
  });
}

function shown(value: unknown): string {
  return typeof value === "string" && value !== "" ? value : JSON.stringify(value);
}
