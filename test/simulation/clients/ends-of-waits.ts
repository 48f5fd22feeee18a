/**
 * Waits of every kind in a world of their own, beside a history's other clients and without faults. What each waits for becomes free at some
 * time before its end, and at least a round trip before it: then the wait ends with it (L9). Half of the clients have waited for long holds
 * before, and poll rarely.
 */
import { LeaseIds } from "../../../lib/client/ask/lease-ids.js";
import { createClient } from "../../../lib/client/client.js";
import type { LockClient } from "../../../lib/client/calls/lock-client.js";
import { wrapped } from "../../../lib/core/api/call.js";
import { renewAfterMs } from "../../../lib/core/renewal.js";
import { oneClock } from "../../../lib/service/clocks.js";
import { serviceOnEachCall } from "../../../lib/service/service.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { NAMESPACE, POLICY } from "../backend.js";
import type { Bench } from "../oracles/verdict.js";
import { Random } from "../random.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has these waits too. */
const EVERY = 5;
const KEY = "END_1";
const LEASE_MS = 60_000;
/** Both directions of the slowest round trip, and twice that: a poll may find a turn, and then the wait asks for it. */
const LEG_MS = 20;
const TRIP_MS = 4 * LEG_MS;
const LONG_HOLD_MS = 10_000;

/** One wait: whom it waits for, and for how long. */
interface Scene {
  readonly waiter: LockClient;
  readonly other: LockClient;
  readonly waitMs: number;
  /** Resolves when what is waited for is to become free. */
  readonly free: () => Promise<void>;
}

/** Waits for what another client gives up. */
type Play = (scene: Scene) => Promise<unknown>;

const behind =
  (options: { readonly mode?: "shared"; readonly limit?: number }): Play =>
  async ({ waiter, other, waitMs, free }) => {
    const { limit } = options;
    const held = await other.acquire(KEY, { leaseMs: LEASE_MS, ...(limit !== undefined && { limit, permits: limit }) });
    void free().then(() => held.release());
    const lease = await waiter.acquire(KEY, { ...options, waitMs });
    await lease.release();
  };

const PLAYS: Readonly<Record<string, Play>> = {
  "for a key": behind({}),
  "for a permit": behind({ limit: 3 }),
  "of a reader": behind({ mode: "shared" }),
  "of a caller whose place others share": async ({ waiter, other, waitMs, free }) => {
    const held = await other.acquire(KEY, { leaseMs: LEASE_MS });
    void free().then(() => held.release());
    const [first, second] = [waiter.acquire(KEY, { waitMs }), waiter.acquire(KEY, { waitMs: 10 * waitMs })];
    for (const granted of [first, second]) await (await granted).release();
  },
  "for a set": async ({ waiter, other, waitMs, free }) => {
    const held = await other.acquire(KEY, { leaseMs: LEASE_MS });
    void free().then(() => held.release());
    const set = await waiter.acquireAll(["END_2", KEY], { waitMs });
    await set.release();
  },
  "to become the writer": async ({ waiter, other, waitMs, free }) => {
    const [mine, theirs] = [await waiter.acquire(KEY, { mode: "shared" }), await other.acquire(KEY, { mode: "shared", leaseMs: LEASE_MS })];
    void free().then(() => theirs.release());
    await mine.upgrade({ waitMs });
    await mine.release();
  },
  "for a notify": async ({ waiter, other, waitMs, free }) => {
    const lease = await waiter.acquire(KEY, { leaseMs: LEASE_MS });
    void free().then(() => other.withLock(KEY, (theirs) => theirs.notify("filled")));
    await lease.wait("filled", { waitMs });
    await lease.release();
  },
  "for the outcome of a run": async ({ waiter, other, waitMs, free }) => {
    const running = other.runOnce(KEY, { leaseMs: LEASE_MS }, free);
    await waiter.runOnce(KEY, { waitMs }, () => undefined);
    await running;
  },
  "for room in a limit": async ({ waiter, other, waitMs }) => {
    const rates = [{ count: 1, perMs: waitMs }];
    await other.limiter(KEY, { rates }).take();
    await waiter.limiter(KEY, { rates }).take({ waitMs });
  },
};

