/** `holdfast history`: who held a key, by the log of a local service, of CloudWatch (a double of its API), and of a file. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type HistoryContext, history } from "../../bin/inspect/history.js";
import { holdsIn, lanesAt } from "../../bin/inspect/past-holds.js";
import { PLAIN, widthOf } from "../../bin/terminal.js";
import type { Line } from "../../console/data.js";
import { QUERY_LINES } from "../../console/insights-query.js";
import { lanesOf } from "../../console/lanes.js";
import { createLockClient } from "../../lib/index.js";
import { createLockClient as createTestClient } from "../../lib/testing.js";
import { printed } from "../../lambda/printed.js";
import type { LogLine } from "../../lib/service/log.js";
import { closingAfterEach, listening } from "../adapters/app-server.js";
import { PATIENCE } from "../support/patience.js";
import type { Environment } from "./holdfast.js";
import { type Running, jsonOf, run, start } from "./in-process.js";
import { type Service, serve } from "./service.js";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

let directory: string;
let service: Service;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-history-"));
  service = await serve();
});
afterAll(async () => {
  await service.close();
  await rm(directory, { recursive: true });
});

/** Returns a context, and the texts that are printed in it. */
function contextOf(more: Partial<HistoryContext>) {
  const texts: string[] = [];
  const print = (text: string | Uint8Array) => Promise.resolve(void texts.push(String(text)));
  const context = { env: {}, screen: PLAIN, asJson: false, say: () => undefined, print, ...more } as unknown as HistoryContext;
  return { texts, context };
}

let seq = 0;
/** A line at `atMs` of the lease `lease`. */
function line(atMs: number, event: Line["event"], lease: string, more: Partial<Line> = {}): Line {
  return { seq: seq++, event, kind: "lock", key: "k", atMs, lease, owner: lease, ...more };
}

const granted = (atMs: number, lease: string, fencingToken = atMs): Line => line(atMs, "granted", lease, { fencingToken });
const ended = (atMs: number, lease: string, heldMs: number, reason = "released", more: Partial<Line> = {}): Line =>
  line(atMs, "ended", lease, { heldMs, reason, ...more });

describe("the holds of a key", () => {
  it.each<[string, readonly Line[], readonly object[]]>([
    [
      "one that was released",
      [granted(10, "a"), ended(50, "a", 40)],
      [{ owner: "a", fencingToken: 10, fromMs: 10, toMs: 50, waited: 0, ending: "released" }],
    ],
    [
      "one that was lost, at the end of its lease and not when somebody saw it",
      [granted(0, "a"), ended(100, "a", 100, "taken", { lapsedMs: 70 }), granted(100, "b")],
      [
        { owner: "a", toMs: 30, ending: "taken" },
        { owner: "b", fromMs: 100, toMs: undefined, ending: undefined },
      ],
    ],
    [
      "one that was broken by force",
      [granted(0, "a"), ended(30, "a", 30, "broken: it hangs", { by: "carol" })],
      [{ toMs: 30, ending: "broken", broken: { by: "carol", why: "it hangs" } }],
    ],
    [
      "one that was to drain, and was released before its end",
      [granted(0, "a"), line(5, "breaking", "a", { reason: "too long", by: "carol" }), ended(9, "a", 9)],
      [{ toMs: 9, ending: "released", broken: { by: "carol", why: "too long" } }],
    ],
    [
      "one that was handed on, and the one that got it",
      [granted(0, "a"), line(10, "transferred", "b", { fencingToken: 2 }), ended(10, "a", 10, "transferred")],
      [
        { owner: "a", toMs: 10, ending: "transferred" },
        { owner: "b", fromMs: 10, toMs: undefined },
      ],
    ],
    [
      "several at once",
      [granted(0, "a"), granted(1, "b"), ended(9, "a", 9), ended(12, "b", 11)],
      [
        { owner: "a", fromMs: 0, toMs: 9 },
        { owner: "b", fromMs: 1, toMs: 12 },
      ],
    ],
    ["one that began before the log", [ended(900, "a", 600)], [{ owner: "a", fromMs: 300, toMs: 900, ending: "released" }]],
    ["one that nothing ends", [granted(7, "a")], [{ owner: "a", fromMs: 7, toMs: undefined, ending: undefined }]],
    ["none, of a caller that only waited or was refused", [line(1, "queued", "a"), line(2, "refused", "b", { reason: "locked" })], []],
  ])("are %s", (_, lines, holds) => {
    const found = holdsIn(lanesOf(lines));
    expect(found).toHaveLength(holds.length);
    expect(found).toMatchObject(holds);
  });

  it("count who waited in their time, however the wait ended", () => {
    const lines = [
      granted(10, "a"),
      line(5, "queued", "before"),
      line(9, "ended", "before", { reason: "cancelled" }),
      line(20, "queued", "next"),
      line(21, "queued", "gone"),
      line(25, "skipped", "gone"),
      line(30, "queued", "still"),
      ended(40, "a", 30),
      granted(40, "next"),
      ended(50, "next", 10),
      line(50, "queued", "after"),
    ].toSorted((a, b) => a.atMs - b.atMs);
    expect(holdsIn(lanesOf(lines)).map(({ owner, waited }) => [owner, waited])).toEqual([
      ["a", 3],
      ["next", 1],
    ]);
  });
});

