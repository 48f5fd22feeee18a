/**
 * One history: a few clients and handlers live through two busy spells with an idle gap between them,
 * in which garbage collection comes; then everything heals, a holder crashes, and somebody who waits
 * must get its key in time. The core, the service, the handler and the SDK are the production code.
 */
import { createHandler } from "../../lambda/handler.js";
import { LeaseIds } from "../../lib/client/acquire.js";
import type { LockClient } from "../../lib/client/lock-client.js";
import { createClient } from "../../lib/client/client.js";
import { httpApi } from "../../lib/client/http-transport.js";
import { DEFAULTS, RETENTION_MIN_MS, takeoverMarginMs } from "../../lib/core/limits.js";
import { createRules } from "../../lib/core/rules.js";
import type { MemoryTable } from "../../lib/store/memory-store.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import { live } from "./application.js";
import { drawClockError, drawFaults } from "./faults.js";
import type { FaultMix, Weather } from "./faults.js";
import type { HandlerProcess } from "./network.js";
import { Network } from "./network.js";
import type { Coverage, Violation } from "./oracle.js";
import { Oracle } from "./oracle.js";
import { Random } from "./random.js";
import { Process, World } from "./world.js";

/** What came of one seed. */
export interface History {
  readonly seed: number;
  readonly violations: readonly Violation[];
  readonly coverage: Coverage;
  readonly requests: number;
  readonly events: number;
  /** The same for the same seed and code. */
  readonly digest: number;
}

const START_MS = Date.UTC(2027, 0, 1);
const MINUTE = 60_000;
const KEYS = ["ORDER_1", "ORDER_2"];
const HANDLERS = 3;
const GATEWAYS = 3;

/** A client in a process of its own. */
export interface Actor {
  readonly process: Process;
  readonly client: LockClient;
}

/** Everything that a history consists of. */
export interface Stage {
  readonly world: World;
  readonly random: Random;
  readonly weather: Weather;
  readonly oracle: Oracle;
  readonly network: Network;
  readonly keys: readonly string[];
  /** Handles of detached leases, for whoever attaches. */
  readonly handles: string[];
  /** Until when sessions start. */
  busyUntilMs: number;
  actor(index: number): Actor;
}

/** Lives through the history of `seed`. */
export async function simulate(seed: number): Promise<History> {
  const random = new Random(seed);
  const world = new World(START_MS + random.between(0, 1000));
  const mix = drawFaults(random);
  const oracle = new Oracle(() => world.nowMs);
  const weather: Weather = { mix, isFoul: true };
  const records = createMemoryTable();
  const gateways = Array.from(
    { length: GATEWAYS },
    () => new Process(world, { wallErrorMs: drawClockError(random, mix.gatewayErrorMs, mix.clocksAtExtremes) }),
  );
  const handlers = Array.from({ length: HANDLERS }, () => makeHandler(world, random, weather, records, oracle));
  const network = new Network(world, random, weather, gateways, handlers);
  network.onDelivered = (path, method, isDuplicate) => judgeDelivery(oracle, path, method, isDuplicate);
  world.atRest = () => oracle.atRest();

  const processes: Process[] = [];
  const actor = (index: number): Actor => {
    const made = makeActor(world, random, mix, network, index);
    processes.push(made.process);
    return made;
  };
  const stage: Stage = {
    world,
    random,
    weather,
    oracle,
    network,
    keys: KEYS.slice(0, random.whole(1, 2)),
    handles: [],
    busyUntilMs: 0,
    actor,
  };
  const actors = random.whole(2, 5);
  const jump = (): void => {
    if (mix.handlerJumps && weather.isFoul)
      for (const { process } of handlers)
        if (random.chance(0.3)) process.wallErrorMs = drawClockError(random, mix.handlerErrorMs, mix.clocksAtExtremes);
    world.in(random.between(5_000, 30_000), jump);
  };
  jump();

  for (let spell = 0; spell < 2; spell++) {
    stage.busyUntilMs = world.nowMs + random.between(40_000, 120_000);
    for (let index = 0; index < actors; index++) live(stage, index);
    await world.run(stage.busyUntilMs);
    if (spell === 0 && random.chance(0.7)) await collectWhileIdle(world, random, records, oracle);
  }

  weather.isFoul = false;
  for (const process of processes) process.crash();
  for (const process of [...gateways, ...handlers.map((handler) => handler.process)])
    process.wallErrorMs = drawClockError(random, DEFAULTS.clockErrorMs);
  await checkLiveness(stage, actors);
  return {
    seed,
    violations: oracle.violations,
    coverage: oracle.coverage,
    requests: network.requests,
    events: world.events,
    digest: oracle.digest,
  };
}

