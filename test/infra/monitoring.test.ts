/**
 * Alarms and dashboard use metrics that the functions really write, and no alarm fires on everyday answers of a lock. The recorded template has
 * each alarm (templates.test.ts).
 */
import { describe, expect, it } from "vitest";
import { METRICS } from "../../infra/metrics.js";
import { all, only } from "./resources.js";
import { devTemplate } from "./synthesize.js";

const template = devTemplate();
const alarms = all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => Properties);

describe("the alarms", () => {
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
});

it("draws every metric, by its name, on the dashboard", () => {
  const body = JSON.stringify(only(template, "AWS::CloudWatch::Dashboard")[1].Properties.DashboardBody);
  const filters = all(template, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties.MetricTransformations[0]);
  expect(filters.map(({ MetricName }) => MetricName as string).toSorted()).toEqual(Object.keys(METRICS).toSorted());
  for (const { MetricNamespace, MetricName } of filters) expect(body).toContain(String.raw`\"${MetricNamespace}\",\"${MetricName}\"`);
});
