/**
 * The behaviour of DynamoDB towards the requests to one table: an answer takes a few ms and seldom much longer, each item takes so many
 * units a second by its size, and a write meets a conflict while a transaction on its item runs. Load decides what a lock costs and how
 * long it takes, and an engine on this machine shows none of it.
 */
import type { Clock } from "../core/time.js";
import { serviceError, transactionCanceled } from "./table/errors.js";

type Range = readonly [least: number, most: number];

/** Latencies in ms, and the units a second that an item takes. */
export interface TableBehaviour {
  /** The time from the request to its answer. */
  readonly latencyMs: Range;
  /** The share of requests that take longer, by `tailMs`. */
  readonly tailShare: number;
  readonly tailMs: Range;
  /** The mean time that a busy process or proxy adds on each side of a request, exponentially distributed; 0: nothing. */
  readonly loadMs: number;
  /** The time for which a transaction holds its items. */
  readonly transactionMs: Range;
  readonly writeUnits: number;
  readonly readUnits: number;
  /** The time whose units an item has saved up when it is first used, in ms, at most 1 000. */
  readonly creditMs: number;
}

/**
 * DynamoDB's. The units are those of a partition, which one item can't exceed: burst capacity doesn't help a hot partition ("Best practices
 * for designing and using partition keys", re:Post "spiky workloads"), so no more than a second's units are ever saved up.
 */
export const LIKE_DYNAMODB: TableBehaviour = {
  latencyMs: [4, 8],
  tailShare: 0.01,
  tailMs: [100, 200],
  loadMs: 0,
  transactionMs: [4, 8],
  writeUnits: 1000,
  readUnits: 3000,
  creditMs: 1000,
};

const WRITE_UNIT_BYTES = 1024;
const READ_UNIT_BYTES = 4096;
/** A transaction reads and writes: each unit counts twice. */
const TRANSACTION_UNITS = 2;
/** The number of items above which those that nobody has used for a second are forgotten. */
const MANY_ITEMS = 10_000;

export interface TableRequest<Answer> {
  readonly kind: "read" | "write" | "transaction";
  /** The names of its items; none for a query, which is not charged. */
  readonly items: readonly string[];
  /** Carries it out at once. It throws as DynamoDB does. */
  readonly carryOut: () => Answer;
}

/** A request as it was served. `refused`: by a condition. */
export interface ServedRequest {
  readonly kind: TableRequest<unknown>["kind"];
  readonly outcome: "done" | "refused" | "throttled" | "conflict";
  readonly units: number;
}

/** The table, its clock and its chance. */
export interface TableServiceDeps {
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  /** Returns 0 to 1. */
  readonly random: () => number;
  /** Returns the size of an item by DynamoDB's rules, in bytes; 0 if there is none. */
  readonly bytesOf: (item: string) => number;
  /** @default {@link LIKE_DYNAMODB} */
  readonly behaviour?: Partial<TableBehaviour>;
  readonly onServed?: (served: ServedRequest) => void;
}

/** The units that an item has left. They may be below zero, since a request is charged when it is carried out. */
interface Left {
  write: number;
  read: number;
  atMs: number;
}

/** Serves the requests to one table. */
export class TableService {
  readonly #deps: TableServiceDeps;
  readonly #behaviour: TableBehaviour;
  readonly #left = new Map<string, Left>();
  readonly #inTransaction = new Set<string>();

  constructor(deps: TableServiceDeps) {
    this.#deps = deps;
    this.#behaviour = { ...LIKE_DYNAMODB, ...deps.behaviour };
  }

