/**
 * The monitoring of a lock service: alarms on problems that operators must fix, a dashboard, and the history of a key as a saved query. 4xx
 * statuses raise no alarm: a held lock is a 423, and normal operation.
 */
import { Duration, Stack } from "aws-cdk-lib";
import type { HttpApi, HttpStage } from "aws-cdk-lib/aws-apigatewayv2";
import type { AlarmProps, IMetric, Metric } from "aws-cdk-lib/aws-cloudwatch";
import { Alarm, ComparisonOperator, Dashboard, GraphWidget, Stats, TreatMissingData } from "aws-cdk-lib/aws-cloudwatch";
import { SnsAction } from "aws-cdk-lib/aws-cloudwatch-actions";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import { type ILogGroup, QueryDefinition, QueryString } from "aws-cdk-lib/aws-logs";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import type { Construct } from "constructs";
import type { FunctionUrls } from "./function-url.js";
import type { Functions } from "./functions.js";
import { type MetricName, type Schedule, createTickMetric, metricOf } from "./metrics.js";

/** The name and the topic of the alarms. */
export interface AlarmOptions {
  /** The service's name, in the names of its metrics, alarms and dashboard. */
  readonly service: string;
  /** The topic that the alarms notify; without it they only change their state. */
  readonly alarmTopic: ITopic | undefined;
}

/** The monitored resources. */
export interface MonitoringOptions extends AlarmOptions {
  readonly api: HttpApi;
  readonly stage: HttpStage;
  readonly functions: Functions;
  /** The function URLs, if the service has them. */
  readonly urls: FunctionUrls | undefined;
  /** The agent of sleepers, if there is one. */
  readonly agent: IFunction | undefined;
  /** The function that sweeps the table, if it has no TTL. */
  readonly tableSweep: IFunction | undefined;
  readonly log: ILogGroup;
}

/**
 * The duration, in ms, at which a heartbeat is too late for a lease of one second. The function for holders never waits for another caller.
 */
const SLOW_MS = 1_000;
const PERIOD = Duration.minutes(5);

/** The metrics that raise an alarm above zero in five minutes, with the cause to investigate first. */
const NEVER: readonly { readonly metric: MetricName; readonly says: string }[] = [
  { metric: "ClockSkew", says: "The function's clock and the gateway's disagree: nothing is granted meanwhile" },
  { metric: "Throttled", says: "DynamoDB throttles: one key is asked for more often than a partition can, or the table is at its limit" },
  { metric: "Lost", says: "Holders lost their leases: frozen, cut off, without heartbeats, or broken by an operator" },
];

/** Creates the alarms, the dashboard and the saved query. */
export function createMonitoring(scope: Construct, options: MonitoringOptions): Dashboard {
  const { functions, service, log } = options;
  const { hold } = functions;
  const sum = { statistic: Stats.SUM, period: PERIOD };
  for (const { metric, says } of NEVER) alarm(scope, options, metric, { says, metric: metricOf(service, metric, sum), above: 0 });
  alarm(scope, options, "Failures", { says: "The API answers with 5xx", metric: options.stage.metricServerError(sum), above: 0 });
  alarm(scope, options, "SlowHeartbeats", {
    says: `The slowest hundredth of heartbeats and releases takes over ${SLOW_MS} ms`,
    metric: hold.metricDuration({ statistic: Stats.percentile(99), period: PERIOD }),
    above: SLOW_MS,
  });
  alarm(scope, options, "HoldersThrottled", {
    says: "Lambda had no room for heartbeats or releases: reserve concurrency for the hold function",
    metric: hold.metricThrottles(sum),
    above: 0,
  });
  if (options.urls) createUrlAlarms(scope, options, options.urls);
  if (options.agent) createSweepAlarm(scope, options, options.agent);
  if (options.tableSweep) createTableSweepAlarm(scope, options, options.tableSweep);
  new QueryDefinition(scope, "KeyHistory", {
    queryDefinitionName: `${service}/one key's history`,
    logGroups: [log],
    queryString: new QueryString({
      fields: [
        "@timestamp",
        "event",
        "owner",
        "principal",
        "fencingToken",
        "waitedMs",
        "heldMs",
        "lapsedMs",
        "reason",
        "lease",
        "by",
        "requestId",
      ],
      filterStatements: ['model = "ORDER"', 'id = "1231"'],
      sort: "@timestamp asc",
      limit: 1_000,
    }),
  });
  return createDashboard(scope, options);
}

/** Creates the alarms of the function URLs, over all aliases: those that the API and the hold function have. */
function createUrlAlarms(scope: Construct, options: AlarmOptions, urls: FunctionUrls): void {
  const sum = { statistic: Stats.SUM, period: PERIOD };
  alarm(scope, options, "UrlFailures", { says: "The function URLs answer with 5xx", metric: urls.metric("Url5xxCount", sum), above: 0 });
  const slowest = urls.metric("Duration", { statistic: Stats.percentile(99), period: PERIOD });
  const slow = `The slowest hundredth of requests by function URLs takes over ${SLOW_MS} ms`;
  alarm(scope, options, "SlowUrl", { says: slow, metric: slowest, above: SLOW_MS });
  const throttled = "Lambda had no room for requests by function URLs, heartbeats among them: reserve more, or find the crowd";
  alarm(scope, options, "UrlThrottled", { says: throttled, metric: urls.metric("Throttles", sum), above: 0 });
}

