/**
 * Judges the calls that came to a partner, limit by limit: no more came in any true time than the limit allows, none came before it was
 * allowed to, and no more ran at once than there are permits.
 */
import type { RateWithBurst } from "../../lib/core/rate.js";
import type { Came } from "./partner.js";

/** A limit, and how wrong the clocks of its callers may be. */
export interface Limited {
  readonly rates: readonly RateWithBurst[];
  readonly concurrent?: number;
  /** 2E + D: the time whose inflow wrong clocks may let through, in ms. */
  readonly slackMs: number;
}

/** The outcome of one limit. */
export interface LimitVerdict {
  readonly violations: readonly string[];
  readonly calls: number;
  /** The sum of their costs. */
  readonly taken: number;
  /** The share of what the rates allowed from the first call to the last. */
  readonly use: number;
  /** The most calls that ran at once, and the share of the permits that was in use. */
  readonly mostAtOnce: number;
  readonly permitsInUse: number;
  readonly hasPermits: boolean;
}

/** Judges the calls of one limit. */
export function judgeLimit(came: readonly Came[], { rates, concurrent, slackMs }: Limited): LimitVerdict {
  const calls = came.toSorted((a, b) => a.at - b.at);
  const early = calls.find(({ at, dueAt }) => at < dueAt);
  const mostAtOnce = Math.max(0, ...calls.map(({ running }) => running));
  const violations = [
    ...rates.flatMap((rate) => excess(calls, rate, slackMs) ?? []),
    ...(early ? [`a call came ${early.dueAt - early.at} µs before it was allowed to start`] : []),
    ...(concurrent !== undefined && mostAtOnce > concurrent ? [`${mostAtOnce} ran at once, of at most ${concurrent}`] : []),
  ];
  const taken = calls.reduce((sum, { cost }) => sum + cost, 0);
  const lastedMs = ((calls.at(-1)?.at ?? 0) - (calls[0]?.at ?? 0)) / 1000;
  const allowed = Math.min(...rates.map(({ count, perMs, burst }) => burst + (count * lastedMs) / perMs));
  const workedMs = calls.reduce((sum, { at, endedAt = at }) => sum + (endedAt - at) / 1000, 0);
  const permitsInUse = concurrent === undefined || lastedMs === 0 ? 0 : workedMs / (concurrent * lastedMs);
  return { violations, calls: calls.length, taken, use: taken / allowed, mostAtOnce, permitsInUse, hasPermits: concurrent !== undefined };
}

/**
 * Finds a time in which more came than `burst + rate × (w + slack)`. It begins with the earliest time at which one of its calls was allowed to
 * start: what is delayed between the take and the call, such as by a freeze, comes late and together with others.
 */
function excess(calls: readonly Came[], { count, perMs, burst }: RateWithBurst, slackMs: number): string | undefined {
  for (const [index, first] of calls.entries()) {
    let [taken, from] = [0, first.at];
    for (const { at, dueAt, cost } of calls.slice(index)) {
      taken += cost;
      from = Math.min(from, dueAt);
      const lastedMs = (at - from) / 1000;
      const tooMany = taken - burst - (count * (lastedMs + slackMs)) / perMs;
      if (tooMany > 0)
        return `${taken} came in ${Math.round(lastedMs)} ms, of ${count} in ${perMs} ms and ${burst} at once: ${tooMany.toFixed(1)} too many`;
    }
  }
  return undefined;
}
