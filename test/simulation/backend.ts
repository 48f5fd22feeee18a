/**
 * Stores of a history's records: the production store on the in-memory DynamoDB, or the memory store. Both report every write to the
 * oracle, in the order of the writes, and collect garbage when asked to.
 */
import { RETENTION_MIN_MS } from "../../lib/core/limits.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Address, LockStore, SleeperStore } from "../../lib/store/port.js";
import { createMemorySleepers } from "../../lib/testing/memory-sleepers.js";
import { type MemoryTable, createMemoryStore, createMemoryTable } from "../support/memory-store.js";
import type { FaultProfile } from "./faults.js";
import type { Oracle } from "./oracles/oracle.js";
import type { Random } from "./random.js";
import type { Written } from "./oracles/run-oracle.js";
import type { Process, World } from "./world.js";

/** The lock policy of every history. */
export const POLICY = createPolicy({ retentionMs: RETENTION_MIN_MS });

/** The namespace that all clients of the simulation share. */
export const NAMESPACE = SHARED_NAMESPACE;

/** The simulated world of a history, and its checker. */
export interface Surroundings {
  readonly world: World;
  readonly random: Random;
  readonly faultProfile: FaultProfile;
  readonly oracle: Oracle;
}

/** Records as one process has them, and the sleepers beside them. */
export interface Records {
  readonly store: LockStore;
  readonly sleepers: SleeperStore;
}

/** Records, shared by many processes. */
export interface Backend {
  /** Returns the records for one process, whose store waits by that process's clock. */
  recordsFor(process: Process): Records;
  /** Removes some of the records whose time has passed. The others stay a while. */
  collect(): void;
}

/** Returns the duration of one access: mostly short, sometimes as long as a write may stall. */
function stallMs({ faultProfile, random }: Surroundings): number {
  return faultProfile.isFoul && random.chance(0.1) ? random.between(0, faultProfile.mix.stallMs) : random.between(0, 4);
}

/** The memory store, on a table whose reads and writes may stall. */
// Over 60 lines: the operations of one table share its records and what they report.
export function memoryBackend(around: Surroundings): Backend {
  const { world, random, oracle } = around;
  const records = createMemoryTable();
  oracle.runs.textBeside = (key, digest) => records.payloads.get(`${NAMESPACE}/runs/${key}/${digest}`);
  // The reported record is the stored one, so that keep-alives written in the meantime are included.
  const tell = async (address: Address, write: Written): Promise<void> =>
    oracle.written(address, { ...write, next: (await records.read(address)) ?? write.next });
  const table: MemoryTable = {
    entries: () => records.entries(),
    payloads: records.payloads,
    async replaceAll(changes) {
      const decidedAtMs = world.nowMs;
      await world.sleep(stallMs(around));
      const written = await records.replaceAll(changes);
      for (const { address, seen, next } of changes) {
        oracle.tried(address);
        if (written && next) await tell(address, { before: seen?.record, next, decidedAtMs });
      }
      oracle.settled();
      return written;
    },
    async read(address) {
      await world.sleep(stallMs(around));
      return records.read(address);
    },
    async touchWaiter(address, heard) {
      await world.sleep(stallMs(around));
      const result = await records.touchWaiter(address, heard);
      oracle.tried(address);
      if (result.written) oracle.queues.heard(heard.waiter);
      return result;
    },
    async commute(address, decide) {
      // The reading is from just now. The decision on the present record is made where the write arrives.
      const decidedAtMs = world.nowMs;
      await world.sleep(stallMs(around));
      const before = await records.read(address);
      const result = await records.commute(address, decide);
      oracle.tried(address);
      const next = await records.read(address);
      if (result.written && next) oracle.written(address, { before, next, decidedAtMs });
      oracle.settled();
      return result;
    },
    async replace(address, next, seen) {
      // The decision was made just now. Only the write stalls.
      const decidedAtMs = world.nowMs;
      await world.sleep(stallMs(around));
      const before = await records.read(address);
      const result = await records.replace(address, next, seen);
      oracle.tried(address);
      if (result.written) await tell(address, { before, next, decidedAtMs });
      oracle.settled();
      return result;
    },
  };
  const sleepers = createMemorySleepers();
  return {
    recordsFor: (process) => ({
      store: createMemoryStore({ policy: POLICY, table, clock: process, random: () => random.unit() }),
      sleepers,
    }),
    collect() {
      for (const [address, record] of [...records.entries()]) {
        if (record.ttlAtSec * 1000 > world.nowMs || random.chance(0.3)) continue;
        records.remove(address);
        oracle.collected(address, record);
      }
    },
  };
}
