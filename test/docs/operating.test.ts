/**
 * "Operating": its tables match the stack and the log. operating.slow.test.ts runs its commands. To accept a change of
 * the metrics or of the breaker, read the difference and run:
 *
 *     npx vitest run test/docs/operating -u
 */
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { METRIC_NAMESPACE, METRICS } from "../../infra/metrics.js";
import { BREAKER } from "../../lib/client/transport/breaker.js";
import { DEFAULTS, LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { TABLE } from "../../lib/store/dynamo/table.js";
import { all, only } from "../infra/resources.js";
import { devTemplate } from "../infra/synthesize.js";
import { parse, ROOT, sourcesIn } from "../tidy/tree.js";
import { oneLine, readPage, table, withParts } from "./generated.js";

const PATH = "docs/operating.md";
const PAGE = readPage(PATH);
const TEXT = oneLine(PAGE);
const SECOND_MS = 1000;
const template = devTemplate();
const COMMANDS = [...PAGE.matchAll(/^```sh[^\n]*\n([\s\S]*?)^```$/gm)].map(([, block = ""]) => block).join("");

/** The cells of the first table under this heading, without its head. */
function rowsUnder(heading: string): readonly (readonly string[])[] {
  const [, section = ""] = PAGE.split(`\n${heading}\n`);
  const [, rows = ""] = /^\|.*\|\n\| -.*\|\n((?:\|.*\|\n)*)/m.exec(section) ?? [];
  return rows
    .trimEnd()
    .split("\n")
    .map((row) =>
      row
        .slice(2, -2)
        .split(" | ")
        .map((cell) => cell.trim()),
    );
}

const named = (cell = ""): string => cell.replaceAll("`", "");

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
        "silence until an attempt's time limit, a broken connection, and answers of 5xx that mean an outage: `unavailable`, `internal`, a gateway's own",
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
    const how = "the metrics changed: read the difference, then run npx vitest run test/docs/operating -u";
    await expect(await withParts(PAGE, { metrics: metricsTable(), failover: breakerTable() }), how).toMatchFileSnapshot(join(ROOT, PATH));
  });

  it("of alarms has every alarm of the stack, says what it says, and what to do", () => {
    const alarms = all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => [
      (Properties["AlarmName"] as string).split(": ")[1],
      Properties["AlarmDescription"] as string,
    ]);
    const rows = rowsUnder("### Alarms");
    expect(rows.map(([name, says]) => [named(name), says])).toEqual(alarms);
    for (const [name, , todo = ""] of rows) expect([name, todo.length > 20]).toEqual([name, true]);
    expect(new Set(all(template, "AWS::CloudWatch::Alarm").map(([, { Properties }]) => Properties["Period"] as number))).toEqual(
      new Set([300]),
    );
  });

  it("of events has every one that is logged", () => {
    const { members } = declared("lib/core/commands.ts", "LeaseEvent") as ts.InterfaceDeclaration;
    const event = members.find((member) => member.name?.getText() === "event") as ts.PropertySignature;
    const logged = [...event.type!.getText().matchAll(/"(\w+)"/g)].map(([, name]) => name!);
    expect(
      rowsUnder("### One key's history")
        .map(([name]) => named(name))
        .toSorted(),
    ).toEqual([...logged, "refused"].toSorted());
  });

  it("of losses has those that the alarm counts", () => {
    const [, counted = ""] = /const LOST[^=]*= \[([^\]]*)\]/.exec(sourcesIn("infra/metrics.ts")[0]!.text) ?? [];
    const reasons = [...counted.matchAll(/"(\w+)"/g)].map(([, reason]) => `lease-lost: ${reason}`);
    expect(reasons.length).toBeGreaterThan(0);
    expect(rowsUnder("### Leases are lost").map(([reason]) => named(reason))).toEqual(reasons);
  });
});

