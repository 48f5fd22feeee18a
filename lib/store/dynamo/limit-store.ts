/**
 * Limits in DynamoDB: a take is one conditional UpdateItem without a read (core/rate.ts decides it). `max()` can't be written, but each of
 * its two cases can: the bucket is full, or it is not. The limit that was seen last shows which case is likely. A refused write returns the
 * item, and the next attempt is decided on it. A refusal by what was seen needs no request, because `fullAt` never falls.
 *
 * The item: `gp` the rates as text, `g0` to `g3` when each bucket is full again (epoch microseconds), `x` TTL, `fv` format version.
 */
import { type Backoff, backoffMs } from "../../core/backoff.js";
import type { Refusal } from "../../core/errors.js";
import { LIMITS } from "../../core/limits.js";
import type { LimitRecord, Take, Taken } from "../../core/rate.js";
import { bucketsOf, chargeUs, decideTake, fillMs, fullAfter, hasRates, latestFitUs, ratesText } from "../../core/rate.js";
import type { LockPolicy } from "../../core/record.js";
import { type Clock, type ClockReading, toSecondsUp } from "../../core/time.js";
import { type LimitName, type LimitQuery, type LimitStore, type Page, type ReadClocks, KeyContended, NewerFormat } from "../port.js";
import { plainItem } from "./attribute-value.js";
import { type TableCalls, isConditionFailed } from "./calls.js";
import { itemKey } from "./item-key.js";
import type { Item } from "./layout.js";
import { FIRST_FORMAT, FORMAT_VERSION } from "./item.js";
import { type Write, KNOWN_FORMAT, X } from "./predicates.js";
import { listShards } from "./shards.js";
import { type TablePlace, isWriteConflict, readFrom, tableUnavailable } from "./unavailable.js";

/** The dependencies of the limits of a table. */
export interface DynamoLimitsDeps extends TablePlace {
  readonly calls: TableCalls;
  readonly policy: LockPolicy;
  readonly clock: Clock;
  /** Returns a number from 0 to 1, for jitter. */
  readonly random: () => number;
}

/** Pauses after a lost race, without jitter. */
const PAUSES: Backoff = { firstMs: 4, longestMs: 256 };
/** The most limits that are remembered. */
const SEEN_MAX = 256;

/** The limits of one table. It remembers those that it saw recently. */
export class DynamoLimits implements LimitStore {
  readonly #deps: DynamoLimitsDeps;
  readonly #seen = new Map<string, LimitRecord>();

  constructor(deps: DynamoLimitsDeps) {
    this.#deps = deps;
  }

  async take(name: LimitName, take: Take, clocks: ReadClocks): Promise<Taken | Refusal> {
    const { clock, random } = this.#deps;
    for (let attempt = 0; attempt < LIMITS.compareAndSetAttempts; attempt++) {
      if (attempt > 0) await new Promise<void>((resolve) => clock.after(random() * backoffMs(PAUSES, attempt), resolve));
      const reading = clocks();
      const seen = this.#seen.get(seenName(name));
      const decided = decideTake(seen, take, reading);
      if (!decided.next) return decided.answer;
      const result = await this.#write(name, takeWrite(seen, take, reading, this.#deps.policy));
      const { answer, next } = result.written ? decideTake(result.before, take, reading) : { next: result.before };
      this.#note(name, next);
      if (answer) return answer;
    }
    throw new KeyContended(`the limit changed ${LIMITS.compareAndSetAttempts} times under this request`);
  }

