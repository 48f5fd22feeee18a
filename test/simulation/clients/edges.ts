/**
 * The edges of a record, each in a world of its own beside a history's other clients, and without faults: a waiter that came forward, a
 * reader that asked to upgrade and left, a queue at its bound of bytes, a wait that is longer than the retention, and one whose id has
 * become too old. Nobody may lose so many races that it gives up (L4).
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { NoResponse } from "../../../lib/core/api/locks.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import type { Command } from "../../../lib/core/commands.js";
import type { LeaseId } from "../../../lib/core/lease-id.js";
import { DEFAULTS, LIMITS, RETENTION_MIN_MS } from "../../../lib/core/limits.js";
import { waitersBytes } from "../../../lib/core/record-bytes.js";
import type { TableCalls } from "../../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { type Address, type Applied, type LockStore, KeyContended } from "../../../lib/store/port.js";
import { lockService } from "../../../lib/service/service.js";
import type { ClockReading } from "../../../lib/core/time.js";
import { leaseId, START_MS } from "../../store/fixture.js";
import { QueueScene, READER } from "../../store/queue-fixture.js";
import { NAMESPACE, POLICY } from "../backend.js";
import { type Input, DynamoTable } from "../../../lib/testing/table/table.js";
import type { Bench } from "../oracles/verdict.js";
import { Random } from "../random.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has these edges too. */
const EDGES = 10;
const ADDRESS: Address = { namespace: NAMESPACE, kind: "locks", key: "EDGE_1" };
const MINUTE = 60_000;
const LONGEST_MS = 120 * MINUTE;
const LONG_OWNER = "é".repeat(LIMITS.ownerChars);
const LONG_NAME = "é".repeat(LIMITS.conditionChars);

/** The most times that one who leaves a queue asks again. */
const LEAVES_MAX = 5;

type Fail = Bench["fail"];

/** One key, on the table or in memory, in a world of its own. */
class Edge {
  readonly world = new World(START_MS);
  readonly #table = new DynamoTable({ tableName: "simulated", ...TABLE }, () => this.world.nowMs);
  readonly #records = createMemoryTable();

  constructor(
    readonly random: Random,
    readonly isOnTable: boolean,
  ) {}

  /** The time since the start, in whole ms. */
  nowMs(): number {
    return Math.floor(this.world.nowMs - START_MS);
  }

  reading(): ClockReading {
    const ms = START_MS + this.nowMs();
    return { earliestMs: ms, latestMs: ms };
  }

