/**
 * Crowds in a world of their own, beside a history's other clients: readers or permits come to one key at the same moment, each with a store
 * that has seen nothing. They renew, and leave in any order, while a writer tries or waits. Some wait for permits too. Requests and answers
 * are lost, and members die. In the last round many want a few permits for a short time, some of them give up, and some requests arrive once
 * more when their lease is over. Every write of the table is judged: who holds together (S11, S12), the order of the tokens (S3), the token
 * that a lease keeps (S8), and that nobody takes what those before it need (L2). An id that is over gets nothing (S7). But in the last round,
 * nobody may lose so many races that it gives up, and a release sends at most three writes (L4).
 */
import type { Acquire, AnswerTo, Command, Release } from "../../../lib/core/commands.js";
import { leaseIdFrom } from "../../../lib/core/lease-id.js";
import type { LockRecord } from "../../../lib/core/record.js";
import type { TableCalls, UpdateInput } from "../../../lib/store/dynamo/calls.js";
import { createDynamoStore } from "../../../lib/store/dynamo/dynamo-store.js";
import { fromItem } from "../../../lib/store/dynamo/item.js";
import { TABLE } from "../../../lib/store/dynamo/table.js";
import { type MemoryTable, createMemoryStore, createMemoryTable } from "../../support/memory-store.js";
import { type LockStore, StoreUnavailable } from "../../../lib/store/port.js";
import { NAMESPACE, POLICY } from "../backend.js";
import { type Input, DynamoTable } from "../../../lib/testing/table/table.js";
import { Random } from "../random.js";
import { clash, holdersIn, isKeptFor } from "../oracles/sharing.js";
import type { Bench } from "../oracles/verdict.js";
import { Process, World } from "../world.js";

/** Every so many seeds, a history has crowds too. */
const CROWDS = 5;
const ADDRESS = { namespace: NAMESPACE, kind: "locks", key: "CROWD_1" } as const;
const ROUNDS = 4;
const LEASE_MS = 6000;
/** The longest time of a round: leases of the dead are over, and their margins. */
const ROUND_MS = 30_000;
/** Times that a member sends a request whose answer was lost. */
const ATTEMPTS = 8;
/** The longest wait of a member, and the most writes of a release. */
const WAIT_MS = 4000;
const WRITES_MAX = 3;
/** The members of the last round, the time within which they come, and the longest hold and wait of each. */
const BRIEF_MEMBERS = 40;
const BRIEF = { comesWithinMs: 400, holdMs: 60, waitMs: 1500 } as const;

/** Starts the store of a process. It says when it writes more than a keep-alive. */
type StoreFor = (process: Process, wrote: () => void) => LockStore;

