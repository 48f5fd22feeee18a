/**
 * The guarantees of a queue when only waiters fail: L3 with any of them dead, and L4 with any number of them. A waiter that polls as
 * instructed keeps its place throughout: L2.
 */
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../../lib/core/limits.js";
import { sleep } from "../clients/application.js";
import type { Stage } from "../stage.js";
import { Customer, untilHeld } from "../clients/local-queue.js";

const LINE = "LINE_1";
const HERD = "LINE_2";
/** The clients that wait in queues, by their indices. */
const FIRST_IN_LINE = 60;
const FIRST_OF_HERD = 80;
/**
 * The clients that ask and leave while the others wait, their number in some of the queues, and the longest time from one to the next, in ms.
 * Each changes the record under the others.
 */
const FIRST_PASSER_BY = 200;
const PASSERS_BY = 60;
const PASSES_MS = 150;
const BUSY = 0.4;
/** The latency of the network and the table, and the time to ask after a poll. */
const ON_THE_WAY_MS = 500;
/** The time from a dead waiter to the next live one: an offer's window, and the next waiter's poll. */
const NEXT_MS = DEFAULTS.offerWindowMs + 2 * DEFAULTS.clockErrorMs + LIMITS.pollMaxMs + ON_THE_WAY_MS;
const LOST_LEASE_MS = 1000;
/** The writes to the table per grant: enqueue, offer, claim and release, plus keep-alives and refused guesses. */
const WRITES_PER_GRANT = 5;

type Fate = "lives" | "dies" | "dies-holding";

/**
 * L3: in a queue with some waiters dead, and some that die when they get an offer, all others are granted in time. In several Regions a write is
 * refused beside one of another Region, so those who ask and leave can delay each write for as long as they come.
 */
export async function checkLine(stage: Stage, inRegions: boolean): Promise<void> {
  const { world, random, oracle } = stage;
  const holder = customer(stage, FIRST_IN_LINE, LINE);
  let isHeld = false;
  void untilHeld(holder, { waitMs: 60_000, isEager: true }).then((how) => (isHeld = how === "held"));
  await world.run(world.nowMs + 60_000, () => isHeld);
  const fates: readonly Fate[] = Array.from({ length: random.whole(2, 5) }, () => random.pick(["lives", "dies", "dies", "dies-holding"]));
  const line = [...fates, "lives" as const];
  let served = 0;
  const dying: Customer[] = [];
  for (const [index, fate] of line.entries()) {
    const one = customer(stage, FIRST_IN_LINE + 1 + index, LINE, fate);
    if (fate === "dies") dying.push(one);
    void waitAndUse(one, fate, random.between(0, 300)).then(() => fate === "lives" && served++);
    await world.run(world.nowMs + random.between(50, 400));
  }
  await world.run(world.nowMs + random.between(0, 9000));
  for (const { actor } of dying) actor.process.crash();
  // A waiter seen since the key was offered, by any clock, will get its own offer.
  await world.run(world.nowMs + 2 * DEFAULTS.clockErrorMs + ON_THE_WAY_MS);

  const living = line.filter((fate) => fate === "lives").length;
  const lost = line.filter((fate) => fate === "dies-holding").length;
  const lostMs = LOST_LEASE_MS + takeoverMarginMs(LOST_LEASE_MS) + 2 * DEFAULTS.clockErrorMs;
  const delayMs = inRegions ? PASSERS_BY * PASSES_MS : 0;
  const boundMs = (living + lost) * (NEXT_MS + 300) + lost * lostMs + delayMs;
  void holder.leave();
  const leftMs = world.nowMs;
  const passBy = (index: number): void => {
    if (served === living || index >= PASSERS_BY) return;
    const one = customer(stage, FIRST_PASSER_BY + index, LINE);
    void one.ask().then(() => one.leave());
    world.in(random.between(0, PASSES_MS), () => passBy(index + 1));
  };
  if (random.chance(BUSY)) passBy(0);
  await world.run(leftMs + boundMs, () => served === living);
  if (served < living) oracle.fail("L3", `${LINE}: of ${line.join(", ")}, only ${served} had their turn within ${boundMs} ms`);
}

/** L4: every waiter of a herd that arrives at once is served, and no grant costs more writes than in a small one. */
export async function checkHerd(stage: Stage): Promise<void> {
  const { world, random, oracle } = stage;
  const count = random.pick([10, 25, 50]);
  let served = 0;
  for (let index = 0; index < count; index++) {
    const one = customer(stage, FIRST_OF_HERD + index, HERD);
    world.in(random.between(0, 2000), () => void waitAndUse(one, "lives", random.between(0, 60), true).then(() => served++));
  }
  await world.run(world.nowMs + count * NEXT_MS, () => served === count);
  if (served < count) oracle.fail("L3", `${HERD}: only ${served} of ${count} had their turn`);
  const writes = oracle.triesOf(HERD) / count;
  if (writes > WRITES_PER_GRANT) oracle.fail("L4", `${HERD}: ${writes.toFixed(1)} writes for each of ${count} grants`);
}

function customer(stage: Stage, index: number, key: string, fate: Fate = "lives"): Customer {
  const leaseMs = fate === "dies-holding" ? LOST_LEASE_MS : 60_000;
  // A request that waits in the service could claim for a client that is dead by then.
  return new Customer(stage, stage.actor(index), key, { leaseMs }, fate === "lives" ? stage.random.pick([0, 0, 2]) : 0);
}

async function waitAndUse(one: Customer, fate: Fate, useMs: number, isEager = one.stage.random.chance(0.5)): Promise<void> {
  while ((await untilHeld(one, { waitMs: 600_000, isEager })) !== "held");
  if (fate === "dies-holding") return void one.actor.process.crash();
  await sleep(one.actor, useMs);
  await one.leave();
}
