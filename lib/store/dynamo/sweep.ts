/**
 * Deletes what is over, on a table without TTL, such as a strongly consistent global table. It is TTL's rule, for every kind of item:
 *
 *  1. a page is read of items whose time to live has passed. The read may be old: it only says where to look
 *  2. each is deleted on condition that its time to live is the one that was read, and that it has passed. So nobody has used it since
 *  3. refused, or met by a write in another Region: it was used, or another sweep deleted it. It is left, and the sweep goes on
 *
 * A time has passed if both clocks say so: by a clock that is ahead, what lives would be over. Each half of the condition is enough while
 * the clocks are right. The first holds if they jump ahead between the read and the deletion, the second if they were ahead at the read. So
 * no order of several sweeps does harm, and none of a sweep and a caller. The floor of fencing tokens is the clock, and an item is kept for
 * at least an hour (`retentionMs`), so tokens rise over a deletion.
 */
import type { Clock } from "../../core/time.js";
import type { ReadClocks } from "../port.js";
import { type AllCalls, type PageOutput, isConditionFailed } from "./calls.js";
import { partitionsOf } from "./item-key.js";
import type { Item } from "./layout.js";
import { TABLE } from "./table.js";
import { type TablePlace, isWriteConflict, readFrom, tableUnavailable } from "./unavailable.js";

/** The table that is swept, and the clocks. */
export interface SweepDeps extends TablePlace {
  readonly calls: Pick<AllCalls, "query" | "scan" | "deleteItem">;
  /** Both clocks, as a decision reads them. They may be unknown before the first answer of the table. */
  readonly clocks: ReadClocks;
  readonly clock: Clock;
  /** Returns 0 to 1: the part of the table where a first run begins. */
  readonly random: () => number;
}

export interface SweepOptions {
  /** The namespace whose locks, runs, limits and payloads are swept, by queries. @default all items of the table, by a scan */
  readonly namespace?: string | undefined;
  /** True to delete nothing: it counts what it would delete. @default false */
  readonly isDryRun?: boolean;
  /** The bounds of a run, at which it ends after the page that it looks at. @default none */
  readonly pagesMax?: number;
  readonly foundMax?: number;
  readonly runMs?: number;
}

/**
 * The place where the next run goes on: a part of the table, a key in it, and the number of parts until all of the table was looked at. Without
 * one, a run begins at a random part.
 */
export interface SweepPlace {
  part?: number | undefined;
  after?: Item | undefined;
  partsLeft?: number | undefined;
}

/** The counts of a run, and how it ended. */
export interface Swept {
  /** Requests that read. */
  readonly pages: number;
  /** Items whose time had passed: those that were deleted, and those that were left. */
  readonly found: number;
  readonly deleted: number;
  /** Items that were left, because somebody used them meanwhile, or another sweep deleted them. */
  readonly left: number;
  /** True if with this run all of the table was looked at, and no bound or failure ended it before. */
  readonly isWhole: boolean;
  /** Why it ended early: StoreUnavailable, or the reason why no clock can be read. */
  readonly failure?: unknown;
}

type Counts = Record<"pages" | "found" | "deleted" | "left", number>;

/** The items that a page reads. With their deletions, a page takes some 100 s at most: 16 rounds of deletions of 6 s. */
const PAGE_ITEMS = 512;
const DELETES_AT_ONCE = 32;
/** The parts of a scan. */
const SEGMENTS = 16;

const OVER = `${TABLE.ttlAttribute} < :now`;
const SAME_AND_OVER = `${TABLE.ttlAttribute} = :seen AND ${OVER}`;

