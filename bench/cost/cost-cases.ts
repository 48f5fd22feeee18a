/** The cases of docs/costs.md. Each case runs clients and counts their use of AWS per lock, or per take from a limit. */
import { type Limiter, type LockClient, LimitExceededError, LockTimeoutError } from "../../lib/index.js";
import type { Counts, Meter } from "./meter.js";
// The first shut loads this file. The clock of a meter knows messages alone, and wouldn't wait for that.
import "../../lib/client/calls/limit-writes.js";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

export interface CostCase {
  readonly title: string;
  /** Runs the case and returns the number of locks, takes or shuts. */
  readonly run: (meter: Meter) => Promise<Done>;
}

/** The work done since the meter was cleared. */
interface Done {
  readonly locks: number;
  /** The times that a key was idle between two holders, in ms. */
  readonly idleMs?: readonly number[];
}

/** The use of AWS per lock. */
export interface Taken extends Counts {
  /** The median. */
  readonly idleMs?: number;
}

/** Uses of a key before counting starts, so that its record is as large as it can get. */
const USES_BEFORE = 10;
const KEY = "checkout-service_ORDER_1231";
/** The mean time that a contended key is held. The actual times vary around it. */
const HOLD_MS = 50;

/** Every case, in the order of the page. */
export const COST_CASES: readonly CostCase[] = [
  { title: "nobody else wants it", run: uncontended(10 * SECOND_MS) },
  { title: "nobody else, the same key again after a second", run: uncontended(SECOND_MS) },
  { title: "4 clients want one key all the time", run: contended(4, 10) },
  { title: "16 clients do", run: contended(16, 3) },
  { title: "a minute in the queue, in vain", run: waiting },
  { title: "held an hour, leases of 30 s", run: held(1) },
  { title: "held an hour, leases of 5 min", run: held(1, 5 * MINUTE_MS) },
  { title: "the same, 10 locks of one process", run: held(10, 5 * MINUTE_MS) },
  { title: "a run by `runOnce`, of a new key", run: ranOnce(1) },
  { title: "its replay, to another process", run: ranOnce(2) },
];

/** The cases of takes from a limit and of its shut, in the order of the page. */
export const LIMIT_CASES: readonly CostCase[] = [
  { title: "nobody else takes", run: takenBy(1, 10 * SECOND_MS) },
  { title: "8 clients take all the time, and wait for their start", run: takenBy(8, 0) },
  { title: "a client asks ten times as often as it may", run: refused },
  { title: "a shut, of a limit in use", run: shut },
];

/** The rate of these limits. */
const ONE_A_SECOND = { rates: [{ count: 1, perMs: SECOND_MS }] };

/** Runs a case on the meter. */
export async function take({ run }: CostCase, meter: Meter): Promise<Taken> {
  const { locks, idleMs } = await meter.clock.settle(run(meter));
  const { requests, writeUnits, readUnits, logBytes } = meter.counts();
  const perLock = { requests: requests / locks, writeUnits: writeUnits / locks, readUnits: readUnits / locks, logBytes: logBytes / locks };
  const median = idleMs?.toSorted((a, b) => a - b)[idleMs.length >> 1];
  return { ...perLock, ...(median !== undefined && { idleMs: median }) };
}

/** Acquires, holds and releases a key, as a client does that has held it before. */
async function use({ clock }: Meter, client: LockClient, key: string): Promise<void> {
  const lease = await client.acquire(key);
  await clock.sleep(HOLD_MS);
  await lease.release();
}

/** One client uses a key repeatedly, with pauses of the same length. */
function uncontended(pauseMs: number): CostCase["run"] {
  return async (meter) => {
    const locks = 5;
    const client = meter.client();
    const again = async (): Promise<void> => {
      await use(meter, client, KEY);
      await meter.clock.sleep(pauseMs);
    };
    for (let count = 0; count < USES_BEFORE; count++) await again();
    meter.clear();
    for (let count = 0; count < locks; count++) await again();
    return { locks };
  };
}

