/**
 * The scenes by which golden items are written: one for each kind and state of an item. The store's own code writes them, in its forms
 * and as whole records, to a table in memory with a clock that the scene turns; sleepers and tied leases, which are sets, to the engine. Everything
 * that a default could change is given.
 *
 * The items of a scene may never change within a format, and neither may what is read from them (golden-items.test.ts).
 */
import type { Acquire, Command } from "../../lib/core/commands.js";
import { FOREVER_MS } from "../../lib/core/limits.js";
import { type LeaseId, leaseIdFrom } from "../../lib/core/lease-id.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Payload } from "../../lib/core/record.js";
import type { AllCalls, TableCalls } from "../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../lib/store/dynamo/dynamo-store.js";
import { createSleeperStore, SLEEPERS } from "../../lib/store/dynamo/sleeper-store.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import type { LockStore } from "../../lib/store/port.js";
import { type Input, DynamoTable } from "../../lib/testing/table/table.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";

/** An item in plain values; a set is `{ set: [...] }`. */
export type PlainItem = Readonly<Record<string, unknown>>;

/** The time at which each scene begins. */
export const START_MS = Date.UTC(2027, 0, 1);
const MINUTE = 60_000;
const NAMESPACE = "golden";
const POLICY = createPolicy({ clockErrorMs: 500, retentionMs: 86_400_000 });
const TASK = { taskToken: "T".repeat(40) };
/** The leases of a scene, in the order of their ids. */
const [A, B, C, D, E] = [id(1), id(2), id(3), id(4), id(5)];

/** Returns the leaseId of a scene with this place in their order. */
export function id(order: number): LeaseId {
  return leaseIdFrom(START_MS, Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, order));
}

function small(text: string): Payload {
  return { digest: `digest of ${text}`, bytes: text.length, text };
}

type Asked = Partial<Omit<Acquire, "type" | "key" | "leaseId">>;

/** Where sleepers and tied leases are written: the table in memory has no sets. */
export interface EngineTable {
  readonly calls: AllCalls;
  readonly tableName: string;
}

