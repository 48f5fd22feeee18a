/**
 * The costs of locks on AWS: counted use, multiplied by the price list. A test compares the tables of docs/costs.md
 * with these. None of the figures depends on the speed of this machine.
 */
import { startEngine } from "../../infra/local/engine.js";
import { METRICS } from "../../infra/metrics.js";
import { type AsleepRow, asleepRows } from "./asleep.js";
import { type CostCase, type Taken, COST_CASES, LIMIT_CASES, take } from "./cost-cases.js";
import { type Meter, type MeterOptions, meterOnTable, meterOverHttp } from "./meter.js";
import { type TabRow, TAB_CASES, tabRow } from "./open-tab.js";
import { type Assumptions, type Used, costOfAMillion, PRICED_ON, PRICES, REGION } from "./prices.js";
import type { Report } from "../report/report.js";
import { type DeployedStack, deployedStack } from "./stack.js";
import { markdownTable } from "../report/table.js";

/**
 * The assumed time that Lambda bills for a request, in ms, cold starts left out: what `npm run bench -- memory` measures, and a reserve.
 */
export const BILLED_MS = 10;
/** If tracing is on, X-Ray samples the first request of each second, and this part of the others. */
export const TRACED = 0.05;
const HOURS_A_MONTH = 730;
const SECONDS_A_MONTH = HOURS_A_MONTH * 3600;

/** One case by the API, by a function URL, and directly on a table. */
export interface CostRow {
  readonly title: string;
  readonly http: Taken;
  readonly url: Taken;
  readonly direct: Taken;
}

/** Runs a case by the API, by a function URL and directly on a table, each on its own table. */
export async function costRow(
  { endpoint, stack }: { readonly endpoint: string; readonly stack: DeployedStack },
  costCase: CostCase,
): Promise<CostRow> {
  const taken: Taken[] = [];
  const byFunctionUrl = (options: MeterOptions): Promise<Meter> => meterOverHttp({ ...options, byFunctionUrl: true });
  for (const meterOf of [meterOverHttp, byFunctionUrl, meterOnTable]) {
    const tableName = `costs-${process.pid}-${unique++}`;
    const meter = await meterOf({ endpoint, tableName, accessLogFormat: stack.accessLogFormat });
    try {
      taken.push(await take(costCase, meter));
    } finally {
      await meter.close();
    }
  }
  const [http, url, direct] = taken as [Taken, Taken, Taken];
  return { title: costCase.title, http, url, direct };
}

let unique = 0;

/** The tables of the page, by the name of their place on it. */
export function costTables(rows: readonly CostRow[], stack: DeployedStack): Readonly<Record<string, string>> {
  return { prices: priceTable(), counts: countTable(rows), locks: lockTable(rows, stack), idle: idleTable(stack) };
}

function priceTable(): string {
  const rows = Object.values(PRICES).map(({ what, usd, per, pages }) => [
    what,
    `$${usd >= 0.01 ? usd : usd.toFixed(10)}`,
    per,
    pages.map((page: string, at) => `[${at === 0 ? "AWS" : "read here"}](${page})`).join(", "),
  ]);
  return markdownTable([["", `${REGION}, ${PRICED_ON}`, "a", "source"], ...rows]);
}

function countTable(rows: readonly CostRow[]): string {
  return markdownTable([
    [
      "one lock or run",
      "HTTP: requests",
      "write units",
      "read units",
      "KB of logs",
      "direct: write units",
      "read units",
      "key idle between two holders",
    ],
    ...rows.map(({ title, http, direct }) => [
      title,
      ...[http.requests, http.writeUnits, http.readUnits, http.logBytes / 1024].map(shortly),
      ...[direct.writeUnits, direct.readUnits].map(shortly),
      http.idleMs === undefined ? "" : `${tens(http.idleMs)} ms; direct ${tens(direct.idleMs ?? 0)} ms`,
    ]),
  ]);
}

function lockTable(rows: readonly CostRow[], stack: DeployedStack): string {
  const assumed = assumptions(stack);
  return markdownTable([
    ["a million locks or runs", "API Gateway", "Lambda", "DynamoDB", "logs", "by the API", "function URL", "direct"],
    ...rows.map(({ title, http, url, direct }) => {
      const { gateway, lambda, table, logs, total } = costOfAMillion(http, assumed);
      const byUrl = costOfAMillion(url, assumed);
      const totals = [total, byUrl.total - byUrl.gateway, costOfAMillion(direct, assumed).total];
      return [title, ...[gateway, lambda, table, logs, ...totals].map(dollars)];
    }),
  ]);
}

/** The table of what takes from limits cost. */
export function takeTable(rows: readonly CostRow[], stack: DeployedStack): string {
  const assumed = assumptions(stack);
  return markdownTable([
    [
      "one take, refusal or shut",
      "HTTP: requests",
      "write units",
      "read units",
      "direct: write units",
      "read units",
      "a million over HTTP",
      "direct",
    ],
    ...rows.map(({ title, http, direct }) => [
      title,
      ...[http.requests, http.writeUnits, http.readUnits, direct.writeUnits, direct.readUnits].map(shortly),
      ...[http, direct].map((used) => dollars(costOfAMillion(used, assumed).total)),
    ]),
  ]);
}

/** The assumed time that Lambda bills for a wake, in ms: as much for each request of the agent, one of them to the target, as the API has for one. */
export const WAKE_BILLED_MS = 5 * BILLED_MS;

