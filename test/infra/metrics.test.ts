/**
 * Metrics from the log: each metric filter of the deployed template counts real lines as they are printed, under
 * dimensions that don't depend on keys.
 */
import type { Template } from "aws-cdk-lib/assertions";
import { describe, expect, it } from "vitest";
import { type MetricName, METRICS } from "../../infra/metrics.js";
import { compose } from "../../lambda/compose.js";
import { printed } from "../../lambda/printed.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LogLine } from "../../lib/service/log.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import { createMemoryStore } from "../support/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE, CHECK, directService, RELEASE, RENEW } from "../support/direct-service.js";
import { filterPattern } from "../support/filter-pattern.js";
import { httpEvent } from "../support/http-event.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { all, only } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

/** A metric filter of a template. */
interface Filter {
  readonly FilterPattern: string;
  readonly LogGroupName: unknown;
  readonly MetricTransformations: readonly [Transformation];
}

interface Transformation {
  readonly MetricNamespace: string;
  readonly MetricName: MetricName;
  readonly MetricValue: string;
  readonly Unit: string;
  readonly Dimensions?: readonly { readonly Key: string; readonly Value: string }[];
}

const filtersOf = (made: Template): readonly Filter[] =>
  all(made, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties as unknown as Filter);

const template = devTemplate();
const FILTERS = filtersOf(template);

/** The metrics of a printed line, by these filters. */
function countedBy(filters: readonly Filter[], line: object): Partial<Record<MetricName, number>> {
  const fields = JSON.parse(JSON.stringify(line)) as Readonly<Record<string, unknown>>;
  const counts = filters
    .filter(({ FilterPattern }) => filterPattern(FilterPattern)(fields))
    .map(({ MetricTransformations: [{ MetricName, MetricValue }] }) => [
      MetricName,
      Number(MetricValue.startsWith("$.") ? fields[MetricValue.slice(2)] : MetricValue),
    ]);
  return Object.fromEntries(counts) as Partial<Record<MetricName, number>>;
}

const counted = (line: LogLine): Partial<Record<MetricName, number>> => countedBy(FILTERS, printed(line, []));

/** A service, and the sums of the metrics in its lines. */
function counting(options: Parameters<typeof directService>[0] = {}) {
  const service = directService(options);
  const totals = (): Partial<Record<MetricName, number>> => {
    const sums: Partial<Record<MetricName, number>> = {};
    for (const line of service.lines) {
      for (const [name, value] of Object.entries(counted(line)) as [MetricName, number][]) sums[name] = (sums[name] ?? 0) + value;
    }
    return sums;
  };
  return { ...service, totals };
}

describe("what counts", () => {
  it("a lease that is granted, held and released: once, and for how long", async () => {
    const { ask, newId, clock, totals } = counting();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    await clock.advance(1_234);
    await ask(RENEW, { leaseId });
    await ask(CHECK, { leaseId });
    await ask(RELEASE, { leaseId });
    expect(totals()).toEqual({ Granted: 1, WaitedMs: 0, HeldMs: 1_234 });
  });

  it("a lease that ran out and was taken over, and its holder that comes to know of it", async () => {
    const { ask, newId, clock, totals } = counting();
    const [first, second] = [newId(), newId()];
    await ask(ACQUIRE, { leaseId: first, body: { leaseMs: 1_000 } });
    await clock.advance(5_000);
    await ask(ACQUIRE, { leaseId: second });
    await ask(RENEW, { leaseId: first });
    expect(totals()).toMatchObject({ Granted: 2, TakenOver: 1, Refused: 1, Lost: 1 });
  });

  it("no loss in a refusal, a repeated release, or a renewal after one's own release", async () => {
    const { ask, newId, totals } = counting();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    await ask(ACQUIRE, { leaseId: newId() });
    await ask(RELEASE, { leaseId });
    await ask(RELEASE, { leaseId });
    await ask(RENEW, { leaseId });
    expect(totals()).toMatchObject({ Refused: 2, Repeated: 1 });
    expect(totals()).not.toHaveProperty("Lost");
  });

  it("the queue, as long as it is by then", async () => {
    const { ask, newId, lines, totals } = counting();
    await ask(ACQUIRE, { leaseId: newId() });
    for (let waiter = 1; waiter <= 3; waiter++) await ask(ACQUIRE, { leaseId: newId(), headers: { prefer: "wait=0" } });
    expect(lines.map((line) => counted(line).QueueLength).filter((length) => length !== undefined)).toEqual([1, 2, 3]);
    expect(totals().QueueLength).toBe(6);
    expect(LIMITS.waitersMax).toBeGreaterThan(3);
  });

  it("clocks that disagree", async () => {
    const { ask, newId, clock, totals } = counting();
    await ask(ACQUIRE, { leaseId: newId(), timeEpoch: clock.wallMs() + 86_400_000 });
    expect(totals()).toEqual({ Refused: 1, ClockSkew: 1 });
  });

  it("a table that throttles", async () => {
    const store = createMemoryStore({ policy: createPolicy() });
    const apply = () => Promise.reject(new StoreUnavailable("throttled", true, true));
    const { ask, newId, totals } = counting({ store: { ...store, apply } });
    await ask(ACQUIRE, { leaseId: newId() });
    expect(totals()).toEqual({ Refused: 1, Throttled: 1 });
  });

  it("an acquire whose answer was lost, and that is asked again", async () => {
    const { ask, newId, totals } = counting();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    await ask(ACQUIRE, { leaseId });
    expect(totals()).toMatchObject({ Granted: 1, Repeated: 1 });
  });
});

