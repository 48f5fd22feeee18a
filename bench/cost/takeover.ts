/**
 * A holder dies: the time until a waiter in another process has its key, in simulated time with the network's latency.
 */
import { startEngine } from "../../infra/local/engine.js";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { type MeterOptions, meterOnTable, meterOverHttp, ONE_WAY_MS } from "./meter.js";
import type { Report, Sizes } from "../report/report.js";
import { markdownTable, median } from "../report/table.js";

const DEATHS = 8;
/** The earlier locks of a holder that isn't new: on the table, their answers tell it the time. */
const EARLIER = 10;
const HOUR_MS = 3_600_000;
const ACCESS_LOG = "$context.requestId";

/** The time from the end of the lease and its margin until a waiter has the key, death by death. */
export interface TakeoverFigures {
  readonly title: string;
  readonly lateMs: readonly number[];
}

/** Returns the table. @throws StartError if no engine can start. */
export async function takeover({ isQuick }: Sizes): Promise<Report> {
  const engine = await startEngine({});
  const ways = [
    ["**holdfast, table**", meterOnTable, EARLIER],
    ["**holdfast, table**, the holder's first lock", meterOnTable, 0],
    ["**holdfast, HTTP**", meterOverHttp, 0],
  ] as const;
  const figures: TakeoverFigures[] = [];
  try {
    for (const [index, [title, meterOf, earlier]] of ways.entries()) {
      const options = { endpoint: engine.endpoint, tableName: `takeover-${index}`, accessLogFormat: ACCESS_LOG };
      figures.push({ title, lateMs: await deaths(meterOf, options, earlier, isQuick ? 2 : DEATHS) });
    }
  } finally {
    await engine.stop();
  }
  const rows = figures.map(({ title, lateMs }) => [title, `${median(lateMs).toFixed(0)} ms`, `${Math.max(...lateMs).toFixed(0)} ms`]);
  const [lease, margin] = [DEFAULTS.leaseMs, takeoverMarginMs(DEFAULTS.leaseMs)].map((ms) => `${(ms / 1000).toFixed(1)} s`);
  return {
    tables: [markdownTable([[`after a lease of ${lease} and its margin of ${margin}`, "median", "longest"], ...rows])],
    notes: [
      `Counted, over ${figures[0]!.lateMs.length} deaths, with ${ONE_WAY_MS.toTheApi} ms one way to the API and ${ONE_WAY_MS.toTheTable} ms to the table. The waiter asks from the start. A holder on the table has had ${EARLIER} other locks before, in as many seconds.`,
    ],
    figures,
  };
}

async function deaths(meterOf: typeof meterOnTable, options: MeterOptions, earlier: number, count: number): Promise<readonly number[]> {
  const meter = await meterOf(options);
  const { clock, random } = meter;
  const lateMs: number[] = [];
  try {
    for (let death = 0; death < count; death++) {
      const key = `ORDER_${death}`;
      const holder = meter.client();
      for (let before = 0; before < earlier; before++) {
        const lease = await clock.settle(holder.acquire(`OTHER_${death}_${before}`));
        await clock.settle(lease.release());
        await clock.settle(clock.sleep(2000 * random.unit()));
      }
      await clock.settle(clock.sleep(1000 * random.unit()));
      await clock.settle(holder.acquire(key, { heartbeat: false }));
      const freeAtMs = clock.monotonicMs() + DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs);
      await clock.settle(clock.sleep(1000 * random.unit()));
      const lease = await clock.settle(meter.client().acquire(key, { waitMs: HOUR_MS, heartbeat: false }));
      lateMs.push(clock.monotonicMs() - freeAtMs);
      await clock.settle(lease.release());
    }
  } finally {
    await meter.close();
  }
  return lateMs;
}
