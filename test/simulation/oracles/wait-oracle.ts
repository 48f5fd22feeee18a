/**
 * The oracle of waits. It checks L9 by the writes to the table and the ends of waits: a wait that ends without the key missed no turn that
 * came a round trip before. A turn is an offer, room for the first waiter or for a reader that waits for the others, or a free key. A client
 * is excused from the turns during which one of its requests was not answered in time, or was to be sent again after a failure.
 */
import { LockTimeoutError } from "../../../lib/client/wire/errors.js";
import { wrapped } from "../../../lib/core/api/call.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import type { LockRecord } from "../../../lib/core/record.js";
import type { Bench } from "./verdict.js";

/** The longest round trip without faults: both directions of the network, and the table's pauses. */
const TRIP_MS = 200;
/** The answers after which a request is sent again. */
const FAILURES: ReadonlySet<string> = new Set(["unavailable", "throttled", "contended", "clock-skew"]);
/** The turn of whoever asks. */
const ANYBODY = "";

/** Checks the waits of one history. */
export class WaitOracle {
  /** For each key, who may have it, and since when. */
  readonly #turns = new Map<string, ReadonlyMap<string, number>>();

  constructor(private readonly bench: Bench) {}

  /** Records a write of the record, or undefined when it was collected. */
  written(key: string, next: LockRecord | undefined): void {
    const before = this.#turns.get(key);
    const nowMs = this.bench.now();
    this.#turns.set(key, new Map(turnsIn(next).map((id) => [id, before?.get(id) ?? nowMs])));
  }

  /** Returns the time since when it is the turn of this id, or of anybody; Infinity if it is not. */
  sinceMs(key: string, id = ANYBODY): number {
    return this.#turns.get(key)?.get(id) ?? Number.POSITIVE_INFINITY;
  }

  /** Returns a client's watch. */
  watch(): Watch {
    return new Watch(this, this.bench);
  }
}

/** The ids that may have the key now. */
function turnsIn(record: LockRecord | undefined): readonly string[] {
  const { holds = {}, offers = [], waiters: [first] = [], limit = 1, upgrading } = record ?? {};
  const holders = Object.values(holds);
  if (holders.length + offers.length === 0 && !first) return [ANYBODY];
  const offered = offers.map(({ leaseId }) => leaseId);
  // A reader whose turn has come counts as one of the others.
  if (upgrading) return holders.length === 1 && offers.length === 0 && holds[upgrading.leaseId] ? [upgrading.leaseId] : offered;
  const permits = holders.reduce((sum, hold) => sum + hold.permits, 0);
  const areReaders = first?.mode === "shared" && holders.every(({ mode }) => mode === "shared");
  const fits = areReaders || (limit > 1 && first && permits + first.permits <= limit);
  return first && offers.length === 0 && fits ? [...offered, first.leaseId] : offered;
}

/** The requests of one client, and the turns that it gave up. */
export class Watch {
  readonly #waits: WaitOracle;
  readonly #bench: Bench;
  /** The latest time at which a request of the client was still unanswered after a round trip, or failed. */
  #troubledAtMs = Number.NEGATIVE_INFINITY;
  readonly #sentAtMs = new Set<number>();
  /** The keys whose last request failed: the client pauses before it sends it again. */
  readonly #failed = new Set<string>();
  /** For each key, since when it was the turn of the last id that the client cancelled. */
  readonly #givenUp = new Map<string, number>();

  constructor(waits: WaitOracle, bench: Bench) {
    this.#waits = waits;
    this.#bench = bench;
  }

  /** Returns the service as the client is to use it. */
  around(api: ServiceApi): ServiceApi {
    return wrapped(api, (next) => async (operation, request, options) => {
      const sentAtMs = this.#bench.now();
      if (operation === "release") {
        const { key, leaseId } = request as Parameters<ServiceApi["release"]>[0];
        this.#givenUp.set(key, this.#missedSince(this.#waits.sinceMs(key, leaseId), [key]));
      }
      this.#sentAtMs.add(sentAtMs);
      let isUsable = false;
      let isAnswered = false;
      try {
        const answer = await next(operation, request, options);
        isUsable = answer.ok || !FAILURES.has(answer.code);
        isAnswered = isUsable && this.#bench.now() - sentAtMs <= TRIP_MS;
        return answer;
      } finally {
        // An answered cancel says nothing about the requests before it.
        if (operation !== "release") for (const key of keysOf(request)) this.#failed[isUsable ? "delete" : "add"](key);
        if (!isAnswered) this.#troubledAtMs = this.#bench.now();
        this.#sentAtMs.delete(sentAtMs);
      }
    });
  }

  /** Checks a wait for these keys. */
  async ends<T>(keys: readonly string[], wait: Promise<T>, leaseId?: string): Promise<T> {
    for (const key of keys) this.#givenUp.delete(key);
    try {
      return await wait;
    } catch (error) {
      if (error instanceof LockTimeoutError) this.#inVain(keys, leaseId);
      throw error;
    }
  }

  #inVain(keys: readonly string[], leaseId: string | undefined): void {
    this.#bench.coverage.waitsInVain++;
    const [key = ""] = keys;
    const givenUpMs = keys.length === 1 ? (this.#givenUp.get(key) ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const sinceMs = Math.max(...keys.map((one) => this.#waits.sinceMs(one, leaseId)));
    // The cancel took a round trip too.
    const lateMs = this.#bench.now() - Math.min(givenUpMs, this.#missedSince(sinceMs + TRIP_MS, keys));
    if (lateMs > 0)
      this.#bench.fail("L9", `${keys.join(", ")}: a wait ended without it, whose turn had come ${Math.round(lateMs)} ms before`);
  }

  /** Returns this time if the client has missed a turn at these keys that began then; else Infinity. */
  #missedSince(sinceMs: number, keys: readonly string[]): number {
    const nowMs = this.#bench.now();
    if (keys.some((key) => this.#failed.has(key))) return Number.POSITIVE_INFINITY;
    const isTroubled = this.#troubledAtMs >= sinceMs || [...this.#sentAtMs].some((sentAtMs) => nowMs - sentAtMs > TRIP_MS);
    return isTroubled || nowMs - sinceMs <= TRIP_MS ? Number.POSITIVE_INFINITY : sinceMs;
  }
}

/** Returns the keys that a request names. */
function keysOf(request: object): readonly string[] {
  const { key, keys, locks } = request as Partial<{ key: string; keys: readonly string[]; locks: readonly { readonly key: string }[] }>;
  return keys ?? locks?.map((lock) => lock.key) ?? (key === undefined ? [] : [key]);
}
