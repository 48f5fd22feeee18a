/**
 * The cost of the queue, in requests and capacity units at the engine: enqueueing, polling, claiming, releasing and
 * leaving, one row for each; and in the slow tier two hundred concurrent callers, and a queue of the largest size.
 */
import { DynamoDBDocumentClient, GetCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { check } from "../../../lib/core/lock/check.js";
import { digestOfPrincipal } from "../../../lib/service/caller.js";
import { DEFAULTS, LIMITS } from "../../../lib/core/limits.js";
import { itemKey } from "../../../lib/store/dynamo/item.js";
import { markOf } from "../../../lib/store/dynamo/lists.js";
import { leaseIdOf } from "../../../lib/store/dynamo/stored-id.js";
import { type LockStore, StoreUnavailable } from "../../../lib/store/port.js";
import { freshTable } from "../../support/engine.js";
import { itemBytes } from "../../support/item-bytes.js";
import type { FreshTable } from "../../support/engine.js";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.js";
import { isThorough } from "../../support/tier.js";
import { QueueScene } from "../queue-fixture.js";
import { replacingStore } from "../replacing-store.js";
import { A, B, C, D, dynamoStoreOn, leaseId, outcomeOf, START_MS } from "../fixture.js";

type Answer = Parameters<typeof outcomeOf>[0];
type Act = (lock: QueueScene) => Promise<Answer>;
type Prepare = (lock: QueueScene) => Promise<unknown>;

/** A caller with a principal in IAM's format, on a key of typical length. */
const ORDINARY = {
  by: digestOfPrincipal("123456789012/AROAEXAMPLEEXAMPLEEX1"),
  owner: "checkout-7",
  leaseMs: DEFAULTS.leaseMs,
  requestHash: "0123456789abcdef",
};
const LONG_MS = 120_000;
const MOST = LIMITS.waitersMax;
const KB = 1024;

const acquire = (id: string): Act => (lock) => lock.acquire(id, ORDINARY); // prettier-ignore
const queue = (id: string, priority = 0): Act => (lock) => lock.queue(id, { ...ORDINARY, priority }); // prettier-ignore
const release = (id: string): Act => (lock) => lock.release(id, ORDINARY); // prettier-ignore
const look = (id: string): Act => (lock) => lock.look(id, ORDINARY.by); // prettier-ignore
const pass = (ms: number): Prepare => async (lock) => void lock.at(lock.clocks.latestMs - START_MS + ms); // prettier-ignore
const releaseElsewhere = (id: string): Act => (lock) => release(id)(elsewhereOf(lock)); // prettier-ignore
const HELD = [acquire(A)];
/** A holds, and these wait. */
const line = (...ids: readonly string[]): readonly Prepare[] => [...HELD, ...ids.map((id) => queue(id))];
/** B got the key after a lease of 1 ms, 20 ms ago. */
const LONGER = [acquire(A), release(A), acquire(B), pass(20)];
/** The same, and another process released it. */
const OVER = [acquire(A), release(A), acquire(B), releaseElsewhere(B), pass(20)];
const HALF_MS = DEFAULTS.waiterTtlMs / 2;

interface Row {
  readonly what: string;
  /** Run in sequence, a millisecond apart. */
  readonly before: readonly Prepare[];
  readonly act: Act;
  /** True: by a process that hasn't seen the key. */
  readonly elsewhere?: true;
  readonly says: string;
  readonly writes: number;
  readonly reads: number;
}

const ROWS: readonly Row[] = [
  { what: "an enqueue into a key seen in use", before: HELD, act: queue(B), says: "waiting", writes: 1, reads: 0 },
  { what: "an enqueue behind others", before: line(B), act: queue(C), says: "waiting", writes: 1, reads: 0 },
  { what: "an enqueue into a key not seen before", before: HELD, act: queue(B), elsewhere: true, says: "waiting", writes: 2, reads: 0 },
  { what: "an enqueue ahead of others", before: line(B), act: queue(C, 5), says: "waiting", writes: 1, reads: 0 },
  { what: "a key whose lease is likely over, for who would wait", before: OVER, act: queue(C), says: "granted", writes: 1, reads: 0 },
  {
    what: "the same with no lease before to go by",
    before: [acquire(B), releaseElsewhere(B), pass(20)],
    ...{ act: queue(C), says: "granted", writes: 2, reads: 0 },
  },
  { what: "a lease that goes on for longer than the one before", before: LONGER, act: queue(C), says: "waiting", writes: 2, reads: 0 },
  { what: "an enqueue sent again", before: line(B), act: queue(B), says: "waiting", writes: 1, reads: 0 },
  { what: "a visit that looks", before: line(B, C), act: look(C), says: "waiting", writes: 0, reads: 1 },
  { what: "a visit that asks", before: line(B, C), act: queue(C), says: "waiting", writes: 0, reads: 1 },
  { what: "a keep-alive", before: [...line(B, C), pass(HALF_MS)], act: queue(C), says: "waiting", writes: 1, reads: 1 },
  { what: "a release that hands over", before: line(B, C), act: release(A), says: "released", writes: 1, reads: 0 },
  {
    what: "the same by a process that didn't see the queue",
    before: line(B, C),
    act: release(A),
    elsewhere: true,
    says: "released",
    writes: 1,
    reads: 0,
  },
  { what: "a claim", before: [...line(B, C), release(A)], act: queue(B), says: "granted", writes: 1, reads: 0 },
  {
    what: "a claim by who saw itself first in the queue",
    before: [...line(B, C), look(B), releaseElsewhere(A)],
    act: queue(B),
    says: "granted",
    writes: 1,
    reads: 0,
  },
  {
    what: "a claim by a process that has seen nothing",
    before: [...line(B, C), release(A)],
    act: queue(B),
    elsewhere: true,
    says: "granted",
    writes: 2,
    reads: 0,
  },
  { what: "a claim sent again", before: [...line(B, C), release(A), queue(B)], act: queue(B), says: "replayed", writes: 0, reads: 1 },
  { what: "leaving the queue", before: line(B, C, D), act: release(C), says: "never", writes: 1, reads: 0 },
  { what: "leaving one's turn to the next", before: [...line(B, C), release(A)], act: release(B), says: "never", writes: 2, reads: 0 },
  {
    what: "a turn that lapsed, for who comes then",
    before: [...line(B, C), release(A), pass(DEFAULTS.offerWindowMs)],
    act: queue(C),
    says: "granted",
    writes: 1,
    reads: 0,
  },
  { what: "a refusal of who will not wait", before: line(B, C), act: acquire(D), says: "locked", writes: 0, reads: 1 },
];

let proxy: FaultProxy;
let table: FreshTable;

/** The same key, in a process that hasn't seen it. */
function elsewhereOf(lock: QueueScene): QueueScene {
  const there = new QueueScene(dynamoStoreOn(table), lock.address);
  there.clocks = lock.clocks;
  return there;
}

beforeAll(async () => {
  proxy = await startFaultProxy();
  table = await freshTable(proxy.endpoint);
});
afterAll(() => proxy.close());

describe("counted at the engine", () => {
  it.each(ROWS)("$what costs $writes writes and $reads reads", async ({ before, act, elsewhere, writes, reads, says }) => {
    const lock = new QueueScene(dynamoStoreOn(table), { key: "checkout-service_ORDER_1231" });
    for (const each of before) {
      await each(lock);
      await pass(1)(lock);
    }
    const there = elsewhere ? elsewhereOf(lock) : lock;
    proxy.ledger.clear();
    expect(outcomeOf(await act(there))).toBe(says);
    const { requests, writeUnits } = proxy.ledger;
    const expected = { ...(writes > 0 && { UpdateItem: writes }), ...(reads > 0 && { GetItem: reads }) };
    expect({ requests, writeUnits }).toEqual({ requests: expected, writeUnits: writes });
  });

  it("a keep-alive leaves the version, so that nobody loses a race to it; control: an enqueue doesn't", async () => {
    const lock = new QueueScene(dynamoStoreOn(table));
    for (const each of line(B, C)) await each(lock);
    const version = (await lock.read())?.version;
    await queue(C)(lock.at(HALF_MS));
    const record = await lock.read();
    expect(record?.waiters[1]?.aliveUntilMs).toBeGreaterThan(record?.waiters[0]?.aliveUntilMs ?? 0);
    expect(record?.version).toBe(version);
    await queue(D)(lock);
    expect((await lock.read())?.version).toBe((version ?? 0) + 1);
  });
});

describe.runIf(isThorough())("two hundred who come at once, of whom a hundred find room", () => {
  /** Queues all callers, retrying each while its key keeps changing. Returns the requests and the refused writes. */
  async function come(storeAt: (order: number) => LockStore, arrivals = 2 * MOST) {
    const first = new QueueScene(storeAt(0));
    await first.acquire(A, ORDINARY);
    proxy.ledger.clear();
    const arrive = async (order: number): Promise<string> => {
      const lock = new QueueScene(storeAt(order), first.address);
      for (;;) {
        try {
          return outcomeOf(await lock.queue(leaseId(order + 10), ORDINARY));
        } catch (error) {
          if (!(error instanceof StoreUnavailable && error.definite)) throw error;
        }
      }
    };
    const outcomes = await Promise.all(Array.from({ length: arrivals }, (_, order) => arrive(order)));
    const { requests, refusedWrites } = proxy.ledger;
    const count = (outcome: string): number => outcomes.filter((one) => one === outcome).length;
    const queued = Math.min(MOST, arrivals);
    expect([count("waiting"), count("queue-full")]).toEqual([queued, arrivals - queued]);
    const { q, qi } = await itemOf(first);
    expect(new Set(qi as string[]).size).toBe(queued);
    expect((q as { g: object }[]).map(({ g }) => markOf(leaseIdOf(Object.keys(g)[0]!)))).toEqual(qi);
    return { requests, refusedWrites };
  }

  it("write once each, and nobody reads, as long as there are places for anyone", { timeout: LONG_MS }, async () => {
    const store = dynamoStoreOn(table);
    const arrivals = LIMITS.placesForAnyone;
    expect(await come(() => store, arrivals)).toEqual({ requests: { UpdateItem: arrivals }, refusedWrites: 0 });
  });

  /** Those for whom no place is seen don't write again. */
  it.each([
    ["twice each at most, where the last places are taken", "one process", 2],
    ["once more, each in a process of its own that has not seen the key, and still none races another", "processes", 3],
  ] as const)("write %s", { timeout: LONG_MS }, async (_, where, times) => {
    const store = dynamoStoreOn(table);
    const { requests, refusedWrites } = await come(() => (where === "one process" ? store : dynamoStoreOn(table)));
    expect(Object.keys(requests)).toEqual(["UpdateItem"]);
    expect(requests["UpdateItem"]).toBeLessThanOrEqual(times * 2 * MOST);
    expect((requests["UpdateItem"] ?? 0) - refusedWrites).toBe(MOST);
  });

  it("control: forty write many times as often if each replaces what it saw", { timeout: LONG_MS }, async ({ annotate }) => {
    const guessing = await come(() => dynamoStoreOn(table), 40);
    expect(guessing.requests["UpdateItem"]).toBeLessThanOrEqual(3 * 40);
    const { requests } = await come(() => replacingStore(table), 40);
    await annotate(`40 enqueues: ${JSON.stringify(guessing.requests)}; that replace what they saw: ${JSON.stringify(requests)}`);
    expect(requests["PutItem"]).toBeGreaterThan(4 * 40);
  });
});

describe.runIf(isThorough())("a queue that is as long as it may be", () => {
  const IDS = [A, ...Array.from({ length: 3 * MOST }, (_, order) => leaseId(order + 10))];

  /** A key with a holder and a hundred waiters. */
  async function full(): Promise<QueueScene> {
    const lock = new QueueScene(dynamoStoreOn(table), { key: "checkout-service_ORDER_1231" });
    await acquire(A)(lock);
    for (let order = 1; order <= MOST; order++) await queue(IDS[order]!)(lock.at(order));
    return lock;
  }

  /** The cost of each of that many rounds. */
  async function cost(rounds: number, round: (order: number) => Promise<unknown>) {
    proxy.ledger.clear();
    for (let order = 0; order < rounds; order++) await round(order);
    const { requests, writeUnits } = proxy.ledger;
    return { writes: (requests["UpdateItem"] ?? 0) / rounds, writeUnits: writeUnits / rounds };
  }

  /** The holder releases, and the next waiter claims, here or in a process that hasn't seen the key. */
  const grant = (lock: QueueScene, claimAt: (lock: QueueScene) => QueueScene) => async (order: number) => {
    await pass(1)(lock);
    await release(IDS[order]!)(lock);
    await pass(1)(lock);
    expect(outcomeOf(await queue(IDS[order + 1]!)(claimAt(lock)))).toBe("granted");
  };
  const here = (lock: QueueScene): QueueScene => lock;

  it("is an item of at most 16 KB, and a write of it costs as much", { timeout: LONG_MS }, async ({ annotate }) => {
    const lock = await full();
    const bytes = itemBytes(await itemOf(lock));
    const renewal = await cost(1, () => lock.at(MOST + 1).renew(A, { by: ORDINARY.by }));
    await annotate(`100 waiters: ${bytes} bytes; a renewal: ${renewal.writeUnits} write units`);
    expect(bytes).toBeLessThanOrEqual(16 * KB);
    expect(renewal).toEqual({ writes: 1, writeUnits: Math.ceil(bytes / KB) });
  });

  it("is granted on by two writes, one more of who comes, each of the item's size", { timeout: LONG_MS }, async ({ annotate }) => {
    const lock = await full();
    const steady = await cost(10, async (order) => {
      await grant(lock, here)(order);
      await queue(IDS[MOST + 1 + order]!)(lock);
    });
    const drained = await cost(MOST, (order) => grant(lock, here)(order + 10));
    await annotate(`per grant, a hundred waiting: ${JSON.stringify(steady)}; as they go: ${JSON.stringify(drained)}`);
    expect(steady.writes).toBe(3);
    expect(steady.writeUnits).toBeLessThanOrEqual(3 * 16);
    expect(drained.writes).toBe(2);
    expect(drained.writeUnits).toBeLessThanOrEqual(20);
  });

  it("costs a claim by a process that has seen nothing a refused write more", { timeout: LONG_MS }, async ({ annotate }) => {
    const lock = await full();
    const unseen = await cost(10, grant(lock, elsewhereOf));
    await annotate(`per grant, claimed where nothing was seen: ${JSON.stringify(unseen)}`);
    expect(unseen.writes).toBe(3);
  });

  it("is kept alive by fewer than four writes a minute for each place", { timeout: LONG_MS }, async ({ annotate }) => {
    const lock = await full();
    await lock.renew(A, { by: ORDINARY.by, leaseMs: 600_000 });
    const minute = await cost(1, async () => {
      for (let ms: number = LIMITS.pollMaxMs; ms <= 60_000; ms += LIMITS.pollMaxMs) {
        const record = await lock.at(ms).read();
        for (const leaseId of IDS.slice(1, MOST + 1)) {
          const seen = check(record, { key: lock.address.key, leaseId, principal: ORDINARY.by }, lock.clocks);
          if ("retryAfterMs" in seen && seen.retryAfterMs === 0) await queue(leaseId)(lock);
        }
      }
    });
    await annotate(`a full queue that waits for a minute: ${JSON.stringify(minute)}`);
    expect((await lock.standing()).waiters).toEqual(IDS.slice(1, MOST + 1));
    // It takes 122 for 32 places: a place in front is seen more often, and who is next tries to claim before it says that it is there.
    expect(minute.writes).toBeLessThan(4 * MOST);
  });
});

/** The item as stored. */
async function itemOf({ address }: QueueScene): Promise<Record<string, unknown>> {
  const documents = DynamoDBDocumentClient.from(table.client);
  const { Item = {} } = await documents.send(new GetCommand({ TableName: table.tableName, Key: itemKey(address), ConsistentRead: true }));
  return Item;
}