/** Runs the waits of `seed`, if it has them, and reports those that missed their turn. */
export async function checkEndsOfWaits(seed: number, { fail }: Pick<Bench, "fail">): Promise<void> {
  if (seed % EVERY !== 4) return;
  const random = new Random(0xe4d ^ seed);
  for (const [what, play] of Object.entries(PLAYS)) {
    const world = new World(Date.UTC(2027, 0, 1));
    const client = clientsIn(world, random);
    const [waiter, other] = [client("waiter"), client("other")];
    const waitMs = random.whole(1000, 6000);
    const freeMs = random.between(0, waitMs - 2 * TRIP_MS);
    const run = async (): Promise<void> => {
      if (random.chance(0.5)) for (let waits = 0; waits < 2; waits++) await longHold(world, waiter, other);
      await play({ waiter, other, waitMs, free: () => world.sleep(freeMs) });
    };
    const progress = { isOver: false };
    void run()
      .catch((error: unknown) => fail("L9", `a wait of ${waitMs} ms ${what}, free after ${Math.round(freeMs)} ms: ${String(error)}`))
      .finally(() => (progress.isOver = true));
    await world.run(world.nowMs + 10 * LEASE_MS, () => progress.isOver);
    if (!progress.isOver) fail("L9", `a wait ${what} has no end`);
  }
  await checkElection(random, fail);
}

/** Returns clients of one service, behind a network without faults. */
function clientsIn(world: World, random: Random): (name: string) => LockClient {
  const server = new Process(world, { name: "function" });
  const unit = (): number => random.unit();
  const store = createMemoryStore({ policy: POLICY, clock: server, random: unit });
  const caller = { principal: `${NAMESPACE}/waits`, namespace: NAMESPACE, requestId: "simulated" };
  const service = serviceOnEachCall({ store, log: () => undefined, clock: server }, caller, () => oneClock(server));
  const api = wrapped(service, (next) => async (...asked) => {
    await world.sleep(random.between(0, LEG_MS));
    const answer = await next(...asked);
    await world.sleep(random.between(0, LEG_MS));
    return answer;
  });
  return (name) => {
    const process = new Process(world, { name });
    return createClient({ api, clock: process, random: unit, ids: new LeaseIds(process, (count) => random.bytes(count)) }, { owner: name });
  };
}

/** Waits for a long hold of the key, which the waiter's later polls go by. */
async function longHold(world: World, waiter: LockClient, other: LockClient): Promise<void> {
  const held = await other.acquire(KEY);
  const waiting = waiter.acquire(KEY);
  await world.sleep(LONG_HOLD_MS);
  await held.release();
  await (await waiting).release();
}

/** A candidate of an election has no end: it leads within one renewal interval after the leader has resigned. */
async function checkElection(random: Random, fail: Bench["fail"]): Promise<void> {
  const world = new World(Date.UTC(2027, 0, 1));
  const client = clientsIn(world, random);
  const leaseMs = random.whole(1000, 20_000);
  const resigning = new AbortController();
  let leads = "";
  const elect = (name: string, signal: AbortSignal): void => {
    const lead = async (): Promise<void> => {
      leads = name;
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    };
    void client(name)
      .elect(KEY, { leaseMs, signal }, lead)
      .catch((error: unknown) => fail("internal", String(error)));
  };
  elect("first", resigning.signal);
  await world.run(world.nowMs + leaseMs, () => leads === "first");
  const stopped = new AbortController();
  elect("second", stopped.signal);
  await world.run(world.nowMs + random.between(0, 2 * leaseMs));
  resigning.abort();
  await world.run(world.nowMs + renewAfterMs(leaseMs) + TRIP_MS, () => leads === "second");
  if (leads !== "second") fail("L9", `nobody leads ${renewAfterMs(leaseMs)} ms after the leader resigned`);
  stopped.abort();
  await world.run(world.nowMs + leaseMs);
}
