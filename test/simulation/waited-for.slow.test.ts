/**
 * Crowds that somebody waits for, on the arena of the benchmark of crowds. Two properties: a release never fails because of others,
 * and takes at most three writes; and the key is passed on within two seconds. As controls, the same crowds where a release may do only what
 * it could before.
 */
import { describe, expect, it } from "vitest";
import { Arena } from "../../bench/crowds/arena.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import type { Lease } from "../../lib/client/hold/lease-types.js";
import type { TableCalls } from "../../lib/store/dynamo/calls.js";
import { fromItem, TENANCY_KEY } from "../../lib/store/dynamo/item.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { isThrottled } from "../../lib/store/dynamo/unavailable.js";
import { tally } from "../store/crowd-fixture.js";

const KEY = "ORDER_1";
const HOUR_MS = 3_600_000;
const WAIT = { waitMs: 60_000 } as const;
const READER = { mode: "shared", leaseMs: 20_000, ...WAIT } as const;
/** The longest time in which a key is passed on. */
const PASSED_MS = 2000;
const LONG_MS = 60_000;

/** A member of a crowd: a process that has seen nothing, and the writes that it sent. */
interface Member {
  readonly client: LockClient;
  readonly sent: { writes: number };
}

/** Starts a process. The table refuses every write of it whose update `isBarred`. */
function join(scene: Arena, isBarred: (update: string) => boolean = () => false): Member {
  const sent = { writes: 0 };
  const through = (calls: TableCalls): TableCalls => ({
    ...calls,
    updateItem(input) {
      sent.writes++;
      const { ConditionExpression: condition, UpdateExpression: update } = input;
      const barred = isBarred(update) ? { ...input, ConditionExpression: `attribute_exists(nothing) AND ${condition}` } : input;
      return calls.updateItem(barred).catch((error: unknown) => {
        // What is throttled is not carried out.
        if (isThrottled(error)) sent.writes--;
        throw error;
      });
    },
  });
  return { client: scene.client("direct", {}, through), sent };
}

/** A release, as it went. */
interface Released {
  readonly outcome: string;
  readonly writes: number;
}

/** Releases a lease, and counts its writes. */
async function release({ sent }: Member, lease: Lease): Promise<Released> {
  const before = sent.writes;
  const outcome = await lease.release().catch((error: unknown) => (error as Error).name);
  return { outcome, writes: sent.writes - before };
}

/** Runs the scene until `done`. */
const until = ({ world }: Arena, done: () => boolean): Promise<void> => world.run(world.nowMs + HOUR_MS, done);

/** This many processes hold the key, one after the other. */
async function holding(
  scene: Arena,
  size: number,
  options: object,
  isBarred?: (update: string) => boolean,
): Promise<readonly (readonly [Member, Lease])[]> {
  const held: (readonly [Member, Lease])[] = [];
  for (let order = 0; order < size; order++) {
    const member = join(scene, isBarred);
    void member.client.acquire(KEY, options).then((lease) => held.push([member, lease]));
    await until(scene, () => held.length > order);
  }
  return held;
}

/** Readers release at once, some time after a writer came to wait. Returns the releases, and the time until the writer held the key. */
async function readersLeave(size: number, restMs: number, isBarred?: (update: string) => boolean) {
  const scene = new Arena(1);
  const held = await holding(scene, size, READER, isBarred);
  let grantedAtMs = 0;
  void join(scene)
    .client.acquire(KEY, WAIT)
    .then(() => (grantedAtMs = scene.nowMs()));
  await scene.world.run(scene.nowMs() + restMs);
  const fromMs = scene.nowMs();
  const released: Released[] = [];
  for (const [member, lease] of held) void release(member, lease).then((one) => released.push(one));
  await until(scene, () => released.length === size && grantedAtMs > 0);
  return { released, passedMs: grantedAtMs - fromMs };
}

