/**
 * Limits in DynamoDB: a take is one conditional UpdateItem without a read (limit-write.ts). lib/core/rate.ts decides: the item after the write
 * gives the answer of a grant, the item that refused the write that of a refusal. A write that is refused though there is room is sent again
 * at once, because the item says what was in its way. Who was refused lately is refused from memory, because `fullAt` only falls by a reset.
 */
import { type Backoff, backoffMs } from "../../core/backoff.js";
import type { Refusal } from "../../core/errors.js";
import { LIMITS } from "../../core/limits.js";
import type { LimitRecord, Shut, Take, Taken } from "../../core/rate.js";
import { decideShut, decideTake, hasRates, REFUSED_FOR_MS, shutFrom, takenFrom } from "../../core/rate.js";
import type { LockPolicy } from "../../core/record.js";
import { type Clock, type ClockReading, type Instant, elapsedMs, instantOf } from "../../core/time.js";
import { type LimitName, type LimitQuery, type LimitStore, type Page, type ReadClocks, KeyContended } from "../port.js";
import { plainItem } from "./attribute-value.js";
import { type TableCalls, isConditionFailed } from "./calls.js";
import { itemKey } from "./item-key.js";
import type { Item } from "./layout.js";
import { type StoredLimit, CANDIDATES, RESET_WRITE, limitOf, shutWrite, takeWrite } from "./limit-write.js";
import type { Write } from "./predicates.js";
import { listShards } from "./shards.js";
import { type TablePlace, isWriteConflict, readFrom, tableUnavailable } from "./unavailable.js";

/** The dependencies of the limits of a table. */
export interface DynamoLimitsDeps extends TablePlace {
  readonly calls: TableCalls;
  readonly policy: LockPolicy;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for jitter and for what a take replaces. */
  readonly random: () => number;
}

/** The attempts of a take without a pause before them. A third one is rare. */
const ATTEMPTS_AT_ONCE = 3;
/** Pauses before later attempts, without jitter. */
const PAUSES: Backoff = { firstMs: 4, longestMs: 256 };
/** The most limits that are remembered. */
const REMEMBERED_MAX = 256;

/** A limit as this process saw it last. */
interface Remembered {
  readonly limit: StoredLimit;
  readonly at: Instant;
}

/** The outcome of a write: the limit after it, or the one that refused it; absent if there is none, or after a conflict. */
interface Written {
  readonly outcome: "written" | "refused" | "conflict";
  readonly limit?: StoredLimit | undefined;
}

/** The limits of one table. It remembers those that it saw recently. */
export class DynamoLimits implements LimitStore {
  readonly #deps: DynamoLimitsDeps;
  readonly #remembered = new Map<string, Remembered>();

  constructor(deps: DynamoLimitsDeps) {
    this.#deps = deps;
  }

  async take(name: LimitName, take: Take, clocks: ReadClocks): Promise<Taken | Refusal> {
    const { random, policy } = this.#deps;
    const refusal = this.#refusalFromMemory(name, take, clocks());
    if (refusal) return refusal;
    for (let attempt = 0; attempt < LIMITS.compareAndSetAttempts; attempt++) {
      if (attempt >= ATTEMPTS_AT_ONCE) await this.#pause(attempt);
      const reading = clocks();
      const known = this.#remembered.get(idOf(name))?.limit;
      const write = takeWrite(known, take, reading, policy, { random, isRepeated: attempt > 0 });
      const { outcome, limit } = await this.#write(name, write);
      if (outcome === "written" && limit) return takenFrom(limit.record, take, reading);
      const { answer, next } = decideTake(limit?.record, take, reading);
      // No room by the clocks of the write: that is the answer. The time to wait is counted from now.
      if (!next) return answer.code === "rate-limited" ? refusalAt(clocks(), answer, limit?.record, take) : answer;
    }
    throw new KeyContended(`the limit changed ${LIMITS.compareAndSetAttempts} times under this request`);
  }

  async shut(name: LimitName, shut: Shut, clocks: ReadClocks): Promise<Taken | Refusal> {
    const { policy } = this.#deps;
    for (let attempt = 0; attempt < LIMITS.compareAndSetAttempts; attempt++) {
      if (attempt >= ATTEMPTS_AT_ONCE) await this.#pause(attempt);
      const reading = clocks();
      const { outcome, limit } = await this.#write(name, shutWrite(this.#remembered.get(idOf(name))?.limit, shut, reading, policy));
      if (outcome === "written" && limit) return shutFrom(limit.record, reading);
      const { answer, next } = decideShut(limit?.record, shut, reading);
      const isShut = limit && hasRates(limit.record, shut.rates) && limit.record.buckets[0]?.fullAtUs === next?.buckets[0]?.fullAtUs;
      if (!next || isShut) return answer;
    }
    throw new KeyContended(`the limit changed ${LIMITS.compareAndSetAttempts} times under this request`);
  }

