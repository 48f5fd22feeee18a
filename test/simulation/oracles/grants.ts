/**
 * The guarantees for a caller that tries without waiting, after all faults have stopped and all other clients are dead. It gets each key,
 * and all keys as a set, soon after the last lease on it has expired. That holds whatever callers without a hold asked for, however many
 * waiters died in a queue, and whichever clocks decided in the meantime.
 */
import { DEFAULTS, takeoverMarginMs } from "../../../lib/core/limits.js";
import { sleep } from "../clients/application.js";
import type { Actor, Stage } from "../stage.js";
import { SEATS } from "../clients/kinds.js";
import { type Place, Customer } from "../clients/local-queue.js";

/** The clients of these checks, by their indices. */
const FIRST_TRIER = 300;
const FIRST_DEAD = 400;
const RETRY_MS = 500;
const LEASE_MS = 6000;
/** The time for which ids may be refused, whatever was cancelled. */
const REFUSED_IDS_MS = 2000;
/** The time beyond the lease and its margin: two offer windows that expire unused, refused ids, and a retry. */
const BEYOND_MS = 2 * DEFAULTS.offerWindowMs + REFUSED_IDS_MS + RETRY_MS;
/** The clock errors when a lease is granted and when it is taken over, plus the table's resolution of whole seconds. */
const CLOCKS_MS = 4 * DEFAULTS.clockErrorMs + 1000;
const DEAD_QUEUE = "LINE_3";
/**
 * The time after which half of a waiter's TTL is over, so that its poll writes a keep-alive. A waiter farther back counts as alive for
 * longer.
 */
const VISIT_MS = DEFAULTS.waiterTtlMs / 2 + 2 * DEFAULTS.clockErrorMs;
const CROWD = "SEATS_2";
const CROWD_LIMIT = 150;
/** Owners and meta of the maximum length, so that fewer entries fill a queue or an item. */
const LONG_OWNER = "o".repeat(250);
const LARGE_META = { padding: "x".repeat(1000) };

/** Returns the keys of locks that a history uses, without semaphores. */
export function lockKeysOf({ keys, kinds }: Pick<Stage, "keys" | "kinds">): readonly string[] {
  return [...keys, ...kinds.items];
}

/** Checks that every used key is granted in time, and then all of them plus a fresh one as a set. */
export async function checkGrants(stage: Stage): Promise<void> {
  const { world, kinds } = stage;
  const trier = stage.actor(FIRST_TRIER);
  const keys = lockKeysOf(stage);
  const limits = new Map([[SEATS, kinds.seats]]);
  await trials(
    stage,
    [...keys, SEATS].map((key) => {
      const limit = limits.get(key);
      return {
        what: key,
        untilMs: dueMs(stage, key),
        attempt: async () => {
          const lease = await trier.client.tryAcquire(key, { leaseMs: LEASE_MS, ...(limit !== undefined && { limit }) });
          await lease?.release();
          return lease !== null;
        },
      };
    }),
    trier,
  );
  const set = [...keys, `FRESH_${world.serial()}`];
  const attempt = async (): Promise<boolean> => {
    const lease = await trier.client.tryAcquireAll(set, { leaseMs: LEASE_MS });
    await lease?.release();
    return lease !== null;
  };
  // No lease holds any of the keys, and no client waits.
  await trials(stage, [{ what: `the set ${set.join(", ")}`, untilMs: world.nowMs + REFUSED_IDS_MS + RETRY_MS, attempt }], trier);
}

/**
 * Checks dead queues: the holder and all waiters behind it are dead, and a caller that only tries gets the key in time, however many they
 * are.
 */
export async function checkDeadQueue(stage: Stage): Promise<void> {
  const { world, random, oracle } = stage;
  const holder = stage.actor(FIRST_TRIER + 1);
  let isHeld = false;
  void holder.client.acquire(DEAD_QUEUE, { leaseMs: LEASE_MS }).then(
    () => (isHeld = true),
    (error: unknown) => oracle.fail("L1", `${DEAD_QUEUE}: nobody else wants it, and yet: ${String(error)}`),
  );
  await world.run(world.nowMs + 30_000, () => isHeld);
  const isLong = random.chance(0.5);
  const goesOn = random.chance(0.5);
  const place = isLong ? { owner: LONG_OWNER } : {};
  await die(stage, isLong ? 45 : random.pick([3, 10, 30]), DEAD_QUEUE, place, goesOn ? 0 : VISIT_MS);
  if (goesOn) await checkRoom(stage, place);
  holder.process.crash();
  const trier = stage.actor(FIRST_TRIER + 2);
  const set = random.chance(0.5) ? [DEAD_QUEUE, `FRESH_${world.serial()}`] : undefined;
  const attempt = async (): Promise<boolean> => {
    const { client } = trier;
    const lease = set ? await client.tryAcquireAll(set, { leaseMs: LEASE_MS }) : await client.tryAcquire(DEAD_QUEUE, { leaseMs: LEASE_MS });
    await lease?.release();
    return lease !== null;
  };
  await trials(stage, [{ what: DEAD_QUEUE, untilMs: dueMs(stage, DEAD_QUEUE), attempt }], trier);
}

