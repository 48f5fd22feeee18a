/** The parameters of a request to the table in memory: the known ones, expressions, placeholders and keys. */
import { type Condition, parseCondition } from "./conditions.js";
import { validationError } from "./errors.js";
import { Placeholders } from "./paths.js";
import { type Update, parseUpdate } from "./updates.js";
import { type ValueMap, bytesOf, valueOf } from "./values.js";

/** The table's keys and its TTL attribute. */
export interface Schema {
  readonly tableName: string;
  readonly partitionKey: string;
  readonly sortKey: string;
  readonly ttlAttribute: string;
}

/** An operation's input, in the document client's plain values. */
export type Input = Readonly<Record<string, unknown>>;

/** A primary key: the two attributes and their texts. */
export type Key = Readonly<Record<string, string>>;

/** The parameters that most operations have. */
export const ANY: readonly string[] = ["TableName", "ExpressionAttributeNames", "ExpressionAttributeValues"];

const MAX_KEY_BYTES = { partition: 2048, sort: 1024 };
const MAX_PARSED = 4000;

/** Refuses unknown parameters, which the table would otherwise silently ignore. */
export function onlyKnown(input: Input, known: ReadonlySet<string>): void {
  for (const name of Object.keys(input))
    if (!known.has(name) && input[name] !== undefined) throw new Error(`this table does not know the parameter ${name}`);
}

/** Returns the parameter, if it is one of the known. */
export function oneOf(input: Input, name: string, known: readonly string[]): string | undefined {
  const value = input[name] as string | undefined;
  if (value !== undefined && !known.includes(value)) throw new Error(`this table does not know ${name} ${value}`);
  return value;
}

/** Returns the names and values of a request. */
export function placeholdersOf(input: Input): Placeholders {
  const { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = input;
  for (const parameter of ["ExpressionAttributeNames", "ExpressionAttributeValues"])
    if (input[parameter] !== undefined && Object.keys(input[parameter] as object).length === 0)
      throw validationError(`${parameter} must not be empty`);
  return new Placeholders(names as Readonly<Record<string, string>>, valueOf(values) as ValueMap);
}

const conditions = new Map<string, Condition>();
const updates = new Map<string, Update>();

/** Returns the condition in this parameter. */
export function parsed(expression: string, text: unknown): Condition {
  if (typeof text !== "string") throw validationError(`Either ${expression} must be given`);
  return remembered(conditions, `${expression} ${text}`, () => parseCondition(expression, text));
}

/** Returns an update. */
export function parsedUpdate(text: string): Update {
  return remembered(updates, text, () => parseUpdate(text));
}

function remembered<T>(known: Map<string, T>, name: string, make: () => T): T {
  let one = known.get(name);
  if (one !== undefined) return one;
  if (known.size >= MAX_PARSED) known.clear();
  known.set(name, (one = make()));
  return one;
}

/** Returns the primary key that a request gives. */
export function keyOf(schema: Schema, given: unknown): Key {
  const key = valueOf(given ?? {}) as ValueMap;
  if (Object.keys(key).length !== 2) throw validationError("The provided key element does not match the schema");
  return keyIn(schema, key);
}

/** Returns the primary key of an item. */
export function keyIn({ partitionKey, sortKey }: Schema, item: ValueMap): Key {
  const [partition, sort] = [item[partitionKey], item[sortKey]];
  if (typeof partition !== "string" || typeof sort !== "string")
    throw validationError("The provided key element does not match the schema");
  if (partition === "" || sort === "")
    throw validationError(
      "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value",
    );
  if (bytesOf(partition) > MAX_KEY_BYTES.partition || bytesOf(sort) > MAX_KEY_BYTES.sort)
    throw validationError("One or more parameter values were invalid: Size of a key has exceeded the size limit");
  return { [partitionKey]: partition, [sortKey]: sort };
}