describe("who held a key at a time", () => {
  const lanes = lanesOf([
    granted(10, "a"),
    granted(12, "reader"),
    line(15, "queued", "b"),
    ended(20, "a", 10),
    ended(20, "reader", 8),
    granted(25, "b"),
    line(30, "queued", "c"),
    line(35, "skipped", "c"),
  ]);

  it.each<[number, readonly string[], readonly string[]]>([
    [9, [], []],
    [10, ["a"], []],
    [12, ["a", "reader"], []],
    [15, ["a", "reader"], ["b"]],
    [19, ["a", "reader"], ["b"]],
    [20, [], ["b"]],
    [24, [], ["b"]],
    [25, ["b"], []],
    [30, ["b"], ["c"]],
    [35, ["b"], []],
  ])("at %i is who began then or before, and ended later", (atMs, holders, waiters) => {
    const { holds, waits } = lanesAt(lanes, atMs);
    expect([holds.map(({ owner }) => owner), waits.map(({ owner }) => owner)]).toEqual([holders, waiters]);
  });

  it("tells how each wait ended", () => {
    expect([15, 30].map((atMs) => lanesAt(lanes, atMs).waits)).toEqual([
      [{ owner: "b", fromMs: 15, toMs: 25, ending: "granted" }],
      [{ owner: "c", fromMs: 30, toMs: 35, ending: "skipped" }],
    ]);
  });
});

describe("the log of a local service", () => {
  const running: Running[] = [];
  afterEach(async () => {
    for (const one of running.splice(0)) {
      one.signal("SIGTERM");
      await one.ended;
    }
  });

  it("tells who held a key, who waited, how each hold ended, and who still holds it", async () => {
    const dev = start(["dev", "--port", "0"], {});
    running.push(dev);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(await dev.printed(/Lock activity:\n/))?.[0] ?? "";
    const env = { HOLDFAST_URL: url };
    await using locks = createLockClient({ url, owner: "checkout-7" });
    await using others = createLockClient({ url, owner: "checkout-8" });
    const first = await locks.acquire("ORDER_1");
    const waiting = others.acquire("ORDER_1");
    await vi.waitFor(async () => expect((await locks.inspect("ORDER_1")).waiters).toHaveLength(1), PATIENCE);
    await first.release();
    const second = await waiting;
    await locks.forceRelease("ORDER_1", { fencingToken: second.fencingToken, reason: "it hangs", drainMs: 0 });
    await using third = await locks.acquire("ORDER_1");
    await using _other = await locks.acquire("ORDER_2");

    const { status, stdout } = await run(["history", "ORDER_1"], env);
    expect(status).toBe(0);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((row) => row.split(/ {2,}/)),
    ).toEqual([
      ["FROM", "TO", "OWNER", "TOKEN", "HELD FOR", "WAITED", "END"],
      [A_TIME, A_TIME, "checkout-7", String(first.fencingToken), A_WHILE, "1", "released"],
      [A_TIME, A_TIME, "checkout-8", String(second.fencingToken), A_WHILE, "0", "broken by local/local: it hangs"],
      [A_TIME, "-", "checkout-7", String(third.fencingToken), A_WHILE, "0", "still held"],
    ]);
    const found = (await jsonOf(["history", "ORDER_1"], env)) as {
      readonly items: readonly { readonly from: string; readonly to: string }[];
    };
    expect(found).toMatchObject({
      key: "ORDER_1",
      more: false,
      items: [{ ending: "released", waited: 1 }, { reason: "it hangs" }, { held: true }],
    });
    const [{ from, to } = { from: "", to: "" }] = found.items;
    // At the beginning of a hold it holds, and at its end it holds no more.
    expect(await jsonOf(["history", "ORDER_1", "--at", from], env)).toMatchObject({
      at: from,
      holders: [{ owner: "checkout-7", from, to }],
    });
    expect(await jsonOf(["history", "ORDER_1", "--at", to], env)).not.toMatchObject({ holders: [{ from }] });
    expect(await jsonOf(["history", "ORDER_1", "--max", "1"], env)).toMatchObject({ items: [{ held: true }], more: true });
    expect((await run(["history", "ORDER_1", "--max", "1"], env)).stderr).toMatch(
      /^holdfast: there are more than these 1: .*\nholdfast: the log is known from \S+Z on, and nothing of the time before\n$/,
    );
    expect((await run(["history", "ORDER_3"], env)).stderr).toMatch(/^holdfast: the log has no hold of ORDER_3 since \S+Z\n/);
  });
});

