/**
 * A DynamoDB table in memory, as strict as AWS: it refuses the same requests with the same names and messages. It
 * supports the store's requests and no others; anything else is an explicit error. Each operation is atomic. Its time
 * comes from outside: for TTL, and for the memory of transaction tokens.
 */
import type { CancellationReason } from "../../store/dynamo/calls.js";
import { type Condition, checkPlaceholders } from "./conditions.js";
import { conditionFailed, serviceError, transactionCanceled, validationError } from "./errors.js";
import { type Page, queryPage, scanPage } from "./pages.js";
import type { Placeholders } from "./paths.js";
import { type Input, type Key, type Schema, ANY, keyIn, keyOf, oneOf, onlyKnown, parsed, parsedUpdate, placeholdersOf } from "./request.js";
import type { Update } from "./updates.js";
import { type ValueMap, itemToWire, membersSize, valueOf } from "./values.js";

export type { Input, Schema } from "./request.js";

/** A write of an item, or its refusal, as it happened. */
export interface Written {
  readonly before: ValueMap | undefined;
  readonly after: ValueMap;
}

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
const TOKEN_LASTS_MS = 10 * 60_000;

/** A table in memory that answers as DynamoDB does. */
export class DynamoTable {
  readonly #items = new Map<string, ValueMap>();
  readonly #tokens = new Map<string, Token>();
  /** Called for every write that leaves an item, in the order in which they happen. */
  onWritten: (written: Written) => void = () => undefined;

  constructor(
    readonly schema: Schema,
    private readonly nowMs: () => number,
  ) {}

  /** Returns a table with the same items. */
  copy(): DynamoTable {
    const copy = new DynamoTable(this.schema, this.nowMs);
    for (const [id, item] of this.#items) copy.replicate(id, item);
    return copy;
  }

  /** The item with this id, if there is one. */
  itemAt(id: string): ValueMap | undefined {
    return this.#items.get(id);
  }

  /** Sets or removes an item, as a replica of another table gets it: without a condition or an event. */
  replicate(id: string, item: ValueMap | undefined): void {
    if (item) this.#items.set(id, item);
    else this.#items.delete(id);
  }

  /** All items, in no order. */
  items(): Iterable<ValueMap> {
    return this.#items.values();
  }

  get(input: Input): { readonly Item?: ValueMap } {
    onlyKnown(input, READ);
    this.#named(input);
    const item = this.#items.get(this.#idOf(keyOf(this.schema, input["Key"])));
    return item ? { Item: item } : {};
  }

  update(input: Input): { readonly Attributes?: ValueMap } {
    onlyKnown(input, UPDATE);
    return this.#carryOut(this.#preparedUpdate(input), input["ReturnValues"]);
  }

  put(input: Input): { readonly Attributes?: ValueMap } {
    onlyKnown(input, PUT);
    const item = valueOf(input["Item"]) as ValueMap;
    const write = this.#prepared({ ...input, Key: keyIn(this.schema, item) }, undefined);
    return this.#carryOut({ ...write, next: () => item }, input["ReturnValues"]);
  }

  /** Deletes an item, or nothing where none is. */
  delete(input: Input): { readonly Attributes?: ValueMap } {
    onlyKnown(input, DELETE);
    const write = this.#prepared(input, undefined);
    const before = this.#items.get(write.id);
    if (!this.#holds(write, before)) throw conditionFailed(write.returnsOld && before ? itemToWire(before) : undefined);
    const wanted = oneOf(input, "ReturnValues", ["NONE", "ALL_OLD"]);
    this.#items.delete(write.id);
    return wanted === "ALL_OLD" && before ? { Attributes: before } : {};
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
    return this.#idOf(keyOf(this.schema, input["Key"]));
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

  query(input: Input): Page {
    this.#named(input);
    return queryPage(input, this.schema, this.#items.values());
  }

  scan(input: Input): Page {
    this.#named(input);
    return scanPage(input, this.schema, this.#items.values());
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
    const update = typeof text === "string" ? parsedUpdate(text) : undefined;
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
    const key = keyOf(this.schema, input["Key"]);
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
    onlyKnown(input, TRANSACTION);
    const items = input["TransactItems"] as readonly Input[] | undefined;
    if (!items || items.length < 1 || items.length > MAX_TRANSACTION_ITEMS)
      throw validationError(`Member must have length less than or equal to ${MAX_TRANSACTION_ITEMS}, and at least 1`);
    const writes = items.map((item) => {
      onlyKnown(item, ONE_OF_MANY);
      const update = item["Update"] as Input;
      onlyKnown(update, UPDATE_OF_MANY);
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

  #idOf(key: Key): string {
    return `${key[this.schema.partitionKey] ?? ""}\u0000${key[this.schema.sortKey] ?? ""}`;
  }
}

const FIVE_YEARS_SEC = 5 * 365 * 86_400;
const WRITE: readonly string[] = [...ANY, "ConditionExpression", "ReturnValuesOnConditionCheckFailure"];
/** The parameters of each operation. */
const READ: ReadonlySet<string> = new Set(["TableName", "Key", "ConsistentRead"]);
const UPDATE: ReadonlySet<string> = new Set([...WRITE, "Key", "UpdateExpression", "ReturnValues"]);
const PUT: ReadonlySet<string> = new Set([...WRITE, "Item", "ReturnValues"]);
const DELETE: ReadonlySet<string> = new Set([...WRITE, "Key", "ReturnValues"]);
const TRANSACTION: ReadonlySet<string> = new Set(["TransactItems", "ClientRequestToken"]);
const ONE_OF_MANY: ReadonlySet<string> = new Set(["Update"]);
const UPDATE_OF_MANY: ReadonlySet<string> = new Set([...WRITE, "Key", "UpdateExpression"]);

function returned(wanted: unknown, { before, after }: Written): { readonly Attributes?: ValueMap } {
  oneOf({ ReturnValues: wanted }, "ReturnValues", ["NONE", "ALL_OLD", "ALL_NEW"]);
  const item = wanted === "ALL_NEW" ? after : wanted === "ALL_OLD" ? before : undefined;
  return item ? { Attributes: item } : {};
}

function textOf(input: Input): string {
  return JSON.stringify(input["TransactItems"]);
}
