/**
 * Where the records of a history are: behind the store that ships, on the in-memory DynamoDB, or in the memory store. Both
 * tell the oracle of every write in the order in which they happen, and let garbage go when they are told to.
 */
import { RETENTION_MIN_MS } from "../../lib/core/limits.js";
import { SHARED_NAMESPACE } from "../../lib/service/caller.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { Address, LockStore } from "../../lib/store/port.js";
import type { MemoryTable } from "../../lib/store/memory-store.js";
import { createMemoryStore, createMemoryTable } from "../../lib/store/memory-store.js";
import type { FaultProfile } from "./faults.js";
import type { Oracle } from "./oracle.js";
import type { Random } from "./random.js";
import type { Written } from "./run-oracle.js";
import type { Process, World } from "./world.js";

/** The rules of every history. */
export const POLICY = createPolicy({ retentionMs: RETENTION_MIN_MS });

/** The namespace that all clients of the simulation share. */
export const NAMESPACE = SHARED_NAMESPACE;

/** The world of a history, and its judge. */
export interface Surroundings {
  readonly world: World;
  readonly random: Random;
  readonly faultProfile: FaultProfile;
  readonly oracle: Oracle;
}

/** Records, for many processes at once. */
export interface Backend {
  /** A store for one process, by whose clock it waits. */
  storeFor(process: Process): LockStore;
  /** Garbage collection, of what its time has passed for; some of it stays a while. */
  collect(): void;
}

/** How long one access takes: mostly little, now and then as long as a write may stall. */
function stallMs({ faultProfile, random }: Surroundings): number {
  return faultProfile.isFoul && random.chance(0.1) ? random.between(0, faultProfile.mix.stallMs) : random.between(0, 4);
}

/** The memory store, over a table whose reads and writes may stall. */
export function memoryBackend(around: Surroundings): Backend {
  const { world, random, oracle } = around;
  const records = createMemoryTable();
  oracle.runs.textBeside = (key, digest) => records.payloads.get(`${NAMESPACE}/runs/${key}/${digest}`);
  // What was written is what is there now: who was heard of meanwhile stays so.
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
        if (written && next) await tell(address, { before: seen, next, decidedAtMs });
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
    async replace(address, next, seen) {
      // It was decided just now; what is stalled is the write.
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
  return {
    storeFor: (process) => createMemoryStore({ policy: POLICY, table, clock: process, random: () => random.unit() }),
    collect() {
      for (const [address, record] of [...records.entries()]) {
        if (record.ttlAtSec * 1000 > world.nowMs || random.chance(0.3)) continue;
        records.remove(address);
        oracle.collected(address, record);
      }
    },
  };
}
