/**
 * The reason for each predicate of a queue's writes: an example that has another outcome without it. `here` is a
 * process that acts on its recent records. `there` is another process, whose writes `here` doesn't see.
 */
import { DEFAULTS, LIMITS } from "../../lib/core/limits.js";
import { recordBytes } from "../../lib/core/record-bytes.js";
import type { Hold, LockRecord } from "../../lib/core/record.js";
import type { QueueScene } from "./queue-fixture.js";
import { permits, READER } from "./queue-fixture.js";
import type { FAST_PATHS } from "./differential/differential-queue.js";
import { A, B, C, D, leaseId, leaseIn, LEASE_MS, POLICY, START_MS } from "./fixture.js";
import type { outcomeOf } from "./fixture.js";

type Answer = Parameters<typeof outcomeOf>[0];

/** The environment of an example. */
export interface Stage {
  readonly here: QueueScene;
  readonly there: QueueScene;
  /** Replaces the key's record with this one, which no store would write. */
  readonly put: (record: LockRecord) => Promise<unknown>;
  /** The same by the former version, which leaves the sums of a crowd as they are; or knows none, on a new item. */
  readonly putByFormer: (record: LockRecord, isNew?: boolean) => Promise<unknown>;
  /** Runs `act` just before the next write of this kind arrives. */
  readonly before: (write: keyof typeof FAST_PATHS, act: () => Promise<unknown>) => Promise<unknown>;
}

/** A predicate, the kind of its writes, and the example for it. */
export interface Example {
  readonly write: keyof typeof FAST_PATHS;
  readonly predicate: string;
  readonly why: string;
  readonly play: (stage: Stage) => Promise<Answer>;
}

/** Process `here` acquires A and queues these, a millisecond apart. */
async function line({ here, there }: Stage, ...ids: readonly string[]): Promise<void> {
  await here.acquire(A);
  for (const [ms, id] of ids.entries()) await here.at(ms + 1).queue(id);
  pass({ here, there }, ids.length + 1);
}

/** The same, and then A releases: the first waiter has an offer. */
async function turn(stage: Stage, ...ids: readonly string[]): Promise<void> {
  await line(stage, ...ids);
  await stage.here.release(A);
  pass(stage, ids.length + 2);
}

/** Two readers, as far as `here` knows. */
async function readers({ here, there }: Stage, leaseMs = LEASE_MS): Promise<void> {
  for (const id of [A, B]) await here.acquire(id, { ...READER, leaseMs });
  pass({ here, there }, 1);
}

function pass({ here, there }: Pick<Stage, "here" | "there">, ms: number, aheadMs?: number): void {
  here.at(ms, aheadMs);
  there.at(ms, aheadMs);
}

/** Ends eight leases that are older than one that ended before them. */
async function endedOutOfOrder({ here }: Stage): Promise<void> {
  for (const order of [90, 1, 2, 3, 4, 5, 6, 7, 8]) await here.release(leaseId(order));
}

const AHEAD_MS = 9_000;
const [X, Y] = [leaseId(200), leaseId(201)];
const LONG = { owner: "é".repeat(LIMITS.ownerChars) };

const ended = (slot: number): Example => ({
  write: "enqueue",
  predicate: `NOT (r${slot}.i = :me)`,
  why: `this id ended, and ${slot} others since`,
  async play({ here, there }) {
    await here.acquire(A);
    for (let order = 0; order <= slot; order++) await there.release(leaseId(20 + order));
    return here.queue(leaseId(20));
  },
});

