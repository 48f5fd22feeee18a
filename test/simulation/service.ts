/**
 * The service of a history: function instances with clocks of their own over one table, whose reads and
 * writes may stall. The handler, the service and the core are the production code.
 */
import { createHandler } from "../../lambda/handler.js";
import { RETENTION_MIN_MS } from "../../lib/core/limits.js";
import { createRules } from "../../lib/core/rules.js";
import type { MemoryTable } from "../../lib/store/memory-store.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import { drawClockError } from "./faults.js";
import type { Weather } from "./faults.js";
import type { Address } from "../../lib/store/lock-store.js";
import type { HandlerProcess } from "./network.js";
import type { Oracle } from "./oracle.js";
import type { Written } from "./run-oracle.js";
import type { Random } from "./random.js";
import type { World } from "./world.js";
import { Process } from "./world.js";

/** What a function instance lives in. */
export interface Surroundings {
  readonly world: World;
  readonly random: Random;
  readonly weather: Weather;
  readonly oracle: Oracle;
}

/** A function instance: the production handler over the shared table, with a clock of its own. */
export function makeHandler({ world, random, weather, oracle }: Surroundings, records: MemoryTable): HandlerProcess {
  const process = new Process(world, { wallErrorMs: drawClockError(random, weather.mix.handlerErrorMs, weather.mix.clocksAtExtremes) });
  const stallMs = (): number => (weather.isFoul && random.chance(0.1) ? random.between(0, weather.mix.stallMs) : random.between(0, 4));
  // What was written is what is there now: who was heard of meanwhile stays so.
  const tell = async (address: Address, write: Written): Promise<void> =>
    oracle.written(address, { ...write, next: (await records.read(address)) ?? write.next });
  const table: MemoryTable = {
    entries: () => records.entries(),
    payloads: records.payloads,
    async replaceAll(changes) {
      const decidedAtMs = world.nowMs;
      await world.sleep(stallMs());
      const written = await records.replaceAll(changes);
      for (const { address, seen, next } of changes) {
        oracle.tried(address);
        if (written && next) await tell(address, { before: seen, next, decidedAtMs });
      }
      oracle.settled();
      return written;
    },
    async read(address) {
      await world.sleep(stallMs());
      return records.read(address);
    },
    async hear(address, heard) {
      await world.sleep(stallMs());
      const result = await records.hear(address, heard);
      oracle.tried(address);
      if (result.written) oracle.queues.heard(heard.waiter);
      return result;
    },
    async replace(address, next, seen) {
      // It was decided just now; what is stalled is the write.
      const decidedAtMs = world.nowMs;
      await world.sleep(stallMs());
      const before = await records.read(address);
      const result = await records.replace(address, next, seen);
      oracle.tried(address);
      if (result.written) await tell(address, { before, next, decidedAtMs });
      oracle.settled();
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