const A_TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/) as string;
const A_WHILE = expect.stringMatching(/^\d+(ms|s|m( \d+s)?)$/) as string;

/** A line of the log, with what the service has of each. */
const logLine = (operateAtMs: number, event: LogLine["event"], lease: string, more: Partial<LogLine> = {}): LogLine => ({
  event,
  namespace: "default",
  kind: "lock",
  model: "ORDER",
  id: "1",
  operateAtMs,
  owner: lease,
  principal: "arn:caller",
  requestId: randomUUID(),
  lease,
  ...more,
});

describe("the log of a deployed service", () => {
  const open = closingAfterEach();
  afterEach(() => vi.unstubAllEnvs());

  /** Serves CloudWatch Logs as far as it is asked. Returns the environment that leads there, and what it was asked. */
  async function cloudWatch(rows: readonly object[] | null, group: object | null = { creationTime: 0 }) {
    const asked: (readonly [action: string, body: Readonly<Record<string, unknown>>])[] = [];
    const answers: Readonly<Record<string, object>> = {
      ...(rows && { StartQuery: { queryId: "1" } }),
      GetQueryResults: {
        status: "Complete",
        results: rows?.map((row) => Object.entries(row).map(([field, value]) => ({ field, value: String(value) }))),
      },
      ...(group && { DescribeLogGroups: { logGroups: [{ logGroupName: "group-2" }, { logGroupName: "group", ...group }] } }),
    };
    const server = await listening((request, response) => {
      let body = "";
      request.on("data", (chunk: Buffer) => (body += chunk.toString()));
      request.on("end", () => {
        const action = String(request.headers["x-amz-target"]).replace(/^.*\./, "");
        asked.push([action, JSON.parse(body) as Record<string, unknown>]);
        const answer = answers[action];
        const type = { "content-type": "application/x-amz-json-1.1" };
        response.writeHead(answer ? 200 : 400, type).end(JSON.stringify(answer ?? { __type: "AccessDeniedException", message: "no" }));
      });
    });
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKID").stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    const env = { AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: `${open(server).url}/`, AWS_REGION: "eu-central-1", HOLDFAST_LOG_GROUP: "group" };
    return { env, asked };
  }

  /** The rows of lines, the latest first, as the query returns them. */
  const rowsOf = (lines: readonly LogLine[]): readonly object[] =>
    lines
      .toReversed()
      .map((one) => ({ "@timestamp": new Date(one.operateAtMs).toISOString().replace("T", " ").slice(0, -1), ...printed(one, []) }));

  const nowMs = Date.now();
  const released = [
    logLine(nowMs - HOUR_MS, "granted", "a", { fencingToken: 7 }),
    logLine(nowMs - HOUR_MS / 2, "ended", "a", { fencingToken: 7, heldMs: HOUR_MS / 2, reason: "released" }),
  ];
  const lasting = logLine(nowMs - 1000, "granted", "b", { fencingToken: 8 });
  const LATE = "holdfast: CloudWatch has a line only some minutes after it was written, so the latest may be missing\n";

  it("is read by the console's query, over the time that is asked for, and says that it is late", async () => {
    const { env, asked } = await cloudWatch(rowsOf([...released, lasting]));
    const { stdout, stderr } = await run(["history", "ORDER_1", "--since", "2h"], env);
    expect(stdout).toMatch(/Z {2}a +7 +30m +0 {2}released\n.*Z {2}- +b +8 +- +0 {2}no end in the log\n$/);
    expect(stderr).toBe(LATE);
    const [[, query]] = asked as [[string, { startTime: number; endTime: number; queryString: string }]];
    expect(query.queryString).toMatch(new RegExp(`filter model = "ORDER" and id = "1"\n[^]*limit ${QUERY_LINES}$`));
    expect(query.endTime - query.startTime).toBeCloseTo(7200, -1);
    expect(await jsonOf(["history", "ORDER_1"], env)).toMatchObject({
      logFrom: "1970-01-01T00:00:00.000Z",
      items: [{ owner: "a" }, { owner: "b" }],
    });
  });

  it("at a time is read before and after it, so that an end which was seen later is known", async () => {
    const lost = logLine(nowMs - HOUR_MS, "ended", "a", { heldMs: 2 * HOUR_MS, lapsedMs: HOUR_MS, reason: "taken" });
    const { env, asked } = await cloudWatch(rowsOf([lost]));
    const at = (ago: number): string => new Date(nowMs - ago).toISOString();
    expect(await jsonOf(["history", "ORDER_1", "--at", at(2.5 * HOUR_MS), "--since", "3h"], env)).toMatchObject({
      holders: [{ owner: "a" }],
    });
    const dead = await run(["history", "ORDER_1", "--at", at(1.5 * HOUR_MS), "--since", "1h"], env);
    expect(dead.stdout).toMatch(/^ORDER_1 at \S+Z: the log has no hold\n$/);
    // Only the last minutes may be missing.
    expect(dead.stderr).not.toContain(LATE);
    expect(dead.stderr).toMatch(
      /^holdfast: the log was read from \S+Z to \S+Z: a hold that began before and ended after has no line in it\n/,
    );
    const spans = asked
      .filter(([action]) => action === "StartQuery")
      .map(([, { startTime, endTime }]) => Number(endTime) - Number(startTime));
    expect(spans[0]).toBeGreaterThan(5 * 3600);
    expect(spans[1]).toBeCloseTo(7200, -1);
  });

  it("says when it begins later than it was asked for, when that isn't known, and when lines were left out", async () => {
    const kept = await cloudWatch(rowsOf(released), { creationTime: 0, retentionInDays: 1 });
    const { stderr } = await run(["history", "ORDER_1", "--since", "7d"], kept.env);
    const from = Date.parse(/known from (\S+) on/.exec(stderr)?.[1] ?? "");
    expect(from).toBeGreaterThanOrEqual(nowMs - DAY_MS);
    expect(from).toBeLessThan(nowMs - DAY_MS + HOUR_MS);
    const refused = await cloudWatch(rowsOf(released), null);
    expect((await run(["history", "ORDER_1"], refused.env)).stderr).toBe(
      `holdfast: it is not known from when on the log is kept: DescribeLogGroups: AccessDeniedException: no\n${LATE}`,
    );
    const many = Array.from({ length: QUERY_LINES }, (_, at) => logLine(nowMs - QUERY_LINES + at, "granted", "c", { model: "CART" }));
    const cut = await run(["history", "ORDER_1"], (await cloudWatch(rowsOf(many))).env);
    expect(cut.stderr).toContain(`known from ${new Date(nowMs - QUERY_LINES).toISOString()} on, and nothing of the time before\n`);
    expect(cut.stderr).toContain(`largest number of lines, ${QUERY_LINES}: ask for a shorter time`);
  });

  it("that refuses is told in CloudWatch's words", async () => {
    expect(await run(["history", "ORDER_1"], (await cloudWatch(null)).env)).toEqual({
      status: 69,
      stdout: "",
      stderr:
        "holdfast: the log group group can't be read: StartQuery: AccessDeniedException: no\n" +
        "It needs logs:StartQuery on the log group, and logs:GetQueryResults. The stack's output LogGroupName is its name.\n",
    });
  });

  it("is completed by what the service says of the key, in its namespace", async () => {
    await using lease = await service.locks.acquire("ORDER_1", { owner: "without-a-line" });
    const { env, asked } = await cloudWatch(rowsOf([...released, lasting]));
    const found = await jsonOf(["history", "ORDER_1"], { ...service.env, ...env });
    expect(found).not.toHaveProperty("items.1.to");
    expect(found).toMatchObject({
      items: [
        { owner: "a", ending: "released" },
        { owner: "b", ending: "unknown" },
        { fencingToken: lease.fencingToken, held: true },
      ],
    });
    expect(asked[0]?.[1]).toMatchObject({ queryString: expect.stringContaining("not ispresent(namespace)") as string });
  });

  it("ends a hold whose lease ran out when that was, before any request met it", async () => {
    const { clock, ...locks } = createTestClient();
    const { fencingToken } = await locks.acquire("ORDER_1", { leaseMs: HOUR_MS / 6, heartbeat: false });
    await clock.advance(HOUR_MS);
    const { env } = await cloudWatch(rowsOf([logLine(nowMs - HOUR_MS, "granted", "crashed", { fencingToken })]));
    const { texts, context } = contextOf({ env, locks, asJson: true });
    await history({ key: "ORDER_1", sinceMs: DAY_MS, max: 10 }, { group: "group" }, {}, context);
    expect(JSON.parse(texts.join(""))).toMatchObject({ items: [{ owner: "crashed", ending: "expired" }] });
    const [{ heldMs }] = (JSON.parse(texts.join("")) as { readonly items: readonly [{ readonly heldMs: number }] }).items;
    // By two clocks: the lease lasted 10 minutes of the hour.
    expect(heldMs).toBeLessThan(HOUR_MS / 2);
  });

  it("is read also while the service doesn't answer, which is said", async () => {
    const { env, asked } = await cloudWatch(rowsOf(released));
    const found = await run(["history", "ORDER_1", "--namespace", "acme"], { ...env, HOLDFAST_URL: "http://127.0.0.1:1" });
    expect(found).toMatchObject({ status: 0, stdout: expect.stringContaining("released") as string });
    expect(found.stderr).toContain("http://127.0.0.1:1");
    expect(asked[0]?.[1]).toMatchObject({ queryString: expect.stringContaining(`namespace = "acme"`) as string });
  });
});

