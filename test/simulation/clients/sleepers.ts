/**
 * Sleepers in a world of their own, beside a history's other clients: clients wait asleep for keys that others poll for and hold, change
 * their minds and die. Agents sweep, at the same time too; they freeze and end at any instant, and what they tell is throttled or lost, or
 * its answer is. An agent never ends a lease whose holder it or another told, and
 * what it tells is true (S18). A sleeper keeps its place for its time, and an offer for two sweeps. Each whose time goes on without faults
 * hears that it has the key, or that it never will (L8). In several Regions each has an agent of its own, a target waits in one of them, and
 * one may be lost for good, with those who wait in it.
 */
import { DEFAULTS } from "../../../lib/core/limits.js";
import type { WakeTarget } from "../../../lib/core/api/locks.js";
import { type AgentDeps, type WakeMessage, type Tell, LOST_PLACE, sweep } from "../../../lib/service/agent.js";
import { oneClock, tableClocks } from "../../../lib/service/clocks.js";
import { watchTableClock } from "../../../lib/store/dynamo/table-clock.js";
import { makeActor } from "../actor.js";
import { type Backend, memoryBackend } from "../backend.js";
import { type DynamoBackend, dynamoBackend } from "../dynamo-backend.js";
import { type FaultProfile, drawClockError, drawFaults } from "../faults.js";
import { Network } from "../network.js";
import { check } from "../oracles/checker.js";
import { Oracle } from "../oracles/oracle.js";
import type { Bench } from "../oracles/verdict.js";
import { Random } from "../random.js";
import { makeHandler } from "../service.js";
import type { Actor, Stage } from "../stage.js";
import type { Door } from "../../../lib/testing/regions.js";
import { Process, World } from "../world.js";
import { live, sleep } from "./application.js";
import { Customer } from "./local-queue.js";

/** Every so many seeds, a history has sleepers too: those that leave this remainder. */
const EVERY = 5;
const REMAINDER = 4;
const MINUTE = 60_000;
const KEYS = ["SLEEP_1", "SLEEP_2"];
const LEASES_MS = [30_000, MINUTE, 3 * MINUTE];
const SLEEPS_MS = [2 * MINUTE, 5 * MINUTE, 30 * MINUTE];
/** The longest time in which a sleeper hears of its end: its own, an offer's, that of all leases before it, and the sweeps. */
const BOUND_MS = 2 * Math.max(...SLEEPS_MS);
/** The time between the sweeps of a schedule. */
const SWEEPS_MS = 30_000;
/** The share of histories in several Regions in which one of them is lost for good. */
const LOST_REGIONS = 0.5;
/** The share of the table's answers to an agent after which it freezes. */
const FROZEN = 0.2;

/** Whom an agent tells: as a task of Step Functions, it takes one answer while it waits. */
interface Target {
  readonly customer: Customer;
  /** The door of the Region in which it waits: it is unknown elsewhere. Undefined: there is one Region. */
  readonly door: Door | undefined;
  /** The end of its time, by its last request to sleep. After that, nobody repeats news that got lost. */
  untilMs: number;
  state: "waiting" | "told" | "gone";
  outcome?: WakeMessage;
  onTold: () => void;
}

/** The parts of a history of sleepers. */
interface Scene extends Pick<Stage, "world" | "random" | "faultProfile" | "oracle" | "busyUntilMs" | "actor"> {
  busyUntilMs: number;
  readonly backend: Backend;
  readonly dynamo: DynamoBackend | undefined;
  readonly targets: Map<string, Target>;
  readonly processes: Process[];
  readonly servers: readonly Process[];
}

