/**
 * What the log counts as: CloudWatch's embedded metric format, in the very line that is logged anyway, so
 * that a metric costs no call. Dimensions never come from keys, of which there may be millions: the service,
 * and of keys only the prefixes that whoever deploys it named.
 * https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
 */
import type { LogLine } from "../lib/service/log.js";

/** Where CloudWatch has them. */
export const METRIC_NAMESPACE = "holdfast";

/** Every metric, and its unit there. */
export const METRICS = {
  /** Leases granted, runs' among them. */
  Granted: "Count",
  /** Requests refused, for whatever reason. */
  Refused: "Count",
  /** From the making of a leaseId to its grant. */
  WaitedMs: "Milliseconds",
  /** From its grant to the end of a lease. */
  HeldMs: "Milliseconds",
  /** Holders that learnt from the service that their lease was another's by now, was broken or had run out. */
  Lost: "Count",
  /** Leases that ran out and were taken over. */
  TakenOver: "Count",
  /** The place of one that just joined a queue: how long the queue is by then. */
  QueueLength: "Count",
  /** Requests refused because the two server clocks disagree. */
  ClockSkew: "Count",
  /** Requests refused because the table throttled. */
  Throttled: "Count",
  /** Writes that had happened already: their answer had been lost, or was slow. */
  Repeated: "Count",
} as const satisfies Record<string, "Count" | "Milliseconds">;

/** The name of a metric. */
export type MetricName = keyof typeof METRICS;

/** What a line is counted under. */
export interface MetricOptions {
  /** Tells one deployment from another. */
  readonly service: string;
  /** Keys that begin with one of these are also counted by it; of several that fit, the longest. */
  readonly prefixes: readonly string[];
}

/** What a line counts as. */
export type Counted = Readonly<Partial<Record<MetricName, number>>>;

const LOST: readonly unknown[] = ["taken", "expired", "broken"].map((reason) => `lease-lost: ${reason}`);

/** The metrics of a line; none for a line that counts as nothing. */
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

/** What a line is to carry to be counted, or nothing. */
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