/** Sweeps the table, from `place` on. It always ends with what it has done, also after a failure. */
export async function sweepTable(deps: SweepDeps, options: SweepOptions = {}, place: SweepPlace = {}): Promise<Swept> {
  const { namespace, isDryRun = false, pagesMax = Infinity, foundMax = Infinity, runMs = Infinity } = options;
  const counts: Counts = { pages: 0, found: 0, deleted: 0, left: 0 };
  const readers = namespace === undefined ? segments(deps) : partitions(deps, namespace);
  const beganMs = deps.clock.monotonicMs();
  place.part ??= Math.floor(deps.random() * readers.length) % readers.length;
  place.partsLeft ??= readers.length;
  try {
    while (place.partsLeft > 0) {
      if (counts.pages >= pagesMax || counts.found >= foundMax || deps.clock.monotonicMs() - beganMs >= runMs)
        return { ...counts, isWhole: false };
      const part: number = place.part;
      const { after } = place;
      const { Items = [], LastEvaluatedKey } = (await readFrom(deps, async () => readers[part]?.(after))) ?? {};
      counts.pages++;
      const nowSec = earliestSec(deps);
      const over = Items.filter(({ [TABLE.ttlAttribute]: atSec }) => (atSec as number) < nowSec);
      counts.found += over.length;
      if (!isDryRun) await deleteAll(over, deps, counts);
      place.after = LastEvaluatedKey;
      if (LastEvaluatedKey) continue;
      place.partsLeft--;
      place.part = (part + 1) % readers.length;
    }
    place.partsLeft = undefined;
    return { ...counts, isWhole: true };
  } catch (failure) {
    return { ...counts, isWhole: false, failure };
  }
}

/** Returns the present time in epoch seconds. Safe if early: what is over is deleted later. */
function earliestSec({ clocks }: SweepDeps): number {
  return Math.floor(clocks().earliestMs / 1000);
}

type ReadPage = (after: Item | undefined) => Promise<PageOutput>;

/** Returns what a page asks for. Its filter goes by this process's clock, since the other one may not be known yet; a deletion goes by both. */
function asked({ tableName, clock }: SweepDeps, after: Item | undefined) {
  return {
    TableName: tableName,
    FilterExpression: OVER,
    ProjectionExpression: Object.values(TABLE).join(", "),
    ExpressionAttributeValues: { ":now": Math.floor(clock.wallMs() / 1000) },
    Limit: PAGE_ITEMS,
    ...(after && { ExclusiveStartKey: after }),
  };
}

function segments(deps: SweepDeps): readonly ReadPage[] {
  const TotalSegments = SEGMENTS;
  return Array.from({ length: SEGMENTS }, (_, Segment) => (after) => deps.calls.scan({ ...asked(deps, after), Segment, TotalSegments }));
}

function partitions(deps: SweepDeps, namespace: string): readonly ReadPage[] {
  return partitionsOf(namespace).map((partition) => (after) => {
    const { ExpressionAttributeValues: values, ...page } = asked(deps, after);
    return deps.calls.query({
      ...page,
      KeyConditionExpression: `${TABLE.partitionKey} = :p`,
      ExpressionAttributeValues: { ...values, ":p": partition },
    });
  });
}

/** Deletes these items, several at once, and none after a failure. @throws StoreUnavailable, or why the clocks can't be read */
async function deleteAll(items: readonly Item[], deps: SweepDeps, counts: Counts): Promise<void> {
  const queue = items.values();
  const failures: unknown[] = [];
  const oneByOne = async (): Promise<void> => {
    for (const item of queue) {
      if (failures.length > 0) return;
      try {
        counts[(await isDeleted(item, deps)) ? "deleted" : "left"]++;
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: DELETES_AT_ONCE }, oneByOne));
  if (failures.length > 0) throw failures[0];
}

async function isDeleted(item: Item, deps: SweepDeps): Promise<boolean> {
  const { partitionKey, sortKey, ttlAttribute } = TABLE;
  const values = { ":seen": item[ttlAttribute], ":now": earliestSec(deps) };
  try {
    await deps.calls.deleteItem({
      TableName: deps.tableName,
      Key: { [partitionKey]: item[partitionKey], [sortKey]: item[sortKey] },
      ConditionExpression: SAME_AND_OVER,
      ExpressionAttributeValues: values,
    });
    return true;
  } catch (error) {
    if (isConditionFailed(error) || isWriteConflict(error)) return false;
    throw await tableUnavailable(error, deps);
  }
}
