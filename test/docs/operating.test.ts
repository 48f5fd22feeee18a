/**
 * "Operating": its tables are the stack's and the log's, its commands run against `npm start`. To take a change of the
 * metrics over, after reading the difference:
 *
 *     npx vitest run test/docs/operating -u
 */
import { execFile, spawnSync } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Template } from "aws-cdk-lib/assertions";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { METRIC_NAMESPACE, METRICS } from "../../lambda/metrics.js";
import { createLockClient } from "../../lib/index.js";
import { DEFAULTS, LIMITS, renewAfterMs, takeoverMarginMs } from "../../lib/core/limits.js";
import { FORMAT_VERSION } from "../../lib/store/item.js";
import { TABLE } from "../../lib/store/table.js";
import { all, only } from "../infra/resources.js";
import { synthesize } from "../infra/synthesize.js";
import { parse, ROOT, sourcesIn } from "../tidy/tree.js";
import { deadLinks, oneLine, readPage, table, withParts } from "./generated.js";
import type { NpmStart } from "./npm-start.js";
import { npmStart, plainEnvironment } from "./npm-start.js";

const PATH = "docs/operating.md";
const PAGE = readPage(PATH);
const TEXT = oneLine(PAGE);
const HAS_CURL = ["curl", "bash"].every((command) => spawnSync(command, ["--version"]).status === 0);
const SECOND_MS = 1000;
const FORMATS: number = FORMAT_VERSION;
const template = Template.fromStack(synthesize());

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

/** Every metric, with the sentence that stands above it. */
function metricsTable(): string {
  const rows: string[][] = [];
  const look = (node: ts.Node): void => {
    if (ts.isPropertyAssignment(node)) {
      const name = node.name.getText() as keyof typeof METRICS;
      const [doc] = ts.getJSDocCommentsAndTags(node).filter(ts.isJSDoc);
      rows.push([`\`${name}\``, METRICS[name], (ts.getTextOfJSDocComment(doc?.comment) ?? "").replaceAll(/\s+/g, " ")]);
    }
    ts.forEachChild(node, look);
  };
  look(declared("lambda/metrics.ts", "METRICS"));
  return table(["metric", "unit", "what it counts"], rows);
}

describe("the tables", () => {
  it("of metrics is what the functions write", async () => {
    expect(metricsTable().split("\n").slice(2)).toHaveLength(Object.keys(METRICS).length);
    const how = "the metrics changed: read the difference, then run npx vitest run test/docs/operating -u";
    await expect(await withParts(PAGE, { metrics: metricsTable() }), how).toMatchFileSnapshot(join(ROOT, PATH));
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
    const [, counted = ""] = /const LOST[^=]*= \[([^\]]*)\]/.exec(sourcesIn("lambda/metrics.ts")[0]!.text) ?? [];
    const reasons = [...counted.matchAll(/"(\w+)"/g)].map(([, reason]) => `lease-lost: ${reason}`);
    expect(reasons.length).toBeGreaterThan(0);
    expect(rowsUnder("### Leases are lost").map(([reason]) => named(reason))).toEqual(reasons);
  });
});

/** `TableName`: `TABLE_NAME`. */
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
    expect(deadLinks(PATH)).toEqual([]);
  });
});

describe("the page's figures", () => {
  const margin = takeoverMarginMs(0);
  const share = (takeoverMarginMs(LIMITS.leaseMaxMs) - margin) / LIMITS.leaseMaxMs;

  it.each<[what: string, sentence: string]>([
    ["the namespace of the metrics", `In the namespace \`${METRIC_NAMESPACE}\``],
    ["the margin", `${Math.floor(margin / SECOND_MS)} s + ${Number((share * 100).toPrecision(6))} % of the lease later`],
    ["the guard", `are over ${DEFAULTS.clockGuardMs / SECOND_MS} s apart`],
    ["how old an id may be", `${LIMITS.leaseIdBehindMs / 60_000} minutes at least`],
    [
      "the heartbeats",
      `two may fail before the third is late. So there is time, ${(2 * renewAfterMs(DEFAULTS.leaseMs)) / SECOND_MS} s of a lease of ${DEFAULTS.leaseMs / SECOND_MS} s`,
    ],
    ["the TTL attribute", `AttributeName=${TABLE.ttlAttribute}`],
    ["the format", FORMATS > 1 ? "?" : "There is one format so far"],
  ])("say %s as the code has it", (_what, sentence) => expect(TEXT).toContain(sentence));
});

describe.runIf(HAS_CURL)("the runbook's commands", () => {
  let service: NpmStart;
  const printed = new Map<string, string>();
  /** The blocks of shell that need no account, one after the other. */
  const lines = [...PAGE.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].flatMap(([, block = ""]) => block.trimEnd().split("\n"));
  const asks = lines.flatMap((line, at) => (line.startsWith("ask ") ? [{ line, comment: lines[at - 1] ?? "" }] : []));

  beforeAll(async () => {
    service = await npmStart();
    const locks = createLockClient({ url: service.url });
    await locks.runOnce("REFUND_12", () => ({ refund: "re_1" }));
    await locks.acquire("ORDER_1231", { owner: "checkout-7", heartbeat: false, leaseMs: 600_000 });
    const end = "\n---end of the line---\n";
    const script = lines.map((line) =>
      line.startsWith("ask ") ? `${line} -w '\\n%{http_code}'\nprintf '%s' '${end}'` : line.replace("http://127.0.0.1:8787", service.url),
    );
    const options = { env: plainEnvironment({}) };
    const { stdout } = await promisify(execFile)("bash", ["-c", ["set -euo pipefail", ...script].join("\n")], options);
    for (const [at, text] of stdout.split(end).slice(0, -1).entries()) printed.set(asks[at]!.line, text);
  });
  afterAll(() => service.kill());

  const answerOf = (line: string): { readonly status: number; readonly body: Record<string, unknown> } => {
    const [, body = "", status] = /^([\s\S]*)\n(\d{3})$/.exec(printed.get(line) ?? "") ?? [];
    return { status: Number(status), body: JSON.parse(body) as Record<string, unknown> };
  };

  it.each(asks)("are answered as the comment above says: $comment", ({ line, comment }) => {
    const [, status] = /^# (\d{3})/.exec(comment) ?? [];
    expect(answerOf(line).status, printed.get(line)).toBe(Number(status));
  });

  it("break a hold by draining, and then by force", () => {
    const breaks = asks.filter(({ line }) => line.includes("/break")).map(({ line }) => answerOf(line));
    expect(breaks.map(({ status }) => status)).toEqual([202, 200]);
    expect(breaks[0]!.body["breakInMs"]).toBeGreaterThan(500_000);
    expect(breaks[1]!.body).toEqual({ breakInMs: 0 });
  });

  it("leave the key free, and the run to be run again", async () => {
    const locks = createLockClient({ url: service.url });
    expect((await locks.inspect("ORDER_1231")).holders).toEqual([]);
    expect(await locks.runOnce("REFUND_12", () => 2)).toMatchObject({ attempt: 1, replayed: false });
  });

  it("control: those that need an account are marked, and are not among them", () => {
    expect(lines.join("\n")).not.toMatch(/\baws /);
    expect([...PAGE.matchAll(/^```sh deployed$/gm)].length).toBeGreaterThan(3);
  });
});
