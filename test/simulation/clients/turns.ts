/**
 * Turns in a world of their own, beside a history's other clients: callers that poll and callers that sleep want one key for a short time, and
 * whoever has had it is followed by a new one at once, so the queue never becomes shorter. Each has a store that has seen nothing, and all
 * clocks are right. Nobody is nested, hands over in its own process, or dies here, so no caller is overtaken by one that came later, of
 * either kind (L2). Where more poll than there are places, each is overtaken by at most half as many callers again as there are: it asks when it is
 * told, under an id with the time at which it came. A sleeper without a place is refused, and doesn't wait.
 */
import type { Acquire, AnswerTo, Command } from "../../../lib/core/commands.js";
import { type LeaseId, leaseIdFrom } from "../../../lib/core/lease-id.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { TableCalls, UpdateInput } from "../../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { fromItem } from "../../../lib/store/dynamo/item.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type LockStore, KeyContended } from "../../../lib/store/port.js";
import { type Input, DynamoTable } from "../../../lib/testing/table/table.js";
import { NAMESPACE, POLICY } from "../backend.js";
import type { Bench } from "../oracles/verdict.js";
import { Random } from "../random.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has turns too: those that leave this remainder. */
const EVERY = 5;
const REMAINDER = 1;
const ADDRESS = { namespace: NAMESPACE, kind: "locks", key: "TURNS_1" } as const;
const LEASE_MS = 10_000;
const SLEEP_MS = 600_000;
/** The turns of a history, and the longest time that they take. */
const TURNS = 120;
const LONGEST_MS = 120_000;
/** A caller that came so much later has overtaken another: a request takes some time. */
const LATER_MS = 50;

/**
 * The overtakings of a caller without a place, against the number of callers. In 100 histories of the store as it is and as it was before
 * decision 091, half stayed below 0.53 of it, and the largest were 1.04 and 0.98. The
 * mistakes in who gets a place are above it (must-fail-sleepers, must-fail-queues).
 */
const MOST_TIMES = 1.5;

/** One who wants the key. */
interface Caller {
  readonly isAsleep: boolean;
  readonly cameMs: number;
  /** The time from which it waits: it has a place, or was told that there is none. */
  waitsSinceMs: number;
  leaseId: LeaseId;
  isOutside: boolean;
  /** The callers that came later and had the key before it. */
  overtakenBy: number;
}