const ENQUEUE: readonly Omit<Example, "write">[] = [
  {
    predicate: "(size(h) > :zero OR size(qi) > :zero)",
    why: "the key is free by now",
    play: async ({ here, there }) => (await here.acquire(A), await there.release(A), here.at(1).queue(B)),
  },
  {
    predicate: "size(qi) < :most",
    why: "as many wait as may",
    async play({ here }) {
      await here.acquire(A);
      for (let order = 0; order < LIMITS.waitersMax; order++) await here.queue(leaseId(order + 10));
      return here.queue(X);
    },
  },
  {
    predicate: "attribute_not_exists(qb)",
    why: "some who wait have long owners",
    async play({ here }) {
      await here.acquire(A);
      for (let order = 0; order < 23; order++) await here.queue(leaseId(order + 10), LONG);
      for (let order = 0; order < 4; order++) await here.queue(leaseId(order + 50));
      return here.queue(X);
    },
  },
  {
    predicate: "attribute_not_exists(qb)",
    why: "some who wait came by a notify of a condition with a long name",
    async play({ here }) {
      const condition = "é".repeat(LIMITS.conditionChars);
      let order = 0;
      for (; order < 57; order++) {
        await here.at(order).acquire(leaseId(2 * order, order));
        await here.wait(leaseId(2 * order, order), leaseId(2 * order + 1, order), condition);
      }
      const notifies = leaseId(200, order);
      await here.at(order).acquire(notifies);
      await here.notify(notifies, { condition, all: true });
      await here.queue(leaseId(201, order));
      return here.queue(leaseId(202, order));
    },
  },
  {
    predicate: "NOT (qb = :long)",
    why: "readers hold, and some who wait have long owners",
    async play({ here }) {
      await here.acquire(A, READER);
      for (let order = 0; order < 23; order++) await here.queue(leaseId(order + 10), LONG);
      for (let order = 0; order < 4; order++) await here.queue(leaseId(order + 50));
      return here.queue(X);
    },
  },
  {
    predicate: "NOT contains(qi, :me)",
    why: "it waits already",
    play: async ({ here, there }) => (await here.acquire(A), await there.queue(B), here.queue(B)),
  },
  {
    predicate: "attribute_not_exists(h.#me)",
    why: "it holds already",
    async play({ here, there }) {
      await here.acquire(A);
      await there.queue(B);
      await there.release(A);
      await there.at(1).queue(B);
      return here.at(2).queue(B);
    },
  },
  {
    predicate: "attribute_not_exists(cw.#me)",
    why: "it waits for a condition",
    async play({ here, there }) {
      await here.acquire(A);
      await there.wait(A, B);
      await there.at(1).acquire(C);
      return here.at(1).queue(B);
    },
  },
  {
    predicate: "(attribute_not_exists(fl) OR fl < :me)",
    why: "it may have ended, longer ago than is remembered",
    async play({ here, there }) {
      await here.acquire(X);
      await endedOutOfOrder({ here: there } as Stage);
      return here.queue(leaseId(80));
    },
  },
  {
    predicate: "lim = :limit",
    why: "others have permits of it",
    play: async ({ here }) => (await here.acquire(A, permits(1)), here.queue(B)),
  },
  {
    predicate: "x >= :touched",
    why: "garbage collection would come too early",
    play: async ({ here }) => (await here.acquire(A, { leaseMs: 1_000 }), here.at(0, AHEAD_MS).queue(B)),
  },
];

const CLAIM: readonly Omit<Example, "write">[] = [
  {
    predicate: "size(h) = :one",
    why: "another has it too, and waits to become the writer",
    async play({ here, put }) {
      await here.acquire(A, READER);
      const record = (await here.read())!;
      const by = { principal: "P", owner: "", mode: "exclusive", permits: 1, requestHash: "same", priority: 0 } as const;
      await put({ ...record, offers: [{ leaseId: B, ...by, offeredAtMs: START_MS }], upgrading: { leaseId: A, untilMs: START_MS + 1 } });
      await here.read();
      return here.at(1).queue(B);
    },
  },
  {
    predicate: "attribute_not_exists(h.#me.t)",
    why: "it is held by somebody who is called as the digest of another is",
    async play(stage) {
      const { here, there } = stage;
      const by = "P";
      await here.acquire(A);
      await here.queue(B, { by });
      await there.release(A);
      await there.at(1).queue(B, { by });
      return here.at(2).queue(B);
    },
  },
  { predicate: "h.#me.p = :by", why: "another asks", play: async (stage) => (await turn(stage, B), stage.here.queue(B, { by: "Q" })) },
  {
    predicate: "h.#me.ph = :params",
    why: "it asks for something else",
    play: async (stage) => (await turn(stage, B), stage.here.queue(B, { requestHash: "other" })),
  },
  {
    predicate: "(attribute_not_exists(f) OR f < :now)",
    why: "the clock has not moved on since the last grant",
    play: async (stage) => (await turn(stage, B), stage.here.at(0).queue(B)),
  },
  {
    predicate: "x <= :ttl",
    why: "the key was used for longer, and others wait",
    async play({ here }) {
      await here.acquire(A, { leaseMs: 600_000 });
      for (const id of [B, C]) await here.queue(id);
      await here.release(A);
      return here.at(1).queue(B);
    },
  },
];