/** Returns what a million of these cost, the agent's invocations included. */
export function costAsleep({ used, invocations }: AsleepRow, stack: DeployedStack): number {
  const gbSeconds = (WAKE_BILLED_MS / 1000) * (stack.memoryMb / 1024);
  const wake = PRICES.invocations.usd + gbSeconds * PRICES.gbSeconds.usd * 1e6;
  return costOfAMillion(used, assumptions(stack)).total + invocations * wake;
}

/** The table of what waiting asleep costs. */
export function asleepTable(rows: readonly AsleepRow[], stack: DeployedStack): string {
  return markdownTable([
    ["one waiter", "HTTP: requests", "wakes of the agent", "write units", "read units", "KB of logs", "a million"],
    ...rows.map((row) => {
      const { requests, writeUnits, readUnits, logBytes } = row.used;
      const counts = [requests, row.invocations, writeUnits, readUnits, logBytes / 1024].map(shortly);
      return [row.title, ...counts, dollars(costAsleep(row, stack))];
    }),
  ]);
}

/** The assumptions behind the costs, besides the counts. */
export function assumptions({ memoryMb, tracing }: DeployedStack): Assumptions {
  return { billedMs: BILLED_MS, traced: tracing ? TRACED : 0, memoryMb };
}

/** The table of what an open tab of the console costs. */
export function tabTable(rows: readonly TabRow[], stack: DeployedStack): string {
  const assumed = assumptions(stack);
  const thousandHours = (used: Used): string => dollars(costOfAMillion(used, assumed).total / 1000);
  return markdownTable([
    ["an open tab that shows", "an hour: requests", "read units", "a thousand hours over HTTP", "direct"],
    ...rows.map(({ title, http, direct }) => [
      title,
      ...[http.requests, http.readUnits].map((count) => Math.round(count).toLocaleString("en-US")),
      thousandHours(http),
      thousandHours(direct),
    ]),
  ]);
}

function idleTable(stack: DeployedStack): string {
  const metrics = Object.keys(METRICS).length;
  const traces = SECONDS_A_MONTH * (PRICES.traces.usd / 1e6);
  const rows: readonly (readonly string[])[] = [
    [`${stack.alarms} alarms`, dollars(stack.alarms * PRICES.alarms.usd)],
    [`${stack.dashboards} dashboard`, dollars(stack.dashboards * PRICES.dashboards.usd)],
    ["all else: the API, the functions, an empty table", dollars(0)],
    [`when it is used: ${metrics} metrics, as many more for each of \`metricPrefixes\``, dollars(metrics * PRICES.metrics.usd)],
    ["when it is used: X-Ray with `tracing: true`, which traces the first request of every second", `at most ${dollars(traces)}`],
    ["a million keys used in a day, 1 KB each, kept a month, with point-in-time recovery", dollars(storage())],
    [
      "with `regions`: a million keys of 1 KB that the sweep deletes, of two replicas; of three",
      [2, 3].map(deletions).map(dollars).join("; "),
    ],
    ["with `regions`: a million keys of 1 KB in the table, which two Regions' sweeps scan once an hour", dollars(2 * scans())],
  ];
  return markdownTable([["a month", "cost"], ...rows]);
}

/** The cost of storing a million items of 1 KB for a month. */
function storage(): number {
  return ((1e6 * 1024) / 1024 ** 3) * (PRICES.storage.usd + PRICES.recovery.usd);
}

/** The cost of deleting a million items: a write unit in each replica. That a replicated unit costs as much as another is assumed. */
function deletions(replicas: number): number {
  return replicas * PRICES.writeUnits.usd;
}

/** The cost of scanning a million items of 1 KB once an hour, for a month: an eventually consistent read takes half a unit for 4 KB. */
function scans(): number {
  return HOURS_A_MONTH * (1024 / 4096 / 2) * PRICES.readUnits.usd;
}

/** `2`, `4.2`, `362`. */
function shortly(count: number): string {
  return count < 100 ? String(Number(count.toFixed(1))) : count.toFixed(0);
}

function tens(ms: number): number {
  return Math.round(ms / 10) * 10;
}

/** `$5.67`, `$1,128`. */
export function dollars(usd: number): string {
  return `$${usd < 100 ? usd.toFixed(2) : Math.round(usd).toLocaleString("en-US")}`;
}

/** Returns the tables, one after another. @throws StartError if no engine can start. */
export async function costs(): Promise<Report> {
  const stack = await deployedStack();
  const engine = await startEngine({});
  try {
    const rows: CostRow[] = [];
    for (const costCase of COST_CASES) rows.push(await costRow({ endpoint: engine.endpoint, stack }, costCase));
    const takes: CostRow[] = [];
    for (const costCase of LIMIT_CASES) takes.push(await costRow({ endpoint: engine.endpoint, stack }, costCase));
    const tabs: TabRow[] = [];
    for (const tab of TAB_CASES) tabs.push(await tabRow({ endpoint: engine.endpoint, accessLogFormat: stack.accessLogFormat }, tab));
    const asleep = await asleepRows({ endpoint: engine.endpoint, accessLogFormat: stack.accessLogFormat });
    return {
      tables: [...Object.values(costTables(rows, stack)), takeTable(takes, stack), asleepTable(asleep, stack), tabTable(tabs, stack)],
    };
  } finally {
    await engine.stop();
  }
}
