/** The alarm for a schedule of which no occurrence is done counts the lines that real ticks leave in the log. The recorded template has the alarm. */
import { Duration } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LockService } from "../../infra/lock-service.js";
import type { Gateway } from "../../infra/local/gateway.js";
import { startLocalService } from "../../infra/local/local-service.js";
import { printed } from "../../lambda/printed.js";
import { type LockClient, createLockClient } from "../../lib/index.js";
import type { LogLine } from "../../lib/service/log.js";
import { filterPattern } from "../support/filter-pattern.js";
import { all } from "./resources.js";
import { synthesizeOwn } from "./synthesize.js";

const DAY = Duration.hours(25);

function patternOf(name: string): string {
  const made = synthesizeOwn(
    () => ({}),
    (one) => void one.alarmOnMissedTick(name, { within: DAY }),
  );
  return tickFilter(made).FilterPattern as string;
}

function tickFilter(made: Template) {
  const filters = all(made, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties);
  return filters.find(({ MetricTransformations: [{ MetricName }] }) => (MetricName as string).startsWith("Tick "))!;
}

const lines: LogLine[] = [];
let service: Gateway;
let locks: LockClient;

beforeAll(async () => {
  service = await startLocalService({ ports: [0], log: (line) => lines.push(line), onFailure: () => undefined });
  locks = createLockClient({ url: service.url });
});
afterAll(async () => {
  await locks.close();
  await service.close();
});

const tick = (name: string, hour: number, work: () => unknown = () => 1) =>
  locks.tick(name, { occurrence: new Date(Date.UTC(2026, 0, 31, hour)) }, work);

describe("the alarm on missed ticks", () => {
  it.each(["nightly", "daily_report", "report:eu"])("counts each occurrence of %s that is done, once", async (name) => {
    const matches = filterPattern(patternOf(name));
    const countOf = async (act: () => Promise<unknown>) => {
      lines.length = 0;
      await act();
      expect(lines).not.toEqual([]);
      return lines.filter((line) => matches(JSON.parse(JSON.stringify(printed(line, []))) as Record<string, unknown>)).length;
    };
    expect(await countOf(() => tick(name, 3))).toBe(1);
    expect(await countOf(async () => [await tick(name, 4), await tick(name, 4), await tick(name, 5)])).toBe(2);
    // Not those that fail, those of another name, or a run and a lock of the same name.
    expect(await countOf(() => tick(name, 6, () => Promise.reject(new Error("no"))).catch(() => undefined))).toBe(0);
    expect(await countOf(() => tick(`${name}s`, 3))).toBe(0);
    expect(await countOf(() => tick(`other_${name}`, 3))).toBe(0);
    expect(await countOf(() => locks.runOnce(name, () => 1))).toBe(0);
    expect(await countOf(() => locks.withLock(`${name}_2026`, () => 1))).toBe(0);
  });

  it("counts a tenant's alone, and wants to know which", () => {
    const made = synthesizeOwn(
      () => ({ tenant: "role" }),
      (one) => {
        expect(() => one.alarmOnMissedTick("nightly", { within: DAY })).toThrow(/^namespace: none given/);
        one.alarmOnMissedTick("nightly", { within: DAY, namespace: "acme" });
      },
    );
    expect(tickFilter(made).FilterPattern).toContain('($.namespace = "acme")');
  });

  it.each([
    ["a b", DAY, 'name: "a b" given; no tick has such a name'],
    [
      "a",
      Duration.seconds(90),
      "within: 1 minute 30 seconds given; it must be whole minutes, and at most 7 days, which is as far as CloudWatch looks back",
    ],
    ["a", Duration.days(8), "within: 8 days given; it must be whole minutes, and at most 7 days, which is as far as CloudWatch looks back"],
  ])("refuses %j within %o", (name, within, message) => {
    const refused = (one: LockService) => expect(() => one.alarmOnMissedTick(name, { within })).toThrow(new Error(message));
    synthesizeOwn(() => ({}), refused);
  });
});
