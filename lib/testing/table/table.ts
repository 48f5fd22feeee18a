/**
 * A DynamoDB table in memory, as strict as AWS: it refuses the same requests with the same names and messages. It
 * supports the store's requests and no others; anything else is an explicit error. Each operation is atomic. Its time
 * comes from outside: for TTL, and for the memory of transaction tokens.
 */
import type { CancellationReason } from "../../store/dynamo/calls.js";
import { type Condition, checkPlaceholders, parseCondition } from "./conditions.js";
import { conditionFailed, serviceError, transactionCanceled, validationError } from "./errors.js";
import { Placeholders } from "./paths.js";
import { type Update, parseUpdate } from "./updates.js";
import { type Value, type ValueMap, bytesOf, itemToWire, membersSize, order, valueOf } from "./values.js";

/** The table's keys and its TTL attribute. */
export interface Schema {
  readonly tableName: string;
  readonly partitionKey: string;
  readonly sortKey: string;
  readonly ttlAttribute: string;
}

/** A write of an item, or its refusal, as it happened. */
export interface Written {
  readonly before: ValueMap | undefined;
  readonly after: ValueMap;
}

/** An operation's input, in the document client's plain values. */
export type Input = Readonly<Record<string, unknown>>;

/** A primary key: the two attributes and their texts. */
type Key = Readonly<Record<string, string>>;

/** A parsed and checked write, before its item is read. */
interface Prepared {
  readonly id: string;
  readonly key: Key;
  readonly condition: Condition | undefined;
  readonly given: Placeholders;
  readonly returnsOld: boolean;
  readonly next: (before: ValueMap | undefined) => ValueMap;
}

interface Token {
  readonly input: string;
  readonly untilMs: number;
}

const MAX_ITEM_BYTES = 400 * 1024;
const MAX_TRANSACTION_ITEMS = 100;
const MAX_TRANSACTION_BYTES = 4 * 1024 * 1024;
const MAX_PAGE_BYTES = 1024 * 1024;
const MAX_KEY_BYTES = { partition: 2048, sort: 1024 };
const TOKEN_LASTS_MS = 10 * 60_000;
const MAX_PARSED = 4000;

/** A table in memory that answers as DynamoDB does. */
export class DynamoTable {
  readonly #items = new Map<string, ValueMap>();
  readonly #tokens = new Map<string, Token>();
  /** Called for every write, in the order in which they happen. */
  onWritten: (written: Written) => void = () => undefined;

  constructor(
    readonly schema: Schema,
    private readonly nowMs: () => number,
  ) {}

  /** All items, in no order. */
  items(): Iterable<ValueMap> {
    return this.#items.values();
  }

  get(input: Input): { readonly Item?: ValueMap } {
    this.#only(input, READ);
    this.#named(input);
    const item = this.#items.get(this.#idOf(this.#keyOf(input["Key"])));
    return item ? { Item: item } : {};
  }

  update(input: Input): { readonly Attributes?: ValueMap } {
    this.#only(input, UPDATE);
    return this.#carryOut(this.#preparedUpdate(input), input["ReturnValues"]);
  }

  put(input: Input): { readonly Attributes?: ValueMap } {
    this.#only(input, PUT);
    const item = valueOf(input["Item"]) as ValueMap;
    const write = this.#prepared({ ...input, Key: this.#keyIn(item) }, undefined);
    return this.#carryOut({ ...write, next: () => item }, input["ReturnValues"]);
  }

  #carryOut(write: Prepared, wanted: unknown): { readonly Attributes?: ValueMap } {
    const before = this.#items.get(write.id);
    if (!this.#holds(write, before)) throw conditionFailed(write.returnsOld && before ? itemToWire(before) : undefined);
    const after = write.next(before);
    this.#write(write.id, before, after);
    return returned(wanted, { before, after });
  }

  /** The items that a transaction would write, by their ids; none if its token was used already. */
  idsOf(input: Input): readonly string[] {
    return this.#seen(input) ? [] : this.#transaction(input).map(({ id }) => id);
  }

