/** The scenes of crowds. Each has callers in processes of their own, who arrive within some hundred ms, and a loop on the bare SDK to compare. */
import type { AcquireOptions } from "../../lib/client/calls/options.js";
import type { LockClient } from "../../lib/client/calls/lock-client.js";
import type { TableBehaviour } from "../../lib/testing/like-dynamodb.js";
import { type Way, Arena } from "./arena.js";
import { type Figures, costsOf, percentile } from "./figures.js";
import { naiveCaller } from "./naive.js";

/** The requests that stand between two holders at the least, with their mean latency: a release and a claim. */
const PASSED_ON_MS = 12;
/** The time between two arrivals, in ms. */
const ARRIVAL_MS = 3;
/** A crowd that goes on has long used what its item had saved up, so it begins with the units of this time, in ms: a few requests. */
const GOES_ON: Partial<TableBehaviour> = { creditMs: 10 };
/** A caller who came so much later has overtaken. */
const LATER_MS = 150;

/** Plays a scene with this seed. */
export type Scene = (seed: number) => Promise<Figures>;

/** A crowd that takes turns. */
export interface Turns {
  readonly callers: number;
  readonly rounds: number;
  readonly holdMs: number;
  readonly way: Way | "naive";
  /** @default 1: a mutex */
  readonly permits?: number;
  /** The number of keys that each have an equal part of the permits. A caller always takes the same key. @default 1 */
  readonly keys?: number;
  /** @default 45 000 */
  readonly waitMs?: number;
  /** Through `limiter.run`, in place of a semaphore. @default false */
  readonly byLimiter?: boolean;
  /** The largest error of a caller's clock, in ms. @default that of the arena */
  readonly clockErrorMs?: number;
  /** The table's behaviour. @default that of DynamoDB within a Region */
  readonly behaviour?: Partial<TableBehaviour>;
}

/** Calls `work` while it holds the key. */
type Hold = (work: () => Promise<void>) => Promise<void>;

/** Callers hold a key in turn, each as often as there are rounds. */
export function turns({
  callers: count,
  rounds,
  holdMs,
  way,
  permits = 1,
  keys = 1,
  waitMs = 45_000,
  byLimiter = false,
  clockErrorMs,
  behaviour,
}: Turns): Scene {
  return (seed) => {
    const arena = new Arena(seed, { ...(rounds > 1 && GOES_ON), ...behaviour }, clockErrorMs);
    const scene = async (): Promise<Figures> => {
      const holds = await holdersOf(arena, { callers: count, way, permits, keys, waitMs, byLimiter });
      const waits: { cameMs: number; grantedMs: number }[] = [];
      let [failed, firstMs, lastMs, heldMs] = [0, 0, 0, 0];
      const before = arena.counts();
      await Promise.all(
        holds.map(async (hold, order) => {
          await arena.sleep(order * ARRIVAL_MS);
          for (let round = 0; round < rounds; round++) {
            const cameMs = arena.nowMs();
            const work = async (): Promise<void> => {
              const grantedMs = arena.nowMs();
              firstMs ||= grantedMs;
              waits.push({ cameMs, grantedMs });
              await arena.sleep(holdMs);
              lastMs = arena.nowMs();
              heldMs += lastMs - grantedMs;
            };
            await hold(work).catch(() => failed++);
          }
        }),
      );
      const grants = waits.length;
      const tookMs = lastMs - firstMs;
      return {
        ...costsOf(before, arena.counts(), grants),
        failed,
        times: tookMs / (Math.ceil(grants / permits) * (holdMs + PASSED_ON_MS)),
        ...(permits === 1
          ? { idleMs: (tookMs - grants * holdMs) / grants }
          : { used: heldMs / tookMs / Math.min(permits, count), perSecond: (1000 * grants) / tookMs }),
        ...(rounds === 1 && { overtaken: overtakenOf(waits) / count }),
        p99Ms: percentile(
          waits.map(({ cameMs, grantedMs }) => grantedMs - cameMs),
          0.99,
        ),
        lastMs: tookMs,
      };
    };
    return arena.play(scene());
  };
}

