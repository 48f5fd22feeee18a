/**
 * docs/costs.md: its tables are recounted, its limits match the code. To accept a change of the tables, read the
 * difference and run:
 *
 *     npx vitest run test/docs/costs -u
 */
import { beforeAll, describe, expect, inject, it } from "vitest";
import { PAID_POLL_MS, READ_REQUESTS } from "../../console/handlers.js";
import { type AsleepRow, asleepRows } from "../../bench/cost/asleep.js";
import { COST_CASES, LIMIT_CASES } from "../../bench/cost/cost-cases.js";
import { type CostRow, asleepTable, assumptions, BILLED_MS, costAsleep, costRow, costTables } from "../../bench/cost/costs.js";
import { tabTable, takeTable } from "../../bench/cost/costs.js";
import type { Footprint } from "../../bench/cost/memory.js";
import { type TabRow, TAB_CASES, tabRow } from "../../bench/cost/open-tab.js";
import { billedMs, memoryTable } from "../../bench/cost/memory.js";
import { costOfAMillion, PRICED_ON, PRICES } from "../../bench/cost/prices.js";
import { type DeployedStack, deployedStack } from "../../bench/cost/stack.js";
import { renewAfterMs } from "../../lib/core/renewal.js";
import { partsOf, readPage, withParts } from "./generated.js";
import { expectMade } from "./made-page.js";

const PATH = "docs/costs.md";
const PAGE = readPage(PATH);
/** Hours of clients' work, request by request, on a loaded machine. */
const COUNTING_MS = 1_800_000;
const SECOND_MS = 1000;

let stack: DeployedStack;
const rows: CostRow[] = [];
const takes: CostRow[] = [];
const tabs: TabRow[] = [];
const asleep: AsleepRow[] = [];
beforeAll(async () => {
  stack = await deployedStack();
  const endpoint = inject("engineEndpoint");
  for (const costCase of COST_CASES) rows.push(await costRow({ endpoint, stack }, costCase));
  for (const costCase of LIMIT_CASES) takes.push(await costRow({ endpoint, stack }, costCase));
  asleep.push(...(await asleepRows({ endpoint, accessLogFormat: stack.accessLogFormat })));
  for (const tab of TAB_CASES) tabs.push(await tabRow({ endpoint, accessLogFormat: stack.accessLogFormat }, tab));
}, COUNTING_MS);

/** The function's measured footprint, as the page states it. Other figures are computed from it. */
function footprint(): Footprint {
  const [importMs, firstMs, laterMs, peakMb] = [...PAGE.matchAll(/\| ([\d.]+) (?:ms of CPU|MB) +\|$/gm)].map(([, figure]) =>
    Number(figure),
  );
  return { importMs: importMs!, firstMs: firstMs!, laterMs: laterMs!, peakMb: peakMb! };
}

const tablesOf = (counted: readonly CostRow[]): Readonly<Record<string, string>> => ({
  ...costTables(counted, stack),
  takes: takeTable(takes, stack),
  asleep: asleepTable(asleep, stack),
  tab: tabTable(tabs, stack),
  memory: memoryTable(footprint()),
  // bench/page.ts makes it.
  crowds: partsOf(PAGE)["crowds"] ?? "",
});

const TENTH = 0.1;
const ROUNDED = 0.1;
/** Rows in which the machine decides the order of the clients, so some hundredths of the counts vary. */
const CONTENDED = /^\| (?:\d+ clients|a minute in the queue)/;

/** Returns `made` with the page's versions of those rows; `npm run bench -- costs` prints new ones. */
function withPagesOwn(made: string): string {
  const own = PAGE.split("\n").filter((line) => CONTENDED.test(line));
  return made
    .split("\n")
    .map((line) => (CONTENDED.test(line) ? (own.shift() ?? line) : line))
    .join("\n");
}

/** The largest relative difference between figures at the same place of two rows, ignoring rounding of the last digit. */
function farthestApart(counted: string, said: string): number {
  const figures = (line: string): readonly number[] =>
    [...line.matchAll(/\d[\d,.]*/g)].map(([figure]) => Number(figure.replaceAll(",", "")));
  const others = figures(said);
  expect(others).toHaveLength(figures(counted).length);
  return Math.max(
    ...figures(counted).map((figure, at) => {
      const apart = Math.max(0, Math.abs(figure - others[at]!) - ROUNDED);
      return apart === 0 ? 0 : apart / figure;
    }),
  );
}

const rowOf = (title: string): CostRow => {
  const row = rows.find((one) => one.title === title);
  if (!row) throw new Error(`there is no case ${title}`);
  return row;
};

describe("the tables of docs/costs.md", () => {
  it("are what is counted, times the prices, but for the rows in which clients contend", () =>
    expectMade(PATH, tablesOf(rows), withPagesOwn));

  it("have the rows in which clients contend as they are counted, within a tenth", async () => {
    const counted = (await withParts(PAGE, tablesOf(rows))).split("\n").filter((line) => CONTENDED.test(line));
    const said = PAGE.split("\n").filter((line) => CONTENDED.test(line));
    expect(said).toHaveLength(counted.length);
    for (const [at, line] of counted.entries()) expect(farthestApart(line, said[at]!), line).toBeLessThanOrEqual(TENTH);
  });
});

