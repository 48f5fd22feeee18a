/**
 * Records in DynamoDB. Each change of one key takes one road (compare-and-set.ts):
 *
 *  1. decide on the record that this process saw lately, or guess the common case of the command;
 *  2. write it in its form (forms.ts), as one conditional UpdateItem;
 *  3. refused: the write is charged, the item that the refusal returns is not, and the core decides on it.
 *
 * So: 1 write to acquire a free key, to renew, to release; 2 for a takeover; 1 for a refusal, or a read if this process saw lately that the key
 * is held. If a write succeeded and was sent again, by us or by the AWS SDK, the returned item shows that. Every write has a condition, and none
 * deletes a record: that is left to TTL, or to a sweep (sweep.ts).
 */
import { isA } from "../../core/brand.js";
import type { RecordParameters } from "../../core/api/locks.js";
import type { Acquire, Command } from "../../core/commands.js";
import { randomToken } from "../../core/random.js";
import type { LockRecord } from "../../core/record.js";
import { transition } from "../../core/transition.js";
import { plainItem } from "./attribute-value.js";
import type { Change, CompareAndSetDeps, WriteAllResult, Writes } from "../compare-and-set.js";
import { compareAndSet, compareAndSetAll, refusedSet } from "../compare-and-set.js";
import { type TableCalls, cancellationReasons, isConditionFailed } from "./calls.js";
import { repeatingConflicts, untilNoConflict } from "./conflicts.js";
import { RecentRecords } from "./recent-records.js";
import { type TableForm, blindWrite, formsOf, resultOf } from "./forms.js";
import { DynamoLimits } from "./limit-store.js";
import type { AttemptOf, Write } from "./predicates.js";
import { replacement, unchanged } from "./replacement.js";
import { FORMAT_VERSION } from "./format.js";
import type { Item } from "./layout.js";
import { doorsIn, fromItem, itemKey, payloadIn, payloadKey, storedIn, storedOf } from "./item.js";
import { DOORS, TENANCY, TENANCY_KEY, tenancyIn } from "./item.js";
import type {
  Address,
  Applied,
  LimitStore,
  ListPage,
  ListQuery,
  LockStore,
  Part,
  ReadClocks,
  StoredPayload,
  TableTenancy,
} from "../port.js";
import type { Stored } from "./lists.js";
import { KeyContended, StoreUnavailable } from "../port.js";
import { acquireInParts } from "../set-in-parts.js";
import { listShards } from "./shards.js";
import { TABLE } from "./table.js";
import { type TablePlace, readFrom, tableUnavailable } from "./unavailable.js";

/** The table of a store, the operations on it, and the dependencies of the compare-and-set loop. */
interface DynamoStoreDeps extends CompareAndSetDeps, TablePlace {
  readonly calls: TableCalls;
  /** False on a table that has no transactions: a set is acquired in parts (set-in-parts.ts). @default true */
  readonly transactions?: boolean | undefined;
  /** The doors by which this store's callers reach the table, such as the service's URL. They are written into the table. @default none */
  readonly doors?: readonly string[] | undefined;
}

/** The largest number of doors that are written into a table: its item is read by every new process. */
const DOORS_MAX = 32;

/** Creates a store on the table `tableName`, with the operations `calls`. */
export function createDynamoStore(deps: DynamoStoreDeps): LockStore {
  return new DynamoStore(deps);
}

/** A store on one table. It remembers the records that it saw recently. */
class DynamoStore implements LockStore {
  readonly parameters: RecordParameters;
  readonly limits: LimitStore;
  readonly #calls: TableCalls;
  readonly #table: { readonly TableName: string };
  readonly #place: TablePlace;
  readonly #deps: CompareAndSetDeps;
  readonly #recentRecords: RecentRecords;
  readonly #ownDoors: readonly string[];
  readonly #hasTransactions: boolean;
  #tenancy: Promise<TableTenancy> | undefined;

  constructor({ calls, tableName, region, transactions = true, doors = [], ...deps }: DynamoStoreDeps) {
    const { clockErrorMs, retentionMs } = deps.policy;
    this.parameters = { format: FORMAT_VERSION, clockErrorMs, retentionMs };
    this.#calls = repeatingConflicts(calls, deps);
    this.#hasTransactions = transactions;
    this.#table = { TableName: tableName };
    this.#place = { tableName, region };
    this.#deps = deps;
    this.#ownDoors = doors;
    this.limits = new DynamoLimits({ calls, tableName, region, ...deps });
    this.#recentRecords = new RecentRecords(deps.clock);
  }

