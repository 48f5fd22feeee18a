/**
 * Records in DynamoDB: the fast path first, then compare-and-set.
 *
 *  1. send the command's common case as one conditional UpdateItem (fast-path.ts);
 *  2. refused: the write is charged, the item that the refusal returns is not, and the core decides on it (compare-and-set.ts);
 *  3. write a decision that changes something on condition that the version is the one seen.
 *
 * So: 1 write to acquire a free key, to renew, to release; 2 for a takeover; 1 for a refusal; no reads. If a write
 * succeeded and was sent again, by us or by the AWS SDK, the returned item shows that. Every write has a condition, and
 * no record is ever deleted.
 */
import { isA } from "../../core/brand.js";
import type { RecordParameters } from "../../core/api/locks.js";
import type { Command, Decision } from "../../core/commands.js";
import { randomToken } from "../../core/random.js";
import type { LockRecord } from "../../core/record.js";
import { isSameQueue } from "../../core/lock/queue.js";
import { transition } from "../../core/transition.js";
import { plainItem } from "./attribute-value.js";
import type { ClockReading } from "../../core/time.js";
import type { Change, LeanResult, CompareAndSetDeps, WriteAllResult, WriteResult, Writes } from "../compare-and-set.js";
import { compareAndSet, compareAndSetAll, refusedSet } from "../compare-and-set.js";
import { type TableCalls, type WireItem, cancellationReasons, isConditionFailed } from "./calls.js";
import { RecentRecords } from "./recent-records.js";
import { fastPath, leanWrite } from "./fast-path.js";
import { DynamoLimits } from "./limit-store.js";
import { touchWaiter } from "./touch-waiter.js";
import { type FastPath, type Write, KNOWN_FORMAT, TOUCHED_AS_SEEN, UNTOUCHED } from "./predicates.js";
import { FORMAT_VERSION, present } from "./format.js";
import type { Item } from "./layout.js";
import { fromItem, itemKey, OPTIONAL, payloadIn, payloadKey, QUEUE, TENANCY, TENANCY_KEY, tenancyIn, toItem } from "./item.js";
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
import { hasLeftPlaces, listsOf, withLists } from "./lists.js";
import { KeyContended, StoreUnavailable, UnreadableRecord } from "../port.js";
import { listShards } from "./shards.js";
import { TABLE } from "./table.js";
import { type TablePlace, isWriteConflict, readFrom, tableUnavailable } from "./unavailable.js";

/** Attempts at one write that met another one on the same item. The SDK does not retry these, and pauses are made here. */
const CONFLICT_ATTEMPTS = 5;