describe("the metric filters", () => {
  const byPrefix = synthesizeOwn(() => ({ metricPrefixes: ["ORDER_", "X_"] }));

  it("are one for each metric on the functions' log, in a namespace of the service, with its unit and no dimension", () => {
    const dashboard = JSON.stringify(only(template, "AWS::CloudWatch::Dashboard")[1].Properties["DashboardBody"]);
    expect(FILTERS.map(({ MetricTransformations: [{ MetricName, Unit }] }) => [MetricName, Unit]).toSorted()).toEqual(
      Object.entries(METRICS)
        .map(([name, { unit }]) => [name, unit])
        .toSorted(),
    );
    for (const { LogGroupName, MetricTransformations } of FILTERS) {
      expect(LogGroupName).toEqual({ Ref: expect.stringMatching(/^LocksLog/) });
      expect(MetricTransformations[0].MetricNamespace).toMatch(/^holdfast\/holdfast-dev-Locks-[0-9A-F]{8}$/);
      expect(MetricTransformations[0]).not.toHaveProperty("Dimensions");
      expect(dashboard).toContain(MetricTransformations[0].MetricNamespace);
    }
  });

  it("leave room under CloudWatch's limit of 100 on a log", () => {
    expect(filtersOf(byPrefix).length).toBeLessThanOrEqual(100);
  });

  it("count nothing that an operator wrote as a reason", () => {
    const line = { event: "breaking", reason: "lease-lost: taken" };
    expect(countedBy(FILTERS, line)).toEqual({});
    expect(countedBy(FILTERS, { ...line, event: "refused" })).toEqual({ Refused: 1, Lost: 1 });
  });

  it.each(["{ $.event }", '{ $.event = "a" & $.event = "b" }', '{ ($.event = "a" }', '$.event = "a"', '{ $.event = "a" } b'])(
    "control: %s is no pattern",
    (pattern) => expect(() => filterPattern(pattern)).toThrow(),
  );
});

describe("a function", () => {
  const PREFIXED = { HOLDFAST_METRIC_PREFIXES: "ORD,ORDER_,PAY_" };

  /** The lines that a function prints for an acquire of each key and another of the last. */
  async function printedBy(env: Readonly<Record<string, string>>, keys: readonly string[]): Promise<object[]> {
    const clock = new VirtualClock();
    const lines: object[] = [];
    const store = createMemoryStore({ policy: createPolicy(), clock });
    const handler = compose(env, { store, clock, print: (line) => void lines.push(line) });
    for (const key of [...keys, keys.at(-1)!])
      await handler(httpEvent(ACQUIRE, { key, leaseId: leaseIdAt(clock.wallMs()), timeEpoch: clock.wallMs() }));
    return lines;
  }

  it("prints the longest of the prefixes that fit the key", async () => {
    expect(await printedBy(PREFIXED, ["nightly", "ORD", "ORDER_1"])).toEqual([
      expect.not.objectContaining({ prefix: expect.anything() as unknown }),
      expect.objectContaining({ event: "granted", prefix: "ORD" }),
      expect.objectContaining({ event: "granted", prefix: "ORDER_" }),
      expect.objectContaining({ event: "refused", prefix: "ORDER_" }),
    ]);
  });

  it("prints of a refusal that it does not log what metrics count, and nothing else", async () => {
    const [granted, refused, ...others] = await printedBy({ ...PREFIXED, HOLDFAST_LOG_REFUSALS: "0" }, ["ORDER_1"]);
    expect(granted).toHaveProperty("lease");
    expect(refused).toEqual({ event: "refused", reason: "locked", prefix: "ORDER_" });
    expect(countedBy(FILTERS, refused!)).toEqual({ Refused: 1 });
    expect(others).toEqual([]);
  });
});