/** Converts `TableName` to `TABLE_NAME`. */
function inCapitals(name: string): string {
  return name.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

describe("what the page says of the stack", () => {
  it("is the saved query, word for word", () => {
    const { Properties } = only(template, "AWS::Logs::QueryDefinition")[1];
    expect(PAGE).toContain(`\`\`\`\n${Properties["QueryString"] as string}\n\`\`\``);
    expect(Properties["Name"]).toMatch(/one key's history$/);
  });

  it("names every graph of the dashboard", () => {
    const body = JSON.stringify(only(template, "AWS::CloudWatch::Dashboard")[1].Properties["DashboardBody"]);
    const titles = [...body.matchAll(/\\\\?"title\\\\?":\\\\?"(.*?)\\\\?"/g)].map(([, title]) => title!);
    expect(titles.length).toBeGreaterThan(4);
    for (const title of titles) expect(TEXT).toContain(`_${title}_`);
  });

  it("advises provisioned concurrency only where the API invokes a version or an alias, which alone can have it", () => {
    const invoked = all(template, "AWS::ApiGatewayV2::Integration").map(([, { Properties }]) => Properties["IntegrationUri"] as object);
    const functionArns = all(template, "AWS::Lambda::Function").map(([id]) => ({ "Fn::GetAtt": [id, "Arn"] }));
    for (const uri of invoked) expect(functionArns).toContainEqual(uri);
    expect(TEXT).toContain("Provisioned concurrency is for a version or an alias, and the API invokes neither");
    expect(TEXT.match(/provisioned concurrency/gi)).toHaveLength(1);
  });

  it("names only outputs that there are, and what outlives the stack", () => {
    const { Outputs } = template.toJSON() as { Outputs: Record<string, unknown> };
    const variables = [...new Set(PAGE.match(/\$(?!AWS)[A-Z]+(?:_[A-Z]+)+/g))];
    expect(variables.length).toBeGreaterThan(3);
    for (const name of ["DASHBOARD_NAME", ...variables]) expect(Object.keys(Outputs).map(inCapitals)).toContain(name.replace("$", ""));
    for (const type of ["AWS::DynamoDB::Table", "AWS::Logs::LogGroup"])
      for (const [, { DeletionPolicy }] of all(template, type)) expect(DeletionPolicy).toBe("Retain");
    expect(only(template, "AWS::DynamoDB::Table")[1].Properties).toMatchObject({ DeletionProtectionEnabled: true });
    expect(all(template, "AWS::Logs::LogGroup")).toHaveLength(2);
    expect(sourcesIn("lambda/compose.ts")[0]!.text).toContain('event: "failed"');
  });
});

describe("the page's figures", () => {
  const margin = takeoverMarginMs(0);
  const share = (takeoverMarginMs(LIMITS.leaseMaxMs) - margin) / LIMITS.leaseMaxMs;

  it.each<[what: string, sentence: string]>([
    ["the namespace of the metrics", `In the namespace \`${METRIC_NAMESPACE}/…\``],
    ["the margin", `${Math.floor(margin / SECOND_MS)} s + ${Number((share * 100).toPrecision(6))} % of the lease later`],
    ["the guard", `are over ${DEFAULTS.clockGuardMs / SECOND_MS} s apart`],
    ["how old an id may be", `${LIMITS.leaseIdBehindMs / 60_000} minutes at least`],
    [
      "the heartbeats",
      `two heartbeats may fail before the third is late, ${(2 * renewAfterMs(DEFAULTS.leaseMs)) / SECOND_MS} s of a lease of ${DEFAULTS.leaseMs / SECOND_MS} s`,
    ],
    ["the TTL attribute", `AttributeName=${TABLE.ttlAttribute}`],
  ])("say %s as the code has it", (_what, sentence) => expect(TEXT).toContain(sentence));
});

describe("a request that curl signs", () => {
  // Until 8.3 it signs a query as it is written: https://github.com/curl/curl/issues/9717
  it("has the names of its query in order", () => {
    const queries = [...COMMANDS.matchAll(/^ask .*\?([^"\s]+)/gm)].map(([, query = ""]) => query.split("&"));
    expect(queries.length).toBeGreaterThan(1);
    for (const query of queries) expect(query).toEqual(query.toSorted());
  });
});
