/**
 * The sweep of a table without TTL: it deletes what is over, of every kind, and nothing that somebody uses. On the table in memory and on an
 * engine. In virtual time.
 */
import { describe, expect, it } from "vitest";
import type { ClockReading } from "../../lib/core/time.js";
import type { AllCalls } from "../../lib/store/dynamo/calls.js";
import { itemKey, payloadKey, TENANCY_KEY } from "../../lib/store/dynamo/item.js";
import { createSleeperStore, SLEEPERS } from "../../lib/store/dynamo/sleeper-store.js";
import { type SweepDeps, type SweepOptions, type SweepPlace, sweepTable } from "../../lib/store/dynamo/sweep.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import type { LockStore, Sleeper, TiedLease } from "../../lib/store/port.js";
import { callsBy, carryOut, TABLE_NAME } from "../../lib/testing/served-table.js";
import { serviceError } from "../../lib/testing/table/errors.js";
import { DynamoTable, type Input } from "../../lib/testing/table/table.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { engineCalls, freshTable } from "../support/engine.js";
import { A, leaseId, dynamoStoreOn, Fixture, freshNamespace, LEASE_MS, outcomeOf, POLICY, START_MS } from "./fixture.js";

const DAY_MS = 86_400_000;
/** The time after the start at which what was used then is over. A run is kept for twice the retention. */
const LATER_MS = 2 * POLICY.retentionMs + DAY_MS;

interface Place {
  readonly calls: AllCalls;
  readonly tableName: string;
}

const TABLES: readonly (readonly [name: string, make: () => Promise<Place>])[] = [
  [
    "the table in memory",
    async () => {
      const table = new DynamoTable({ tableName: TABLE_NAME, ...TABLE }, () => 0);
      return { calls: callsBy(async (operation, input) => carryOut(table, operation, input as Input)), tableName: TABLE_NAME };
    },
  ],
  [
    "an engine",
    async () => {
      const { tableName, endpoint } = await freshTable();
      return { tableName, calls: engineCalls(endpoint) };
    },
  ],
];

/** A table with a store on it, and sweeps of it at a time after the start. */
class Scene {
  readonly namespace = freshNamespace();
  readonly store: LockStore;
  readonly where = { namespace: this.namespace, key: "ORDER_1" };

  constructor(readonly table: Place) {
    this.store = dynamoStoreOn(table);
  }

  sweeping(ms: number, given: Partial<SweepDeps> = {}): SweepDeps {
    const reading = readingAt(ms);
    const clock = new VirtualClock(START_MS + ms);
    return { ...this.table, clock, clocks: () => reading, random: () => 0, ...given };
  }

  /** Returns what a sweep at `ms` did, without the number of its requests. */
  async sweep(ms: number, given: Partial<SweepDeps> = {}, options: SweepOptions = {}, place: SweepPlace = {}) {
    const { pages, ...swept } = await sweepTable(this.sweeping(ms, given), options, place);
    expect(pages).toBeGreaterThan(0);
    return swept;
  }

  /** Calls by which somebody uses the items, after they were found to be over and before they are deleted. */
  usedMeanwhile(use: () => Promise<unknown>, calls: AllCalls = this.table.calls): AllCalls {
    return {
      ...methodsOf(calls),
      scan: async (input) => {
        const page = await calls.scan(input);
        if (page.Items?.length) await use();
        return page;
      },
    };
  }

  /** Stores a sleeper or a tied lease. */
  async keep(kept: Sleeper | TiedLease): Promise<void> {
    await createSleeperStore(this.table).put(kept);
  }

  async has(Key: Readonly<Record<string, string>>): Promise<boolean> {
    const { Item } = await this.table.calls.getItem({ TableName: this.table.tableName, Key, ConsistentRead: true });
    return Item !== undefined;
  }
}

function methodsOf(calls: AllCalls): AllCalls {
  return {
    updateItem: (input) => calls.updateItem(input),
    deleteItem: (input) => calls.deleteItem(input),
    getItem: (input) => calls.getItem(input),
    query: (input) => calls.query(input),
    scan: (input) => calls.scan(input),
    transactWriteItems: (input) => calls.transactWriteItems(input),
  };
}

const readingAt = (ms: number): ClockReading => ({ earliestMs: START_MS + ms, latestMs: START_MS + ms });
const secAt = (ms: number): number => Math.ceil((START_MS + ms) / 1000);