/** Runs the turns of `seed`, if it has some, and reports what they broke. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function checkTurns(seed: number, bench: Pick<Bench, "coverage" | "fail">): Promise<void> {
  if (seed % EVERY !== REMAINDER) return;
  const random = new Random(0x7042 ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const nowMs = (): number => Math.floor(world.nowMs);
  const waiting = new Set<Caller>();
  const holdMs = random.pick([5, 20]);
  const isCrowded = random.chance(0.3);
  const [sleeping, polling] = isCrowded ? [random.whole(5, 20), random.whole(33, 60)] : [random.whole(20, 80), random.whole(1, 20)];
  const overtakenMost = isCrowded ? MOST_TIMES * (sleeping + polling) : 0;
  const ownerOfSleepers = "o".repeat(random.pick([1, 40, 150]));
  let turns = 0;
  let onOffered: (leaseId: LeaseId) => void = () => undefined;

  const table = new DynamoTable({ tableName: "simulated", ...TABLE }, () => world.nowMs);
  table.onWritten = ({ after }) => {
    const { offers } = fromItem(after);
    for (const { leaseId, asleep } of offers) if (asleep) onOffered(leaseId);
  };
  const slowly = async <T>(act: () => T | Promise<T>): Promise<T> => {
    await world.sleep(random.between(0, 5));
    const result = await act();
    await world.sleep(random.between(0, 5));
    return result;
  };
  const unused = (): never => {
    throw new Error("a turn neither lists nor takes sets");
  };
  const calls: TableCalls = {
    updateItem: (input: UpdateInput) => slowly(() => table.update(input as unknown as Input)),
    getItem: (input) => slowly(() => table.get(input as unknown as Input)),
    query: unused,
    transactWriteItems: unused,
  };
  const newStore = (): LockStore =>
    createDynamoStore({ calls, tableName: "simulated", policy: POLICY, clock: new Process(world), random: () => random.unit() });
  const agent = newStore();

  const send = async <C extends Command>(store: LockStore, command: C): Promise<AnswerTo<C> | undefined> => {
    try {
      return (await store.apply(ADDRESS, command, () => ({ earliestMs: nowMs(), latestMs: nowMs() }))).answer;
    } catch (error) {
      if (error instanceof KeyContended) return undefined;
      throw error;
    }
  };
  const asked = { key: ADDRESS.key, principal: "P", owner: "o", leaseMs: LEASE_MS, mode: "exclusive", limit: 1, permits: 1 } as const;
  const acquireOf = ({ leaseId, isAsleep }: Caller): Acquire => ({
    ...{ type: "acquire", ...asked, leaseId, priority: 0, requestHash: "h", wait: true },
    ...(isAsleep && { owner: ownerOfSleepers }),
  });

  /** Judges a grant: nobody who still waits came before. */
  function granted(caller: Caller): void {
    waiting.delete(caller);
    turns++;
    for (const other of waiting) {
      if (other.waitsSinceMs >= caller.cameMs - LATER_MS) continue;
      if (++other.overtakenBy <= overtakenMost) continue;
      const [who, whom] = [caller, other].map(({ isAsleep }) => (isAsleep ? "a sleeper" : "a caller that polls"));
      const place = other.isOutside ? "without a place" : "in the queue";
      bench.fail("L2", `${who} overtook ${whom}, which had waited ${place} for ${caller.cameMs - other.waitsSinceMs} ms`);
    }
  }

  async function hold(store: LockStore, caller: Caller): Promise<void> {
    granted(caller);
    await world.sleep(random.between(1, holdMs));
    while (!(await send(store, { type: "release", key: ADDRESS.key, leaseId: caller.leaseId, principal: "P" })));
    if (turns < TURNS) void come(caller.isAsleep);
  }

  /** Comes, waits in its way, holds the key and leaves. */
  async function come(isAsleep: boolean): Promise<void> {
    const cameMs = nowMs();
    const leaseId = leaseIdFrom(cameMs, random.bytes(10));
    const caller: Caller = { isAsleep, cameMs, leaseId, isOutside: true, waitsSinceMs: Infinity, overtakenBy: 0 };
    const waits = (): void => void (caller.waitsSinceMs = Math.min(caller.waitsSinceMs, nowMs()));
    waiting.add(caller);
    const store = newStore();
    if (isAsleep) {
      sleepers.set(caller.leaseId, caller);
      while ((await send(store, { ...acquireOf(caller), sleepMs: SLEEP_MS }))?.ok !== true) await world.sleep(LIMITS.fullWaitMs);
      caller.isOutside = false;
      waits();
      return;
    }
    for (;;) {
      const answer = await send(store, acquireOf(caller));
      if (answer?.ok && !("state" in answer)) return hold(store, caller);
      caller.isOutside &&= !answer?.ok;
      if (answer) waits();
      // The id below which leases may have ended is the least that is new.
      if (answer?.ok === false) caller.leaseId = leaseIdFrom(Math.max(cameMs, (answer.leaseIdAboveMs ?? 0) + 1), random.bytes(10));
      await world.sleep(answer?.retryAfterMs ?? 0);
    }
  }

  /** Those who sleep; and those for whom the agent claims the key already. */
  const sleepers = new Map<string, Caller>();
  const failed = (error: unknown): void => bench.fail("internal", String(error));
  onOffered = (leaseId) => {
    const caller = sleepers.get(leaseId);
    if (!caller) return;
    sleepers.delete(leaseId);
    const claim = async (): Promise<void> => {
      for (;;) {
        const answer = await send(agent, acquireOf(caller));
        if (answer?.ok && !("state" in answer)) return hold(agent, caller);
        await world.sleep(5);
      }
    };
    claim().catch(failed);
  };

  for (let index = 0; index < sleeping + polling; index++) {
    // Sleepers take all that they may before the others come.
    const isAsleep = index < sleeping;
    world.in(random.between(0, 500) + (isAsleep ? 0 : 500), () => void come(isAsleep).catch(failed));
  }
  await world.run(world.nowMs + LONGEST_MS, () => turns >= TURNS);
  bench.coverage.turns += turns;
  if (turns < TURNS) bench.fail("L1", `only ${turns} turns in ${LONGEST_MS} ms`);
}