  async read(name: LimitName): Promise<LimitRecord | undefined> {
    const { calls, tableName } = this.#deps;
    return readFrom(this.#deps, async () => {
      const { Item } = await calls.getItem({ TableName: tableName, Key: limitKey(name), ConsistentRead: true });
      return limitIn(Item);
    });
  }

  async list({ fullAfterMs, ...query }: LimitQuery): Promise<Page<LimitRecord>> {
    const filter = {
      expression: Array.from({ length: LIMITS.ratesMax }, (_, index) => `g${index} > :now`).join(" OR "),
      values: { ":now": fullAfterMs * 1000 },
    };
    const limitOf = (item: Item): LimitRecord => limitIn(item) ?? { buckets: [] };
    return readFrom(this.#deps, () => listShards(this.#deps, { ...query, kind: "limits" }, filter, limitOf));
  }

  /** Sends one conditional write. Returns the limit before it, or the one that refused it. */
  async #write(
    name: LimitName,
    { condition, update, values }: Write,
  ): Promise<{ readonly written: boolean; readonly before?: LimitRecord }> {
    const { calls, tableName } = this.#deps;
    const before = (item: Item | undefined) => ({ before: limitIn(item) }) as { before?: LimitRecord };
    try {
      const { Attributes } = await calls.updateItem({
        TableName: tableName,
        Key: limitKey(name),
        ConditionExpression: condition,
        UpdateExpression: update,
        ExpressionAttributeValues: { ...values },
        ReturnValues: "ALL_OLD",
        ReturnValuesOnConditionCheckFailure: "ALL_OLD",
      });
      return { written: true, ...before(Attributes) };
    } catch (error) {
      if (isConditionFailed(error)) return { written: false, ...before(error.Item && plainItem(error.Item)) };
      if (isWriteConflict(error)) return { written: false, ...before(undefined) };
      throw await tableUnavailable(error, this.#deps);
    }
  }

  #note(name: LimitName, record: LimitRecord | undefined): void {
    this.#seen.delete(seenName(name));
    if (!record) return;
    this.#seen.set(seenName(name), record);
    const [oldest] = this.#seen.keys();
    if (this.#seen.size > SEEN_MAX && oldest !== undefined) this.#seen.delete(oldest);
  }
}

/** Returns the write of a take that fits the limit that was seen. It succeeds if the present one is in the same case, and the take fits it. */
function takeWrite(seen: LimitRecord | undefined, { rates, cost, waitMs }: Take, reading: ClockReading, policy: LockPolicy): Write {
  const nowUs = reading.latestMs * 1000;
  const others = seen && !hasRates(seen, rates) ? seen.buckets : [];
  const conditions = [KNOWN_FORMAT];
  const updates = ["gp = :rates", `${X} = :ttl`, "fv = :first"];
  // No write leaves a bucket that is full later than this.
  const ttl = toSecondsUp(reading.earliestMs + waitMs + fillMs(rates) + policy.retentionMs);
  const values: Record<string, unknown> = { ":rates": ratesText(rates), ":ttl": ttl, ":format": FORMAT_VERSION, ":first": FIRST_FORMAT };
  if (others.length > 0) {
    // They are full, and must be unchanged.
    conditions.push("gp = :others", ...others.map((_, index) => `g${index} = :other${index}`));
    values[":others"] = ratesText(others);
    for (const [index, { fullAtUs }] of others.entries()) values[`:other${index}`] = fullAtUs;
  } else {
    conditions.push("(attribute_not_exists(gp) OR gp = :rates)");
    values[":now"] = nowUs;
  }
  for (const [index, bucket] of bucketsOf(seen, rates).entries()) {
    const [g, fits, next] = [`g${index}`, `:fits${index}`, `:next${index}`];
    const isFull = bucket.fullAtUs < nowUs;
    updates.push(isFull ? `${g} = ${next}` : `${g} = ${g} + ${next}`);
    values[next] = isFull ? fullAfter(bucket, cost, reading) : chargeUs(bucket, cost);
    if (others.length > 0) continue;
    conditions.push(isFull ? `(attribute_not_exists(${g}) OR (${g} < :now AND ${g} <= ${fits}))` : `${g} >= :now AND ${g} <= ${fits}`);
    values[fits] = latestFitUs(bucket, cost, reading) + waitMs * 1000;
  }
  const removed = others.slice(rates.length).map((_, index) => `g${rates.length + index}`);
  const update = `SET ${updates.join(", ")}${removed.length > 0 ? ` REMOVE ${removed.join(", ")}` : ""}`;
  return { condition: conditions.join(" AND "), update, names: {}, values };
}

/** Returns the limit of an item; undefined if there is none. @throws NewerFormat if a newer major version wrote it */
function limitIn(item: Item | undefined): LimitRecord | undefined {
  const rates = item?.["gp"] as string | undefined;
  if (!item || rates === undefined) return undefined;
  const format = Number(item["fv"]);
  if (format > FORMAT_VERSION) throw new NewerFormat(`the limit has format ${format}, this version reads up to ${FORMAT_VERSION}`);
  const buckets = rates.split(",").map((text, index) => {
    const [count = 1, perMs = 1, burst = 1] = text.split("/").map(Number);
    return { count, perMs, burst, fullAtUs: Number(item[`g${index}`]) };
  });
  return { buckets };
}

function limitKey(name: LimitName): Item {
  return itemKey({ ...name, kind: "limits" });
}

function seenName({ namespace, key }: LimitName): string {
  return `${namespace}/${key}`;
}