  async reset(name: LimitName): Promise<LimitRecord | undefined> {
    const { outcome, limit } = await this.#write(name, RESET_WRITE);
    if (outcome === "conflict") throw new KeyContended("another write of this limit was under way");
    return outcome === "written" ? limit?.record : undefined;
  }

  async read(name: LimitName): Promise<LimitRecord | undefined> {
    const { calls, tableName } = this.#deps;
    return readFrom(this.#deps, async () => {
      const { Item } = await calls.getItem({ TableName: tableName, Key: limitKey(name), ConsistentRead: true });
      return limitOf(Item)?.record;
    });
  }

  async list({ fullAfterMs, ...query }: LimitQuery): Promise<Page<LimitRecord>> {
    const filter = {
      expression: CANDIDATES.flat()
        .map((candidate) => `${candidate} > :now`)
        .join(" OR "),
      values: { ":now": fullAfterMs * 1000 },
    };
    const recordOf = (item: Item): LimitRecord => limitOf(item)?.record ?? { buckets: [] };
    return readFrom(this.#deps, () => listShards(this.#deps, { ...query, kind: "limits" }, filter, recordOf));
  }

  #pause(attempt: number): Promise<void> {
    const { clock, random } = this.#deps;
    return new Promise((resolve) => clock.after(random() * backoffMs(PAUSES, attempt), resolve));
  }

  #refusalFromMemory(name: LimitName, take: Take, reading: ClockReading): Refusal | undefined {
    const remembered = this.#remembered.get(idOf(name));
    if (!remembered || !hasRates(remembered.limit.record, take.rates)) return undefined;
    if (elapsedMs(remembered.at, instantOf(this.#deps.clock)) > REFUSED_FOR_MS) return undefined;
    const { answer } = decideTake(remembered.limit.record, take, reading);
    return answer.ok ? undefined : answer;
  }

  /** Sends one conditional write, and remembers the limit after it, or the one that refused it. */
  async #write(name: LimitName, write: Write): Promise<Written> {
    const written = await this.#send(name, write);
    if (written.outcome !== "conflict") this.#remember(name, written.limit);
    return written;
  }

  async #send(name: LimitName, { condition, update, values }: Write): Promise<Written> {
    const { calls, tableName } = this.#deps;
    try {
      const { Attributes } = await calls.updateItem({
        TableName: tableName,
        Key: limitKey(name),
        ConditionExpression: condition,
        UpdateExpression: update,
        ExpressionAttributeValues: { ...values },
        ReturnValues: "ALL_NEW",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      return { outcome: "written", limit: limitOf(Attributes) };
    } catch (error) {
      if (isConditionFailed(error)) return { outcome: "refused", limit: limitOf(error.Item && plainItem(error.Item)) };
      // It is not sent again as it is: a take is charged by the time at which it was decided (S17).
      if (isWriteConflict(error)) return { outcome: "conflict" };
      throw await tableUnavailable(error, this.#deps);
    }
  }

  #remember(name: LimitName, limit: StoredLimit | undefined): void {
    this.#remembered.delete(idOf(name));
    if (!limit) return;
    this.#remembered.set(idOf(name), { limit, at: instantOf(this.#deps.clock) });
    const [oldest] = this.#remembered.keys();
    if (this.#remembered.size > REMEMBERED_MAX && oldest !== undefined) this.#remembered.delete(oldest);
  }
}

/** Returns the refusal as of this later reading, with 1 ms to wait if there is room by now. */
function refusalAt(reading: ClockReading, refusal: Refusal, record: LimitRecord | undefined, take: Take): Refusal {
  const { answer } = decideTake(record, { ...take, waitMs: 0 }, reading);
  return answer.ok ? { ...refusal, retryAfterMs: 1 } : answer;
}

function limitKey(name: LimitName): Item {
  return itemKey({ ...name, kind: "limits" });
}

function idOf({ namespace, key }: LimitName): string {
  return `${namespace}/${key}`;
}