  /** The id of the item in a write of one item. */
  idOf(input: Input): string {
    return this.#idOf(this.#keyOf(input["Key"]));
  }

  /** The size of the item with this id, by DynamoDB's rules; 0 if there is none. */
  bytesOf(id: string): number {
    return membersSize(this.#items.get(id) ?? {});
  }

  /** Writes all items or none, once for each token. */
  transactWrite(input: Input): Record<string, never> {
    if (this.#seen(input)) return {};
    const writes = this.#transaction(input);
    const done: (Written & { readonly id: string })[] = [];
    const reasons = writes.map((write): CancellationReason => {
      const { id } = write;
      const before = this.#items.get(id);
      if (!this.#holds(write, before)) {
        const seen = write.returnsOld && before ? { Item: itemToWire(before) } : {};
        return { Code: "ConditionalCheckFailed", Message: "The conditional request failed", ...seen };
      }
      try {
        done.push({ id, before, after: write.next(before) });
        return { Code: "None" };
      } catch (error) {
        return { Code: "ValidationError", Message: (error as Error).message };
      }
    });
    if (reasons.some(({ Code }) => Code !== "None")) throw transactionCanceled(reasons);
    const bytes = done.reduce((sum, { after }) => sum + membersSize(after), 0);
    if (bytes > MAX_TRANSACTION_BYTES) throw validationError("Transaction request cannot include more than 4 MB of data");
    for (const { id, before, after } of done) this.#write(id, before, after);
    const token = input["ClientRequestToken"];
    if (typeof token === "string") this.#remember(token, textOf(input));
    return {};
  }

  query(input: Input): { readonly Items: readonly ValueMap[]; readonly Count: number; readonly LastEvaluatedKey?: ValueMap } {
    this.#only(input, QUERY);
    this.#named(input);
    const { partitionKey, sortKey } = this.schema;
    const given = placeholdersOf(input);
    const keys = parsed("KeyConditionExpression", input["KeyConditionExpression"]);
    const filter = input["FilterExpression"] === undefined ? undefined : parsed("FilterExpression", input["FilterExpression"]);
    checkPlaceholders(new Set([...keys.used, ...(filter?.used ?? [])]), given);
    keys.check(given);
    filter?.check(given);
    const named = (condition: Condition): readonly unknown[] => condition.paths.map((path) => given.resolve(path)[0]);
    if (!named(keys).includes(partitionKey)) throw validationError(`Query condition missed key schema element: ${partitionKey}`);
    if (named(keys).some((name) => name !== partitionKey && name !== sortKey)) throw validationError("Query key condition not supported");
    if (filter && named(filter).some((name) => name === partitionKey || name === sortKey))
      throw validationError("Invalid FilterExpression: Filter Expression can only contain non-primary key attributes");
    const limit = input["Limit"] ?? Number.POSITIVE_INFINITY;
    if (typeof limit !== "number" || limit < 1) throw validationError("Limit must be greater than or equal to 1");

    const after = input["ExclusiveStartKey"] === undefined ? undefined : this.#keyOf(input["ExclusiveStartKey"]);
    const inOrder = [...this.#items.values()]
      .filter((item) => keys.test(item, given))
      .filter((item) => !after || compareText(item[sortKey], after[sortKey]) > 0)
      .sort((a, b) => compareText(a[sortKey], b[sortKey]));
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
    return { Items: found, Count: found.length, ...(isFull && { LastEvaluatedKey: this.#keyIn(last) }) };
  }

  /** Time to live: removes and returns the items whose time had passed at `nowSec` and that `isChosen`. */
  expire(nowSec: number, isChosen: (item: ValueMap) => boolean = () => true): readonly ValueMap[] {
    const { ttlAttribute } = this.schema;
    const gone: ValueMap[] = [];
    for (const [id, item] of this.#items) {
      const atSec = item[ttlAttribute];
      // DynamoDB ignores a time more than five years ago.
      if (typeof atSec !== "number" || atSec >= nowSec || atSec < nowSec - FIVE_YEARS_SEC || !isChosen(item)) continue;
      this.#items.delete(id);
      gone.push(item);
    }
    return gone;
  }

  #write(id: string, before: ValueMap | undefined, after: ValueMap): void {
    this.#items.set(id, after);
    this.onWritten({ before, after });
  }

  #holds({ condition, given }: Prepared, before: ValueMap | undefined): boolean {
    return !condition || condition.test(before, given);
  }

  #preparedUpdate(input: Input): Prepared {
    const text = input["UpdateExpression"];
    const update = typeof text === "string" ? remembered(updates, text, () => parseUpdate(text)) : undefined;
    const write = this.#prepared(input, update);
    const { key, given } = write;
    for (const [name] of update?.targets(given) ?? [])
      if (Object.hasOwn(key, String(name)))
        throw validationError(
          `One or more parameter values were invalid: Cannot update attribute ${String(name)}. This attribute is part of the key`,
        );
    return { ...write, next: (before) => this.#sized(update ? update.apply(before ?? key, given) : (before ?? key)) };
  }

  #prepared(input: Input, update: Update | undefined): Prepared {
    this.#named(input);
    const key = this.#keyOf(input["Key"]);
    const given = placeholdersOf(input);
    const text = input["ConditionExpression"];
    const condition = text === undefined ? undefined : parsed("ConditionExpression", text);
    if (!condition && !update && (input["ExpressionAttributeNames"] ?? input["ExpressionAttributeValues"]) !== undefined)
      throw validationError("ExpressionAttributeNames can only be specified when using expressions");
    checkPlaceholders(new Set([...(condition?.used ?? []), ...(update?.used ?? [])]), given);
    condition?.check(given);
    const returnsOld = oneOf(input, "ReturnValuesOnConditionCheckFailure", ["NONE", "ALL_OLD"]) === "ALL_OLD";
    return { id: this.#idOf(key), key, condition, given, returnsOld, next: (before) => before ?? key };
  }

  #transaction(input: Input): readonly Prepared[] {
    this.#only(input, TRANSACTION);
    const items = input["TransactItems"] as readonly Input[] | undefined;
    if (!items || items.length < 1 || items.length > MAX_TRANSACTION_ITEMS)
      throw validationError(`Member must have length less than or equal to ${MAX_TRANSACTION_ITEMS}, and at least 1`);
    const writes = items.map((item) => {
      this.#only(item, ONE_OF_MANY);
      const update = item["Update"] as Input;
      this.#only(update, UPDATE_OF_MANY);
      return this.#preparedUpdate(update);
    });
    if (new Set(writes.map(({ id }) => id)).size < writes.length)
      throw validationError("Transaction request cannot include multiple operations on one item");
    return writes;
  }

  /** True if this transaction was already carried out. */
  #seen(input: Input): boolean {
    const token = input["ClientRequestToken"];
    const known = typeof token === "string" ? this.#tokens.get(token) : undefined;
    if (!known || known.untilMs <= this.nowMs()) return false;
    if (known.input !== textOf(input))
      throw serviceError(
        "IdempotentParameterMismatchException",
        "The request uses the same client token as a previous, but non-identical request",
      );
    return true;
  }

  /** Keeps a token, and drops those that are over. */
  #remember(token: string, input: string): void {
    for (const [old, { untilMs }] of this.#tokens) {
      if (untilMs > this.nowMs()) break;
      this.#tokens.delete(old);
    }
    this.#tokens.set(token, { input, untilMs: this.nowMs() + TOKEN_LASTS_MS });
  }

  #sized(item: ValueMap): ValueMap {
    if (membersSize(item) > MAX_ITEM_BYTES) throw validationError("Item size to update has exceeded the maximum allowed size");
    return item;
  }