const HAND_OVER: readonly Omit<Example, "write">[] = [
  {
    predicate: "h.#me.p = :principal",
    why: "it is another's",
    play: async (stage) => (await line(stage, B), stage.here.release(A, { by: "Q" })),
  },
  {
    predicate: "h.#me.e > :earlier",
    why: "it ran out",
    play: async (stage) => (await line(stage, B), stage.here.at(LEASE_MS).release(A)),
  },
  {
    predicate: "attribute_not_exists(h.#me.b)",
    why: "it was broken, and the break may be repeated",
    play: async (stage) => (await line(stage, B), await stage.here.breakHold(), stage.here.release(A)),
  },
  {
    predicate: "fl <= r7.i",
    why: "a younger one ended before",
    async play(stage) {
      await endedOutOfOrder(stage);
      await stage.here.acquire(X);
      await stage.here.queue(Y);
      return stage.here.release(X);
    },
  },
  {
    predicate: "size(h) = :one",
    why: "another came to hold it too",
    play: async ({ here, there }) => (await here.acquire(A, READER), await there.acquire(B, READER), here.release(A)),
  },
  {
    predicate: "lim = :one",
    why: "two have room together",
    async play({ here }) {
      await here.acquire(A, permits(3));
      for (const id of [B, C]) await here.queue(id, permits(1));
      return here.release(A);
    },
  },
  {
    predicate: "q[0].u > :earlier",
    why: "the first was not heard of for too long",
    async play({ here }) {
      await here.acquire(A, { leaseMs: 60_000 });
      for (const id of [B, C]) await here.queue(id);
      await here.at(AHEAD_MS).queue(C);
      return here.at(DEFAULTS.waiterTtlMs).release(A);
    },
  },
  {
    predicate: "attribute_not_exists(q[0].z)",
    why: "the first sleeps, and its offer must be marked",
    async play({ here }) {
      await here.acquire(A);
      await here.queue(B, { sleepMs: 60_000 });
      return here.at(1).release(A);
    },
  },
  {
    predicate: "attribute_not_exists(q[0].m)",
    why: "readers go together",
    async play({ here }) {
      await here.acquire(A);
      for (const id of [B, C]) await here.queue(id, READER);
      return here.release(A);
    },
  },
  {
    predicate: "x >= :touched",
    why: "garbage collection would come too early",
    play: async ({ here }) => (await here.acquire(A, { leaseMs: 1_000 }), here.at(0, AHEAD_MS).release(A)),
  },
];