function sleeperKey({ where }: Scene, end: "" | "/tie"): Readonly<Record<string, string>> {
  return { p: SLEEPERS, k: `${where.namespace}/locks/${where.key}/${A}${end}` };
}

const SLEEPER = { targets: [{ taskToken: "T" }], acquire: { type: "acquire", leaseId: A, principal: "P", requestHash: "h" } } as const;
const TIE = { leaseId: A, principal: "P", executionArn: "arn:aws:states:us-east-1:1:execution:M:E" };
const sleeperAt = (scene: Scene, ms: number): Sleeper =>
  ({
    ...SLEEPER,
    address: { ...scene.where, kind: "locks" },
    untilMs: START_MS + ms,
    putAtMs: START_MS + ms,
    ttlAtSec: secAt(ms + POLICY.retentionMs),
  }) as unknown as Sleeper;
const tieAt = (scene: Scene, ms: number): TiedLease => {
  const { address, putAtMs, ttlAtSec } = sleeperAt(scene, ms);
  return { ...TIE, address, putAtMs, ttlAtSec };
};

/** Every kind of item: how it is made and used at a time after the start, and its key. */
const KINDS: readonly {
  readonly kind: string;
  readonly use: (scene: Scene, ms: number) => Promise<unknown>;
  readonly key: (scene: Scene) => Readonly<Record<string, string>>;
}[] = [
  {
    kind: "a lock",
    use: ({ store, where }, ms) => new Fixture(store, where).at(ms).acquire(leaseId(1, ms)),
    key: ({ where }) => itemKey({ ...where, kind: "locks" }),
  },
  {
    kind: "a run",
    use: ({ store, where }, ms) =>
      store.apply(
        { ...where, kind: "runs" },
        {
          type: "start",
          ...{ key: where.key, leaseId: leaseId(1, ms), principal: "P", owner: "", leaseMs: LEASE_MS },
          ...{ fingerprint: "", keepResultMs: 60_000, maxAttempts: 0, requestHash: "h" },
        },
        () => readingAt(ms),
      ),
    key: ({ where }) => itemKey({ ...where, kind: "runs" }),
  },
  {
    kind: "a limit",
    use: ({ store, where }, ms) =>
      store.limits.take(where, { rates: [{ count: 10, perMs: 60_000, burst: 10 }], cost: 1, waitMs: 0 }, () => readingAt(ms)),
    key: ({ where }) => itemKey({ ...where, kind: "limits" }),
  },
  {
    kind: "a payload",
    use: ({ store, where }, ms) =>
      store.keepPayload({ ...where, kind: "runs" }, { digest: "d", ttlAtSec: secAt(ms + POLICY.retentionMs) }, '"text"'),
    key: ({ where }) => payloadKey({ ...where, kind: "runs" }, "d"),
  },
  {
    kind: "a sleeper",
    use: (scene, ms) => scene.keep(sleeperAt(scene, ms)),
    key: (scene) => sleeperKey(scene, ""),
  },
  {
    kind: "a tied lease",
    use: (scene, ms) => scene.keep(tieAt(scene, ms)),
    key: (scene) => sleeperKey(scene, "/tie"),
  },
];

const NOTHING = { found: 0, deleted: 0, left: 0, isWhole: true };