/** Several processes use a key repeatedly. Each asks again as soon as it has released. */
function contended(clients: number, rounds: number): CostCase["run"] {
  return async (meter) => {
    const { clock, random } = meter;
    const idleMs: number[] = [];
    let freedAtMs: number | undefined;
    const want = async (client: LockClient): Promise<void> => {
      await clock.sleep(HOLD_MS * random.unit());
      for (let round = 0; round < rounds; round++) {
        const lease = await client.acquire(KEY, { waitMs: HOUR_MS });
        if (freedAtMs !== undefined) idleMs.push(clock.monotonicMs() - freedAtMs);
        await clock.sleep(HOLD_MS * random.between(0.8, 1.2));
        freedAtMs = clock.monotonicMs();
        await lease.release();
      }
    };
    const all = Array.from({ length: clients }, () => meter.client());
    for (const client of all) await use(meter, client, "warm");
    meter.clear();
    await Promise.all(all.map(want));
    return { locks: clients * rounds, idleMs };
  };
}

/** One client waits behind a holder. The holder's own use isn't counted. */
async function waiting(meter: Meter): Promise<Done> {
  const client = meter.client();
  await use(meter, client, "warm");
  await meter.client().acquire(KEY, { leaseMs: HOUR_MS, heartbeat: false });
  meter.clear();
  await client.acquire(KEY, { waitMs: MINUTE_MS }).then(
    () => Promise.reject(new Error("granted what another holds")),
    (error: unknown) => (error instanceof LockTimeoutError ? undefined : Promise.reject(error as Error)),
  );
  return { locks: 1 };
}

/** The locks of one process, held for an hour each. */
function held(locks: number, leaseMs = 30 * SECOND_MS): CostCase["run"] {
  return async (meter) => {
    const client = meter.client();
    await use(meter, client, "warm");
    meter.clear();
    const leases = [];
    for (let order = 0; order < locks; order++) leases.push(await client.acquire(`${KEY}_${order}`, { leaseMs }));
    await meter.clock.sleep(HOUR_MS);
    for (const lease of leases) if ((await lease.release()) !== "released") throw new Error("a lease did not last");
    return { locks };
  };
}

/** Runs under new keys. Each of `callers` processes asks for all of them in its turn, and the last one's use is counted. */
function ranOnce(callers: number): CostCase["run"] {
  return async (meter) => {
    const runs = 5;
    const once = async (client: LockClient, key: string): Promise<void> => {
      await client.runOnce(key, async () => {
        await meter.clock.sleep(HOLD_MS);
        return { paid: true };
      });
    };
    for (let caller = 0; caller < callers; caller++) {
      const client = meter.client();
      await once(client, "warm");
      meter.clear();
      for (let order = 0; order < runs; order++) await once(client, `${KEY}_${order}`);
    }
    return { locks: runs };
  };
}

/** Several processes take from a limit, each again after a pause. */
function takenBy(clients: number, pauseMs: number): CostCase["run"] {
  return async (meter) => {
    const takes = 15;
    const limiters = Array.from({ length: clients }, () => meter.client().limiter(KEY, ONE_A_SECOND));
    const again = async (limiter: Limiter): Promise<void> => {
      await limiter.take({ waitMs: MINUTE_MS });
      await meter.clock.sleep(pauseMs);
    };
    await Promise.all(limiters.map(again));
    meter.clear();
    await Promise.all(
      limiters.map(async (limiter) => {
        for (let count = 0; count < takes; count++) await again(limiter);
      }),
    );
    return { locks: clients * takes };
  };
}

/** One process asks every 100 ms, and is granted a tenth of it. Its decisions are counted, granted or not. */
async function refused(meter: Meter): Promise<Done> {
  const limiter = meter.client().limiter(KEY, ONE_A_SECOND);
  const decisions = 400;
  await limiter.take();
  meter.clear();
  for (let count = 0; count < decisions; count++) {
    await meter.clock.sleep(SECOND_MS / 10);
    await limiter.take().catch((error: unknown) => (error instanceof LimitExceededError ? undefined : Promise.reject(error as Error)));
  }
  return { locks: decisions };
}

/** One process takes and another shuts, each time for longer. The shuts alone are counted. */
async function shut(meter: Meter): Promise<Done> {
  const [taking, shutting] = [meter.client(), meter.client()].map((client) => client.limiter(KEY, ONE_A_SECOND)) as [Limiter, Limiter];
  const shuts = 15;
  const shutFor = (minutes: number) => shutting.shut({ forMs: minutes * MINUTE_MS, reason: "the partner is down" });
  await taking.take();
  // The first request of a client straight on the table reads the table's time.
  await shutFor(1);
  meter.clear();
  for (let count = 1; count <= shuts; count++) await shutFor(1 + count);
  return { locks: shuts };
}
