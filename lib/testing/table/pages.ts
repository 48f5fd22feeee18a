/** Pages of items of the table in memory: Query and Scan. */
import { type Condition, checkPlaceholders } from "./conditions.js";
import { validationError } from "./errors.js";
import type { Placeholders } from "./paths.js";
import { type Input, type Key, type Schema, ANY, keyIn, keyOf, onlyKnown, parsed, placeholdersOf } from "./request.js";
import { type Value, type ValueMap, membersSize, order } from "./values.js";

/** A page of items, as Query and Scan answer. */
export interface Page {
  readonly Items: readonly ValueMap[];
  readonly Count: number;
  readonly LastEvaluatedKey?: ValueMap;
}

/** The contents that a page is to have. */
interface Asked {
  readonly given: Placeholders;
  readonly filter: Condition | undefined;
  readonly limit: number;
  /** The attributes of its items. @default all */
  readonly attributes: readonly string[] | undefined;
  readonly after: Key | undefined;
}

const MAX_PAGE_BYTES = 1024 * 1024;
const PAGE: readonly string[] = [...ANY, "FilterExpression", "ProjectionExpression", "ExclusiveStartKey", "Limit"];
const QUERY: ReadonlySet<string> = new Set([...PAGE, "KeyConditionExpression"]);
const SCAN: ReadonlySet<string> = new Set([...PAGE, "Segment", "TotalSegments"]);

/** Reads a page of a partition. */
export function queryPage(input: Input, schema: Schema, items: Iterable<ValueMap>): Page {
  onlyKnown(input, QUERY);
  const { partitionKey, sortKey } = schema;
  const keys = parsed("KeyConditionExpression", input["KeyConditionExpression"]);
  const asked = askedOf(schema, input, keys);
  const { given } = asked;
  keys.check(given);
  const named = (condition: Condition): readonly unknown[] => condition.paths.map((path) => given.resolve(path)[0]);
  if (!named(keys).includes(partitionKey)) throw validationError(`Query condition missed key schema element: ${partitionKey}`);
  if (named(keys).some((name) => name !== partitionKey && name !== sortKey)) throw validationError("Query key condition not supported");
  if (asked.filter && named(asked.filter).some((name) => name === partitionKey || name === sortKey))
    throw validationError("Invalid FilterExpression: Filter Expression can only contain non-primary key attributes");
  return pageOf(
    schema,
    [...items].filter((item) => keys.test(item, given)),
    asked,
  );
}

/** Reads a page of a segment. AWS tells neither its order of partitions nor its segments: here both are by the key. */
export function scanPage(input: Input, schema: Schema, items: Iterable<ValueMap>): Page {
  onlyKnown(input, SCAN);
  const { Segment: segment = 0, TotalSegments: segments = 1 } = input;
  if ((input["Segment"] === undefined) !== (input["TotalSegments"] === undefined))
    throw validationError("The TotalSegments parameter is required but was not present in the request when Segment parameter is present");
  if (typeof segment !== "number" || typeof segments !== "number" || segment < 0 || segments < 1 || segment >= segments)
    throw validationError("The Segment parameter is zero-based and must be less than parameter TotalSegments");
  const isIn = (item: ValueMap): boolean => sumOf(Object.values(keyIn(schema, item)).join("\u0000")) % segments === segment;
  return pageOf(schema, [...items].filter(isIn), askedOf(schema, input));
}

/** Returns what a page is to have, by the parameters that Query and Scan share. */
function askedOf(schema: Schema, input: Input, keys?: Condition): Asked {
  const given = placeholdersOf(input);
  const { FilterExpression: filterText, ProjectionExpression: projectionText, Limit: limit = Number.POSITIVE_INFINITY } = input;
  const filter = filterText === undefined ? undefined : parsed("FilterExpression", filterText);
  const projection = typeof projectionText !== "string" ? undefined : projectionText.split(/\s*,\s*/);
  checkPlaceholders(
    new Set([...(keys?.used ?? []), ...(filter?.used ?? []), ...(projection ?? []).filter((name) => name.startsWith("#"))]),
    given,
  );
  filter?.check(given);
  if (typeof limit !== "number" || limit < 1) throw validationError("Limit must be greater than or equal to 1");
  const attributes = projection?.map((name) => {
    if (!/^#?\w+$/.test(name)) throw new Error(`this table does not know the projection of ${name}`);
    return String(given.resolve([name])[0]);
  });
  const after = input["ExclusiveStartKey"] === undefined ? undefined : keyOf(schema, input["ExclusiveStartKey"]);
  return { given, filter, limit, attributes, after };
}

function pageOf(schema: Schema, all: readonly ValueMap[], { given, filter, limit, attributes, after }: Asked): Page {
  const { partitionKey, sortKey } = schema;
  const compare = (a: Readonly<Record<string, Value>>, b: Readonly<Record<string, Value>>): number =>
    compareText(a[partitionKey], b[partitionKey]) || compareText(a[sortKey], b[sortKey]);
  const inOrder = all.filter((item) => !after || compare(item, after) > 0).sort(compare);
  const page: ValueMap[] = [];
  let bytes = 0;
  for (const item of inOrder) {
    if (page.length >= limit || bytes >= MAX_PAGE_BYTES) break;
    page.push(item);
    bytes += membersSize(item);
  }
  const last = page.at(-1);
  // A full page has a key to continue with, even if nothing follows.
  const isFull = last !== undefined && (page.length >= limit || page.length < inOrder.length);
  const found = filter ? page.filter((item) => filter.test(item, given)) : page;
  const Items = attributes ? found.map((item) => only(item, attributes)) : found;
  return { Items, Count: found.length, ...(isFull && { LastEvaluatedKey: keyIn(schema, last) }) };
}

function only(item: ValueMap, attributes: readonly string[]): ValueMap {
  return Object.fromEntries(Object.entries(item).filter(([name]) => attributes.includes(name)));
}

/** Returns a number that spreads texts. */
function sumOf(text: string): number {
  return Buffer.from(text).reduce((sum, byte) => sum + byte, 0);
}

function compareText(a: Value | undefined, b: Value | undefined): number {
  return order(a ?? "", b ?? "") ?? 0;
}
