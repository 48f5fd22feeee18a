/**
 * Turns log lines into metrics, in CloudWatch's embedded metric format within the logged line, so a metric costs no call. The dimensions
 * are the service and, for keys, only the prefixes configured at deployment, because there can be millions of keys.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
import type { LogLine } from "../lib/service/log.js";

/** The CloudWatch namespace of the metrics. */
export const METRIC_NAMESPACE = "holdfast";

/** The metrics and their CloudWatch units. */
export const METRICS = {
  /** Leases granted, including those of runs. */
  Granted: "Count",
  /** Requests refused, for any reason. */
  Refused: "Count",
  /** The time from the creation of a leaseId to its grant. */
  WaitedMs: "Milliseconds",
  /** The time from a lease's grant to its end. */
  HeldMs: "Milliseconds",
  /** Holders whose lease, according to the service, was taken over, broken or expired. */
  Lost: "Count",
  /** Leases that expired and were taken over. */
  TakenOver: "Count",
  /** The position of a waiter that just joined a queue, which is the queue's length. */
  QueueLength: "Count",
  /** Requests refused because the two server clocks disagree. */
  ClockSkew: "Count",
  /** Requests refused because the table throttled. */
  Throttled: "Count",
  /** Writes that had already happened, because their answer was lost or slow. */
  Repeated: "Count",
} as const satisfies Record<string, "Count" | "Milliseconds">;

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;

/** The dimensions of a line's metrics. */
export interface MetricOptions {
  /** The name of the deployment. */
  readonly service: string;
  /** Keys that begin with one of these are also counted under it; the longest match counts. */
  readonly prefixes: readonly string[];
}

/** The metrics of a line and their values. */
export type Counted = Readonly<Partial<Record<MetricName, number>>>;

const LOST: readonly unknown[] = ["taken", "expired", "broken"].map((reason) => `lease-lost: ${reason}`);

/** Returns the metrics of a line; an empty object if it has none. */
export function counted(line: LogLine): Counted {
  const { event, reason = "" } = line;
  if (event === "refused") {
    const [code] = reason.split(": ", 1);
    return {
      Refused: 1,
      ...(LOST.includes(reason) && { Lost: 1 }),
      ...(code === "clock-skew" && { ClockSkew: 1 }),
      ...(code === "throttled" && { Throttled: 1 }),
    };
  }
  return {
    ...(event === "granted" && { Granted: 1 }),
    ...(line.waitedMs !== undefined && { WaitedMs: line.waitedMs }),
    ...(line.heldMs !== undefined && { HeldMs: line.heldMs }),
    ...(event === "ended" && reason === "taken" && { TakenOver: 1 }),
    ...(line.position !== undefined && { QueueLength: line.position }),
    ...((event === "replayed" || line.repeated === true) && { Repeated: 1 }),
  };
}

/** Returns the fields to add to a line for its metrics; an empty object if it has none. */
export function metricsOf(line: LogLine, { service, prefixes }: MetricOptions): object {
  const metrics = counted(line);
  const names = Object.keys(metrics) as MetricName[];
  if (names.length === 0) return {};
  const key = [line.model, line.id].filter((part) => part !== "").join("_");
  const prefix = prefixes.filter((one) => key.startsWith(one)).reduce((longest, one) => (one.length > longest.length ? one : longest), "");
  return {
    _aws: {
      Timestamp: line.operateAtMs,
      CloudWatchMetrics: [
        {
          Namespace: METRIC_NAMESPACE,
          Dimensions: prefix === "" ? [["Service"]] : [["Service"], ["Service", "Prefix"]],
          Metrics: names.map((Name) => ({ Name, Unit: METRICS[Name] })),
        },
      ],
    },
    Service: service,
    ...(prefix !== "" && { Prefix: prefix }),
    ...metrics,
  };
}