  /** Sends one conditional write. A refused write returns the item. */
  async #write(
    address: Address,
    { condition, update, names, values }: Write,
  ): Promise<{ written: true; before: Item | undefined } | { written: false; seen: Stored | undefined }> {
    const input = {
      ...this.#table,
      Key: itemKey(address),
      ConditionExpression: condition,
      UpdateExpression: update,
      ExpressionAttributeValues: { ...values },
      ReturnValues: "ALL_OLD" as const,
      ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
      ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: { ...names } }),
    };
    try {
      const { Attributes } = await this.#calls.updateItem(input);
      return { written: true, before: Attributes };
    } catch (error) {
      if (!isConditionFailed(error)) throw await tableUnavailable(error, this.#place);
      return { written: false, seen: storedOf(error.Item && plainItem(error.Item)) };
    }
  }

  /** Sends several conditional writes as one. Returns undefined if they happened, else the records that refused, by index. */
  async #transact(
    writes: readonly (Write & { readonly address: Address })[],
  ): Promise<ReadonlyMap<number, Stored | undefined> | undefined> {
    const TransactItems = writes.map(({ address, condition, update, names, values }) => ({
      Update: {
        ...this.#table,
        Key: itemKey(address),
        ConditionExpression: condition,
        UpdateExpression: update,
        ExpressionAttributeValues: { ...values },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD" as const,
        ...(Object.keys(names).length > 0 && { ExpressionAttributeNames: { ...names } }),
      },
    }));
    try {
      await untilNoConflict(() => this.#calls.transactWriteItems({ ClientRequestToken: randomToken(), TransactItems }), this.#deps);
      return undefined;
    } catch (error) {
      const refused = cancellationReasons(error).flatMap(({ Code, Item }, index) =>
        Code === "ConditionalCheckFailed" ? [[index, storedOf(Item && plainItem(Item))] as const] : [],
      );
      if (refused.length === 0) throw await tableUnavailable(error, this.#place);
      return new Map(refused);
    }
  }

  /** Returns the writes of a command, which also update what is remembered of its key. */
  #writesOf<C extends Command>(address: Address, command: C): Writes<C, Stored, TableForm<C>> {
    return {
      forms: formsOf(address.kind, command),
      read: () => this.#read(address),
      write: async (form, attempt) => {
        const write = form.write(attempt);
        const result = await this.#write(address, write).catch((error: unknown) => this.#readInstead(address, attempt, error));
        if (!result.written) {
          this.#recentRecords.note(address, result.seen);
          return result;
        }
        const { decided, after } = resultOf(write, attempt, result.before);
        if (after && !(form.isForgotten && attempt.isFresh)) this.#recentRecords.note(address, after);
        return { written: true, decided };
      },
    };
  }

  /** A caller that only tries is probably one of a crowd. Reads have units of their own, and the holder needs those of the writes. */
  async #readInstead(
    address: Address,
    { command, isFresh }: AttemptOf,
    error: unknown,
  ): Promise<{ written: false; seen: Stored | undefined }> {
    const isOnlyTrying = command.type === "acquire" && !command.wait && !isFresh;
    if (!isOnlyTrying || isA(error, KeyContended) || !(isA(error, StoreUnavailable) && error.throttled && error.definite)) throw error;
    return { written: false, seen: await this.#read(address) };
  }

  async #recordedTenancy(mine: TableTenancy): Promise<TableTenancy> {
    try {
      const item = (await this.#tableItem()) ?? (await this.#recordTenancy(mine));
      const tenancy = tenancyIn(item);
      await this.#writeDoors(item);
      return tenancy;
    } catch (error) {
      throw await tableUnavailable(error, this.#place);
    }
  }

  /** Records the tenancy, and returns the table's item; that of another client, if it came first. */
  async #recordTenancy(mine: TableTenancy): Promise<Item> {
    try {
      await this.#calls.updateItem({
        ...this.#table,
        Key: TENANCY_KEY,
        ConditionExpression: `attribute_not_exists(${TENANCY})`,
        UpdateExpression: `SET ${TENANCY} = :mine, fv = :format`,
        ExpressionAttributeValues: { ":mine": mine, ":format": FORMAT_VERSION },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      return { [TENANCY]: mine, fv: FORMAT_VERSION };
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
      return plainItem(error.Item ?? {});
    }
  }

  async #tableItem(): Promise<Item | undefined> {
    return (await this.#calls.getItem({ ...this.#table, Key: TENANCY_KEY, ConsistentRead: true })).Item;
  }

  /** Writes the own doors that the table's item lacks. Returns false if it lacks none. A failed write fails no request: the next one tries again. */
  async #writeDoors({ [DOORS]: written = [] }: Item): Promise<boolean> {
    const missing = this.#ownDoors.filter((door) => !(written as readonly unknown[]).includes(door));
    const write = (door: string): Promise<unknown> =>
      this.#calls.updateItem({
        ...this.#table,
        Key: TENANCY_KEY,
        ConditionExpression: `attribute_exists(${TENANCY}) AND NOT contains(${DOORS}, :door) AND (attribute_not_exists(${DOORS}) OR size(${DOORS}) < :most)`,
        UpdateExpression: `SET ${DOORS} = list_append(if_not_exists(${DOORS}, :none), :doors)`,
        ExpressionAttributeValues: { ":door": door, ":doors": [door], ":none": [], ":most": DOORS_MAX },
      });
    for (const door of missing) await write(door).catch(() => undefined);
    return missing.length > 0;
  }

  async doors(): Promise<readonly string[]> {
    return readFrom(this.#place, async () => {
      const found = await this.#tableItem();
      if (!found) return [];
      const listed = doorsIn(found);
      return (await this.#writeDoors(found)) ? doorsIn((await this.#tableItem()) ?? found) : listed;
    });
  }

  tenancy(mine: TableTenancy): Promise<TableTenancy> {
    this.#tenancy ??= this.#recordedTenancy(mine).catch((error: unknown) => {
      this.#tenancy = undefined; // The next request tries again.
      throw error;
    });
    return this.#tenancy;
  }

  apply<C extends Command>(address: Address, command: C, clocks: ReadClocks): Promise<Applied<C>> {
    const stored = this.#recentRecords.of(address, command);
    return compareAndSet(stored && { stored, isFresh: false }, command, clocks, this.#writesOf(address, command), this.#deps);
  }

  async applyAll(parts: readonly Part<Acquire>[], clocks: ReadClocks): Promise<readonly (Applied<Acquire> | undefined)[]> {
    if (!this.#hasTransactions) return acquireInParts(parts, clocks, this);
    const readAll = (): Promise<(Stored | undefined)[]> => Promise.all(parts.map(({ address }) => this.#read(address)));
    const reading = clocks();
    const writes = parts.flatMap(({ address, command }) => {
      const write = blindWrite(address.kind, command, reading, this.#deps.policy);
      return write ? [{ address, ...write }] : [];
    });
    // The response has the items of the parts that refused. If the core refuses one of them too, no other part needs a read.
    const refused = writes.length === parts.length ? await this.#transact(writes) : new Map<number, Stored | undefined>();
    // These keys were free and are decided as if they were new. Only the version differs, and a set's answer doesn't include it.
    if (!refused) return parts.map(({ command }) => transition(undefined, command, reading, this.#deps.policy));
    const decided = parts.map(({ command }, index) => {
      const seen = refused.get(index);
      return refused.has(index) ? { seen, decision: transition(seen?.record, command, reading, this.#deps.policy) } : undefined;
    });
    const replaceAll = async (changes: readonly Change<Stored>[]): Promise<WriteAllResult<Stored>> => {
      const again = await this.#transact(
        changes.map(({ address, next, seen }) => ({ address, ...(next ? replacement(next, seen) : unchanged(seen?.record)) })),
      );
      return again ? { written: false, seen: await readAll() } : { written: true };
    };
    if (decided.some((one) => one?.decision.answer.ok === false)) return refusedSet(parts, decided, replaceAll);
    return compareAndSetAll(await readAll(), parts, clocks, replaceAll, this.#deps);
  }

  async read(address: Address): Promise<LockRecord | undefined> {
    return (await this.#read(address))?.record;
  }

  async #read(address: Address): Promise<Stored | undefined> {
    return readFrom(this.#place, async () => {
      const { Item } = await this.#calls.getItem({ ...this.#table, Key: itemKey(address), ConsistentRead: true });
      const stored = Item && storedIn(Item);
      this.#recentRecords.note(address, stored);
      return stored;
    });
  }

  async keepPayload(address: Address, { digest, ttlAtSec }: StoredPayload, text?: string): Promise<void> {
    const input = {
      ...this.#table,
      Key: payloadKey(address, digest),
      // The item of this digest always has this text. Only its TTL changes.
      ConditionExpression: text === undefined ? "#x < :x" : "attribute_not_exists(#x) OR #x < :x",
      UpdateExpression: text === undefined ? "SET #x = :x" : "SET #x = :x, t = :t, fv = :format",
      ExpressionAttributeNames: { "#x": TABLE.ttlAttribute },
      ExpressionAttributeValues: { ":x": ttlAtSec, ...(text !== undefined && { ":t": text, ":format": FORMAT_VERSION }) },
    };
    try {
      await this.#calls.updateItem(input);
    } catch (error) {
      if (!isConditionFailed(error)) throw await tableUnavailable(error, this.#place);
    }
  }

  async readPayload(address: Address, digest: string): Promise<string | undefined> {
    const Key = payloadKey(address, digest);
    return readFrom(this.#place, async () => {
      const { Item } = await this.#calls.getItem({ ...this.#table, Key, ConsistentRead: true });
      return Item && payloadIn(Item);
    });
  }

  async list(query: ListQuery): Promise<ListPage> {
    const table = { calls: this.#calls, tableName: this.#place.tableName };
    const filter = { expression: "size(h) > :zero OR attribute_exists(rn)", values: { ":zero": 0 } };
    return readFrom(this.#place, () => listShards(table, query, filter, fromItem));
  }
}