/** Plays the sleepers of `seed`, if it has any, and reports what they broke. */
export async function checkSleepers(seed: number, bench: Pick<Bench, "coverage" | "fail">, inRegions = false): Promise<void> {
  if (seed % EVERY !== REMAINDER) return;
  const scene = sceneOf(seed, inRegions);
  const { world, random, oracle, faultProfile } = scene;
  const regions = scene.dynamo?.regions;
  const clients = random.whole(3, 6);
  const agents = Math.max(random.whole(1, 3), regions?.doors.length ?? 1);
  scene.busyUntilMs = world.nowMs + random.between(5, 12) * MINUTE;
  for (let index = 0; index < clients; index++) live(scene, index, withSleepers);
  for (let index = 0; index < agents; index++) world.in(random.between(0, MINUTE), () => runAgent(scene, index));
  await world.run(scene.busyUntilMs);
  faultProfile.isFoul = false;
  if (regions) {
    regions.heal();
    // Who waits elsewhere hears from the agents of the other Regions.
    if (random.chance(LOST_REGIONS)) random.pick(regions.doors).state = "silent";
  }
  for (const process of scene.servers) process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
  const waiting = [...scene.targets.values()].filter(
    ({ state, untilMs, customer, door }) =>
      state === "waiting" && untilMs > world.nowMs && !customer.actor.process.isDead && door?.state !== "silent",
  );
  await world.run(world.nowMs + BOUND_MS, () => waiting.every(({ state }) => state !== "waiting"));
  for (const { state, customer } of waiting)
    if (state === "waiting") oracle.fail("L8", `${customer.key}: a sleeper heard nothing for ${BOUND_MS} ms without faults`);
  for (const { property, what } of oracle.violations) bench.fail(property, what);
  for (const name of ["sleepersWoken", "sleepersWokenInAnOutage", "sleepersLost", "sleepersDead"] as const)
    bench.coverage[name] += oracle.coverage[name];
}

function sceneOf(seed: number, inRegions: boolean): Scene {
  const random = new Random(0x51ee9 ^ seed);
  const world = new World(Date.UTC(2027, 0, 1));
  const mix = drawFaults(random);
  const faultProfile: FaultProfile = { mix, isFoul: true };
  const oracle = new Oracle(() => world.nowMs, Number.POSITIVE_INFINITY, true);
  const around = { world, random, faultProfile, oracle };
  const dynamo = random.chance(0.6) || inRegions ? dynamoBackend(around, inRegions) : undefined;
  const backend = dynamo ?? memoryBackend(around);
  const clockError = (mostMs: number): number => drawClockError(random, mostMs, mix.clocksAtExtremes);
  const gateways = [0, 1].map(() => new Process(world, { wallErrorMs: clockError(mix.gatewayErrorMs) }));
  const handlers = [0, 1, 2].map((index) => makeHandler(around, backend, `function-${index}`, true));
  const network = new Network(world, random, faultProfile, gateways, handlers);
  network.onDelivered = (request) => check(oracle, request);
  world.atRest = () => oracle.believers.atRest();
  const processes: Process[] = [];
  const actor = (index: number): Actor => {
    const made = makeActor(world, random, mix, network, oracle.waits, index);
    processes.push(made.process);
    return made;
  };
  const servers = [...gateways, ...handlers.map(({ process }) => process)];
  return { ...around, backend, dynamo, targets: new Map(), processes, servers, busyUntilMs: 0, actor };
}

/** The actions of a client that waits asleep, or polls. */
async function withSleepers(scene: Scene, actor: Actor): Promise<void> {
  const { world, random, oracle } = scene;
  while (world.nowMs < scene.busyUntilMs) {
    await sleep(actor, random.between(0, 20_000));
    const key = random.pick(KEYS);
    const leaseMs = random.pick(LEASES_MS);
    try {
      if (random.chance(0.5)) {
        await waitAsleep(scene, new Customer(scene, actor, key, { leaseMs }, 0));
        continue;
      }
      const lease = await actor.client.acquire(key, { leaseMs, waitMs: random.whole(0, MINUTE) });
      oracle.handed(lease);
      await sleep(actor, random.between(0, MINUTE));
      if (random.chance(0.9)) await lease.release();
      else actor.process.crash();
    } catch {
      // The client may report timeouts, losses and outages. The oracle checks the history.
    }
  }
  await actor.client.close();
}

