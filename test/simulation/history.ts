/**
 * One history. A few clients and handlers run through two busy spells with an idle gap between them, in which garbage is collected. Then
 * all faults stop, a holder crashes, and a waiter must get its key in time. The core, the service, the handler and the SDK are the
 * production code.
 */
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { TABLE_CALLS } from "../../lib/store/dynamo/http-sender.js";
import { makeActor } from "./actor.js";
import { live, withLocks } from "./clients/application.js";
import { type Backend, memoryBackend } from "./backend.js";
import { directClient } from "./clients/direct.js";
import { dynamoBackend } from "./dynamo-backend.js";
import { type FaultMix, type FaultProfile, drawClockError, drawFaults, FAULTS, withoutFaults } from "./faults.js";
import { check } from "./oracles/checker.js";
import { checkConditions } from "./clients/conditions.js";
import { checkCrowds } from "./clients/crowds.js";
import { checkCrowd, checkDeadQueue, checkGrants } from "./oracles/grants.js";
import { drawKinds, withKinds } from "./clients/kinds.js";
import { checkLimits } from "./clients/limits.js";
import { checkLongRun } from "./clients/long-run.js";
import { checkRegions } from "./clients/regions.js";
import { isBothRefused } from "./regions.js";
import { releaseAll, withMischief } from "./clients/mischief.js";
import { Network } from "./network.js";
import { Oracle } from "./oracles/oracle.js";
import { checkHerd, checkLine } from "./oracles/queue-liveness.js";
import { Random } from "./random.js";
import { withRuns } from "./clients/runs.js";
import { makeHandler } from "./service.js";
import { checkSleepers } from "./clients/sleepers.js";
import { checkTurns } from "./clients/turns.js";
import type { Actor, Stage } from "./stage.js";
import { TellingOracle, Timeline } from "./timeline.js";
import type { Coverage, Property, Violation } from "./oracles/verdict.js";
import { checkWays } from "./clients/ways.js";
import { EndOfWorld, Process, World } from "./world.js";

/** The result of one seed. */
export interface History {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly coverage: Coverage;
  readonly requests: number;
  readonly events: number;
  /** A hash of the history: the same for the same seed and code. */
  readonly digest: number;
  /** The lines that lead to the first violation, if they were asked for. */
  readonly timeline: readonly string[];
}

const E = DEFAULTS.clockErrorMs;
const START_MS = Date.UTC(2027, 0, 1);
const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const KEYS = ["ORDER_1", "ORDER_2"];
/** The share of histories that run on the in-memory DynamoDB. The others run on the memory store. */
const ON_DYNAMO = 0.6;
/** The clients that run work under a key, by their indices. */
const FIRST_RUNNER = 20;
/** The clients that use every kind of lock, by their indices. */
const FIRST_OF_KINDS = 40;
/** The clients that cancel ids that no client asked for, by their indices. */
const FIRST_OF_MISCHIEF = 50;
/** The share of histories with a herd; with a queue that dies with its holder; with permits that fill an item. */
const HERDS = 0.1;
const DEAD_QUEUES = 0.15;
const DEPLOYMENTS = 0.2;
const CROWDS = 0.05;
const LONG_RUNS = 0.15;
/** The sweeps that meet the callers of a spell, and the time until which they begin. */
const SWEEPS = 6;
const SWEPT_UNTIL_MS = 30_000;
/** The time after which the AWS SDK has finished its retries. */
const SDK_GIVES_UP_MS = TABLE_CALLS.maxAttempts * (TABLE_CALLS.requestHandler.requestTimeout + 1000);
/** The resolution of the table's time: whole seconds. */
const TABLE_SECOND_MS = 1000;
const HANDLERS = 3;
const GATEWAYS = 3;
/** The parts that are played after the history's own world, each in a world of its own that the seed alone decides. */
const SCENES = [checkConditions, checkWays, checkCrowds, checkLimits, checkSleepers, checkTurns];
const SCENES_IN_REGIONS = [checkLimits, checkSleepers];

/** The part of a history to simulate, and to tell. */
export interface Extent {
  /** True to end with the first violation; a property to end with its first. @default false */
  readonly untilViolated?: boolean | Property;
  /** The faults and groups of clients to leave out. @default none */
  readonly without?: readonly Part[];
  /** True to play the scenes alone, without the world before them. @default false */
  readonly scenesAlone?: boolean;
  /** True for a table in several Regions, whose doors are cut off: another history than without. @default false */
  readonly inRegions?: boolean;
  /** True to tell what led to the first violation. @default false */
  readonly withTimeline?: boolean;
}

/** The groups of clients that can be left out of a history. */
const GROUPS = ["locks", "runs", "kinds", "mischief", "direct"] as const;

/** Everything that can be left out of a history. */
export const PARTS = [...GROUPS, ...FAULTS];

/** A fault or a group of clients. */
export type Part = (typeof PARTS)[number];