type Holders = Required<Pick<Turns, "callers" | "way" | "permits" | "keys" | "waitMs" | "byLimiter">>;

/** Returns the key of a caller, which always takes the same one. */
function keyOf(order: number, keys: number): string {
  return keys === 1 ? "ORDER_1231" : `ORDER_1231_${order % keys}`;
}

async function holdersOf(arena: Arena, { callers: count, way, permits, keys, waitMs, byLimiter }: Holders): Promise<readonly Hold[]> {
  const limit = permits / keys;
  if (way === "naive") return Array.from({ length: count }, (_, order) => naiveCaller(arena, keyOf(order, keys), limit, waitMs));
  const callers = await arena.callers(count, way);
  const options = permits === 1 ? { waitMs } : { waitMs, limit };
  const held = (client: LockClient, key: string, work: () => Promise<void>): Promise<void> =>
    byLimiter
      ? client.limiter(key, { rates: [{ count: 10_000, perMs: 1000, burst: 10_000 }], concurrent: limit }).run({ waitMs }, work)
      : client.withLock(key, options, work);
  return callers.map(
    ({ use }, order) =>
      (work) =>
        use((client) => held(client, keyOf(order, keys), work)),
  );
}

function overtakenOf(waits: readonly { readonly cameMs: number; readonly grantedMs: number }[]): number {
  let latestMs = -Infinity;
  let overtaken = 0;
  for (const { cameMs } of waits.toSorted((a, b) => a.grantedMs - b.grantedMs)) {
    if (latestMs > cameMs + LATER_MS) overtaken++;
    latestMs = Math.max(latestMs, cameMs);
  }
  return overtaken;
}

/** Waiters give up at the same time, by their `waitMs` or by a signal. Then the holder releases, and one more caller comes. */
export function givingUp({
  callers: count,
  way,
  how,
}: {
  readonly callers: number;
  readonly way: Way;
  readonly how: "timeout" | "abort";
}): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const callers = await arena.callers(count, way);
      const holder = arena.client(way);
      const held = await holder.acquire("ORDER_1231", { leaseMs: 60_000 });
      const giveUp = new AbortController();
      const began = arena.nowMs();
      const ended = callers.map(async ({ use }, order) => {
        await arena.sleep(order * ARRIVAL_MS);
        const waitMs = how === "timeout" ? 3000 - (arena.nowMs() - began) : 60_000;
        return use((client) => client.acquire("ORDER_1231", { waitMs, signal: giveUp.signal })).then(
          () => "granted",
          () => "gave up",
        );
      });
      await arena.sleep(2990);
      const before = arena.counts();
      await arena.sleep(10);
      if (how === "abort") giveUp.abort();
      const outcomes = await Promise.all(ended);
      await Promise.all(callers.map((caller) => caller.close()));
      const costs = costsOf(before, arena.counts(), count);
      await held.release();
      const { waiters } = await holder.inspect("ORDER_1231");
      const freeMs = arena.nowMs();
      await holder.acquire("ORDER_1231", { waitMs: 30_000 });
      return {
        ...costs,
        failed: outcomes.filter((outcome) => outcome === "granted").length,
        leftDead: waiters.length,
        nextMs: arena.nowMs() - freeMs,
      };
    };
    return arena.play(scene());
  };
}