  #named(input: Input): void {
    if (input["TableName"] !== this.schema.tableName) throw serviceError("ResourceNotFoundException", "Requested resource not found");
  }

  /** Refuses unknown parameters, which the table would otherwise silently ignore. */
  #only(input: Input, known: ReadonlySet<string>): void {
    for (const name of Object.keys(input))
      if (!known.has(name) && input[name] !== undefined) throw new Error(`this table does not know the parameter ${name}`);
  }

  #keyOf(given: unknown): Key {
    const key = valueOf(given ?? {}) as ValueMap;
    if (Object.keys(key).length !== 2) throw validationError("The provided key element does not match the schema");
    return this.#keyIn(key);
  }

  #keyIn(item: ValueMap): Key {
    const { partitionKey, sortKey } = this.schema;
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

  #idOf(key: Key): string {
    return `${key[this.schema.partitionKey] ?? ""}\u0000${key[this.schema.sortKey] ?? ""}`;
  }
}

const FIVE_YEARS_SEC = 5 * 365 * 86_400;
const ANY: readonly string[] = ["TableName", "ExpressionAttributeNames", "ExpressionAttributeValues"];
const WRITE: readonly string[] = [...ANY, "ConditionExpression", "ReturnValuesOnConditionCheckFailure"];
/** The parameters of each operation. */
const READ: ReadonlySet<string> = new Set(["TableName", "Key", "ConsistentRead"]);
const UPDATE: ReadonlySet<string> = new Set([...WRITE, "Key", "UpdateExpression", "ReturnValues"]);
const PUT: ReadonlySet<string> = new Set([...WRITE, "Item", "ReturnValues"]);
const QUERY: ReadonlySet<string> = new Set([...ANY, "KeyConditionExpression", "FilterExpression", "ExclusiveStartKey", "Limit"]);
const TRANSACTION: ReadonlySet<string> = new Set(["TransactItems", "ClientRequestToken"]);
const ONE_OF_MANY: ReadonlySet<string> = new Set(["Update"]);
const UPDATE_OF_MANY: ReadonlySet<string> = new Set([...WRITE, "Key", "UpdateExpression"]);