/** One key of a table, used by one process after another. */
class Scene {
  readonly #table = new DynamoTable({ tableName: "golden", ...TABLE }, () => START_MS);
  readonly #calls = {
    updateItem: async (input: object) => this.#table.update(input as Input),
    getItem: async (input: object) => this.#table.get(input as Input),
    query: async (input: object) => this.#table.query(input as Input),
    transactWriteItems: async (input: object) => this.#table.transactWrite(input as Input),
  } as unknown as TableCalls;
  /** It only runs the pauses of the store, after a lost race. */
  readonly #clock = new VirtualClock();
  #nowMs = START_MS;
  store = this.#newStore();
  readonly #kept: PlainItem[] = [];

  constructor(private readonly engine: EngineTable) {}

  #newStore(doors: readonly string[] = []): LockStore {
    return createDynamoStore({ calls: this.#calls, tableName: "golden", policy: POLICY, clock: this.#clock, random: () => 0.5, doors });
  }

  /** Turns the clock. */
  at(ms: number): this {
    this.#nowMs = START_MS + ms;
    return this;
  }

  /** Goes on with a process that has seen nothing. */
  other(): this {
    this.store = this.#newStore();
    return this;
  }

  /** Goes on with a process that is reached by these doors. */
  by(doors: readonly string[]): this {
    this.store = this.#newStore(doors);
    return this;
  }

  async apply(command: object, kind: "locks" | "runs" = "locks"): Promise<void> {
    const reading = { earliestMs: this.#nowMs, latestMs: this.#nowMs };
    const address = { namespace: NAMESPACE, kind, key: "KEY" };
    const asked = { key: "KEY", principal: "P", ...command } as unknown as Command;
    await this.#clock.settle(this.store.apply(address, asked, () => reading));
  }

  acquireOf(leaseId: string, asked: Asked = {}): object {
    const usual = { owner: "o", leaseMs: 10_000, mode: "exclusive", limit: 1, permits: 1, priority: 0, requestHash: "hash" };
    return { type: "acquire", key: "KEY", principal: "P", leaseId, ...usual, ...asked };
  }

  acquire(leaseId: string, asked: Asked = {}): Promise<void> {
    return this.apply(this.acquireOf(leaseId, asked));
  }

  queue(leaseId: string, asked: Asked = {}): Promise<void> {
    return this.acquire(leaseId, { wait: true, ...asked });
  }

  sleep(leaseId: string): Promise<void> {
    return this.queue(leaseId, { sleepMs: 10 * MINUTE });
  }

  release(leaseId: string): Promise<void> {
    return this.apply({ type: "release", leaseId });
  }

  waitFor(leaseId: string, condition: string, toLeaseId: string): Promise<void> {
    return this.apply({ type: "wait", leaseId, condition, to: { ...this.acquireOf(toLeaseId), wait: true } });
  }

  start(leaseId: string, given: object = {}): Promise<void> {
    const usual = { owner: "o", leaseMs: 10_000, fingerprint: "", keepResultMs: MINUTE, maxAttempts: 0, requestHash: "hash" };
    return this.apply({ type: "start", leaseId, ...usual, ...given }, "runs");
  }

  save(leaseId: string, checkpoint: object): Promise<void> {
    return this.apply({ type: "renew", leaseId, leaseMs: 10_000, checkpoint }, "runs");
  }

  complete(leaseId: string, state: string, given: object = {}): Promise<void> {
    return this.apply({ type: "complete", leaseId, state, ...given }, "runs");
  }

  /** Stores a payload in an item of its own. */
  async keep(digest: string, text: string): Promise<Payload> {
    const ttlAtSec = START_MS / 1000 + 7200;
    await this.store.keepPayload({ namespace: NAMESPACE, kind: "runs", key: "KEY" }, { digest, ttlAtSec }, text);
    return { digest, bytes: text.length, ttlAtSec };
  }

  async take(rates: readonly object[], cost = 1): Promise<void> {
    const reading = { earliestMs: this.#nowMs, latestMs: this.#nowMs };
    await this.store.limits.take({ namespace: NAMESPACE, key: "LIMIT" }, { rates, cost, waitMs: 0 } as never, () => reading);
  }

  /** Stores a sleeper, or a tied lease. */
  async put(kept: object): Promise<void> {
    const about = { address: { namespace: NAMESPACE, kind: "locks", key: "KEY" }, putAtMs: this.#nowMs, ttlAtSec: START_MS / 1000 + 7200 };
    await createSleeperStore(this.engine).put({ ...about, ...kept } as never);
    const { calls, tableName } = this.engine;
    const { Items = [] } = await calls.query({
      ...{ TableName: tableName, KeyConditionExpression: "#p = :p", FilterExpression: "attribute_exists(s)", Limit: 9 },
      ...{ ExpressionAttributeNames: { "#p": TABLE.partitionKey }, ExpressionAttributeValues: { ":p": SLEEPERS } },
    });
    this.#kept.splice(
      0,
      this.#kept.length,
      ...(Items as PlainItem[]).filter(({ k }) => String(k).endsWith("/tie") === "executionArn" in kept),
    );
  }

  items(): PlainItem[] {
    return [...this.#table.items(), ...this.#kept].map((item) => plainOf(item));
  }
}

function plainOf(item: PlainItem): PlainItem {
  const text = JSON.stringify(item, (_, value: unknown) => (value instanceof Set ? { set: [...value].sort() } : value));
  return JSON.parse(text) as PlainItem;
}

type Play = (scene: Scene) => Promise<unknown>;

const ten = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const;
const READER: Asked = { mode: "shared" };
const PERMIT: Asked = { limit: 20 };

/** Acquires under each of these ids, by a process of its own for each. */
async function join(scene: Scene, orders: readonly number[], asked: Asked): Promise<void> {
  for (const order of orders) await scene.other().at(order).acquire(id(order), asked);
}

const SCENES: Readonly<Record<string, Play>> = {
  "free, after one lease": async (s) => {
    await s.acquire(A);
    await s.at(50).release(A);
  },
  "free, after ten leases": async (s) => {
    for (const order of ten) {
      await s.at(100 * order).acquire(id(order));
      await s.at(100 * order + 50).release(id(order));
    }
  },
  "free, after a cancel": (s) => s.release(A),
  held: (s) => s.acquire(A, { owner: "worker-1", meta: { url: "https://example.com", n: [1] } }),
  "held, and renewed": async (s) => {
    await s.acquire(A);
    await s.at(4000).apply({ type: "renew", leaseId: A, leaseMs: 20_000 });
  },
  "held twice by one scope": async (s) => {
    await s.acquire(A, { scope: "scope-of-a-request" });
    await s.acquire(B, { scope: "scope-of-a-request" });
  },
  "held by readers": (s) => join(s, [1, 2, 3], READER),
  "held by readers, of whom one waits to be the writer": async (s) => {
    await join(s, [1, 2], READER);
    await s.at(10).apply({ type: "mode", leaseId: A, mode: "exclusive", fencingToken: START_MS + 1 });
  },
  "held by permits": async (s) => {
    await s.acquire(A, { ...PERMIT, permits: 3 });
    await join(s, [2, 3], PERMIT);
  },
  "held by permits, of which some ended": async (s) => {
    await join(s, ten, PERMIT);
    for (const order of [2, 4, 6]) await s.at(100 + order).release(id(order));
  },
  "broken, and drains": async (s) => {
    await s.acquire(A);
    await s.apply({ type: "break", fencingToken: START_MS });
  },
  "broken by force": async (s) => {
    await s.acquire(A);
    await s.apply({ type: "break", fencingToken: START_MS, drainMs: 2000 });
  },
  transferred: async (s) => {
    await s.acquire(A);
    await s.at(100).apply({ type: "transfer", leaseId: A, toLeaseId: B, toOwner: "next" });
  },
  "taken over": async (s) => {
    await s.acquire(A);
    await s.at(5 * MINUTE).acquire(B);
  },
  "a queue": async (s) => {
    await s.acquire(A);
    await s.queue(B);
    await s.queue(C, READER);
    await s.queue(D, { priority: 5, owner: "urgent" });
    await s.queue(E, { owner: "€".repeat(200) });
  },
  "a queue for permits": async (s) => {
    await s.acquire(A, { ...PERMIT, permits: 20 });
    await s.queue(B, { ...PERMIT, permits: 2 });
  },
  "a queue with a place that was left": async (s) => {
    await s.acquire(A);
    await s.queue(B);
    await s.queue(C);
    await s.release(B);
  },
  "a queue that was heard of": async (s) => {
    await s.acquire(A, { leaseMs: MINUTE });
    await s.queue(B);
    await s.at(9000).queue(B);
  },
  "offered by a release": async (s) => {
    await s.acquire(A);
    await s.queue(B);
    await s.at(50).release(A);
  },
  "offered by a whole record": async (s) => {
    await s.acquire(A);
    await s.queue(B, READER);
    await s.at(50).release(A);
  },
  "offered to a sleeper": async (s) => {
    await s.acquire(A);
    await s.sleep(B);
    await s.at(50).release(A);
  },
  "a queue of sleepers": async (s) => {
    await s.acquire(A);
    await s.sleep(B);
    await s.sleep(C);
    await s.queue(D);
  },
  "waits for conditions": async (s) => {
    await s.acquire(A);
    await s.waitFor(A, "full", B);
    await s.acquire(C);
    await s.waitFor(C, "empty", D);
  },
  "came by a notify": async (s) => {
    await s.acquire(A);
    await s.waitFor(A, "full", B);
    await s.acquire(C);
    await s.apply({ type: "notify", leaseId: C, condition: "full", sequence: 1 });
  },
  "a run that goes on": (s) => s.start(A, { fingerprint: "fingerprint", owner: "worker-1" }),
  "a run with a checkpoint": async (s) => {
    await s.start(A);
    await s.at(100).save(A, { ...small('{"page":7}'), sequence: 7 });
  },
  "a run with a large checkpoint": async (s) => {
    await s.start(A);
    await s.save(A, await s.keep("large", '"text"'));
  },
  "a run that succeeded": async (s) => {
    await s.start(A);
    await s.at(100).complete(A, "succeeded", { payload: small('{"ok":true}') });
  },
  "a run with a large result": async (s) => {
    await s.start(A);
    await s.at(100).complete(A, "succeeded", { payload: await s.keep("large", '"text"') });
  },
  "a run whose result was left out": async (s) => {
    await s.start(A);
    await s.at(100).complete(A, "succeeded", { omitted: true });
  },
  "a run that failed": async (s) => {
    await s.start(A);
    await s.at(100).complete(A, "failed", { payload: small('{"name":"Error"}') });
  },
  "a run to try again": async (s) => {
    await s.start(A);
    await s.at(100).complete(A, "retry");
  },
  "a run that is kept for ever": async (s) => {
    await s.start(A, { keepResultMs: FOREVER_MS });
    await s.at(100).complete(A, "succeeded", { payload: small("1") });
  },
  "a run that was taken over": async (s) => {
    await s.start(A);
    await s.at(100).save(A, small("1"));
    await s
      .other()
      .at(5 * MINUTE)
      .start(B);
  },
  "a limit": (s) => s.take([{ count: 10, perMs: MINUTE, burst: 10 }]),
  "a limit of four rates": async (s) => {
    const rates = [1, 2, 3, 4].map((n) => ({ count: 10 * n, perMs: n * MINUTE, burst: 5 * n }));
    await s.take(rates, 2);
    await s.at(100).take(rates);
  },
  "a limit that was reset": async (s) => {
    await s.take([{ count: 10, perMs: MINUTE, burst: 10 }], 10);
    await s.store.limits.reset({ namespace: NAMESPACE, key: "LIMIT" });
  },
  "a sleeper of two targets": async (s) => {
    const sleeper = { acquire: { ...s.acquireOf(A), wait: true }, untilMs: START_MS + MINUTE };
    await s.put({ ...sleeper, targets: [TASK] });
    await s.put({ ...sleeper, targets: [{ callbackId: "C".repeat(40) }] });
  },
  "a tied lease": (s) => s.put({ leaseId: A, principal: "P", executionArn: "arn:aws:states:eu-west-1:1:execution:machine:name" }),
  "a table of one namespace": (s) => s.store.tenancy("shared"),
  "a table of tenants": (s) => s.store.tenancy("tenants"),
  "a table with two doors": async (s) => {
    await s.store.tenancy("shared");
    for (const door of ["https://a.example", "https://b.example"]) await s.by([door]).store.doors();
  },
};

/**
 * Plays all scenes. Returns the items of each.
 * @param mayFail true to leave out a scene that can't be played: a control plants a mistake
 */
export async function writtenItems(engine: EngineTable, mayFail = false): Promise<Readonly<Record<string, readonly PlainItem[]>>> {
  const written: Record<string, readonly PlainItem[]> = {};
  for (const [name, play] of Object.entries(SCENES)) {
    const scene = new Scene(engine);
    try {
      await play(scene);
      written[name] = scene.items();
    } catch (error) {
      if (!mayFail) throw error;
    }
  }
  return written;
}