/** Runs the crowds of `seed`, if it has some, and reports what they broke. */
// Over 60 lines: one model or one server, whose parts share its state.
export async function checkCrowds(seed: number, bench: Pick<Bench, "coverage" | "fail">): Promise<void> {
  if (seed % CROWDS !== 2) return;
  const random = new Random(0xc0de ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const lost = random.pick([0, 0.02, 0.1]);
  const nowMs = (): number => Math.floor(world.nowMs);
  let lastToken = 0;
  let present: LockRecord | undefined;
  /** Those who wait or waited, in the order in which they came. */
  const arrivals: string[] = [];

  /** Judges a write. */
  function judge(next: LockRecord): void {
    for (const { leaseId } of next.waiters) if (!arrivals.includes(leaseId)) arrivals.push(leaseId);
    const broken = clash(holdersIn(next));
    if (broken) bench.fail(broken, "a crowd has leases that exclude each other");
    for (const [leaseId, { fencingToken }] of Object.entries(next.holds)) {
      const before = present?.holds[leaseId];
      if (before && before.fencingToken !== fencingToken) bench.fail("S8", `a lease of a crowd changed its token to ${fencingToken}`);
      if (before) continue;
      const place = arrivals.includes(leaseId) ? arrivals.indexOf(leaseId) : Number.POSITIVE_INFINITY;
      const isOvertaken = next.waiters.some((waiter) => arrivals.indexOf(waiter.leaseId) < place && !isKeptFor(waiter, next));
      if (isOvertaken) bench.fail("L2", "a lease of a crowd took what one that came before it needs");
      if (fencingToken <= lastToken) bench.fail("S3", `a crowd was granted token ${fencingToken} after ${lastToken}`);
      if (Object.keys(next.holds).length > 1) bench.coverage.joins++;
      bench.coverage.grants++;
      lastToken = Math.max(lastToken, fencingToken);
    }
    present = next;
  }

  /** Takes some time, and loses the request before the act or the answer after it. */
  async function slowly<T>(act: () => T | Promise<T>): Promise<T> {
    await world.sleep(random.between(0, 15));
    if (random.chance(lost / 2)) throw new StoreUnavailable("lost", false, false);
    const result = await act();
    await world.sleep(random.between(0, 15));
    if (random.chance(lost / 2)) throw new StoreUnavailable("lost", false, false);
    return result;
  }

  /** A table for the production store, or the memory store. Each member has its own store. */
  function storesOnTable(): StoreFor {
    const table = new DynamoTable({ tableName: "simulated", ...TABLE }, () => world.nowMs);
    table.onWritten = ({ after }) => judge(fromItem(after));
    const unused = (): never => {
      throw new Error("a crowd neither lists nor takes sets");
    };
    const calls = (wrote: () => void): TableCalls => ({
      updateItem: (input: UpdateInput) => (wrote(), slowly(() => table.update(input as unknown as Input))),
      getItem: (input) => slowly(() => table.get(input as unknown as Input)),
      query: unused,
      transactWriteItems: unused,
    });
    return (process, wrote) =>
      createDynamoStore({ calls: calls(wrote), tableName: "simulated", policy: POLICY, clock: process, random: () => random.unit() });
  }

  function storesInMemory(): StoreFor {
    const records = createMemoryTable();
    const told = async <R extends { readonly written: boolean }>(result: R): Promise<R> => {
      const record = result.written ? await records.read(ADDRESS) : undefined;
      if (record) judge(record);
      return result;
    };
    const table = (wrote: () => void): MemoryTable => ({
      ...records,
      read: (address) => slowly(() => records.read(address)),
      touchWaiter: (...touch) => slowly(() => records.touchWaiter(...touch)),
      replace: (...change) => (wrote(), slowly(async () => told(await records.replace(...change)))),
      commute: (...change) => (wrote(), slowly(async () => told(await records.commute(...change)))),
    });
    return (process, wrote) => createMemoryStore({ policy: POLICY, table: table(wrote), clock: process, random: () => random.unit() });
  }

  const storeFor = random.chance(0.7) ? storesOnTable() : storesInMemory();

  /** A member of a crowd: comes, stays for a while, and leaves or dies. */
  async function visit(wanted: Pick<Acquire, "mode" | "limit" | "permits" | "wait">, isBrief = false): Promise<void> {
    await world.sleep(random.between(0, isBrief ? BRIEF.comesWithinMs : 20));
    let writes = 0;
    const store = storeFor(new Process(world), () => void writes++);
    const leaseId = leaseIdFrom(nowMs(), random.bytes(10));
    const whose = { key: ADDRESS.key, leaseId, principal: "P" } as const;
    /** Sends a command until it is answered. */
    const send = async <C extends Command>(command: C): Promise<AnswerTo<C> | undefined> => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        writes = 0;
        try {
          return (await store.apply(ADDRESS, command, () => ({ earliestMs: nowMs(), latestMs: nowMs() }))).answer;
        } catch (error) {
          if (!(error instanceof StoreUnavailable)) throw error;
          if (error.throttled && !isBrief) bench.fail("L4", `a member of a crowd gave up: ${error.message}`);
        } finally {
          if (isHeld && command.type === "release" && writes > WRITES_MAX) bench.fail("L4", `a release of a crowd took ${writes} writes`);
        }
      }
      return undefined;
    };
    let isHeld = false;
    /** A late duplicate of the acquire arrives after the end. */
    const over = async (end: AnswerTo<Release> | undefined): Promise<void> => {
      if (!end?.ok || !random.chance(0.5)) return;
      await world.sleep(random.between(0, 200));
      const late = await send({ type: "acquire", ...whose, ...asked, ...wanted });
      if (late?.ok) bench.fail("S7", "an id of a crowd that was over came back");
    };
    const asked = { owner: "", leaseMs: LEASE_MS, priority: 0, requestHash: "h" } as const;
    const untilMs = world.nowMs + (isBrief ? random.between(0, BRIEF.waitMs) : WAIT_MS);
    let answer = await send({ type: "acquire", ...whose, ...asked, ...wanted });
    while (answer?.ok && "state" in answer && world.nowMs < untilMs) {
      await world.sleep(answer.retryAfterMs);
      answer = await send({ type: "acquire", ...whose, ...asked, ...wanted });
    }
    if (!answer?.ok) return;
    isHeld = "lease" in answer;
    if (!isHeld) return over(await send({ type: "release", ...whose }));
    if (isBrief) {
      await world.sleep(random.between(0, BRIEF.holdMs));
      return over(await send({ type: "release", ...whose }));
    }
    await world.sleep(random.between(0, LEASE_MS / 2));
    if (random.chance(0.1)) return;
    if (random.chance(0.3)) await send({ type: "renew", ...whose, leaseMs: LEASE_MS });
    await world.sleep(random.pick([0, random.between(0, 1000)]));
    await send({ type: "release", ...whose });
  }

  for (let round = 0; round <= ROUNDS; round++) {
    const isBrief = round === ROUNDS;
    const limit = random.pick(isBrief ? [1, 3, 6, 10] : [1, 1, 3, 10]);
    const members = isBrief ? BRIEF_MEMBERS : random.whole(8, 16);
    let left = members;
    const done = (): void => void left--;
    for (let member = 0; member < members; member++) {
      const isWriter = limit === 1 && random.chance(0.1);
      const permits = limit > 1 && random.chance(0.3) ? 2 : 1;
      const waits = isBrief || random.chance(isWriter ? 0.7 : 0.3);
      visit({ mode: limit > 1 || isWriter ? "exclusive" : "shared", limit, permits, ...(waits && { wait: true }) }, isBrief)
        .catch((error: unknown) => bench.fail("internal", String(error)))
        .finally(done);
    }
    const untilMs = world.nowMs + ROUND_MS;
    await world.run(untilMs, () => left === 0);
    await world.run(random.chance(0.5) ? untilMs : world.nowMs + 1);
  }
}