describe.each(TABLES)("a sweep of %s", (_name, make) => {
  it.each(KINDS)("deletes $kind that is over by both clocks, and neither before nor if one is used meanwhile", async ({ use, key }) => {
    const scene = new Scene(await make());
    await use(scene, 0);
    expect(await scene.sweep(POLICY.retentionMs / 2), "before").toEqual(NOTHING);
    const oneIsSlow = { clocks: () => ({ earliestMs: START_MS, latestMs: START_MS + LATER_MS }) };
    expect(await scene.sweep(LATER_MS, oneIsSlow), "by one clock").toEqual(NOTHING);
    expect(await scene.sweep(LATER_MS, {}, { isDryRun: true }), "what it would do").toEqual({ ...NOTHING, found: 1 });
    expect(await scene.has(key(scene))).toBe(true);

    const calls = scene.usedMeanwhile(() => use(scene, LATER_MS));
    expect(await scene.sweep(LATER_MS, { calls }), "used meanwhile").toEqual({ ...NOTHING, found: 1, left: 1 });
    expect(await scene.has(key(scene))).toBe(true);
    expect(await scene.sweep(2 * LATER_MS)).toEqual({ ...NOTHING, found: 1, deleted: 1 });
    expect(await scene.has(key(scene))).toBe(false);
    expect(await scene.sweep(2 * LATER_MS)).toEqual(NOTHING);
  });

  it("leaves the item that records the tenancy, and by queries what is of another namespace", async () => {
    const scene = new Scene(await make());
    await scene.store.tenancy("shared");
    const other = new Scene(scene.table);
    for (const one of [scene, other]) for (const { use } of KINDS) await use(one, 0);
    expect(await scene.sweep(LATER_MS, {}, { namespace: scene.namespace })).toEqual({ ...NOTHING, found: 4, deleted: 4 });
    expect(await scene.sweep(LATER_MS)).toEqual({ ...NOTHING, found: 8, deleted: 8 });
    expect(await scene.has(TENANCY_KEY)).toBe(true);
  });

  it("goes on where a bound ended it, and looks at all of the table from wherever it begins", async () => {
    const scene = new Scene(await make());
    const lock = (key: number) => new Fixture(scene.store, { ...scene.where, key: `KEY_${key}` }).at(0);
    await Promise.all(Array.from({ length: 40 }, (_, key) => lock(key).acquire(A)));
    // The scan has 16 parts of a page each: the fourth run sees the last of them.
    const [place, random]: [SweepPlace, object] = [{}, { random: () => 0.7 }];
    const runs = [];
    for (let run = 0; run < 4; run++) runs.push(await scene.sweep(LATER_MS, random, { pagesMax: 5 }, place));
    expect(runs.map(({ isWhole }) => isWhole)).toEqual([false, false, false, true]);
    expect(runs.reduce((sum, { deleted }) => sum + deleted, 0)).toBe(40);
    await Promise.all(Array.from({ length: 40 }, (_, key) => lock(key).acquire(A)));
    let [found, isWhole] = [0, false];
    while (!isWhole) {
      const swept = await scene.sweep(LATER_MS, random, { foundMax: 1 }, place);
      if (!swept.isWhole) expect(swept.found).toBeGreaterThan(0);
      [found, isWhole] = [found + swept.found, swept.isWhole];
    }
    expect(found).toBe(40);
    expect((await sweepTable(scene.sweeping(LATER_MS), { runMs: 0 })).pages).toBe(0);
  });

  it("lets several sweeps delete an item once", async () => {
    const scene = new Scene(await make());
    for (const { use } of KINDS) await use(scene, 0);
    const all = await Promise.all(Array.from({ length: 4 }, () => scene.sweep(LATER_MS)));
    expect(all.reduce((sum, { deleted }) => sum + deleted, 0)).toBeGreaterThanOrEqual(KINDS.length);
    for (const { key } of KINDS) expect(await scene.has(key(scene))).toBe(false);
  });
});