/** Simulates the history of `seed`. */
export async function simulate(seed: number, extent: Extent = {}): Promise<History> {
  const { stackTraceLimit } = Error;
  // Errors are ordinary answers here and frequent. Capturing a stack trace takes longer than creating the error.
  Error.stackTraceLimit = 0;
  try {
    return await lived(seed, extent);
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
// Over 60 lines: one model or one server, whose parts share its state.
async function lived(
  seed: number,
  { untilViolated = false, without = [], scenesAlone = false, inRegions = false, withTimeline = false }: Extent,
): Promise<History> {
  const leftOut: ReadonlySet<string> = new Set(without);
  const random = new Random(seed);
  const world = new World(START_MS + random.between(0, 1000));
  const mix = withoutFaults(drawFaults(random), leftOut);
  const faultProfile: FaultProfile = { mix, isFoul: true };
  const isOnTable = random.chance(ON_DYNAMO) || inRegions;
  const drawn = isOnTable ? random.pick([0, 0.3, 0.3, 1]) : 0;
  const direct = leftOut.has("direct") ? 0 : drawn;
  const timeline = withTimeline ? new Timeline(world) : undefined;
  const bounds = [() => world.nowMs, mostBehindMs(mix, direct > 0), mayDisagree(mix, direct > 0), inRegions] as const;
  const oracle = timeline ? new TellingOracle(timeline, ...bounds) : new Oracle(...bounds);
  const around = { world, random, faultProfile, oracle };
  const areBothRefused = inRegions && isBothRefused(seed);
  oracle.judgesLiveness = !areBothRefused;
  const dynamo = isOnTable ? dynamoBackend(around, inRegions, areBothRefused) : undefined;
  const backend = dynamo ?? memoryBackend(around);
  const gateways = Array.from(
    { length: GATEWAYS },
    () => new Process(world, { wallErrorMs: drawClockError(random, mix.gatewayErrorMs, mix.clocksAtExtremes) }),
  );
  // During a deployment, one function has a newer version, which writes more fields into the records than the others know.
  const newer = dynamo && random.chance(DEPLOYMENTS) ? dynamo.newer : backend;
  const handlers = Array.from({ length: HANDLERS }, (_, index) => makeHandler(around, index === 1 ? newer : backend, `function-${index}`));
  const [stray] = handlers;
  if (stray && mix.strayErrorMs > 0) stray.process.wallErrorMs = drawClockError(random, mix.strayErrorMs);
  const network = new Network(world, random, faultProfile, gateways, handlers);
  network.onDelivered = (request) => check(oracle, request);
  world.atRest = () => oracle.believers.atRest();
  if (untilViolated) world.isOver = () => oracle.violations.some(({ property }) => untilViolated === true || property === untilViolated);

  const processes: Process[] = [];
  const actor = (index: number): Actor => {
    const made = makeActor(world, random, mix, network, oracle.waits, index);
    processes.push(made.process);
    if (!dynamo || !random.chance(direct)) return made;
    // Liveness is checked with clocks within their allowed error, and this clock decides.
    if (!faultProfile.isFoul) made.process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
    return { ...made, client: directClient(dynamo, made, random, oracle) };
  };
  const stage: Stage = {
    world,
    random,
    faultProfile,
    oracle,
    network,
    keys: KEYS.slice(0, random.whole(1, 2)),
    runKeys: KEYS.slice(0, random.whole(1, 2)),
    kinds: drawKinds(random, new Random(-seed)),
    handles: [],
    busyUntilMs: 0,
    actor,
  };
  const actors = random.whole(2, 5);
  const runners = random.whole(1, 3);
  const others = random.whole(2, 4);
  const isMischievous = random.chance(0.3);
  const jump = (): void => {
    if (mix.handlerJumps && faultProfile.isFoul)
      for (const handler of handlers)
        if (random.chance(0.3)) handler.process.wallErrorMs = drawHandlerError(random, mix, handler === stray);
    world.in(random.between(5_000, 30_000), jump);
  };
  jump();

  try {
    if (!scenesAlone) {
      await spells();
      await healed();
    }
    // The scenes have Regions of their own, with one of the other rules.
    oracle.judgesLiveness = true;
    const { coverage } = oracle;
    coverage.conflicts += dynamo?.regions?.conflicts() ?? 0;
    for (const scene of inRegions ? SCENES_IN_REGIONS : SCENES) {
      await scene(seed, { coverage, fail: (property, what) => oracle.fail(property, what) }, inRegions);
      if (world.isOver()) break;
    }
  } catch (error) {
    if (!(error instanceof EndOfWorld)) throw error;
  }
  return {
    seed,
    violations: oracle.violations,
    coverage: oracle.coverage,
    requests: network.requests,
    events: world.events,
    digest: oracle.digest,
    timeline: oracle.violations.slice(0, 1).flatMap((violation) => timeline?.until(violation) ?? []),
  };

  /** Runs the two busy spells and the idle gap between them. */
  async function spells(): Promise<void> {
    for (let spell = 0; spell < 2; spell++) {
      stage.busyUntilMs = world.nowMs + random.between(40_000, 120_000);
      for (let index = 0; index < actors && !leftOut.has("locks"); index++) live(stage, index, withLocks);
      for (let index = 0; index < runners && !leftOut.has("runs"); index++) live(stage, FIRST_RUNNER + index, withRuns);
      for (let index = 0; index < others && !leftOut.has("kinds"); index++) live(stage, FIRST_OF_KINDS + index, withKinds);
      if (isMischievous && !leftOut.has("mischief")) live(stage, FIRST_OF_MISCHIEF, withMischief);
      if (spell > 0 && mix.strayErrorMs >= DAY) void releaseAll(stage, actor(FIRST_OF_MISCHIEF + 1));
      // A sweep meets those who use what it deletes.
      for (let count = 0; inRegions && count < SWEEPS; count++) world.in(random.between(0, SWEPT_UNTIL_MS), () => backend.collect());
      await world.run(stage.busyUntilMs);
      if (spell === 0 && random.chance(0.7)) await collectWhileIdle(world, random, backend);
    }
  }

  /** Stops all faults. */
  async function healed(): Promise<void> {
    faultProfile.isFoul = false;
    dynamo?.regions?.heal();
    for (const process of processes) process.crash();
    for (const process of [...gateways, ...handlers.map((handler) => handler.process)])
      process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
    // Requests stalled in a handler finish first, because liveness is checked without them.
    await world.run(world.nowMs + mix.stallMs + SDK_GIVES_UP_MS);
    await checkGrants(stage);
    if (random.chance(DEAD_QUEUES)) await checkDeadQueue(stage);
    if (dynamo && random.chance(CROWDS)) await checkCrowd(stage);
    if (random.chance(LONG_RUNS)) await checkLongRun(stage);
    await checkLiveness(stage, actors);
    await checkLine(stage, inRegions);
    if (random.chance(HERDS)) await checkHerd(stage);
    if (dynamo?.regions) await checkRegions(stage, dynamo, dynamo.regions);
  }
}

/**
 * Returns the largest possible error of a decision's clocks. Both are within the guard of each other, and one is right. A function whose
 * clock jumps during a request, or is corrected at the end, counts the jump as time that passed since the gateway's timestamp. Direct
 * clients know the table's time only as precisely as its answers are fast.
 */
function mostBehindMs(mix: FaultMix, isDirect: boolean): number {
  const ownMs = Math.max(mix.handlerErrorMs, mix.strayErrorMs);
  return Math.min(isDirect ? Number.POSITIVE_INFINITY : mix.gatewayErrorMs + 2 * ownMs, DEFAULTS.clockGuardMs) + E;
}

/** True if the clocks of a decision may be further apart than the guard allows. */
function mayDisagree(mix: FaultMix, isDirect: boolean): boolean {
  return mostBehindMs(mix, isDirect) >= DEFAULTS.clockGuardMs;
}

/** Draws a function's clock error from now on. A stray clock sometimes has an ordinary error. */
function drawHandlerError(random: Random, mix: FaultMix, isStray: boolean): number {
  if (isStray && mix.strayErrorMs > 0 && random.chance(0.7)) return drawClockError(random, mix.strayErrorMs);
  return drawClockError(random, mix.handlerErrorMs, mix.clocksAtExtremes);
}

/** Collects garbage for one to three hours. Items whose time has passed are removed, some soon and some late. */
async function collectWhileIdle(world: World, random: Random, backend: Backend): Promise<void> {
  const untilMs = world.nowMs + random.between(61 * MINUTE, 180 * MINUTE);
  while (world.nowMs < untilMs) {
    await world.run(world.nowMs + random.between(MINUTE, 20 * MINUTE));
    backend.collect();
  }
}

/** L1: a crashed holder's key is granted within lease + margin + the clock errors + one poll. */
async function checkLiveness({ world, random, oracle, actor, keys }: Stage, actors: number): Promise<void> {
  const key = random.pick(keys);
  const leaseMs = random.pick([1000, 6000, 30_000]);
  const holder = actor(actors);
  let held: true | undefined;
  void holder.client.acquire(key, { leaseMs, waitMs: 240_000 }).then(
    () => (held = true),
    (error: unknown) => oracle.fail("L1", `nobody else wants ${key} for long, and yet: ${String(error)}`),
  );
  await world.run(world.nowMs + 240_000, () => held === true);
  if (!held) return;
  await world.run(world.nowMs + random.between(0, 3 * leaseMs));
  holder.process.crash();
  const crashedMs = world.nowMs;
  const boundMs = leaseMs + takeoverMarginMs(leaseMs) + 2 * DEFAULTS.clockErrorMs + TABLE_SECOND_MS + 1500;
  let grantedMs = Number.POSITIVE_INFINITY;
  void actor(actors + 1)
    .client.acquire(key, { leaseMs, waitMs: 240_000 })
    .then(
      () => (grantedMs = world.nowMs),
      () => undefined,
    );
  await world.run(crashedMs + boundMs, () => grantedMs < Number.POSITIVE_INFINITY);
  if (grantedMs > crashedMs + boundMs) oracle.fail("L1", `${key}: not granted ${boundMs} ms after its holder crashed`);
}
