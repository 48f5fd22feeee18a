/**
 * Metrics from the log: each metric comes from real events, in CloudWatch's embedded format, under dimensions that
 * don't depend on keys.
 */
import { describe, expect, it } from "vitest";
import { compose } from "../../lambda/compose.js";
import type { MetricName } from "../../lambda/metrics.js";
import { counted, METRICS, metricsOf } from "../../lambda/metrics.js";
import { LIMITS } from "../../lib/core/limits.js";
import { createPolicy } from "../../lib/core/policy.js";
import type { LogLine } from "../../lib/service/log.js";
import { StoreUnavailable } from "../../lib/store/port.js";
import { createMemoryStore } from "../../lib/store/memory-store.js";
import { VirtualClock } from "../../lib/testing/virtual-clock.js";
import { ACQUIRE, CHECK, directService, RELEASE, RENEW } from "../support/direct-service.js";
import { httpEvent } from "../support/http-event.js";
import { leaseIdAt } from "../support/lease-ids.js";

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

  it("clocks that disagree, at a time that is in nobody's future", async () => {
    const { ask, newId, clock, lines, totals } = counting();
    await ask(ACQUIRE, { leaseId: newId(), timeEpoch: clock.wallMs() + 86_400_000 });
    expect(totals()).toEqual({ Refused: 1, ClockSkew: 1 });
    expect(lines[0]?.operateAtMs).toBe(clock.wallMs());
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

const LINE: LogLine = {
  event: "granted",
  namespace: "n",
  kind: "lock",
  model: "ORDER",
  id: "1231",
  operateAtMs: 1_795_177_821_461,
  principal: "p",
  requestId: "r",
  waitedMs: 7,
};

describe("the embedded format", () => {
  it("names the namespace, the dimensions, each metric with its unit, and has the values beside", () => {
    expect(metricsOf(LINE, { service: "prod-Locks", prefixes: [] })).toEqual({
      _aws: {
        Timestamp: LINE.operateAtMs,
        CloudWatchMetrics: [
          {
            Namespace: "holdfast",
            Dimensions: [["Service"]],
            Metrics: [
              { Name: "Granted", Unit: "Count" },
              { Name: "WaitedMs", Unit: "Milliseconds" },
            ],
          },
        ],
      },
      Service: "prod-Locks",
      Granted: 1,
      WaitedMs: 7,
    });
  });

  it("has a prefix as a dimension only if the deployment named it: of several that fit, the longest", () => {
    const prefixOf = (line: LogLine, prefixes: string[]) => (metricsOf(line, { service: "s", prefixes }) as { Prefix?: string }).Prefix;
    expect(prefixOf(LINE, ["PAY"])).toBeUndefined();
    expect(prefixOf(LINE, ["ORD", "ORDER_", "PAY"])).toBe("ORDER_");
    expect(prefixOf({ ...LINE, model: "", id: "nightly" }, ["night"])).toBe("night");
  });

  it("has never more dimensions than the deployment named prefixes, whatever the keys", () => {
    const values = Array.from({ length: 1_000 }, (_, id) =>
      metricsOf({ ...LINE, id: String(id) }, { service: "s", prefixes: ["ORDER_", "X"] }),
    );
    expect(
      new Set(values.map((value) => JSON.stringify((value as { _aws: { CloudWatchMetrics: unknown } })._aws.CloudWatchMetrics))).size,
    ).toBe(1);
    expect(new Set(values.map((value) => (value as { Prefix: string }).Prefix))).toEqual(new Set(["ORDER_"]));
  });

  it("is nothing where nothing counts", () => {
    expect(metricsOf({ ...LINE, event: "offered", waitedMs: undefined } as unknown as LogLine, { service: "s", prefixes: [] })).toEqual({});
  });

  it("has a unit for each, and none of its names is a field of the log", () => {
    expect(new Set(Object.values(METRICS))).toEqual(new Set(["Count", "Milliseconds"]));
    expect(Object.keys(METRICS).filter((name) => name in LINE)).toEqual([]);
  });
});

describe("a function", () => {
  const acquireTwice = async (env: Readonly<Record<string, string>>): Promise<object[]> => {
    const clock = new VirtualClock();
    const lines: object[] = [];
    const store = createMemoryStore({ policy: createPolicy(), clock });
    const handler = compose(env, { store, clock, log: (line) => void lines.push(line) });
    for (let attempt = 0; attempt < 2; attempt++)
      await handler(httpEvent(ACQUIRE, { key: "ORDER_1", leaseId: leaseIdAt(clock.wallMs()), timeEpoch: clock.wallMs() }));
    return lines;
  };

  it("with a name counts in the lines that it logs, and without one does not", async () => {
    const named = await acquireTwice({ HOLDFAST_SERVICE: "dev", HOLDFAST_METRIC_PREFIXES: "ORDER_,PAY_" });
    expect(named).toMatchObject([
      { event: "granted", Service: "dev", Prefix: "ORDER_", Granted: 1 },
      { event: "refused", Service: "dev", Prefix: "ORDER_", Refused: 1 },
    ]);
    for (const line of await acquireTwice({})) expect(line).not.toHaveProperty("_aws");
  });

  it.each([
    ["role", true],
    ["claim:tenant_id", true],
    ["claim:", false],
    ["everybody", false],
  ])("whose tenants are by %j starts: %s", (HOLDFAST_TENANT, starts) => {
    const start = () => compose({ HOLDFAST_TABLE: "locks", HOLDFAST_TENANT });
    if (starts) expect(start()).toBeTypeOf("function");
    else expect(start).toThrow(`HOLDFAST_TENANT: "${HOLDFAST_TENANT}" is not account, role or claim:NAME`);
  });
});