/** Checks that dead waiters are removed while the holder goes on: views don't list them, and a live waiter finds room in the queue. */
async function checkRoom(stage: Stage, place: Place): Promise<void> {
  const { world, oracle } = stage;
  await world.run(world.nowMs + DEFAULTS.waiterTtlMs + 2 * DEFAULTS.clockErrorMs);
  const living = new Customer(stage, stage.actor(FIRST_TRIER + 3), DEAD_QUEUE, place, 0);
  let told: Awaited<ReturnType<Customer["ask"]>> | undefined;
  let shown: unknown;
  const look = async (): Promise<void> => {
    const response = await living.actor.send(`http://simulated/v1/locks/${DEAD_QUEUE}`, { method: "GET", headers: {} });
    shown = (JSON.parse(await response.text()) as { readonly waiters: readonly unknown[] }).waiters.length;
    // Waits for a heartbeat of the holder.
    await sleep(living.actor, LEASE_MS);
    told = await living.ask();
    await living.leave();
  };
  void look().catch(() => undefined);
  await world.run(world.nowMs + LEASE_MS + 10_000, () => told !== undefined);
  if (typeof told !== "object" || told.position !== 1)
    oracle.fail("L2", `${DEAD_QUEUE}: answered ${JSON.stringify(told)} to a caller in front of whom all are dead`);
  if (shown !== 0) oracle.fail("L2", `${DEAD_QUEUE}: shows ${String(shown)} waiters, all of them dead`);
}

/** Checks permits with the largest possible entries: the item stays within the size that `oracle.sized` requires. */
export async function checkCrowd(stage: Stage): Promise<void> {
  await die(stage, 45, CROWD, { owner: LONG_OWNER, meta: LARGE_META, limit: CROWD_LIMIT });
}

/** Lets `count` clients ask for the key and die. With `visitMs`, they poll once more from their places after that time. */
async function die(stage: Stage, count: number, key: string, place: Place, visitMs = 0): Promise<void> {
  const { world } = stage;
  let asked = 0;
  for (let index = 0; index < count; index++) {
    const one = new Customer(stage, stage.actor(FIRST_DEAD + index), key, place, 0);
    const live = async (): Promise<void> => {
      await one.ask();
      if (visitMs > 0) await sleep(one.actor, visitMs).then(() => one.ask());
      asked++;
      one.actor.process.crash();
    };
    void live();
  }
  await world.run(world.nowMs + 30_000, () => asked === count);
}

interface Trial {
  readonly what: string;
  readonly untilMs: number;
  readonly attempt: () => Promise<boolean>;
}

/** Tries each trial repeatedly. Reports those that don't succeed in time to the oracle. */
async function trials({ world, oracle }: Stage, wanted: readonly Trial[], trier: Actor): Promise<void> {
  const done = new Map<Trial, number>();
  const lastMs = Math.max(...wanted.map(({ untilMs }) => untilMs));
  const why = new Map<Trial, string>();
  const tryOne = async (trial: Trial): Promise<void> => {
    while (!done.has(trial) && world.nowMs <= lastMs) {
      const isDone = await trial.attempt().catch((error: unknown) => void why.set(trial, String(error)));
      if (isDone) done.set(trial, world.nowMs);
      else await sleep(trier, RETRY_MS);
    }
  };
  for (const trial of wanted) void tryOne(trial);
  await world.run(lastMs, () => done.size === wanted.length);
  for (const trial of wanted) {
    const lateMs = (done.get(trial) ?? Number.POSITIVE_INFINITY) - trial.untilMs;
    if (lateMs > 0) oracle.fail("L1", `${trial.what}: not granted in time to a caller that only tries${said(why.get(trial))}`);
  }
}

function said(why: string | undefined): string {
  return why === undefined ? "" : `: ${why}`;
}

/** Returns the time by which the key must be granted to a caller that tries from now on. */
function dueMs({ world, oracle }: Stage, key: string): number {
  return Math.max(world.nowMs, oracle.heldUntilMs(key) + takeoverMarginMs(LEASE_MS)) + BEYOND_MS + CLOCKS_MS;
}