function returned(wanted: unknown, { before, after }: Written): { readonly Attributes?: ValueMap } {
  oneOf({ ReturnValues: wanted }, "ReturnValues", ["NONE", "ALL_OLD", "ALL_NEW"]);
  const item = wanted === "ALL_NEW" ? after : wanted === "ALL_OLD" ? before : undefined;
  return item ? { Attributes: item } : {};
}

function oneOf(input: Input, name: string, known: readonly string[]): string | undefined {
  const value = input[name] as string | undefined;
  if (value !== undefined && !known.includes(value)) throw new Error(`this table does not know ${name} ${value}`);
  return value;
}

function placeholdersOf(input: Input): Placeholders {
  const { ExpressionAttributeNames: names = {}, ExpressionAttributeValues: values = {} } = input;
  for (const parameter of ["ExpressionAttributeNames", "ExpressionAttributeValues"])
    if (input[parameter] !== undefined && Object.keys(input[parameter] as object).length === 0)
      throw validationError(`${parameter} must not be empty`);
  return new Placeholders(names as Readonly<Record<string, string>>, valueOf(values) as ValueMap);
}

const conditions = new Map<string, Condition>();
const updates = new Map<string, Update>();

function parsed(expression: string, text: unknown): Condition {
  if (typeof text !== "string") throw validationError(`Either ${expression} must be given`);
  return remembered(conditions, `${expression} ${text}`, () => parseCondition(expression, text));
}

function remembered<T>(known: Map<string, T>, name: string, make: () => T): T {
  let one = known.get(name);
  if (one !== undefined) return one;
  if (known.size >= MAX_PARSED) known.clear();
  known.set(name, (one = make()));
  return one;
}

function textOf(input: Input): string {
  return JSON.stringify(input["TransactItems"]);
}

function compareText(a: Value | undefined, b: Value | undefined): number {
  return order(a ?? "", b ?? "") ?? 0;
}
