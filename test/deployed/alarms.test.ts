/** Every alarm of a stack, by its own metric. What the log's filters make of lines, the emulator can't judge: those metrics are put here. */
import { expect, it, vi } from "vitest";
import { call } from "./aws.js";
import { outputsOf } from "./callers.js";

interface Alarm {
  readonly AlarmName: string;
  readonly StateValue: string;
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions?: readonly { readonly Name: string; readonly Value: string }[];
  readonly Period: number;
  readonly Threshold: number;
  readonly ComparisonOperator: string;
  readonly TreatMissingData: string;
}

/** The time for which a value stays in an alarm's period: for a change that a test waits for, and beyond its end. */
const SOON_S = 4;
const LONG_S = 100;

/** Puts a value of a metric that is in the alarm's period for some seconds. All alarms are evaluated then. */
function put({ Namespace, MetricName, Dimensions = [], Period }: Alarm, Value: number, inPeriodS: number): Promise<object> {
  const Timestamp = Date.now() / 1000 - Period + inPeriodS;
  return call("monitoring", "PutMetricData", { Namespace, MetricData: [{ MetricName, Dimensions, Value, Timestamp }] });
}

async function alarms(): Promise<readonly Alarm[]> {
  await call("monitoring", "PutMetricData", { Namespace: "test", MetricData: [{ MetricName: "evaluate", Value: 1 }] });
  return (await call<{ readonly MetricAlarms: readonly Alarm[] }>("monitoring", "DescribeAlarms", { AlarmNamePrefix: "all-" }))
    .MetricAlarms;
}

const nameOf = ({ AlarmName }: Pick<Alarm, "AlarmName">): string => AlarmName.replace(/^.*: /, "");
const states = async () => Object.fromEntries((await alarms()).map((alarm) => [nameOf(alarm), alarm.StateValue]));

/** Takes what the topic sent, as the names of the alarms that rang. */
async function rung(): Promise<readonly string[]> {
  const request = { QueueUrl: outputsOf("all")["QueueUrl"], MaxNumberOfMessages: 10 };
  const names: string[] = [];
  for (;;) {
    interface Received {
      readonly Messages?: readonly { readonly Body: string; readonly ReceiptHandle: string }[];
    }
    const { Messages = [] } = await call<Received>("sqs", "ReceiveMessage", request);
    if (Messages.length === 0) return names.toSorted();
    for (const { Body, ReceiptHandle } of Messages) {
      names.push(nameOf(JSON.parse(Body) as Alarm));
      await call("sqs", "DeleteMessage", { QueueUrl: request.QueueUrl, ReceiptHandle });
    }
  }
}

it("each alarm rings once, goes back, and takes no other function's metric for its own", async () => {
  const all = await alarms();
  const names = all.map(nameOf).toSorted();
  expect(names).toEqual([
    ...["ClockSkew", "Failures", "HoldersThrottled", "Lost", "SlowHeartbeats", "SlowUrl", "SweepFailed", "Throttled", "Tick nightly"],
    ...["UrlFailures", "UrlThrottled"],
  ]);
  const each = (state: string) => Object.fromEntries(names.map((name) => [name, state]));
  const isTick = (alarm: Alarm) => alarm.ComparisonOperator === "LessThanThreshold";

  // A value at the threshold is calm, and so is any value of another function.
  for (const alarm of all) {
    await put(alarm, alarm.Threshold, SOON_S);
    await put({ ...alarm, Dimensions: [{ Name: "FunctionName", Value: "another" }] }, alarm.Threshold + 1, SOON_S);
  }
  expect(await states()).toEqual(each("OK"));
  await rung();

  // A missed tick has no value: its alarm rings when the last one is too old.
  await vi.waitUntil(async () => (await states())["Tick nightly"] === "ALARM", { timeout: 30_000, interval: 500 });
  for (const alarm of all.filter((one) => !isTick(one))) await put(alarm, alarm.Threshold + 1, SOON_S);
  expect(await states()).toEqual(each("ALARM"));

  for (const alarm of all.filter(({ TreatMissingData }) => TreatMissingData === "breaching")) await put(alarm, alarm.Threshold, LONG_S);
  await expect.poll(states, { timeout: 30_000, interval: 500 }).toEqual(each("OK"));
  expect(await rung()).toEqual(names);
});
