/** Contended keys over HTTP in simulated time, on the arena of the benchmark of crowds: the requests that they cost. The counts are the same in every run. */
import { Arena } from "../../bench/crowds/arena.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";

const MOST_MS = 60 * 60_000;

/** The requests of one scenario. */
export interface Cost {
  /** Leases granted, or renewed in the scenario of heartbeats. */
  readonly grants: number;
  readonly writes: number;
  readonly reads: number;
  /** Write units, by the sizes of the items. */
  readonly units: number;
  /** Requests to the service. */
  readonly calls: number;
  /** Simulated time. */
  readonly lastedMs: number;
}

/** A contended key. */
export interface Crowd {
  readonly processes: number;
  /** Callers in each process. */
  readonly callers: number;
  /** Leases that each caller takes, one after the other. */
  readonly rounds: number;
  readonly holdMs: number;
  /** The time between the arrivals of two processes, in ms, while one more holds the key. @default 0: all come at once, to a free key */
  readonly arrivalMs?: number;
}

/** Lets every caller take the key as often as it wants, and counts the requests. */
export function contend({ processes, callers, rounds, holdMs, arrivalMs = 0 }: Crowd): Promise<Cost> {
  const arena = new Arena(1);
  let grants = 0;
  const use = (client: LockClient, forMs: number): Promise<void> =>
    client.withLock("ORDER_1", { waitMs: MOST_MS }, () => (grants++, arena.sleep(forMs)));
  const caller = async (client: LockClient): Promise<void> => {
    for (let round = 0; round < rounds; round++) await use(client, holdMs);
  };
  const process = async (order: number): Promise<void> => {
    const client = arena.client("http");
    if (arrivalMs > 0) await arena.sleep(order * arrivalMs);
    await Promise.all(Array.from({ length: callers }, () => caller(client)));
  };
  const first = arrivalMs > 0 ? [use(arena.client("http"), processes * arrivalMs)] : [];
  return counted(arena, async () => {
    await Promise.all([...first, ...Array.from({ length: processes }, (_, index) => process(index + 1))]);
    return grants;
  });
}

/** Holds this many leases of different keys in one process for a minute, and counts the heartbeats. */
export async function hold(leases: number): Promise<Cost> {
  const arena = new Arena(1);
  const client = arena.client("http");
  await arena.play(Promise.all(Array.from({ length: leases }, (_, index) => client.acquire(`ORDER_${index}`))));
  return counted(arena, () => arena.sleep(60_000).then(() => leases));
}

/** Does this many runs in one process, one after the other, each for this long. */
export function runs(count: number, lastsMs: number): Promise<Cost> {
  const arena = new Arena(1);
  const client = arena.client("http");
  return counted(arena, async () => {
    for (let run = 0; run < count; run++) await client.runOnce(`CHARGE_${run}`, {}, () => arena.sleep(lastsMs));
    return count;
  });
}

/** Plays the scene, whose result is the number of its grants, and counts its requests. */
async function counted(arena: Arena, scene: () => Promise<number>): Promise<Cost> {
  const [before, beganMs] = [arena.counts(), arena.nowMs()];
  const grants = await arena.play(scene());
  const { writes, reads, writeUnits, overHttp } = arena.counts();
  return {
    ...{
      grants,
      writes: writes - before.writes,
      reads: reads - before.reads,
      units: writeUnits - before.writeUnits,
      calls: overHttp - before.overHttp,
    },
    lastedMs: arena.nowMs() - beganMs,
  };
}