/** A writer releases while readers wait. Returns the release, and the times after which each of them held the key. */
async function writerLeaves(size: number) {
  const scene = new Arena(1);
  const [[writer, lease] = []] = await holding(scene, 1, WAIT);
  const outcomes: string[] = [];
  const grantedAtMs: number[] = [];
  for (let order = 0; order < size; order++)
    void join(scene)
      .client.acquire(KEY, READER)
      .then(
        () => (grantedAtMs.push(scene.nowMs()), "granted"),
        (error: unknown) => (error as Error).name,
      )
      .then((outcome) => outcomes.push(outcome));
  await scene.world.run(scene.nowMs() + 6000);
  const fromMs = scene.nowMs();
  const released: Released[] = [];
  if (writer && lease) void release(writer, lease).then((one) => released.push(one));
  await until(scene, () => outcomes.length === size && released.length === 1);
  return { released, outcomes, passedMs: Math.min(...grantedAtMs) - fromMs };
}

/** Clients take one of the permits again and again. Returns the releases, and the longest time in which one was free and nobody took it. */
async function turns(clients: number, limit: number, holdMs: number) {
  const scene = new Arena(1);
  const released: Released[] = [];
  let [passedMs, freeSinceMs, count] = [0, Infinity, 0];
  scene.table.onWritten = ({ after }) => {
    // The record of the table's tenancy is no lock.
    if (after[TABLE.partitionKey] === TENANCY_KEY.p) return;
    const { holds, waiters, offers } = fromItem(after);
    const nowMs = scene.nowMs();
    passedMs = Math.max(passedMs, nowMs - freeSinceMs);
    const held = Object.keys(holds).length;
    const isWanted = held < limit && waiters.length + offers.length > 0;
    freeSinceMs = isWanted ? (held > count || freeSinceMs === Infinity ? nowMs : freeSinceMs) : Infinity;
    count = held;
  };
  const rounds = 2;
  const visit = async (): Promise<void> => {
    const member = join(scene);
    for (let round = 0; round < rounds; round++) {
      const lease = await member.client.acquire(KEY, { limit, waitMs: HOUR_MS });
      await scene.sleep(holdMs);
      released.push(await release(member, lease));
    }
  };
  for (let client = 0; client < clients; client++) void visit();
  await until(scene, () => released.length === clients * rounds);
  return { released, passedMs, units: scene.counts().writeUnits / released.length };
}

/** All of these leases were released, each with at most three writes. */
function expectReleased(released: readonly Released[], size: number): void {
  expect(tally(released.map(({ outcome }) => outcome))).toEqual({ released: size });
  expect(Math.max(...released.map(({ writes }) => writes))).toBeLessThanOrEqual(3);
}

describe("a key that somebody waits for is passed on in time, and no release fails", { timeout: LONG_MS }, () => {
  it.each([
    [40, 2000],
    [40, 12_000],
    [100, 2000],
    [100, 12_000],
  ])("when %d readers release at once, %d ms after a writer came", async (size, restMs) => {
    const { released, passedMs } = await readersLeave(size, restMs);
    expectReleased(released, size);
    expect(passedMs).toBeLessThanOrEqual(PASSED_MS);
  });

  it("when a writer releases and 90 readers wait, all of whom are granted", async () => {
    const { released, outcomes, passedMs } = await writerLeaves(90);
    expectReleased(released, 1);
    expect(tally(outcomes)).toEqual({ granted: 90 });
    expect(passedMs).toBeLessThanOrEqual(PASSED_MS);
  });

  it.each([1000, 10])("when 60 clients take turns with 20 permits, for %d ms each", async (holdMs) => {
    const { released, passedMs, units } = await turns(60, 20, holdMs);
    expectReleased(released, 120);
    expect(passedMs).toBeLessThanOrEqual(PASSED_MS);
    expect(units).toBeLessThan(100);
  });
});

describe("control: the key is passed on late", { timeout: LONG_MS }, () => {
  it("where 40 readers can release only over the version that they saw", async () => {
    const { released, passedMs } = await readersLeave(40, 2000, (update) => update.includes("REMOVE h.#me"));
    expect(Math.max(...released.map(({ writes }) => writes))).toBeGreaterThan(3);
    expect(passedMs).toBeGreaterThan(PASSED_MS);
  });
});