/** A function instance: the production handler over the shared table, with a clock of its own. */
function makeHandler(world: World, random: Random, weather: Weather, records: MemoryTable, oracle: Oracle): HandlerProcess {
  const process = new Process(world, { wallErrorMs: drawClockError(random, weather.mix.handlerErrorMs, weather.mix.clocksAtExtremes) });
  const stallMs = (): number => (weather.isFoul && random.chance(0.1) ? random.between(0, weather.mix.stallMs) : random.between(0, 4));
  const table: MemoryTable = {
    entries: () => records.entries(),
    async read(address) {
      await world.sleep(stallMs());
      return records.read(address);
    },
    async replace(address, next, seenVersion) {
      await world.sleep(stallMs());
      const before = await records.read(address);
      const result = await records.replace(address, next, seenVersion);
      if (result.written) oracle.written(address.key, before, next);
      return result;
    },
  };
  const rules = createRules({ retentionMs: RETENTION_MIN_MS });
  const store = createMemoryStore({ rules, table, clock: process, random: () => random.unit() });
  return {
    process,
    handle: createHandler({ store, clock: process, log: () => undefined, onFailure: (error) => oracle.fail("internal", String(error)) }),
  };
}

function makeActor(world: World, random: Random, mix: FaultMix, network: Network, index: number): Actor {
  const process = new Process(world, {
    wallErrorMs: drawClockError(random, mix.clientWallErrorMs),
    rateError: random.pick([-1, 1, 0]) * DEFAULTS.clockRateError,
    stopsWhenPaused: mix.stopsMonotonic,
  });
  const api = httpApi({ url: "http://simulated", fetch: network.fetchFor(process, `client-${index}`) });
  const ids = new LeaseIds(process, (count) => random.bytes(count));
  return { process, client: createClient({ api, clock: process, random: () => random.unit(), ids }) };
}

/** What a client sent is all that may happen; duplicates are what it sent. */
function judgeDelivery(oracle: Oracle, path: string, method: string, isDuplicate: boolean): void {
  const [, , , key = "", , leaseId = "", verb] = path.split("/");
  if (leaseId === "") return;
  if (method === "DELETE") oracle.asked("release", leaseId);
  else if (verb === "renew") oracle.asked("renew", leaseId);
  else if (verb === "transfer") oracle.asked("transfer", leaseId);
  else if (method === "PUT" && isDuplicate) oracle.duplicateAcquire(key, leaseId);
}

/** Over an hour or three, items whose time has passed go, some soon and some late. */
async function collectWhileIdle(
  world: World,
  random: Random,
  records: ReturnType<typeof createMemoryTable>,
  oracle: Oracle,
): Promise<void> {
  const untilMs = world.nowMs + random.between(61 * MINUTE, 180 * MINUTE);
  while (world.nowMs < untilMs) {
    await world.run(world.nowMs + random.between(MINUTE, 20 * MINUTE));
    for (const [address, record] of [...records.entries()]) {
      if (record.ttlAtSec * 1000 > world.nowMs || random.chance(0.3)) continue;
      records.remove(address);
      oracle.collected(address.key, record);
    }
  }
}

/** L1: a crashed holder's key is granted within lease + margin + the clocks' errors + one poll. */
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
  const boundMs = leaseMs + takeoverMarginMs(leaseMs) + 2 * DEFAULTS.clockErrorMs + 1500;
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