/** Creates the alarm for sweeps that fail. Each invocation gives a value, so where there is none nobody sweeps: that is the alarm too. */
function createSweepAlarm(scope: Construct, options: AlarmOptions, agent: IFunction): void {
  createAlarm(scope, options, "SweepFailed", {
    alarmDescription: "Sleepers aren't woken: the sweep fails or doesn't run, or a target can't be told; the log says why",
    metric: agent.metricErrors({ statistic: Stats.SUM, period: PERIOD }),
    threshold: 0,
    comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.BREACHING,
  });
}

/** Creates the alarm for a table that isn't swept. In three hours there are three runs, so a time without any is the alarm too. */
function createTableSweepAlarm(scope: Construct, options: AlarmOptions, tableSweep: IFunction): void {
  createAlarm(scope, options, "TableSweepFailed", {
    alarmDescription: "The table grows: the sweep that deletes what is over fails or doesn't run; the log says why",
    metric: tableSweep.metricErrors({ statistic: Stats.SUM, period: Duration.hours(3) }),
    threshold: 0,
    comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.BREACHING,
  });
}

/** A metric that nobody has a problem with as long as it isn't above a number. */
interface Bound {
  readonly says: string;
  readonly metric: IMetric;
  readonly above: number;
}

function alarm(scope: Construct, options: AlarmOptions, name: string, { says, metric, above }: Bound): void {
  createAlarm(scope, options, name, {
    alarmDescription: says,
    metric,
    threshold: above,
    comparisonOperator: ComparisonOperator.GREATER_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.NOT_BREACHING,
  });
}

/** Creates the alarm for a schedule of which no occurrence was done `within` a time. Where nobody calls, there is no data: that is the alarm. */
export function createTickAlarm(scope: Construct, schedule: Schedule & AlarmOptions, within: Duration): Alarm {
  return createAlarm(scope, schedule, `Tick ${schedule.name}`, {
    alarmDescription: `No occurrence of the schedule ${schedule.name} was done within ${within.toHumanString()}`,
    metric: createTickMetric(scope, schedule, { statistic: Stats.SUM, period: within }),
    threshold: 1,
    comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD,
    treatMissingData: TreatMissingData.BREACHING,
  });
}

function createAlarm(scope: Construct, options: AlarmOptions, name: string, props: Omit<AlarmProps, "evaluationPeriods">): Alarm {
  const { service, alarmTopic } = options;
  const made = new Alarm(scope, `${name}Alarm`, { alarmName: `${service}: ${name}`, evaluationPeriods: 1, ...props });
  if (alarmTopic) made.addAlarmAction(new SnsAction(alarmTopic));
  return made;
}

function createDashboard(scope: Construct, { api, stage, functions, urls, service }: MonitoringOptions): Dashboard {
  const ofUrls = (statistic: string, ...names: string[]): IMetric[] => (urls ? names.map((name) => urls.metric(name, { statistic })) : []);
  const ours = (statistic: string, ...names: MetricName[]): Metric[] =>
    names.map((name) => metricOf(service, name, { statistic, period: PERIOD }));
  const p50p99 = (name: MetricName): Metric[] => [50, 99].flatMap((percent) => ours(Stats.percentile(percent), name));
  const graph = (title: string, left: IMetric[], unit: string): GraphWidget =>
    new GraphWidget({ title, left, width: 12, height: 6, leftYAxis: { label: unit, min: 0, showUnits: false } });
  return new Dashboard(scope, "Dashboard", {
    dashboardName: `${service}-${Stack.of(scope).region}`,
    widgets: [
      [graph("Granted and refused", ours(Stats.SUM, "Granted", "Refused"), "per 5 min"), graph("Waited", p50p99("WaitedMs"), "ms")],
      [graph("Held", p50p99("HeldMs"), "ms"), graph("Queue length at arrival", ours(Stats.MAXIMUM, "QueueLength"), "waiters")],
      [
        graph("Lost, taken over, repeated", ours(Stats.SUM, "Lost", "TakenOver", "Repeated"), "per 5 min"),
        graph("Clock skew, throttled", ours(Stats.SUM, "ClockSkew", "Throttled"), "per 5 min"),
      ],
      [
        graph(
          "Requests and 5xx",
          [
            api.metricCount({ statistic: Stats.SUM }),
            stage.metricServerError({ statistic: Stats.SUM }),
            ...ofUrls(Stats.SUM, "UrlRequestCount", "Url4xxCount", "Url5xxCount"),
          ],
          "per 5 min",
        ),
        graph(
          "Functions: p99",
          [
            ...Object.values(functions).map((one) => one.metricDuration({ statistic: Stats.percentile(99) })),
            ...ofUrls(Stats.percentile(99), "Duration"),
          ],
          "ms",
        ),
      ],
    ],
  });
}
