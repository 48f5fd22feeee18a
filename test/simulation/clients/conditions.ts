/**
 * A warehouse in a world of its own, beside a history's other clients: consumers wait for the condition `stocked` while there is no stock,
 * and producers add to it and notify one consumer for each item. Messages are late, lost, or repeated, and consumers die while they wait.
 * The oracle counts: a notify wakes at most one wait (S16), and no stock stays while a living consumer waits for it (L5). Where no message is
 * lost, a wait that was notified a round trip before its end ends as notified (L9).
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import { LockTimeoutError } from "../../../lib/client/wire/errors.js";
import type { Lease } from "../../../lib/client/hold/lease-types.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { NoResponse } from "../../../lib/core/api/locks.js";
import { wrapped } from "../../../lib/core/api/call.js";
import type { ServiceApi } from "../../../lib/core/api/runs.js";
import { oneClock } from "../../../lib/service/clocks.js";
import { serviceOnEachCall } from "../../../lib/service/service.js";
import type { LockRecord } from "../../../lib/core/record.js";
import { type MemoryTable, createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { NAMESPACE, POLICY } from "../backend.js";
import { Random } from "../random.js";
import type { Bench } from "../oracles/verdict.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has a warehouse too. */
const WAREHOUSES = 5;
const KEY = "STOCK_1";
const BUSY_MS = 120_000;
/** A wait that outlasts the whole history: only a notify ends it. */
const LONG_MS = 3_600_000;
/** The share of the notified consumers that die before they get the key, in histories with deaths; and the number that always lives on. */
const WOKEN_DIE = 0.5;
const LEAST_LIVING = 2;
/** The longest round trip. */
const TRIP_MS = 300;
/** The time in which a notify must have been passed on, however many of its waiters died. */
const BOUND_MS = 90_000;

interface Consumer {
  readonly process: Process;
  isWaiting: boolean;
  /** It has its item, or gave up. */
  hasLeft: boolean;
  /** The number of its requests that are under way. */
  asked: number;
}