describe("a sweep", () => {
  const inMemory = async (): Promise<Scene> => new Scene(await TABLES[0]![1]());

  it.each(["ReplicatedWriteConflictException", "TransactionConflictException"])(
    "leaves what meets a write of another request (%s)",
    async (name) => {
      const scene = await inMemory();
      for (const { use } of KINDS) await use(scene, 0);
      let conflicts = 2;
      const deleteItem: AllCalls["deleteItem"] = (input) =>
        conflicts-- > 0 ? Promise.reject(serviceError(name, "met")) : scene.table.calls.deleteItem(input);
      const calls = { ...scene.table.calls, deleteItem };
      expect(await scene.sweep(LATER_MS, { calls })).toEqual({ ...NOTHING, found: 6, deleted: 4, left: 2 });
    },
  );

  it("says what it did before a failure, and goes on at the same page", async () => {
    const scene = await inMemory();
    for (const { use } of KINDS) await use(scene, 0);
    let answered = 3;
    const deleteItem: AllCalls["deleteItem"] = async (input) => {
      if (answered-- <= 0) throw serviceError("ProvisionedThroughputExceededException", "slow down");
      return scene.table.calls.deleteItem(input);
    };
    const place: SweepPlace = {};
    const calls = { ...scene.table.calls, deleteItem };
    const { failure, ...swept } = await scene.sweep(LATER_MS, { calls }, {}, place);
    expect(swept).toMatchObject({ deleted: 3, left: 0, isWhole: false });
    expect(failure).toMatchObject({ name: "StoreUnavailable", throttled: true });
    expect(await scene.sweep(LATER_MS, {}, {}, place)).toEqual({ ...NOTHING, found: 3, deleted: 3 });
  });

  it.each([
    ["jump ahead before the deletion, what was used meanwhile", LATER_MS, 10 * LATER_MS],
    ["were ahead at the read, what lives", 0, 0],
  ])("leaves, if both clocks %s", async (_what, usedMs, deletedMs) => {
    const scene = await inMemory();
    await KINDS[0]!.use(scene, 0);
    let isFound = false;
    let readings = 0;
    const calls = scene.usedMeanwhile(async () => {
      isFound = true;
      if (usedMs > 0) await KINDS[0]!.use(scene, usedMs);
    });
    const clocks = () => readingAt(isFound && ++readings > 1 ? deletedMs : LATER_MS);
    expect(await scene.sweep(LATER_MS, { calls, clocks }, { foundMax: 1 })).toMatchObject({ found: 1, deleted: 0, left: 1 });
  });

  it("deletes nothing while a clock can't be read", async () => {
    const scene = await inMemory();
    await KINDS[0]!.use(scene, 0);
    const clocks = (): never => {
      throw new Error("the table's time is unknown");
    };
    expect(await scene.sweep(LATER_MS, { clocks })).toMatchObject({ deleted: 0, failure: new Error("the table's time is unknown") });
    expect(await scene.has(KINDS[0]!.key(scene))).toBe(true);
  });

  it("lets fencing tokens rise over a deletion", async () => {
    const scene = await inMemory();
    const lock = new Fixture(scene.store, { ...scene.where, kind: "locks" });
    const first = await lock.at(0).acquire(A);
    await scene.sweep(LATER_MS);
    expect(await lock.read()).toBeUndefined();
    const second = await lock.at(LATER_MS).acquire(leaseId(2, LATER_MS));
    if (!first.ok || !second.ok) throw new Error("not granted");
    expect(second.lease.fencingToken).toBeGreaterThan(first.lease.fencingToken);
  });
});

describe("control: a sweep gives a key two holders", () => {
  /** Returns the outcome of another caller's acquire while A holds the key, granted at `ms`. */
  async function otherWhileHeld(scene: Scene, ms: number, sweep: () => Promise<{ deleted: number }>): Promise<readonly unknown[]> {
    const lock = new Fixture(scene.store, { ...scene.where, kind: "locks" });
    const first = await lock.at(ms).acquire(leaseId(1, ms));
    const { deleted } = await sweep();
    return [
      outcomeOf(first),
      deleted,
      outcomeOf(await new Fixture(dynamoStoreOn(scene.table), lock.address).at(ms).acquire(leaseId(2, ms))),
    ];
  }
  const scene = async (): Promise<Scene> => new Scene(await TABLES[0]![1]());

  it("never, as it is", async () => {
    const its = await scene();
    const sweep = () => its.sweep(LATER_MS);
    expect(await otherWhileHeld(its, LATER_MS, sweep)).toEqual(["granted", 0, "locked"]);
  });

  it("if both its clocks are ahead by more than the retention", async () => {
    const its = await scene();
    expect(await otherWhileHeld(its, 0, () => its.sweep(LATER_MS))).toEqual(["granted", 1, "granted"]);
  });

  it("if it deletes without a condition what was used meanwhile", async () => {
    const its = await scene();
    await new Fixture(its.store, { ...its.where, kind: "locks" }).at(0).acquire(A);
    const acquire = () => new Fixture(its.store, { ...its.where, kind: "locks" }).at(LATER_MS).acquire(leaseId(1, LATER_MS));
    const used = its.usedMeanwhile(acquire);
    const deleteItem: AllCalls["deleteItem"] = ({ TableName, Key }) =>
      its.table.calls.deleteItem({ TableName, Key } as Parameters<AllCalls["deleteItem"]>[0]);
    expect(await its.sweep(LATER_MS, { calls: { ...used, deleteItem } })).toMatchObject({ deleted: 1 });
    expect(
      outcomeOf(await new Fixture(dynamoStoreOn(its.table), { ...its.where, kind: "locks" }).at(LATER_MS).acquire(leaseId(2, LATER_MS))),
    ).toBe("granted");
  });
});