/** Waits asleep, and holds the key when it is told. It may change its mind, and its target may stop waiting without a word. */
async function waitAsleep(scene: Scene, customer: Customer): Promise<void> {
  const { random, targets, oracle, dynamo } = scene;
  const { actor } = customer;
  const sleepMs = random.pick(SLEEPS_MS);
  const door = dynamo?.regions && random.pick(dynamo.regions.doors);
  const target: Target = { customer, door, untilMs: 0, state: "waiting", onTold: () => undefined };
  const told = new Promise<void>((resolve) => void (target.onTold = resolve));
  const token = `token-${targets.size}`;
  targets.set(token, target);
  let status = 0;
  for (let tries = 0; tries < 5 && target.state === "waiting" && ![200, 202].includes(status); tries++) {
    target.untilMs = scene.world.nowMs + sleepMs;
    status = await customer.fallAsleep(token, sleepMs / 1000);
    if (status === 201) oracle.fail("S18", `${customer.key}: a request to sleep was granted the key, which nobody tells it`);
    await sleep(actor, random.between(0, 1000));
  }
  const isQueued = status === 200 || status === 202;
  const givesUpMs = isQueued && random.chance(0.7) ? sleepMs + 2 * BOUND_MS : random.between(0, sleepMs);
  await Promise.race([told, sleep(actor, givesUpMs)]);
  if (target.state === "waiting") {
    target.state = "gone";
    if (random.chance(0.5)) await customer.leave();
    return;
  }
  await told;
  if (target.outcome === LOST_PLACE) return;
  if ((await customer.ask()) !== "held") return;
  await sleep(actor, random.between(0, customer.place.leaseMs ?? 0));
  if (random.chance(0.9)) await customer.leave();
}

/** Sweeps when its schedule says so, as all agents do. It may freeze, and end at any instant; then another begins. */
function runAgent(scene: Scene, index: number): void {
  const { world, random, faultProfile } = scene;
  const { mix } = faultProfile;
  // With one clock alone, that one is right.
  const errorMs = scene.dynamo ? mix.handlerErrorMs : DEFAULTS.clockErrorMs;
  const process = new Process(world, {
    name: `agent-${index}`,
    wallErrorMs: drawClockError(random, faultProfile.isFoul ? errorMs : DEFAULTS.clockErrorMs),
    stopsWhenPaused: mix.stopsMonotonic,
  });
  const deps = agentOn(scene, process, index);
  const again = (): void => {
    if (process.isDead) return;
    sweep(deps).catch(deps.onFailure);
    world.in(SWEEPS_MS - (world.nowMs % SWEEPS_MS) + random.between(0, 1500), again);
  };
  again();
  disturb();

  function disturb(): void {
    if (!faultProfile.isFoul) return void (process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs));
    if (random.chance(mix.crash)) {
      process.crash();
      world.in(random.between(0, MINUTE), () => runAgent(scene, index));
      return;
    }
    if (random.chance(mix.pause)) process.pause(random.between(0, mix.pauseMs));
    world.in(random.between(1000, 12_000), disturb);
  }
}

function agentOn(scene: Scene, process: Process, index: number): AgentDeps {
  const { backend, dynamo, oracle, targets } = scene;
  // In several Regions each has an agent.
  const doors = dynamo?.regions?.doors ?? [];
  const own = doors[index % doors.length];
  const made = dynamo?.clientFor(process, own);
  const { store, sleepers } = made ?? backend.recordsFor(process);
  const clocks = made ? tableClocks(process, watchTableClock(made.client, process)) : oneClock(process);
  const step = <T>(what: () => Promise<T>): Promise<T> => arrive(scene, process).then(what);
  return {
    store: {
      read: async (address) => frozenAfter(scene, process, await step(() => store.read(address))),
      async apply(address, command, reads) {
        // One that ends a wait alone may come late.
        if (command.type === "release" && !command.onlyWaiting) {
          const told = [...targets.values()].find(({ state, customer }) => state === "told" && customer.leaseId === command.leaseId);
          const { signal, actor } = told?.customer ?? {};
          if (told && told.outcome !== LOST_PLACE && !signal?.aborted && !actor?.process.isDead)
            oracle.fail("S18", `${command.key}: an agent ends the lease of a holder that was told`);
        }
        if (command.type === "release") oracle.asked.add("release", command.leaseId);
        return frozenAfter(scene, process, await step(() => store.apply(address, command, reads)));
      },
    },
    sleepers: {
      put: (sleeper) => sleepers.put(sleeper),
      list: (after) => step(() => sleepers.list(after)),
      read: (address, leaseId) => step(() => sleepers.read(address, leaseId)),
      delete: (sleeper) => step(() => sleepers.delete(sleeper)),
    },
    tell: teller(scene, process, own),
    regions: own && [own, ...doors.filter((door) => door !== own)].map(({ region }) => region),
    isRunning: async () => true,
    ...{ clocks, clock: process, log: () => undefined },
    onFailure: (error) => {
      // A process that stood still has no time left.
      const isExpected = /^(StoreUnavailable|KeyContended|UnfitClocks|Told|NoTime)/.test((error as Error).name);
      if (!isExpected) oracle.fail("internal", `agent: ${String(error)}`);
    },
  };
}