/** Readers come and go for some seconds, each on one of the keys, and nobody writes. */
export function readers({ callers: count, keys = 1, way }: { readonly callers: number; readonly keys?: number; readonly way: Way }): Scene {
  const [holdMs, pauseMs, forMs] = [200, 300, 6000];
  return (seed) => {
    const arena = new Arena(seed, GOES_ON);
    const scene = async (): Promise<Figures> => {
      const callers = await arena.callers(count, way);
      const waitedMs: number[] = [];
      let failed = 0;
      const before = arena.counts();
      const untilMs = arena.nowMs() + forMs;
      await Promise.all(
        callers.map(async ({ use }, index) => {
          const key = keyOf(index, keys);
          await arena.sleep(arena.random.between(0, holdMs + pauseMs));
          while (arena.nowMs() < untilMs) {
            const cameMs = arena.nowMs();
            const read = async (): Promise<void> => {
              waitedMs.push(arena.nowMs() - cameMs);
              await arena.sleep(holdMs);
            };
            await use((client) => client.withLock(key, { mode: "shared", waitMs: 20_000 }, read)).catch(() => failed++);
            await arena.sleep(pauseMs);
          }
        }),
      );
      const costs = costsOf(before, arena.counts(), waitedMs.length);
      return { ...costs, failed, p50Ms: percentile(waitedMs, 0.5), p99Ms: percentile(waitedMs, 0.99) };
    };
    return arena.play(scene());
  };
}

/** Callers want a value that one of them renews within 300 ms. */
export function refreshing({ callers: count, way }: { readonly callers: number; readonly way: Way }): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const callers = await arena.callers(count, way);
      let [value, runs, failed]: [string | undefined, number, number] = [undefined, 0, 0];
      const before = arena.counts();
      const beganMs = arena.nowMs();
      const refresh = (client: LockClient): Promise<unknown> =>
        client.refresh("TOKEN", {
          read: () => value,
          isFresh: () => true,
          renew: async () => {
            runs++;
            await arena.sleep(300);
            return "fresh";
          },
          save: async (renewed) => void (value = renewed),
        });
      await Promise.all(callers.map(({ use }) => use(refresh).catch(() => failed++)));
      return { ...costsOf(before, arena.counts(), count), failed, runs, lastMs: arena.nowMs() - beganMs };
    };
    return arena.play(scene());
  };
}

/** Callers who ask once for keys that others hold. */
export interface Clicks {
  /** The rate of the crowd, in times of the writes that an item takes. */
  readonly times: number;
  readonly way: Way | "naive";
  /** @default 8 */
  readonly keys?: number;
  /** The write units that an item takes a second. Smaller items let a smaller crowd show the same. @default 20 */
  readonly unitsOfItem?: number;
  /** @default 3000 */
  readonly leaseMs?: number;
  /** @default 9000 */
  readonly forMs?: number;
}

/** Callers ask once for keys that others hold with heartbeats. */
export function clicks({ times, way, keys = 8, unitsOfItem = 20, leaseMs = 3000, forMs = 9000 }: Clicks): Scene {
  const processes = 80;
  return (seed) => {
    const arena = new Arena(seed, { writeUnits: unitsOfItem, readUnits: 3 * unitsOfItem });
    const scene = async (): Promise<Figures> => {
      const holder = arena.client(way === "http" ? "http" : "direct");
      const names = Array.from({ length: keys }, (_, order) => `ORDER_${order}`);
      const held = await Promise.all(names.map((name) => holder.acquire(name, { leaseMs })));
      const crowd = await arena.callers(processes, way === "naive" ? "direct" : way);
      const naive = names.map((name) => naiveCaller(arena, `naive-${name}`, 1, 0));
      const before = arena.counts();
      const untilMs = arena.nowMs() + forMs;
      const asked: Promise<unknown>[] = [];
      let failed = 0;
      while (arena.nowMs() < untilMs) {
        await arena.sleep(1000 / (times * unitsOfItem * keys));
        const order = asked.length;
        const name = names[order % keys]!;
        const click = (client: LockClient): Promise<unknown> => client.tryAcquire(name).then((lease) => lease?.release());
        const call = way === "naive" ? naive[order % keys]!(() => arena.sleep(forMs)) : crowd[order % processes]!.use(click);
        asked.push(call.catch(() => failed++));
      }
      const lost = held.filter((lease) => !lease.isHeld()).length;
      const costs = costsOf(before, arena.counts(), asked.length);
      await Promise.all(asked);
      return { ...costs, failed, lost };
    };
    return arena.play(scene());
  };
}