describe("an exported log", () => {
  async function file(lines: readonly string[]): Promise<string> {
    const path = join(directory, randomUUID());
    await writeFile(path, `${lines.join("\n")}\n`);
    return path;
  }
  const lines = [
    logLine(Date.UTC(2026, 10, 22, 2, 1), "granted", "a", { fencingToken: 7 }),
    logLine(Date.UTC(2026, 10, 22, 2, 10), "queued", "b"),
    logLine(Date.UTC(2026, 10, 22, 2, 20), "ended", "a", {
      fencingToken: 7,
      heldMs: 19 * 60_000,
      reason: "broken: it hangs",
      by: "arn:carol",
    }),
    logLine(Date.UTC(2026, 10, 22, 2, 20), "granted", "b", { fencingToken: 8 }),
  ];
  const isoAt = ({ operateAtMs }: LogLine): string => new Date(operateAtMs).toISOString();
  const AT = ["--at", "2026-11-22T02:10Z"];
  const hold = { owner: "a", from: "2026-11-22T02:01:00.000Z", ending: "broken", by: "arn:carol", reason: "it hangs" };

  it.each<[string, readonly string[]]>([
    ["whole lines, as a client's own log has them, in any order", lines.toReversed().map((one) => JSON.stringify(one))],
    [
      "lines behind their time, among others",
      ["START", ...lines.map((one) => `${isoAt(one)} stream ${JSON.stringify(printed(one, []))}`), "{}", "{"],
    ],
    ["times without a zone, which are UTC", lines.map((one) => `${isoAt(one).slice(0, 19)} ${JSON.stringify(printed(one, []))}`)],
  ])("may have %s", async (_, text) => {
    const other = JSON.stringify(logLine(Date.UTC(2026, 10, 22, 2, 10), "granted", "x", { model: "CART" }));
    expect(await jsonOf(["history", "ORDER_1", ...AT, "--log", await file([...text, other])], {})).toMatchObject({
      logFrom: hold.from,
      holders: [hold],
      waiters: [{ owner: "b", from: "2026-11-22T02:10:00.000Z", to: "2026-11-22T02:20:00.000Z", ending: "granted" }],
    });
  });

  it("has other tenants' keys of the same name, of which --namespace chooses", async () => {
    const path = await file(lines.map((one) => JSON.stringify({ ...one, namespace: "acme" })));
    expect(await jsonOf(["history", "ORDER_1", ...AT, "--log", path], {})).toMatchObject({ holders: [] });
    expect(await jsonOf(["history", "ORDER_1", ...AT, "--log", path, "--namespace", "acme"], {})).toMatchObject({ holders: [hold] });
  });

  it("is shown from --since on", async () => {
    const path = await file(lines.slice(0, -1).map((one) => JSON.stringify(one)));
    expect(await jsonOf(["history", "ORDER_1", "--log", path, "--since", "1m"], {})).toMatchObject({ items: [] });
    expect(await jsonOf(["history", "ORDER_1", "--log", path, "--since", "36500d"], {})).toMatchObject({ items: [hold] });
  });

  it.each([
    [60, "ooooooo…uild-7", "broken …"],
    [100, `${"o".repeat(16)}@build-7`, "broken by arn:carol: it hangs"],
  ])("fits a screen of %i columns, on which the end of a hold is cut before its owner", async (columns, owner, end) => {
    const long = lines.map((one) => JSON.stringify({ ...one, owner: `${"o".repeat(16)}@build-7` }));
    const { texts, context } = contextOf({ screen: { ...PLAIN, columns } });
    const args = { key: "ORDER_1", sinceMs: DAY_MS, atMs: Date.UTC(2026, 10, 22, 2, 10), max: 10 };
    await history(args, { file: await file(long) }, {}, context);
    const rows = texts.join("").trimEnd().split("\n");
    expect(rows).toHaveLength(7);
    // The sentence above the tables is as long as it is.
    expect(Math.max(...rows.slice(1).map(widthOf))).toBeLessThanOrEqual(columns);
    expect(rows[3]?.split(/ {2,}/)).toEqual(expect.arrayContaining([owner, end]));
  });

  it("without a line, or that is not there, is refused by name", async () => {
    const path = await file(["no log", "{}"]);
    expect(await run(["history", "k", "--log", path], {})).toMatchObject({
      status: 78,
      stderr: expect.stringContaining(`${path}: has no line`) as string,
    });
    expect(await run(["history", "k", "--log", `${path}.none`], {})).toMatchObject({
      status: 78,
      stderr: expect.stringContaining("ENOENT") as string,
    });
  });
});