/**
 * Returns the answer of the table to a process that may freeze between it and its next step: often for a moment, in which another agent
 * does the same, and sometimes for minutes.
 */
async function frozenAfter<T>({ random, faultProfile: { isFoul } }: Scene, process: Process, answer: T): Promise<T> {
  if (isFoul && random.chance(FROZEN)) process.pause(2 * MINUTE * random.unit() ** 3);
  await resumed(process);
  return answer;
}

/** One request to a target: it may be throttled or lost, and so may its answer. Nothing crosses the border of a Region that is cut off. */
function teller(scene: Scene, process: Process, own: Door | undefined): Tell {
  const { random, faultProfile, oracle, targets } = scene;
  const { mix } = faultProfile;
  const fails = (chance: number): void => {
    if (faultProfile.isFoul && random.chance(chance)) throw unanswered();
  };
  return async (to: WakeTarget, outcome, region) => {
    await resumed(process);
    fails(mix.throttle + mix.loseRequest);
    const target = targets.get((to as { readonly taskToken: string }).taskToken)!;
    if (region !== own?.region) {
      const asked = scene.dynamo?.regions?.doors.find((door) => door.region === region);
      if (own?.state !== "open" || asked?.state !== "open") throw unanswered();
    }
    if (target.door?.region !== region) return "gone";
    if (target.state === "waiting" && target.customer.actor.process.isDead) target.state = "gone";
    const answer = target.state === "waiting" ? "told" : "gone";
    if (target.state === "waiting") {
      Object.assign(target, { state: "told", outcome });
      hear(scene, target, outcome);
      scene.world.in(legMs(scene), () => target.customer.actor.process.deliver(target.onTold));
    } else if (outcome !== LOST_PLACE && target.state === "gone") oracle.coverage.sleepersDead++;
    await arrive(scene, process);
    fails(mix.loseReply);
    return answer;
  };
}

function unanswered(): Error {
  return Object.assign(new Error("no answer"), { name: "Told" });
}

/** Checks what a target hears: the lease is its own, with the token of its grant. */
function hear({ oracle, dynamo }: Scene, { customer }: Target, outcome: WakeMessage): void {
  if (outcome === LOST_PLACE) return void oracle.coverage.sleepersLost++;
  oracle.coverage.sleepersWoken++;
  if (dynamo?.regions?.doors.some(({ state }) => state !== "open")) oracle.coverage.sleepersWokenInAnOutage++;
  const { key, leaseId, fencingToken } = outcome;
  if (key !== customer.key || leaseId !== customer.leaseId) oracle.fail("S18", `${key}: a sleeper was told of another's lease`);
  oracle.toldToken(key, leaseId, fencingToken);
}

function legMs({ random, faultProfile: { isFoul, mix } }: Scene): number {
  return isFoul && random.chance(0.1) ? random.between(0, mix.slowMs) : random.between(1, 20);
}

/** A message on its way to this process, which takes it when it runs. */
function arrive(scene: Scene, process: Process): Promise<void> {
  return new Promise((resolve) => void scene.world.in(legMs(scene), () => process.deliver(resolve)));
}

/** Resolves when the process runs. */
function resumed(process: Process): Promise<void> {
  return new Promise((resolve) => process.deliver(resolve));
}
