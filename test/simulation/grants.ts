/**
 * What a caller that only tries may count on when everything has healed and everybody else is dead: it gets each key, and
 * all of them as a set, soon after the last lease on it has run out, whatever was asked for by callers without a hold,
 * however many died in a queue, and whichever clocks decided meanwhile.
 */
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { sleep } from "./application.js";
import type { Actor, Stage } from "./history.js";
import { SEATS } from "./kinds.js";
import type { Place } from "./local-queue.js";
import { Customer } from "./local-queue.js";

/** The clients of these checks, by their indices. */
const FIRST_TRIER = 300;
const FIRST_DEAD = 400;
const RETRY_MS = 500;
const LEASE_MS = 6000;
/** For so long ids may be refused, whatever was cancelled. */
const REFUSED_IDS_MS = 2000;
/** Beyond the lease and its margin: two windows of offers that nobody takes, ids that are refused, a retry. */
const BEYOND_MS = 2 * DEFAULTS.offerWindowMs + REFUSED_IDS_MS + RETRY_MS;
/** The clocks' errors, when a lease is granted and when it is taken, and that the table tells whole seconds. */
const CLOCKS_MS = 4 * DEFAULTS.clockErrorMs + 1000;
const DEAD_QUEUE = "LINE_3";
/** When half of a waiter's time is over, so that it is heard of: the farther back it stands, the longer it counts as alive. */
const VISIT_MS = DEFAULTS.waiterTtlMs / 2 + 2 * DEFAULTS.clockErrorMs;
const CROWD = "SEATS_2";
const CROWD_LIMIT = 150;
/** Owners and meta as long as they may be: so a queue, or an item, is full of fewer. */
const LONG_OWNER = "o".repeat(250);
const LARGE_META = { padding: "x".repeat(1000) };

/** The keys of locks that a history uses, semaphores aside. */
export function lockKeysOf({ keys, kinds }: Pick<Stage, "keys" | "kinds">): readonly string[] {
  return [...keys, ...kinds.items];
}

/** Every key that was used is granted in time, then all of them and a fresh one as a set. */
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
  // Nobody has any of them, and nobody waits.
  await trials(stage, [{ what: `the set ${set.join(", ")}`, untilMs: world.nowMs + REFUSED_IDS_MS + RETRY_MS, attempt }], trier);
}

/** A holder and everybody who waits behind it are dead: whoever only tries gets the key in time, however many they are. */
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
  const attempt = async (): Promise<boolean> =>
    (await (set ? trier.client.tryAcquireAll(set, { leaseMs: LEASE_MS }) : trier.client.tryAcquire(DEAD_QUEUE, { leaseMs: LEASE_MS }))) !==
    null;
  await trials(stage, [{ what: DEAD_QUEUE, untilMs: dueMs(stage, DEAD_QUEUE), attempt }], trier);
}

/** While the holder goes on, the dead are forgotten: nobody is shown who is gone, and there is room for one who lives. */
async function checkRoom(stage: Stage, place: Place): Promise<void> {
  const { world, oracle } = stage;
  await world.run(world.nowMs + DEFAULTS.waiterTtlMs + 2 * DEFAULTS.clockErrorMs);
  const living = new Customer(stage, stage.actor(FIRST_TRIER + 3), DEAD_QUEUE, place, 0);
  let told: unknown;
  let shown: unknown;
  const look = async (): Promise<void> => {
    const response = await living.actor.send(`http://simulated/v1/locks/${DEAD_QUEUE}`, { method: "GET", headers: {} });
    shown = (JSON.parse(await response.text()) as { readonly waiters: readonly unknown[] }).waiters.length;
    // A heartbeat.
    await sleep(living.actor, LEASE_MS);
    told = await living.ask();
    await living.leave();
  };
  void look().catch(() => undefined);
  await world.run(world.nowMs + LEASE_MS + 10_000, () => told !== undefined);
  if (typeof told === "number") oracle.fail("L2", `${DEAD_QUEUE}: answered ${told} to a caller who would wait behind the dead`);
  if (shown !== 0) oracle.fail("L2", `${DEAD_QUEUE}: shows ${String(shown)} waiters, all of them dead`);
}

/** Permits with as much to say of each as there may be: the item stays as small as `oracle.sized` wants it. */
export async function checkCrowd(stage: Stage): Promise<void> {
  await die(stage, 45, CROWD, { owner: LONG_OWNER, meta: LARGE_META, limit: CROWD_LIMIT });
}

/** So many ask for the key and die; with `visitMs`, after they have asked again from their places, so much later. */
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

/** Tries each now and then; those that do not succeed in time are told to the oracle. */
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

/** When a key must have been granted to whoever tries from now on. */
function dueMs({ world, oracle }: Stage, key: string): number {
  return Math.max(world.nowMs, oracle.heldUntilMs(key) + takeoverMarginMs(LEASE_MS)) + BEYOND_MS + CLOCKS_MS;
}