const LEAVE: readonly Omit<Example, "write">[] = [
  {
    predicate: "h.#me.p = :principal",
    why: "it is another's",
    play: async (stage) => (await readers(stage), stage.here.release(A, { by: "Q" })),
  },
  { predicate: "h.#me.e > :earlier", why: "it ran out", play: async (stage) => (await readers(stage), stage.here.at(LEASE_MS).release(A)) },
  {
    predicate: "attribute_not_exists(h.#me.b)",
    why: "it was broken, and the break may be repeated",
    async play(stage) {
      await readers(stage);
      await stage.here.breakHold(leaseIn(await stage.here.acquire(A, { ...READER })).fencingToken);
      return stage.here.release(A);
    },
  },
  {
    predicate: "fl <= r7.i",
    why: "a younger one has ended meanwhile",
    async play(stage) {
      for (const id of [X, Y]) await stage.here.acquire(id, READER);
      await endedOutOfOrder({ ...stage, here: stage.there });
      return stage.here.release(X);
    },
  },
  {
    predicate: "r7.i <= fl",
    why: "a younger one drops out by now",
    async play(stage) {
      await endedOutOfOrder(stage);
      for (const id of [X, Y]) await stage.here.acquire(id, READER);
      for (const order of [95, 101, 102, 103, 104, 105, 106, 107]) await stage.there.release(leaseId(order));
      return stage.here.release(X);
    },
  },
  {
    predicate: "r7.i <= :reach",
    why: "one that is ahead of the clock drops out by now",
    async play(stage) {
      await endedOutOfOrder(stage);
      for (const id of [X, Y]) await stage.here.acquire(id, READER);
      const record = (await stage.here.read())!;
      const far = leaseId(1, 60_000);
      const tombstones = record.tombstones.with(-1, { leaseId: far, ending: "released" });
      await stage.put({ ...record, tombstones, lowWatermark: leaseId(2, 60_000) });
      return stage.here.release(X);
    },
  },
  {
    predicate: "size(qi) = :zero",
    why: "the others have left, and one has come to wait",
    async play({ here, there }) {
      for (const id of [A, B]) await here.acquire(id, permits(1));
      await there.release(B);
      await there.queue(C, permits(3));
      return here.release(A);
    },
  },
  {
    predicate: "size(h) > :one",
    why: "the others have left, and a reader has come to wait for its turn",
    async play(stage) {
      await readers(stage);
      await stage.there.release(B);
      await stage.there.queue(C);
      return stage.here.release(A);
    },
  },
  {
    predicate: "attribute_exists(jt)",
    why: "the former version granted them, and knew no sums",
    async play({ here, putByFormer }) {
      for (const id of [A, B]) await here.acquire(id, permits(1));
      await putByFormer((await here.read())!, true);
      return here.release(A);
    },
  },
  {
    predicate: "attribute_not_exists(rl)",
    why: "others of a large crowd ended meanwhile, and were listed",
    async play({ here, there }) {
      const ids = Array.from({ length: 9 }, (_, order) => leaseId(order + 20));
      for (const id of ids) await there.acquire(id, READER);
      await there.release(ids[0]!);
      for (const id of ids.slice(1, 7)) await here.release(id);
      return here.release(ids[7]!);
    },
  },
  {
    predicate: "x >= :touched",
    why: "garbage collection would come too early",
    play: async (stage) => (await readers(stage, 1_000), stage.here.at(0, AHEAD_MS).release(A)),
  },
];

/** The record after a lease was granted beside the others, as the core writes it. */
function withLease(record: LockRecord, id: string, parts: Partial<Hold>): LockRecord {
  const [lease] = Object.values(record.holds);
  const fencingToken = record.fencingToken + 1;
  const holds = { ...record.holds, [id]: { ...lease!, fencingToken, ...parts } };
  return { ...record, holds, fencingToken, version: record.version + 1 };
}

const endedReader = (slot: number): Example => ({
  write: "join",
  predicate: `NOT (r${slot}.i = :me)`,
  why: `this id ended, and ${slot} others since`,
  async play({ here, there }) {
    await here.acquire(A, READER);
    for (let order = 0; order <= slot; order++) await there.release(leaseId(20 + order));
    return here.acquire(leaseId(20), READER);
  },
});