/** The table of a store, the operations on it, and the dependencies of the compare-and-set loop. */
type DynamoStoreDeps = CompareAndSetDeps & TablePlace & { readonly calls: TableCalls };

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
  #tenancy: Promise<TableTenancy> | undefined;

  constructor({ calls, tableName, region, ...deps }: DynamoStoreDeps) {
    const { clockErrorMs, retentionMs } = deps.policy;
    this.parameters = { format: FORMAT_VERSION, clockErrorMs, retentionMs };
    this.#calls = calls;
    this.#table = { TableName: tableName };
    this.#place = { tableName, region };
    this.#deps = deps;
    this.limits = new DynamoLimits({ calls, tableName, region, ...deps });
    this.#recentRecords = new RecentRecords(deps.clock);
  }

  /** Sends one conditional write. A refused write returns the item. */
  async #write(
    address: Address,
    { condition, update, names, values }: Write,
  ): Promise<WriteResult & { readonly before?: LockRecord | undefined }> {
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
    return this.#untilNoConflict(async () => {
      try {
        const { Attributes } = await this.#calls.updateItem(input);
        return { written: true, before: recordBefore(Attributes) };
      } catch (error) {
        if (isConditionFailed(error)) return { written: false, seen: seenBy(error) };
        throw error;
      }
    });
  }

  /** Sends several conditional writes as one. Returns undefined if they happened, else the records that refused, by index. */
  async #transact(
    writes: readonly (Write & { readonly address: Address })[],
  ): Promise<ReadonlyMap<number, LockRecord | undefined> | undefined> {
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
    return this.#untilNoConflict(async () => {
      try {
        await this.#calls.transactWriteItems({ ClientRequestToken: randomToken(), TransactItems });
        return undefined;
      } catch (error) {
        const refused = cancellationReasons(error).flatMap(({ Code, Item }, index) =>
          Code === "ConditionalCheckFailed" ? [[index, Item && recordIn(plainItem(Item))] as const] : [],
        );
        if (refused.length > 0) return new Map(refused);
        throw error;
      }
    });
  }

  /** Sends again, after a pause, a write that met a transaction on the same item. */
  async #untilNoConflict<Result>(send: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await send();
      } catch (error) {
        if (!isWriteConflict(error) || attempt === CONFLICT_ATTEMPTS) throw await tableUnavailable(error, this.#place);
        await new Promise<void>((resolve) => this.#deps.clock.after(this.#deps.random() * 20 * attempt, resolve));
      }
    }
  }

  /** Returns the key's writes, which also update its recent record. */
  #writesTo(address: Address): Writes {
    const noted = async (next: LockRecord | undefined, written: Promise<WriteResult>): Promise<WriteResult> => {
      const result = await written;
      this.#recentRecords.note(address, result.written ? next : result.seen);
      return result;
    };
    return {
      replace: (next, seen) => noted(next, this.#write(address, replacement(next, seen))),
      touchWaiter: (touch, seen) => this.#write(address, touchWaiter(touch, seen)),
      lean: (way, seen, asked, reading) => {
        const fast = leanWrite(way, asked, seen, reading, this.#deps.policy);
        // A noted append made short waits slower: the guesses of later polls were others (decision 045).
        return fast && this.#decidedBy(address, asked, reading, fast, way !== "append");
      },
    };
  }

  /** Sends a fast path. Once written, the core's decision on the record before it is the answer. */
  async #decidedBy<C extends Command>(
    address: Address,
    command: C,
    reading: ClockReading,
    fast: FastPath,
    isNoted = true,
  ): Promise<LeanResult<C>> {
    const result = await this.#write(address, fast);
    if (!result.written) {
      if (isNoted) this.#recentRecords.note(address, result.seen);
      return result;
    }
    const decided =
      fast.outcome && result.before ? fast.outcome(result.before) : transition(result.before, command, reading, this.#deps.policy);
    const { lists = (before) => before } = fast;
    if (result.before && decided.next) withLists(decided.next, lists(listsOf(result.before)));
    if (isNoted) this.#recentRecords.note(address, decided.next);
    return { written: true, decided: decided as Decision<C> };
  }

  async #recordedTenancy(mine: TableTenancy): Promise<TableTenancy> {
    try {
      const { Item } = await this.#calls.getItem({ ...this.#table, Key: TENANCY_KEY, ConsistentRead: true });
      if (Item) return tenancyIn(Item);
      await this.#calls.updateItem({
        ...this.#table,
        Key: TENANCY_KEY,
        ConditionExpression: `attribute_not_exists(${TENANCY})`,
        UpdateExpression: `SET ${TENANCY} = :mine, fv = :format`,
        ExpressionAttributeValues: { ":mine": mine, ":format": FORMAT_VERSION },
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      return mine;
    } catch (error) {
      if (!isConditionFailed(error)) throw await tableUnavailable(error, this.#place);
      return tenancyIn(plainItem(error.Item ?? {})); // Another client recorded it first.
    }
  }

  tenancy(mine: TableTenancy): Promise<TableTenancy> {
    this.#tenancy ??= this.#recordedTenancy(mine).catch((error: unknown) => {
      this.#tenancy = undefined; // The next request tries again.
      throw error;
    });
    return this.#tenancy;
  }

  async apply<C extends Command>(address: Address, command: C, clocks: ReadClocks): Promise<Applied<C>> {
    const reading = clocks();
    const recent = this.#recentRecords.of(address, command);
    const fast = fastPath(address.kind, command, reading, this.#deps.policy, recent);
    if (!fast) {
      // Only a change may depend on a cached record: it is written only if that version is still current.
      const { record } = recent;
      const seen = record && transition(record, command, reading, this.#deps.policy).next ? record : await this.read(address);
      return compareAndSet(seen, command, clocks, this.#writesTo(address), this.#deps);
    }
    const result = await this.#decidedBy(address, command, reading, fast).catch(async (error: unknown) => {
      // A caller that only tries is probably one of a crowd. Reads have units of their own, and the holder needs those of the writes.
      const isOnlyTrying = command.type === "acquire" && !command.wait;
      if (!isOnlyTrying || isA(error, KeyContended) || !(isA(error, StoreUnavailable) && error.throttled && error.definite)) throw error;
      return { written: false, seen: await this.read(address) } as const;
    });
    if (result.written) return result.decided;
    return compareAndSet(result.seen, command, clocks, this.#writesTo(address), this.#deps);
  }

  async applyAll<C extends Command>(parts: readonly Part<C>[], clocks: ReadClocks): Promise<readonly (Applied<C> | undefined)[]> {
    const readAll = (): Promise<(LockRecord | undefined)[]> => Promise.all(parts.map(({ address }) => this.read(address)));
    const reading = clocks();
    const writes = parts.flatMap(({ address, command }) => {
      const fast = fastPath(address.kind, command, reading, this.#deps.policy);
      return fast ? [{ address, ...fast }] : [];
    });
    // The response has the items of the parts that refused. If the core refuses one of them too, no other part needs a read.
    const refused = writes.length === parts.length ? await this.#transact(writes) : new Map<number, LockRecord | undefined>();
    // These keys were free and are decided as if they were new. Only the version differs, and a set's answer doesn't include it.
    if (!refused) return parts.map(({ command }) => transition(undefined, command, reading, this.#deps.policy));
    const decided = parts.map(({ command }, index) => {
      const seen = refused.get(index);
      return refused.has(index) ? { seen, decision: transition(seen, command, reading, this.#deps.policy) } : undefined;
    });
    const replaceAll = async (changes: readonly Change[]): Promise<WriteAllResult> => {
      const again = await this.#transact(
        changes.map(({ address, next, seen }) => ({ address, ...(next ? replacement(next, seen) : unchanged(seen)) })),
      );
      return again ? { written: false, seen: await readAll() } : { written: true };
    };
    if (decided.some((one) => one?.decision.answer.ok === false)) return refusedSet(parts, decided, replaceAll);
    return compareAndSetAll(await readAll(), parts, clocks, replaceAll, this.#deps);
  }

  async read(address: Address): Promise<LockRecord | undefined> {
    return readFrom(this.#place, async () => {
      const { Item } = await this.#calls.getItem({ ...this.#table, Key: itemKey(address), ConsistentRead: true });
      const record = Item && fromItem(Item);
      this.#recentRecords.note(address, record);
      return record;
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

/**
 * Writes the whole record, on condition that nothing changed since it was seen. A keep-alive leaves the version alone,
 * but is counted. So a changed queue is written only over the queue that was seen, and an unchanged queue is left
 * alone if it has no places that were left.
 */
function replacement(next: LockRecord, seen: LockRecord | undefined): Write {
  const isLeft = seen !== undefined && isSameQueue(next, seen) && !hasLeftPlaces(seen);
  const item = Object.fromEntries(Object.entries(toItem(next)).filter(([name]) => !isLeft || !QUEUE.includes(name)));
  const removed = OPTIONAL.filter((name) => !Object.hasOwn(item, name) && !(isLeft && QUEUE.includes(name)));
  const values = Object.fromEntries(Object.entries(item).map(([name, value]) => [`:${name}`, value]));
  const touches = !isLeft && seen && (seen.touches === undefined ? UNTOUCHED : TOUCHED_AS_SEEN);
  const condition = seen ? ["v = :seen", ...(touches ? [touches] : []), KNOWN_FORMAT] : ["attribute_not_exists(v)"];
  return {
    condition: condition.join(" AND "),
    update: `SET ${Object.keys(item)
      .map((name) => `${name} = :${name}`)
      .join(", ")}${removed.length > 0 ? ` REMOVE ${removed.join(", ")}` : ""}`,
    names: {},
    values: {
      ...values,
      ...(seen && { ":seen": seen.version, ":format": FORMAT_VERSION }),
      ...(touches === TOUCHED_AS_SEEN && { ":touches": seen?.touches }),
    },
  };
}

/**
 * Asserts that the record is as it was seen. It writes back the version that it checks, so it needs only the right to
 * update. A ConditionCheck costs the same, and needs a right that the roles don't have.
 */
function unchanged(seen: LockRecord | undefined): Write {
  return {
    condition: `v = :seen AND ${KNOWN_FORMAT}`,
    update: "SET v = :seen",
    names: {},
    values: { ":seen": seen?.version ?? 0, ":format": FORMAT_VERSION },
  };
}

/** Converts the refused item, which is in wire form. */
function seenBy({ Item: item }: { readonly Item?: WireItem }): LockRecord | undefined {
  return item && recordIn(plainItem(item));
}

/** Returns the record of an item. Without a previous item, AWS returns nothing and the embedded engine returns the bare key. */
function recordIn(item: Item | undefined): LockRecord | undefined {
  const stored = present(item);
  return stored && fromItem(stored);
}

/** The same for the item that a write has just replaced. */
function recordBefore(item: Item | undefined): LockRecord | undefined {
  try {
    return recordIn(item);
  } catch (error) {
    throw isA(error, UnreadableRecord) ? new UnreadableRecord(error.code, error.message, { definite: false, cause: error }) : error;
  }
}
