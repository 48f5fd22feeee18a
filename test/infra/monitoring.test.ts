/**
 * Alarms, dashboard and saved query: they use metrics that the functions really write, and no alarm fires on everyday
 * answers of a lock.
 */
import { Topic } from "aws-cdk-lib/aws-sns";
import { describe, expect, it } from "vitest";
import { METRICS } from "../../infra/metrics.js";
import { all, only } from "./resources.js";
import { devTemplate, synthesizeOwn } from "./synthesize.js";

const template = devTemplate();
const alarms = all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => Properties);

describe("the alarms", () => {
  it("are for clock skew, throttling, failures, lost leases, slow heartbeats and holders without room", () => {
    expect(alarms.map(({ AlarmName }) => AlarmName as string).sort()).toEqual(
      ["ClockSkew", "Failures", "HoldersThrottled", "Lost", "SlowHeartbeats", "Throttled"].map((name) =>
        expect.stringMatching(new RegExp(`^holdfast-dev-Locks-[0-9A-F]{8}: ${name}$`)),
      ),
    );
  });

  it("are on our own metrics by the names they are written under, or on AWS's of this API and these functions", () => {
    const filters = all(template, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties.MetricTransformations[0]);
    const written = filters.map(({ MetricNamespace, MetricName }) => [MetricNamespace, MetricName]);
    for (const { Namespace, MetricName, Dimensions = [] } of alarms) {
      const names = (Dimensions as { Name: string }[]).map(({ Name }) => Name).sort();
      if (!(Namespace as string).startsWith("AWS/")) {
        expect(written).toContainEqual([Namespace, MetricName]);
        expect(names).toEqual([]);
      } else {
        expect([
          ["AWS/ApiGateway", "5xx", ["ApiId", "Stage"]],
          ["AWS/Lambda", "Duration", ["FunctionName"]],
          ["AWS/Lambda", "Throttles", ["FunctionName"]],
        ]).toContainEqual([Namespace, MetricName, names]);
      }
    }
  });

  it("are never on 4xx: a lock that is held is a 423", () => {
    expect(JSON.stringify(alarms)).not.toMatch(/4xx/i);
  });

  it("watch the hundredth of the holders' function, which waits for nobody, and not the API's, where waiting is the work", () => {
    const [slow] = alarms.filter(({ AlarmName }) => (AlarmName as string).endsWith("SlowHeartbeats"));
    expect(slow).toMatchObject({
      ExtendedStatistic: "p99",
      Dimensions: [{ Name: "FunctionName", Value: { Ref: expect.stringMatching(/^LocksHold/) } }],
    });
  });

  it("are quiet where nothing happened, say what is wrong, and tell whoever is named", () => {
    for (const alarm of alarms) {
      expect(alarm).toMatchObject({ TreatMissingData: "notBreaching", ComparisonOperator: "GreaterThanThreshold" });
      expect((alarm.AlarmDescription as string).length).toBeGreaterThan(20);
      expect(alarm).not.toHaveProperty("AlarmActions");
    }
    const told = synthesizeOwn((stack) => ({ alarmTopic: new Topic(stack, "Pager") }));
    const [topicId] = only(told, "AWS::SNS::Topic");
    for (const [, alarm] of all(told, "AWS::CloudWatch::Alarm")) expect(alarm.Properties.AlarmActions).toEqual([{ Ref: topicId }]);
  });
});

it("draws every metric, by its name, on the dashboard", () => {
  const body = JSON.stringify(only(template, "AWS::CloudWatch::Dashboard")[1].Properties.DashboardBody);
  const filters = all(template, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties.MetricTransformations[0]);
  expect(filters.map(({ MetricName }) => MetricName as string).toSorted()).toEqual(Object.keys(METRICS).toSorted());
  for (const { MetricNamespace, MetricName } of filters) expect(body).toContain(String.raw`\"${MetricNamespace}\",\"${MetricName}\"`);
});

it("saves the query for one key's history on the functions' log", () => {
  const { Properties } = only(template, "AWS::Logs::QueryDefinition")[1];
  expect(Properties.Name).toMatch(/^holdfast-dev-Locks-[0-9A-F]{8}\/one key's history$/);
  expect(Properties.LogGroupNames).toEqual([{ Ref: expect.stringMatching(/^LocksLog/) }]);
  const query = Properties.QueryString as string;
  for (const field of ["model", "id", "event", "owner", "fencingToken", "reason"]) expect(query).toMatch(new RegExp(`\\b${field}\\b`));
});