  /**
   * Carries out a request after half of its latency, and answers after the other half.
   * @throws what the request throws; or ServiceError, by which it was certainly not carried out: the throttles and conflicts of DynamoDB
   */
  async serve<Answer>(request: TableRequest<Answer>): Promise<Answer> {
    const { latencyMs, tailShare, tailMs, loadMs } = this.#behaviour;
    const isSlow = this.#deps.random() < tailShare;
    const tail = isSlow ? this.#within(tailMs) : 0;
    const isSlowToArrive = isSlow && this.#deps.random() < 0.5;
    const wayMs = this.#within(latencyMs) / 2;
    const sideMs = (): number => loadMs && -Math.log(1 - this.#deps.random()) * loadMs;
    await this.#pause(wayMs + (isSlowToArrive ? tail : 0) + sideMs());
    try {
      return await this.#admitted(request);
    } finally {
      await this.#pause(wayMs + (isSlowToArrive ? 0 : tail) + sideMs());
    }
  }

  async #admitted<Answer>({ kind, items, carryOut }: TableRequest<Answer>): Promise<Answer> {
    const conflicts = kind === "read" ? [] : items.filter((item) => this.#inTransaction.has(item));
    const throttled = items.filter((item) => this.#leftOf(item)[kind === "read" ? "read" : "write"] <= 0);
    const outcome = conflicts.length > 0 ? "conflict" : throttled.length > 0 ? "throttled" : undefined;
    if (outcome) {
      this.#deps.onServed?.({ kind, outcome, units: 0 });
      throw kind === "transaction" ? this.#cancelled(items, conflicts, throttled) : this.#refusal(outcome);
    }
    if (kind !== "transaction") return this.#charged(kind, items, carryOut);
    for (const item of items) this.#inTransaction.add(item);
    try {
      await this.#pause(this.#within(this.#behaviour.transactionMs));
      return this.#charged(kind, items, carryOut);
    } finally {
      for (const item of items) this.#inTransaction.delete(item);
    }
  }

  /** Carries the request out, and charges each item by its larger size. A refused write is charged like any other. */
  #charged<Answer>(kind: ServedRequest["kind"], items: readonly string[], carryOut: () => Answer): Answer {
    const before = items.map(this.#deps.bytesOf);
    let outcome: ServedRequest["outcome"] = "refused";
    try {
      const answer = carryOut();
      outcome = "done";
      return answer;
    } finally {
      const units = items.map((item, index) => {
        const bytes = Math.max(before[index] ?? 0, this.#deps.bytesOf(item));
        return (
          Math.max(1, Math.ceil(bytes / (kind === "read" ? READ_UNIT_BYTES : WRITE_UNIT_BYTES))) *
          (kind === "transaction" ? TRANSACTION_UNITS : 1)
        );
      });
      for (const [index, item] of items.entries()) this.#leftOf(item)[kind === "read" ? "read" : "write"] -= units[index] ?? 0;
      this.#deps.onServed?.({ kind, outcome, units: units.reduce((sum, one) => sum + one, 0) });
    }
  }

  #refusal(outcome: "throttled" | "conflict"): Error {
    if (outcome === "conflict") return serviceError("TransactionConflictException", "Transaction is ongoing for the item");
    // The first is what a table on demand says, the second what one with provisioned capacity says.
    return this.#deps.random() < 0.5
      ? serviceError("ThrottlingException", THROTTLED)
      : serviceError("ProvisionedThroughputExceededException", THROTTLED);
  }

  #cancelled(items: readonly string[], conflicts: readonly string[], throttled: readonly string[]): Error {
    const slowDown = this.#deps.random() < 0.5 ? "ThrottlingError" : "ProvisionedThroughputExceeded";
    const reasons = items.map((item) => {
      if (conflicts.includes(item)) return { Code: "TransactionConflict", Message: "Transaction is ongoing for the item" };
      return throttled.includes(item) ? { Code: slowDown, Message: THROTTLED } : { Code: "None" };
    });
    return transactionCanceled(reasons);
  }

  #leftOf(item: string): Left {
    const { writeUnits, readUnits, creditMs } = this.#behaviour;
    const nowMs = this.#deps.clock.monotonicMs();
    let left = this.#left.get(item);
    if (!left) {
      if (this.#left.size >= MANY_ITEMS) for (const [name, { atMs }] of this.#left) if (nowMs - atMs > 1000) this.#left.delete(name);
      const saved = creditMs / 1000;
      this.#left.set(item, (left = { write: saved * writeUnits, read: saved * readUnits, atMs: nowMs }));
    }
    const seconds = (nowMs - left.atMs) / 1000;
    left.write = Math.min(writeUnits, left.write + seconds * writeUnits);
    left.read = Math.min(readUnits, left.read + seconds * readUnits);
    left.atMs = nowMs;
    return left;
  }

  #within([least, most]: Range): number {
    return least + (most - least) * this.#deps.random();
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#deps.clock.after(ms, resolve));
  }
}

const THROTTLED = "Throughput exceeds the current capacity of your table or index";