const JOIN: readonly Omit<Example, "write">[] = [
  {
    predicate: "cv = v",
    why: "the former version granted the last permits meanwhile",
    async play({ here, there, putByFormer }) {
      await here.acquire(A, permits(1));
      await putByFormer(withLease((await there.read())!, C, { permits: 2 }));
      return here.acquire(B, permits(1));
    },
  },
  {
    predicate: "size(h) > co",
    why: "the others have left, and it is the first of its crowd",
    async play(stage) {
      const { here, there } = stage;
      await readers(stage);
      await there.release(B);
      await here.release(A);
      return there.at(2).acquire(C, READER);
    },
  },
  {
    predicate: "size(qi) = :zero",
    why: "a writer has come to wait",
    play: async ({ here, there }) => (await here.acquire(A, READER), await there.queue(C), here.acquire(B, READER)),
  },
  {
    predicate: "lim = :limit",
    why: "others agreed on another limit",
    async play({ here, there }) {
      await here.acquire(A, permits(1));
      await there.release(A);
      await there.at(1).acquire(C, { limit: 5 });
      return here.at(1).acquire(B, permits(1));
    },
  },
  {
    predicate: "NOT (ug.u > :earlier)",
    why: "a reader has come to wait for the others to leave",
    async play({ here, there }) {
      for (const id of [A, B]) await here.acquire(id, READER);
      const { key } = here.address;
      await there.apply({ type: "mode", key, leaseId: A, principal: "P", mode: "exclusive", fencingToken: START_MS });
      return here.acquire(C, READER);
    },
  },
  {
    predicate: "ug.i = :left",
    why: "the reader that asked to become the writer has left, and another one has asked since",
    async play({ here, there }) {
      for (const id of [A, B, C]) await here.acquire(id, READER);
      const asked = { type: "mode", key: here.address.key, principal: "P", mode: "exclusive" } as const;
      await here.apply({ ...asked, leaseId: B, fencingToken: START_MS + 1 });
      await here.release(B);
      await there.apply({ ...asked, leaseId: A, fencingToken: START_MS });
      return here.acquire(D, READER);
    },
  },
  {
    predicate: "cp <= :room",
    why: "the permits are out by now",
    async play({ here, there }) {
      await here.acquire(A, permits(1));
      await there.acquire(C, permits(2));
      return here.acquire(B, permits(1));
    },
  },
  {
    predicate: "size(h) < :most",
    why: "as many hold as may",
    async play({ here, there }) {
      const permit = { limit: 2 * LIMITS.leasesMax };
      for (let order = 1; order < LIMITS.leasesMax; order++) await here.acquire(leaseId(order), permit);
      await there.acquire(X, permit);
      return here.acquire(Y, permit);
    },
  },
  {
    predicate: "cb <= :small",
    why: "the record is as large as it may be",
    async play({ here, there }) {
      const large = { ...READER, ...LONG, meta: { note: "é".repeat(480) } };
      for (let order = 1; order <= 18; order++) await here.acquire(leaseId(order), large);
      await there.acquire(X, large);
      return here.acquire(Y, large);
    },
  },
  {
    predicate: "attribute_not_exists(h.#me)",
    why: "it holds by now",
    play: async ({ here, there }) => (await here.acquire(A, READER), await there.acquire(B, READER), here.at(1).acquire(B, READER)),
  },
  {
    predicate: "(attribute_not_exists(fl) OR fl < :me)",
    why: "it may have ended, longer ago than is remembered",
    async play({ here, there }) {
      await here.acquire(X, READER);
      await endedOutOfOrder({ here: there } as Stage);
      return here.acquire(leaseId(80), READER);
    },
  },
  {
    predicate: "f >= :lately",
    why: "the table was restored from a backup meanwhile",
    async play({ here, put }) {
      await here.acquire(A, READER);
      const record = (await here.read())!;
      await put({ ...record, fencingToken: record.fencingToken - 2 * LIMITS.nextTokenMs });
      return here.at(1).acquire(B, READER);
    },
  },
  {
    predicate: "f < :lately",
    why: "another got the clock's token meanwhile",
    async play(stage) {
      const { here, there } = stage;
      await here.acquire(A, { ...READER, leaseMs: 10 * LIMITS.nextTokenMs });
      pass(stage, LIMITS.nextTokenMs + 1);
      await there.acquire(C, READER);
      return here.acquire(B, READER);
    },
  },
  {
    predicate: "x >= :ttl",
    why: "a shorter lease has followed the longer one",
    async play(stage) {
      const { here, there } = stage;
      await here.acquire(A, { ...READER, leaseMs: 600_000 });
      await there.release(A);
      pass(stage, 1);
      await there.acquire(C, READER);
      return here.acquire(B, { ...READER, leaseMs: 300_000 });
    },
  },
  {
    predicate: "x <= :ttl",
    why: "a longer lease has joined meanwhile",
    async play({ here, there }) {
      await here.acquire(A, READER);
      await there.acquire(C, { ...READER, leaseMs: 600_000 });
      return here.acquire(B, { ...READER, leaseMs: 300_000 });
    },
  },
];

