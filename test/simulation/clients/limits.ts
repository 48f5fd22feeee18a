/**
 * Limits in a world of their own, beside a history's other clients: clients over HTTP and straight on the table take from them, through
 * wrong clocks, freezes, crashes, and lost, late and repeated messages, before and after an idle gap in which garbage is collected. No more
 * may start than the rates allow (S17), and no more may run at once than there are permits (S12). When clocks agree, a limit that is full
 * refuses nobody, and a take that waits long enough is granted (L7). In histories of their own, clients also shut limits: nobody who takes
 * afterwards starts before the time is over (S20).
 */
import type { LimiterOptions } from "../../../lib/client/calls/limiter.js";
import { DEFAULTS } from "../../../lib/core/limits.js";
import { CLOCKS_APART_MS } from "../../../lib/core/rate.js";
import { makeActor } from "../actor.js";
import { type DynamoBackend, dynamoBackend } from "../dynamo-backend.js";
import { type FaultMix, type FaultProfile, drawClockError, drawFaults } from "../faults.js";
import { type HandlerProcess, Network } from "../network.js";
import { check } from "../oracles/checker.js";
import { Oracle } from "../oracles/oracle.js";
import type { Bench } from "../oracles/verdict.js";
import { Random } from "../random.js";
import { makeHandler } from "../service.js";
import type { Actor, Stage } from "../stage.js";
import { Process, World } from "../world.js";
import { live, sleep } from "./application.js";
import { directClient } from "./direct.js";

/** Every so many seeds, a history has limits too: those that leave this remainder; and with clients that shut them, those that leave the other. */
const EVERY = 5;
const REMAINDER = 1;
const REMAINDER_OF_SHUTS = 3;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const E = DEFAULTS.clockErrorMs;
/** The furthest that two decisions may be apart about the time, when clocks agree; and the time in which a client is answered, in ms. */
const APART_MS = 2 * E + CLOCKS_APART_MS;
const ANSWERED_MS = 30_000;
/** The time after which every limit is full again, in ms: no shut outlasts it. */
const FULL_AFTER_MS = 5 * HOUR;
/** The clients of the check at the end, by their indices. */
const FIRST_OF_CHECK = 100;

interface Limit extends LimiterOptions {
  readonly rates: readonly { readonly count: number; readonly perMs: number; readonly burst: number }[];
  /** The longest time in which a bucket is full again, in ms. */
  readonly fillMs: number;
}

/** A fast one, one that takes a minute to fill, one of two rates with permits, and one that outlasts the retention of its item. */
const LIMITS: Readonly<Record<string, Limit>> = {
  LIMIT_1: { rates: [{ count: 20, perMs: 1000, burst: 10 }], fillMs: 500 },
  LIMIT_2: { rates: [{ count: 100, perMs: MINUTE, burst: 100 }], fillMs: MINUTE },
  LIMIT_3: {
    rates: [
      { count: 100, perMs: MINUTE, burst: 60 },
      { count: 5, perMs: 1000, burst: 5 },
    ],
    concurrent: 2,
    fillMs: MINUTE,
  },
  LIMIT_4: { rates: [{ count: 1, perMs: HOUR, burst: 4 }], fillMs: 4 * HOUR },
};
const KEYS = Object.keys(LIMITS);

/** The clocks of a history: all right, all within E, or as its faults have them. */
type Clocks = "right" | "agreeing" | "wrong";

/** The parts of a history of limits. */
interface Scene extends Pick<Stage, "world" | "random" | "faultProfile" | "oracle" | "busyUntilMs" | "actor"> {
  busyUntilMs: number;
  readonly dynamo: DynamoBackend;
  readonly gateways: readonly Process[];
  readonly handlers: readonly HandlerProcess[];
  readonly processes: Process[];
  /** The time by whose inflow clocks may let too much start, and by which they may end a shut too soon. */
  readonly slackMs: number;
  /** The chance that a client shuts a limit in place of a take. */
  readonly shutShare: number;
  /** A client over HTTP. */
  caller(index: number): Actor;
}