/** Runs the warehouse of `seed`, if it has one, and reports what it broke. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function checkConditions(seed: number, bench: Pick<Bench, "coverage" | "fail">): Promise<void> {
  if (seed % WAREHOUSES !== 0) return;
  const random = new Random(0x5eed ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const records = createMemoryTable();
  const slowly = async <T>(act: () => Promise<T>): Promise<T> => (await world.sleep(random.between(0, 20)), act());
  const table: MemoryTable = {
    ...records,
    read: (address) => slowly(() => records.read(address)),
    async replace(address, next, seen) {
      const result = await slowly(() => records.replace(address, next, seen));
      if (result.written) endWoken(next);
      return result;
    },
    touchWaiter: (...touch) => slowly(() => records.touchWaiter(...touch)),
    commute: (...change) => slowly(() => records.commute(...change)),
  };
  const server = new Process(world, { name: "function" });
  const store = createMemoryStore({ policy: POLICY, table, clock: server, random: () => random.unit() });
  /** In every other warehouse consumers die as they are notified. In all of them, a notify that counts twice would hardly show. */
  const isDeadly = seed % 2 === 1;
  const fate = new Random(0xdead ^ seed);
  const woken = new Set<string>();
  /** For each consumer, when it was notified last. */
  const wokenAtMs = new Map<string, number>();
  const faults = { lost: random.pick([0, 0.1, 0.3]), repeated: random.pick([0, 0.2]) };
  const caller = { principal: `${NAMESPACE}/warehouse`, namespace: NAMESPACE, requestId: "simulated" };

  /** The service as `of` reaches it. A process that has ended sends nothing and hears nothing. */
  function apiFor(of: Consumer): ServiceApi {
    const service = serviceOnEachCall({ store, log: () => undefined, clock: server }, caller, () => oneClock(server));
    return wrapped(service, (carryOut) => async (operation, request) => {
      of.asked++;
      await world.sleep(random.between(1, 60));
      if (of.process.isDead || random.chance(faults.lost / 2)) return lost(of, operation);
      if (random.chance(faults.repeated)) world.in(random.between(0, 2000), () => void carryOut(operation, request).catch(() => undefined));
      const answer = await carryOut(operation, request);
      await world.sleep(random.between(1, 60));
      // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- it may end while the message is under way
      if (of.process.isDead || random.chance(faults.lost / 2)) return lost(of, operation);
      of.asked--;
      return answer;
    });
  }

  async function lost(of: Consumer, operation: string): Promise<never> {
    if (of.process.isDead) await new Promise(() => undefined);
    of.asked--;
    throw new NoResponse(`${operation}: lost`);
  }

  /** The longest pause of a producer: as short as a wait's first requests, or as long as a dead waiter counts as alive. */
  const paceMs = random.pick([200, 20_000]);
  let stock = 0;
  let notifies = 0;
  let wakes = 0;
  let inside = 0;
  const untilMs = world.nowMs + BUSY_MS;

  function join(name: string, live: (client: LockClient, of: Consumer) => Promise<void>): Consumer {
    const process = new Process(world, { name });
    const consumer: Consumer = { process, isWaiting: false, hasLeft: false, asked: 0 };
    const ids = new LeaseIds(process, (count) => random.bytes(count));
    const client = createClient({ api: apiFor(consumer), clock: process, random: () => random.unit(), ids }, { owner: name });
    void live(client, consumer).catch((error: unknown) => bench.fail("internal", `${name}: ${String(error)}`));
    return consumer;
  }

  /** Works on the stock while no other does. */
  async function underLock(lease: Lease, work: () => Promise<void> | void): Promise<void> {
    if (!lease.isHeld()) return;
    if (++inside > 1) bench.fail("S1", "two work on the stock");
    await work();
    inside--;
  }

  /** Takes one item and leaves. A consumer that waited in vain leaves without one. */
  async function consume(client: LockClient, of: Consumer): Promise<void> {
    await new Promise<void>((resolve) => void of.process.after(random.between(0, BUSY_MS / 3), resolve));
    // eslint-disable-next-line @typescript-eslint/no-unnecessary-condition -- other tasks change it while this one awaits
    for (let isServed = false; !isServed;) {
      const lease = await client.acquire(KEY, { waitMs: LONG_MS, leaseMs: 30_000 }).catch(() => undefined);
      if (!lease) continue;
      try {
        while (stock === 0 && lease.isHeld() && !of.hasLeft) await waitForStock(lease, of);
        await underLock(lease, () => {
          isServed = stock > 0 || of.hasLeft;
          stock -= stock > 0 && !of.hasLeft ? 1 : 0;
        });
      } catch {
        // An outage: nothing is held, and its notify went to another.
      }
      await lease.release().catch(() => undefined);
    }
    of.hasLeft = true;
  }

  async function waitForStock(lease: Lease, of: Consumer): Promise<void> {
    of.isWaiting = true;
    bench.coverage.waits++;
    const beganMs = world.nowMs;
    const waitMs = random.chance(0.3) ? random.whole(0, 8000) : LONG_MS;
    try {
      await lease.wait("stocked", { waitMs });
      if (++wakes > notifies) bench.fail("S16", `${wakes} waits ended as notified, after ${notifies} notifies`);
    } catch (error) {
      // Only a timeout leaves the key held; a notify that it missed shows in the stock.
      if (!(error instanceof LockTimeoutError)) throw error;
      of.hasLeft = true;
      const notifiedMs = (wokenAtMs.get(of.process.name) ?? 0) - beganMs;
      if (faults.lost === 0 && notifiedMs > 0 && notifiedMs < waitMs - TRIP_MS)
        bench.fail("L9", `a wait of ${waitMs} ms ended as not notified, although it was after ${Math.round(notifiedMs)} ms`);
    } finally {
      of.isWaiting = false;
    }
  }

  async function produce(client: LockClient, of: Consumer): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => void of.process.after(random.between(0, paceMs), resolve));
      // An item for each consumer that waits: no later notify makes good for a lost one.
      if (stock >= consumers.filter(({ process, isWaiting }) => !process.isDead && isWaiting).length) continue;
      const lease = await client.acquire(KEY, { waitMs: LONG_MS, leaseMs: 30_000 }).catch(() => undefined);
      if (!lease) continue;
      await underLock(lease, async () => {
        stock++;
        notifies++;
        bench.coverage.notifies++;
        await lease.notify("stocked").catch(() => undefined);
      });
      await lease.release().catch(() => undefined);
    }
  }

  const consumers = Array.from({ length: random.whole(6, 12) }, (_, index) => join(`consumer-${index}`, consume));
  for (let index = 0; index < random.whole(1, 2); index++) join(`producer-${index}`, produce);
  const deaths = random.whole(0, consumers.length - 2);

  /** Ends one of the consumers that wait. One that has the key, or is being given it, would take its notify with it, as a thread would. */
  async function die(among: readonly Consumer[] = consumers): Promise<boolean> {
    const record = await records.read({ namespace: NAMESPACE, kind: "locks", key: KEY });
    const holders = Object.values(record?.holds ?? {}).map(({ owner }) => owner);
    const [victim] = among.filter(
      ({ process, isWaiting, asked }) => !process.isDead && isWaiting && asked === 0 && !holders.includes(process.name),
    );
    victim?.process.crash();
    return victim !== undefined;
  }

  /** Ends some of the consumers that have just been notified, before they get the key. Their notify must go to the next. */
  function endWoken({ offers, waiters }: LockRecord): void {
    for (const { leaseId, owner, condition } of [...offers, ...waiters]) {
      if (condition === undefined || woken.has(leaseId)) continue;
      woken.add(leaseId);
      wokenAtMs.set(owner, world.nowMs);
      if (isDeadly && deaths > 0 && fate.chance(WOKEN_DIE)) void dieSoon(consumers.filter(({ process }) => process.name === owner));
    }
  }

  async function dieSoon(among: readonly Consumer[]): Promise<void> {
    for (let looks = 0; looks < 100; looks++) {
      await world.sleep(fate.between(0, 20));
      if (consumers.filter(({ process }) => !process.isDead).length <= LEAST_LIVING || (await die(among))) return;
    }
  }
  for (let death = 0; death < deaths; death++) world.in(random.between(5000, BUSY_MS / 2), () => void die());

  await world.run(untilMs);
  faults.lost = faults.repeated = 0;
  await world.run(untilMs + BOUND_MS);
  const waiting = consumers.filter(({ process, isWaiting }) => isWaiting && !process.isDead).length;
  if (stock > 0 && waiting > 0) bench.fail("L5", `${stock} in stock for ${BOUND_MS} ms, while ${waiting} wait to be notified`);
}