describe("what was counted", () => {
  it("is two requests and two writes for a lock that nobody else wants, and no read", () => {
    const { http, direct } = rowOf("nobody else wants it");
    expect(http).toMatchObject({ requests: 2, writeUnits: 2, readUnits: 0 });
    expect(direct).toEqual({ requests: 0, writeUnits: 2, readUnits: 0, logBytes: 0 });
  });

  it("costs at most $4.20 for a million of them over HTTP, of which the logs are a tenth", () => {
    const { logs, total } = costOfAMillion(rowOf("nobody else wants it").http, assumptions(stack));
    expect(total).toBeLessThanOrEqual(4.2);
    expect(logs).toBeLessThanOrEqual(0.1 * total);
  });

  it("is a heartbeat each third of a lease, beside the acquire and the release", () => {
    for (const [title, leaseMs] of [
      ["held an hour, leases of 30 s", 30 * SECOND_MS],
      ["held an hour, leases of 5 min", 300 * SECOND_MS],
    ] as const) {
      const beats = 3600 / (renewAfterMs(leaseMs) / SECOND_MS);
      const { http, direct } = rowOf(title);
      expect(http.requests).toBe(http.writeUnits);
      for (const { writeUnits } of [http, direct]) expect(Math.abs(writeUnits - 2 - beats)).toBeLessThan(0.1 * beats);
    }
  });

  it("is as many writes, and fewer requests, where the locks are of one process", () => {
    const [alone, together] = [rowOf("held an hour, leases of 5 min"), rowOf("the same, 10 locks of one process")];
    expect(together.http.requests).toBeLessThan(alone.http.requests / 2);
    expect(together.http.writeUnits).toBeGreaterThan(0.9 * alone.http.writeUnits);
  });

  it("is one write a take and a shut, little more with eight busy clients, and seldom a request for a refusal", () => {
    const [alone, busy, over, shut] = takes.map(({ http, direct }) => [http.requests, http.writeUnits, direct.writeUnits]);
    expect([alone, shut]).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(busy?.[0]).toBe(1);
    expect(Math.max(...(busy ?? []))).toBeLessThanOrEqual(1.1);
    expect(Math.max(...(over ?? []))).toBeLessThan(0.3);
    for (const { http, direct } of takes) expect([http.readUnits, direct.readUnits]).toEqual([0, 0]);
  });

  it("is one request and at most $7 a million for a waiter that sleeps, and at most $10 for each hour of it", () => {
    const [wakes, hours] = asleep as [AsleepRow, AsleepRow];
    expect([wakes.used.requests, wakes.invocations, hours.used.requests, hours.used.writeUnits]).toEqual([1, 1, 0, 0]);
    expect(costAsleep(wakes, stack)).toBeLessThanOrEqual(7);
    expect(costAsleep(hours, stack)).toBeLessThanOrEqual(10);
    // Control: with a second read of the record in each sweep it is more.
    expect(costAsleep({ ...hours, used: { ...hours.used, readUnits: hours.used.readUnits + 60 } }, stack)).toBeGreaterThan(10);
  });

  it("is more for each lock, the longer the queue", () => {
    const units = rows.filter(({ http }) => http.idleMs !== undefined).map(({ http }) => http.writeUnits);
    expect(units).toEqual(units.toSorted((a, b) => a - b));
    expect(units).toHaveLength(2);
  });
});

describe("an open tab of the console", () => {
  it("sends one list request an interval, whatever the table has, and costs less than a cent an hour", () => {
    expect(tabs.map(({ title }) => title)).toEqual(TAB_CASES.map(({ title }) => title));
    // Runs are read in two states, every other minute: three times in the five minutes that are counted, and so six requests in place of five.
    const runsAnHour = (6 * 60) / 5;
    // The last look of the five minutes counts whole.
    const lookAnHour = (2 * READ_REQUESTS * 60) / 5;
    for (const { http, title } of tabs.slice(0, -1))
      expect(http.requests, title).toBeLessThanOrEqual((3600 * SECOND_MS) / PAID_POLL_MS + 3600 / 15 + runsAnHour + lookAnHour);
    for (const { http, direct } of tabs)
      for (const used of [http, direct]) expect(costOfAMillion(used, assumptions(stack)).total / 1e6).toBeLessThan(0.01);
    expect(tabs.map(({ http, direct }) => http.writeUnits + direct.writeUnits)).toEqual([0, 0, 0, 0]);
  });
});

describe("the sums", () => {
  it("are counts times prices, by hand", () => {
    const used = { requests: 2, writeUnits: 2, readUnits: 1, logBytes: 1024 };
    const { gateway, lambda, table, logs, traces, total } = costOfAMillion(used, { billedMs: 10, traced: 0.05, memoryMb: 512 });
    expect([gateway, table, traces]).toEqual([2, 1.375, 0.5]);
    expect(lambda).toBeCloseTo(0.4 + 2 * 0.01 * 0.5 * 13.3334, 10);
    expect(logs).toBeCloseTo(1e6 / 1024 / 1024 / 2, 10);
    expect(total).toBeCloseTo(gateway + lambda + table + logs + traces, 10);
  });

  it("rest on prices with a date, and an address each, of AWS first", () => {
    expect(PRICED_ON).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(PAGE).toContain(PRICED_ON);
    for (const { pages } of Object.values(PRICES)) expect(pages[0]).toMatch(/^https:\/\/aws\.amazon\.com\//);
  });
});

describe("the memory", () => {
  it("is argued from four figures, which are there, and take no longer than the sums assume", () => {
    for (const figure of Object.values(footprint())) expect(figure).toBeGreaterThan(0);
    expect(billedMs(footprint(), stack.memoryMb)).toBeLessThanOrEqual(BILLED_MS);
    expect(stack.tracing).toBe(false);
    expect(memoryTable({ ...footprint(), laterMs: 2 * footprint().laterMs })).not.toBe(memoryTable(footprint()));
  });
});