/** Plays the limits of `seed`, if it has any, and reports what they broke. */
export async function checkLimits(seed: number, bench: Pick<Bench, "coverage" | "fail">, inRegions = false): Promise<void> {
  if (seed % EVERY !== REMAINDER && seed % EVERY !== REMAINDER_OF_SHUTS) return;
  const scene = sceneOf(seed, inRegions);
  const { world, random, oracle, faultProfile } = scene;
  const clients = random.whole(3, 8);
  for (let spell = 0; spell < 2; spell++) {
    scene.busyUntilMs = world.nowMs + random.between(30_000, 60_000);
    for (let index = 0; index < clients; index++) live(scene, index, withLimits);
    jump(scene);
    await world.run(scene.busyUntilMs);
    if (spell === 0) await collect(scene);
  }
  for (const key of KEYS) oracle.limits.judge(key, LIMITS[key]!.rates, scene.slackMs);
  faultProfile.isFoul = false;
  scene.dynamo.regions?.heal();
  for (const process of scene.processes) process.crash();
  await checkFull(scene);
  for (const { property, what } of oracle.violations) bench.fail(property, what);
  for (const name of ["takes", "takesLater", "takesRefused", "shuts"] as const) bench.coverage[name] += oracle.coverage[name];
}

function sceneOf(seed: number, inRegions: boolean): Scene {
  const random = new Random(0x11a17 ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const clocks = random.pick<Clocks>(["right", "agreeing", "wrong", "wrong"]);
  const mix = withClocks(drawFaults(random), clocks);
  const faultProfile: FaultProfile = { mix, isFoul: true };
  const oracle = new Oracle(() => world.nowMs, Number.POSITIVE_INFINITY, true);
  const around = { world, random, faultProfile, oracle };
  const dynamo = dynamoBackend(around, inRegions);
  const gateways = [0, 1].map(() => new Process(world, { wallErrorMs: drawClockError(random, mix.gatewayErrorMs, mix.clocksAtExtremes) }));
  const handlers = [0, 1, 2].map((index) => makeHandler(around, dynamo, `function-${index}`));
  const network = new Network(world, random, faultProfile, gateways, handlers);
  network.onDelivered = (request) => check(oracle, request);
  world.atRest = () => oracle.believers.atRest();
  const direct = random.pick([0, 0.3, 1]);
  const processes: Process[] = [];
  const caller = (index: number): Actor => {
    const made = makeActor(world, random, mix, network, oracle.waits, index);
    processes.push(made.process);
    return made;
  };
  const actor = (index: number): Actor => {
    const made = caller(index);
    if (!random.chance(direct)) return made;
    // L7 is checked with clocks that agree, and this one decides.
    if (!faultProfile.isFoul) made.process.wallErrorMs = drawClockError(random, E);
    return { ...made, client: directClient(dynamo, made, random, oracle) };
  };
  // A direct client knows the table's time to the second only.
  const apartMs = clocks === "right" && direct === 0 ? 0 : CLOCKS_APART_MS;
  const slackMs = (clocks === "right" ? 0 : 2 * E) + apartMs;
  const shutShare = seed % EVERY === REMAINDER_OF_SHUTS ? 0.03 : 0;
  return { ...around, dynamo, gateways, handlers, processes, slackMs, shutShare, busyUntilMs: 0, caller, actor };
}

function withClocks(mix: FaultMix, clocks: Clocks): FaultMix {
  if (clocks === "wrong") return mix;
  const errorMs = clocks === "right" ? 0 : E;
  return { ...mix, handlerErrorMs: errorMs, gatewayErrorMs: errorMs, tableErrorMs: errorMs, strayErrorMs: 0 };
}

/** Sets the functions' clocks again and again, as far as they may be wrong. */
function jump(scene: Scene): void {
  const { world, random, handlers, busyUntilMs } = scene;
  const { mix } = scene.faultProfile;
  if (!mix.handlerJumps || world.nowMs >= busyUntilMs) return;
  for (const { process } of handlers)
    if (random.chance(0.3)) process.wallErrorMs = drawClockError(random, mix.handlerErrorMs, mix.clocksAtExtremes);
  world.in(random.between(5000, 30_000), () => jump(scene));
}

/** The actions of a client that takes from limits. */
async function withLimits(scene: Scene, actor: Actor): Promise<void> {
  const { world, random, oracle } = scene;
  const mostMs = random.pick([100, 1000, 1000]);
  while (world.nowMs < scene.busyUntilMs) {
    await sleep(actor, random.between(0, mostMs));
    const key = random.pick(KEYS);
    const limiter = actor.client.limiter(key, optionsOf(key));
    // Nothing is drawn where nobody shuts: those histories have witnesses of their own.
    if (scene.shutShare > 0 && random.chance(scene.shutShare)) {
      await limiter.shut({ forMs: shutMs(random, LIMITS[key]!), reason: "simulated" }).catch(() => undefined);
      continue;
    }
    const smallest = Math.min(...LIMITS[key]!.rates.map(({ burst }) => burst));
    const cost = random.chance(0.5) ? 1 : random.whole(1, smallest);
    const waitMs = random.chance(0.5) ? 0 : random.whole(0, 20_000);
    const started = (): void => oracle.limits.started(key, cost, 2 * DEFAULTS.clockRateError * waitMs);
    try {
      if (LIMITS[key]!.concurrent === undefined || random.chance(0.5)) {
        await limiter.take({ cost, waitMs });
        started();
      } else
        await limiter.run({ cost, waitMs }, async (lease) => {
          started();
          if (lease) oracle.handed(lease);
          await sleep(actor, random.between(0, 1000));
        });
    } catch {
      // The client may report refusals, timeouts, losses and outages. The oracle checks the history.
    }
  }
  await actor.client.close();
}

/** Draws the time of a shut: most are short, and some outlast the retention of the item. */
function shutMs(random: Random, { fillMs }: Limit): number {
  return random.chance(0.8) ? random.whole(1000, 20_000) : random.whole(1000, FULL_AFTER_MS - fillMs - MINUTE);
}

function optionsOf(key: string): LimiterOptions {
  const { rates, concurrent } = LIMITS[key]!;
  return { rates, ...(concurrent !== undefined && { concurrent }) };
}

/** An idle gap, longer than the retention and shorter than the slowest limit takes to fill. */
async function collect({ world, dynamo }: Scene): Promise<void> {
  const untilMs = world.nowMs + 2.5 * HOUR;
  while (world.nowMs < untilMs) {
    await world.run(world.nowMs + 10 * MINUTE);
    dynamo.collect();
  }
}

/** L7: without faults and with clocks that agree, a full limit grants a whole burst, also to who was refused before, or waits for it. */
async function checkFull(scene: Scene): Promise<void> {
  const { world, random, oracle, handlers, gateways } = scene;
  for (const process of [...gateways, ...handlers.map((handler) => handler.process)]) process.wallErrorMs = drawClockError(random, E);
  await world.run(world.nowMs + FULL_AFTER_MS);
  for (const key of KEYS) {
    const { rates, fillMs } = LIMITS[key]!;
    const cost = Math.min(...rates.map(({ burst }) => burst));
    const take = async ({ client }: Actor, waitMs = 0, mayRefuse = false): Promise<void> => {
      const taken = client.limiter(key, optionsOf(key)).take({ cost, waitMs });
      const progress = { isOver: false };
      void taken
        .catch((error: unknown) => {
          if (!mayRefuse) oracle.fail("L7", `${key}: with a wait of ${waitMs} ms: ${String(error)}`);
        })
        .finally(() => (progress.isOver = true));
      await world.run(world.nowMs + waitMs + ANSWERED_MS, () => progress.isOver);
      if (!progress.isOver) oracle.fail("L7", `${key}: no answer`);
    };
    const [first, second] = [scene.actor(FIRST_OF_CHECK), scene.caller(FIRST_OF_CHECK + 1)];
    await take(first);
    await take(second, 0, true);
    await world.run(world.nowMs + fillMs + APART_MS);
    await take(second);
    await take(second, fillMs + APART_MS);
  }
}
