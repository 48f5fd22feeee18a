/**
 * The metrics of a lock service: CloudWatch counts the lines of the log by metric filters (decision 013). A filter costs nothing, so the
 * lines carry nothing for the metrics. Keys are counted separately only by the prefixes configured at deployment, because there can be
 * millions of keys.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/MonitoringLogData.html
 */
import { type MetricOptions, Metric, Unit } from "aws-cdk-lib/aws-cloudwatch";
import { type ILogGroup, FilterPattern, MetricFilter } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { partsOfKey } from "../lib/core/key.js";
import { SHARED_NAMESPACE } from "../lib/service/caller.js";

/** The beginning of the metrics' CloudWatch namespace; a service's own name follows. */
export const METRIC_NAMESPACE = "holdfast";

/** A metric: the lines that it counts, as a JSON filter pattern without its braces, and the value of each, 1 or a field. */
interface CountedLines {
  readonly unit: Unit.COUNT | Unit.MILLISECONDS;
  readonly when: string;
  readonly value: "1" | `$.${string}`;
}

/** The reasons with which a holder is told that it lost its lease. A lease that ended otherwise is no loss. */
const LOST = ["taken", "expired", "broken"].map((reason) => `($.reason = "lease-lost: ${reason}")`);

export const METRICS = {
  /** Leases granted, including those of runs, and takes of limits. */
  Granted: { unit: Unit.COUNT, when: '$.event = "granted"', value: "1" },
  /** Requests refused, for any reason. */
  Refused: { unit: Unit.COUNT, when: '$.event = "refused"', value: "1" },
  /** The time from the creation of a leaseId to its grant; of a take, until it may start. */
  WaitedMs: { unit: Unit.MILLISECONDS, when: "$.waitedMs >= 0", value: "$.waitedMs" },
  /** The time from a lease's grant to its end. */
  HeldMs: { unit: Unit.MILLISECONDS, when: "$.heldMs >= 0", value: "$.heldMs" },
  /** Holders whose lease, according to the service, was taken over, broken or expired. */
  Lost: { unit: Unit.COUNT, when: `($.event = "refused") && (${LOST.join(" || ")})`, value: "1" },
  /** Leases that expired and were taken over. */
  TakenOver: { unit: Unit.COUNT, when: '($.event = "ended") && ($.reason = "taken")', value: "1" },
  /** The position of a waiter that just joined a queue, which is the queue's length. */
  QueueLength: { unit: Unit.COUNT, when: "$.position > 0", value: "$.position" },
  /** Requests refused because the two server clocks disagree. */
  ClockSkew: { unit: Unit.COUNT, when: '($.event = "refused") && ($.reason = "clock-skew*")', value: "1" },
  /** Requests refused because the table throttled. */
  Throttled: { unit: Unit.COUNT, when: '($.event = "refused") && ($.reason = "throttled*")', value: "1" },
  /** Writes that had already happened, because their answer was lost or slow. */
  Repeated: { unit: Unit.COUNT, when: '($.event = "replayed") || ($.repeated IS TRUE)', value: "1" },
} as const satisfies Record<string, CountedLines>;

/** The metrics of a service on a table in several Regions. */
export const REGION_METRICS = {
  /** Attempts at a write that met one of another Region. They were certainly not carried out; most are sent again, or decided again. */
  Conflicts: { unit: Unit.COUNT, when: '$.event = "conflict"', value: "1" },
  /** Items that the sweep of the table deleted. */
  Deleted: { unit: Unit.COUNT, when: '$.event = "table-swept"', value: "$.deleted" },
} as const satisfies Record<string, CountedLines>;

export type MetricName = keyof typeof METRICS;

/** Returns a metric of the service with this name. */
export function metricOf(service: string, metricName: MetricName, options: MetricOptions): Metric {
  return new Metric({ namespace: namespaceOf(service), metricName, ...options });
}

/** Creates the metric filters on the service's log: one for each metric, and another by prefix if there are prefixes. */
export function createMetrics(
  scope: Construct,
  options: { service: string; log: ILogGroup; hasPrefixes: boolean; isInRegions: boolean },
): void {
  const { service, log, hasPrefixes, isInRegions } = options;
  for (const [metricName, { unit, when, value }] of Object.entries<CountedLines>({ ...METRICS, ...(isInRegions && REGION_METRICS) })) {
    const create = (id: string, pattern: string, dimensions?: Record<string, string>): void => {
      new MetricFilter(scope, id, {
        logGroup: log,
        metricNamespace: namespaceOf(service),
        metricName,
        metricValue: value,
        filterPattern: FilterPattern.literal(`{ ${pattern} }`),
        unit,
        ...(dimensions && { dimensions }),
      });
    };
    create(`${metricName}Metric`, when);
    if (hasPrefixes && metricName in METRICS)
      create(`${metricName}ByPrefixMetric`, `(${when}) && ($.prefix = "*")`, { Prefix: "$.prefix" });
  }
}

/** A schedule of a service: the name that its callers give to `tick`, in a namespace. */
export interface Schedule {
  readonly service: string;
  readonly log: ILogGroup;
  readonly name: string;
  readonly namespace: string;
}

/** Creates the metric filter of the occurrences of a schedule that are done, and returns its metric. */
export function createTickMetric(scope: Construct, { service, log, name, namespace }: Schedule, options: MetricOptions): Metric {
  // The run of an occurrence has the key NAME_2026-01-31T03:00:00.000Z, and the line has it in two parts.
  const { model, id } = partsOfKey(`${name}_20`);
  const done = { kind: "run", event: "recorded", outcome: "succeeded", model, id: `${id}*` };
  const when = { ...done, ...(namespace !== SHARED_NAMESPACE && { namespace }) }; // As lines are printed.
  // CloudWatch allows no colon in a metric's name.
  const metricName = `Tick ${name.replaceAll(":", "~3A")}`;
  new MetricFilter(scope, `${metricName}Metric`, {
    logGroup: log,
    metricNamespace: namespaceOf(service),
    metricName,
    metricValue: "1",
    filterPattern: FilterPattern.literal(
      `{ ${Object.entries(when)
        .map(([field, text]) => `($.${field} = "${text}")`)
        .join(" && ")} }`,
    ),
    unit: Unit.COUNT,
  });
  return new Metric({ namespace: namespaceOf(service), metricName, ...options });
}

function namespaceOf(service: string): string {
  return `${METRIC_NAMESPACE}/${service}`;
}