  /** Returns the store of a process that has seen nothing. */
  store(process = new Process(this.world)): LockStore {
    const deps = { policy: POLICY, clock: process, random: () => this.random.unit() };
    if (!this.isOnTable) return createMemoryStore({ ...deps, table: this.#records });
    const unused = (): never => {
      throw new Error("nobody lists or takes sets here");
    };
    const calls: TableCalls = {
      updateItem: (input) => this.#slowly(() => this.#table.update(input as unknown as Input)),
      getItem: (input) => this.#slowly(() => this.#table.get(input as unknown as Input)),
      query: unused,
      transactWriteItems: unused,
    };
    return createDynamoStore({ ...deps, calls, tableName: "simulated" });
  }

  /** Collects what may be collected. */
  collect(): void {
    this.#table.expire(Math.floor(this.world.nowMs / 1000));
    for (const [address, { ttlAtSec }] of [...this.#records.entries()])
      if (ttlAtSec * 1000 <= this.world.nowMs) this.#records.remove(address);
  }

  async #slowly<T>(act: () => T): Promise<T> {
    await this.world.sleep(this.random.between(0, 15));
    const result = act();
    await this.world.sleep(this.random.between(0, 15));
    return result;
  }
}

/** A process that sends commands about the key at the present time. */
class Visitor extends QueueScene {
  constructor(
    readonly edge: Edge,
    readonly fail: Fail,
  ) {
    super(edge.store(), ADDRESS);
  }

  override async apply<C extends Command>(command: C): Promise<Applied<C>> {
    await this.edge.world.sleep(this.edge.random.between(0, 15));
    try {
      return (await super.apply.call(this.at(this.edge.nowMs()), command)) as Applied<C>;
    } catch (error) {
      if (error instanceof KeyContended) this.fail("L4", `${command.type}: ${error.message}`);
      throw error;
    }
  }

  /** Leaves the queue. Of many who leave at once one may lose all its races: it asks again, as it is told to. */
  async leave(id: string): Promise<void> {
    for (let tries = 0; ; tries++) {
      try {
        return void (await super.apply.call(this.at(this.edge.nowMs()), {
          type: "release",
          key: ADDRESS.key,
          leaseId: id,
          principal: "P",
        }));
      } catch (error) {
        if (!(error instanceof KeyContended) || tries === LEAVES_MAX) throw error;
        await this.edge.world.sleep(this.edge.random.between(100, 500));
      }
    }
  }
}

type Play = (edge: Edge, fail: Fail) => Promise<void>;

/** Most of a queue leaves. The last waiters come forward, and have their turns in order, although the key is offered to a dead one first. */
async function cameForward(edge: Edge, fail: Fail): Promise<void> {
  const { world, random } = edge;
  const holder = new Visitor(edge, fail);
  await holder.acquire(leaseId(1), { leaseMs: 10 * MINUTE });
  const first = random.whole(15, 28);
  const served: number[] = [];
  let isEmptied = false;
  const waits = async (order: number): Promise<void> => {
    const one = new Visitor(edge, fail);
    const id = leaseId(10 + order, 1000);
    for (let answer = await one.queue(id); !answer.ok || "state" in answer; answer = await one.queue(id)) {
      if (!answer.ok) return void fail("L2", `a waiter that polls as it is told was refused: ${answer.code}`);
      if (isEmptied && order < first) return one.leave(id);
      await world.sleep(answer.pollWithinMs / 2);
    }
    served.push(order);
    await one.release(id);
  };
  const all: Promise<void>[] = [];
  for (let order = 0; order < first + 3; order++) {
    const waiting = waits(order);
    // It is awaited below, and may reject before that.
    waiting.catch(() => undefined);
    all.push(waiting);
    await world.sleep(100);
  }
  await world.sleep(random.between(8000, 20_000));
  isEmptied = true;
  await world.sleep(random.between(5000, 20_000));
  await new Visitor(edge, fail).queue(leaseId(200, edge.nowMs()), { priority: 9 });
  await holder.release(leaseId(1));
  await Promise.all(all);
  if (served.join() !== [first, first + 1, first + 2].join()) fail("L2", `waiters that came forward were served as ${served.join()}`);
}

/** A reader asks to become the writer, and leaves. Then many others come at once. */
async function upgraderLeft(edge: Edge, fail: Fail): Promise<void> {
  const [stays, leaves] = [new Visitor(edge, fail), new Visitor(edge, fail)];
  await stays.acquire(leaseId(1), READER);
  const answer = await leaves.acquire(leaseId(2), READER);
  if (!answer.ok) return void fail("internal", answer.code);
  const { fencingToken } = answer.lease;
  await leaves.apply({ type: "mode", key: ADDRESS.key, leaseId: leaseId(2), principal: "P", mode: "exclusive", fencingToken });
  await leaves.release(leaseId(2));
  const join = async (order: number): Promise<void> => {
    const joined = await new Visitor(edge, fail).acquire(leaseId(10 + order), READER);
    if (!joined.ok) fail("L4", `a reader was refused although only readers hold: ${joined.code}`);
  };
  await Promise.all(Array.from({ length: 60 }, (_, order) => join(order)));
}

/** Waiters with long owners queue behind a reader, and short ones after them. */
async function longOwners(edge: Edge, fail: Fail): Promise<void> {
  const visitor = new Visitor(edge, fail);
  await visitor.acquire(leaseId(1), READER);
  for (let order = 0; order < 23; order++) await visitor.queue(leaseId(10 + order), { owner: LONG_OWNER });
  await fillQueue(visitor, fail);
}

/** Waiters are notified of a condition with a long name, and short ones queue behind them. */
async function longNames(edge: Edge, fail: Fail): Promise<void> {
  const visitor = new Visitor(edge, fail);
  const newId = (order: number): LeaseId => leaseId(order, edge.nowMs());
  for (let order = 0; order < 56; order++) {
    const id = newId(10 + 2 * order);
    await visitor.acquire(id);
    await visitor.wait(id, newId(11 + 2 * order), LONG_NAME);
  }
  const id = newId(200);
  await visitor.acquire(id, { leaseMs: MINUTE });
  await visitor.notify(id, { condition: LONG_NAME, all: true });
  await fillQueue(visitor, fail);
}

/** Queues waiters until there should be no room. The queue stays within its bound of bytes. */
async function fillQueue(visitor: Visitor, fail: Fail): Promise<void> {
  for (let order = 0; order < 10; order++) await visitor.queue(leaseId(300 + order, visitor.edge.nowMs()));
  const bytes = waitersBytes((await visitor.read())?.waiters ?? []);
  if (bytes > LIMITS.queueBytes) fail("L4", `a queue of ${bytes} bytes`);
}

/** A member of a wait set polls for longer than the retention, while garbage is collected. Then it is notified. */
async function longWait(edge: Edge, fail: Fail): Promise<void> {
  const [waits, notifies] = [new Visitor(edge, fail), new Visitor(edge, fail)];
  await waits.acquire(leaseId(1));
  const member = leaseId(2, edge.nowMs());
  await waits.wait(leaseId(1), member);
  while (edge.nowMs() < 1.2 * RETENTION_MIN_MS) {
    await edge.world.sleep(LIMITS.pollMaxMs);
    await waits.queue(member);
    edge.collect();
  }
  const id = leaseId(3, edge.nowMs());
  await notifies.acquire(id);
  const answer = await notifies.notify(id);
  if (!answer.ok || answer.notified !== 1) fail("L5", "a member that polls as it is told was not notified");
}

/** A client loses its place after the time in which its id may get another. It waits on. */
async function oldId(edge: Edge, fail: Fail): Promise<void> {
  const { world, random } = edge;
  const caller = { principal: `${NAMESPACE}/client`, namespace: NAMESPACE, requestId: "simulated" };
  let isOut = false;
  const join = (isCutOff: () => boolean): LockClient => {
    const process = new Process(world);
    const service = lockService({ store: edge.store(), log: () => undefined, clock: process }, caller, () => edge.reading());
    const lossy =
      <Asked extends readonly unknown[], Answer>(ask: (...asked: Asked) => Promise<Answer>) =>
      (...asked: Asked): Promise<Answer> =>
        isCutOff() ? Promise.reject(new NoResponse("lost")) : ask(...asked);
    const api: ServiceApi = { ...service, acquire: lossy(service.acquire), check: lossy(service.check) };
    const ids = new LeaseIds(process, (count) => random.bytes(count));
    return createClient({ api, clock: process, random: () => random.unit(), ids });
  };
  const holder = await join(() => false).acquire(ADDRESS.key, { leaseMs: DEFAULTS.leaseMs });
  const granted = join(() => isOut)
    .acquire(ADDRESS.key, { waitMs: LONGEST_MS })
    .then(
      (lease) => lease.release(),
      (error: unknown) => fail("L2", `a wait ended before its time: ${String(error)}`),
    );
  await world.sleep(random.between(16, 20) * MINUTE);
  isOut = true;
  await world.sleep(random.between(30_000, 60_000));
  isOut = false;
  await world.sleep(MINUTE);
  await holder.release();
  await granted;
}

const PLAYS: readonly Play[] = [cameForward, upgraderLeft, longOwners, longNames, longWait, oldId];

/** Plays the edges of `seed`, if it has them, and reports what they broke. */
export async function checkEdges(seed: number, { fail }: Pick<Bench, "fail">): Promise<void> {
  if (seed % EDGES !== 3) return;
  const random = new Random(0xed6e ^ seed);
  for (const play of PLAYS) {
    const edge = new Edge(random, random.chance(0.8));
    const progress = { isOver: false };
    void play(edge, fail)
      .catch((error: unknown) => {
        if (!(error instanceof KeyContended)) fail("internal", String(error));
      })
      .finally(() => (progress.isOver = true));
    await edge.world.run(START_MS + LONGEST_MS, () => progress.isOver);
    if (!progress.isOver) fail("L3", `${play.name}: somebody still waits`);
  }
}