/** Holders of one semaphore keep their leases for some time. */
export function keeping({ holders, leaseMs, way }: { readonly holders: number; readonly leaseMs: number; readonly way: Way }): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const callers = await arena.callers(holders, way);
      const options: AcquireOptions = { limit: holders, leaseMs, waitMs: 20_000 };
      let failed = 0;
      const beganMs = arena.nowMs();
      const acquired = await Promise.all(
        callers.map(async ({ use }, order) => {
          await arena.sleep(order * 20);
          return use((client) => client.acquire("ORDER_1231", options)).catch(() => void failed++);
        }),
      );
      const leases = acquired.filter((lease) => lease !== undefined);
      const before = arena.counts();
      await arena.sleep(12_000);
      const renewals = leases.length * Math.floor((arena.nowMs() - beganMs) / (leaseMs / 2));
      return { ...costsOf(before, arena.counts(), renewals), failed, lost: leases.filter((lease) => !lease.isHeld()).length };
    };
    return arena.play(scene());
  };
}

/** Clients take from a limit at a part of its rate, without waiting, each take of another client than the one before. */
export function taking({
  callers: count,
  perSecond,
  share,
  way,
}: {
  readonly callers: number;
  readonly perSecond: number;
  readonly share: number;
  readonly way: Way;
}): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const callers = await arena.callers(count, way);
      const taken: Promise<unknown>[] = [];
      let failed = 0;
      const before = arena.counts();
      const untilMs = arena.nowMs() + 5000;
      while (arena.nowMs() < untilMs) {
        await arena.sleep((-Math.log(1 - arena.random.unit()) * 1000) / (perSecond * share));
        const take = (client: LockClient): Promise<unknown> =>
          client.limiter("API", { rates: [{ count: perSecond, perMs: 1000, burst: perSecond }] }).take();
        taken.push(callers[taken.length % count]!.use(take).catch(() => failed++));
      }
      await Promise.all(taken);
      return { ...costsOf(before, arena.counts(), taken.length), failed };
    };
    return arena.play(scene());
  };
}

/** A set of keys, on each of which some ordinary callers take turns. */
export function blockedSet({ keys, callers: count, way }: { readonly keys: number; readonly callers: number; readonly way: Way }): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const names = Array.from({ length: keys }, (_, order) => `ORDER_${order}`);
      const callers = await arena.callers(keys * count, way);
      const [setter] = await arena.callers(1, way);
      let isOver = false;
      let failed = 0;
      const users = callers.map(async ({ use }, order) => {
        while (!isOver) await use((client) => client.withLock(names[order % keys]!, { waitMs: 20_000 }, () => arena.sleep(50)));
      });
      await arena.sleep(500);
      const before = arena.counts();
      const beganMs = arena.nowMs();
      await setter!
        .use((client) => client.acquireAll(names, { waitMs: 10_000 }))
        .then(
          (set) => set.release(),
          () => failed++,
        );
      const lastMs = arena.nowMs() - beganMs;
      const costs = costsOf(before, arena.counts(), 1);
      isOver = true;
      await Promise.all(users);
      return { ...costs, failed, lastMs };
    };
    return arena.play(scene());
  };
}

/** New processes acquire and release a key one after the other, each within a second of the one before. */
export function coldTurns({ callers: count }: { readonly callers: number }): Scene {
  return (seed) => {
    const arena = new Arena(seed);
    const scene = async (): Promise<Figures> => {
      const before = arena.counts();
      let failed = 0;
      for (let order = 0; order < count; order++) {
        const client = arena.client("cold");
        await client.withLock("ORDER_1231", () => undefined).catch(() => failed++);
        await client.close();
        await arena.sleep(arena.random.between(100, 300));
      }
      return { ...costsOf(before, arena.counts(), count), failed };
    };
    return arena.play(scene());
  };
}
