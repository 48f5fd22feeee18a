/**
 * "Operating": its tables match the stack and the log. operating.slow.test.ts runs its commands. To accept a change of
 * the metrics or of the breaker, read the difference and run:
 *
 *     npx vitest run test/docs/operating -u
 */
import { Duration } from "aws-cdk-lib";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { METRICS } from "../../infra/metrics.js";
import { BREAKER } from "../../lib/client/wire/breaker.js";
import { all } from "../infra/resources.js";
import { synthesizeOwn } from "../infra/synthesize.js";
import { parse, sourcesIn } from "../tidy/tree.js";
import { readPage, table } from "./generated.js";
import { expectMade } from "./made-page.js";

const PATH = "docs/operating.md";
const PAGE = readPage(PATH);
const SECOND_MS = 1000;

/** The statement that declares `name` in this file. */
function declared(path: string, name: string): ts.Node {
  let found: ts.Node | undefined;
  const look = (node: ts.Node): void => {
    if ((ts.isVariableDeclaration(node) || ts.isInterfaceDeclaration(node)) && node.name.getText() === name) found = node;
    else ts.forEachChild(node, look);
  };
  look(parse(sourcesIn(path)[0]!));
  return found!;
}

/** The figures of a client with two ways. */
function breakerTable(): string {
  const { inARow, failures, share, windowMs, restMs, restJitter, probes, probeIntervalMs } = BREAKER;
  const seconds = (ms: number): string => `${ms / SECOND_MS} s`;
  const rest = `${seconds(restMs * (1 - restJitter))} to ${seconds(restMs * (1 + restJitter))}`;
  return table(
    ["What", "How much"],
    [
      [
        "leaves the service",
        `${inARow} failed attempts in a row, or ${failures} in ${seconds(windowMs)} that are at least ${share * 100} % of all`,
      ],
      [
        "is a failure",
        "silence until an attempt's time limit, and for a second while the other way may be asked; a broken connection; nobody at the address; and answers of 5xx that mean an outage: `unavailable`, `internal`, a gateway's own",
      ],
      [
        "is none",
        "every 4xx, `throttled`, `clock-skew`, `newer-format`, `not-configured`, a caller that gives up, a kept connection that was closed meanwhile",
      ],
      ["stays on the table", `${rest} at least, by chance, so that not all clients return at once`],
      [
        "returns to the service",
        `${probes} probes in a row that reach the table through it, ${seconds(probeIntervalMs)} apart at least; after a failed one, all that again`,
      ],
    ],
  );
}

/** Every metric, with the sentence above it. */
function metricsTable(): string {
  const rows: string[][] = [];
  const look = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node) && Object.hasOwn(METRICS, node.name.getText())) {
      const name = node.name.getText() as keyof typeof METRICS;
      const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
      rows.push([`\`${name}\``, METRICS[name].unit, (ts.getTextOfJSDocComment(doc?.comment) ?? "").replaceAll(/\s+/g, " ")]);
    }
    ts.forEachChild(node, look);
  };
  look(declared("infra/metrics.ts", "METRICS"));
  return table(["metric", "unit", "what it counts"], rows);
}

describe("the tables", () => {
  it("of metrics is what the functions write", async () => {
    expect(metricsTable().split("\n").slice(2)).toHaveLength(Object.keys(METRICS).length);
    await expectMade(PATH, { metrics: metricsTable(), failover: breakerTable() });
  });

  it("of alarms has each alarm of the construct, its threshold, its description, and what to type next", () => {
    const template = synthesizeOwn(
      () => ({ functionUrl: { reservedConcurrency: 5 }, wake: {}, regions: { replicas: ["us-east-2"], witness: "us-west-2" } }),
      (service) => void service.alarmOnMissedTick("nightly", { within: Duration.hours(25) }),
      "us-east-1",
    );
    const signs = new Map([
      ["GreaterThanThreshold", ">"],
      ["LessThanThreshold", "<"],
    ]);
    const made = all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => {
      const { AlarmName, ComparisonOperator, Threshold, AlarmDescription } = Properties;
      const name = String(AlarmName).replace(/^.*: /, "");
      return [`\`${name}\``, `${signs.get(ComparisonOperator as string)} ${String(Threshold)}`, AlarmDescription];
    });
    const [, section = ""] = PAGE.split("### Alarms\n");
    const rows = section
      .split("\n\n**")[0]!
      .split("\n")
      .flatMap((line) => (line.startsWith("| `") ? [line.split(/ +\| */)] : []));
    const said = rows.map(([name = "", ringsAt = "", says]) => [name.slice(2), /^[<>] \d+/.exec(ringsAt)?.[0], says]);
    expect(said.toSorted()).toEqual(made.toSorted());
    for (const [name, , , next] of rows) expect(next, name).toMatch(/`(?:lines|ask|aws|holdfast) |^as for `SlowHeartbeats`/);
  });
});