describe("a history without a log", () => {
  const next =
    "Pass --log-group or set HOLDFAST_LOG_GROUP (the stack's output LogGroupName), pass --log FILE, or --url of a `holdfast dev`, which keeps its own.";

  it.each<[string, () => Environment, RegExp]>([
    ["if nothing is given", () => ({}), /^holdfast: no log given\n/],
    ["of a table", () => ({ HOLDFAST_TABLE: "locks", AWS_REGION: "eu-central-1" }), /^holdfast: no log given: a table has none\n/],
    ["of a service that isn't local", () => service.env, /^holdfast: http:\/\/127\.0\.0\.1:\d+ keeps no log that a command can read\n/],
  ])("says %s what to give", async (_, env, message) => {
    const { status, stderr } = await run(["history", "ORDER_1"], env());
    expect(status).toBe(78);
    expect(stderr).toMatch(message);
    expect(stderr.split("\n")[1]).toBe(next);
  });

  it.each([
    [["--at", "yesterday"], /--at <time>.*Write it like 2026-11-22T03:00/],
    [["--at", "2026-02-30T25:00"], /Write it like/],
    [["--at", "2999-01-01T00:00Z"], /--at: that time is yet to come/],
    [["--log", "f", "--log-group", "g"], /--log.*--log-group/],
  ])("refuses %j", async (args, message) => {
    const { status, stderr } = await run(["history", "k", ...args], {});
    expect(status).toBe(64);
    expect(stderr).toMatch(message);
  });
});