const BEHIND: readonly Omit<Example, "write">[] = [
  {
    predicate: "cv = v",
    why: "the former version granted meanwhile, and its bytes are not counted",
    async play({ here, there, putByFormer }) {
      await here.acquire(A, permits(3));
      const record = (await there.read())!;
      const note = (length: number) => withLease(record, B, { meta: { note: "x".repeat(length) } });
      await putByFormer(note(LIMITS.recordBytes - recordBytes(note(0)) - 100));
      return here.queue(X, permits(1));
    },
  },
  {
    predicate: "size(qi) < :most",
    why: "as many wait behind permits as may",
    async play({ here, there }) {
      await here.acquire(A, permits(3));
      for (let order = 1; order < LIMITS.waitersMax; order++) await here.queue(leaseId(order + 10), permits(1));
      await there.queue(X, permits(1));
      return here.queue(Y, permits(1));
    },
  },
  {
    predicate: "cb <= :small",
    why: "the record is as large as it may be, and permits are out",
    async play({ here, there, put }) {
      await here.acquire(A, permits(2));
      const record = (await here.read())!;
      const note = (length: number) => withLease(record, B, { meta: { note: "x".repeat(length) } });
      await put(note(LIMITS.recordBytes - recordBytes(note(0)) - 200));
      await here.read();
      await there.queue(X, permits(1));
      return here.queue(Y, permits(1));
    },
  },
];

const of = (write: Example["write"], examples: readonly Omit<Example, "write">[]): readonly Example[] =>
  examples.map((example) => ({ write, ...example }));

/** An example for each predicate of each write. */
export const EXAMPLES: readonly Example[] = [
  ...of("enqueue", ENQUEUE),
  ...Array.from({ length: LIMITS.tombstonesMax }, (_, slot) => ended(slot)),
  ...of("enqueue", BEHIND),
  ...of("join", JOIN),
  ...Array.from({ length: LIMITS.tombstonesMax }, (_, slot) => endedReader(slot)),
  ...of("claim", CLAIM),
  ...of("handOver", HAND_OVER),
  ...of("leave", LEAVE),
  {
    write: "touchWaiter",
    predicate: "qi[1] = :me",
    why: "who was ahead of it has left meanwhile",
    async play(stage) {
      await line(stage, B, C, D);
      pass(stage, DEFAULTS.waiterTtlMs / 2 + 3);
      await stage.before("touchWaiter", () => stage.there.release(B));
      return stage.here.queue(C);
    },
  },
  {
    write: "touchWaiter",
    predicate: "x < :kept",
    why: "a long lease was granted meanwhile, and the record lives longer by it",
    async play(stage) {
      const { here, there } = stage;
      await here.acquire(A);
      await here.wait(A, B);
      const ms = LEASE_MS + POLICY.retentionMs;
      pass(stage, ms);
      await stage.before("touchWaiter", () => there.acquire(leaseId(9, ms), { leaseMs: LIMITS.leaseMaxMs }));
      return here.queue(B);
    },
  },
  {
    write: "decided",
    predicate: "v = :seen",
    why: "somebody came to wait meanwhile",
    async play(stage) {
      await stage.here.acquire(A);
      await stage.before("decided", () => stage.there.queue(B));
      return stage.here.queue(C, { priority: 5 });
    },
  },
  {
    write: "decided",
    predicate: "attribute_not_exists(qv)",
    why: "one who waits was heard of meanwhile, for the first time",
    async play(stage) {
      const { here, there } = stage;
      await turn(stage, B, C, D);
      pass(stage, 4 + LIMITS.keepAliveAfterMs);
      await there.queue(C);
      pass(stage, 4 + DEFAULTS.offerWindowMs);
      return here.queue(D);
    },
  },
];
