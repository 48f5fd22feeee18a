/** `holdfast watch`: on a pipe, one line for each change; in a terminal, the current state. */
import { spawnSync } from "node:child_process";
import { stripVTControlCharacters } from "node:util";
import { beforeEach, describe, expect, it } from "vitest";
import { widthOf } from "../../bin/terminal.js";
import { changesBetween, endingOf } from "../../bin/inspect/watch.js";
import { start } from "./holdfast.js";
import { serve, serveHere } from "./service.js";
import { inTerminal } from "./terminal.js";

const HAS_SCRIPT = spawnSync("script", ["--version"]).status === 0;

const service = serveHere();

const TIME = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;

describe("watch on a pipe", () => {
  it("prints what is held, then each hold that begins or ends, until it is told to end", async () => {
    const first = await service.locks.acquire("watch:a", { owner: "me" });
    const running = start(["watch", "watch:", "--interval", "200ms"], service.env);
    await running.printed(new RegExp(`^${TIME} held     watch:a me \\(token ${first.fencingToken}, exclusive, \\d+s left\\)\n$`));
    const second = await service.locks.acquire("watch:b", { mode: "shared" });
    await using _other = await service.locks.acquire("other");
    await running.printed(new RegExp(`\n${TIME} granted  watch:b somebody-else \\(token ${second.fencingToken}, shared, \\d+s left\\)\n$`));
    await first.release();
    await running.printed(new RegExp(`\n${TIME} released watch:a me \\(token ${first.fencingToken}\\)\n$`));
    await service.locks.forceRelease("watch:b", { fencingToken: second.fencingToken, reason: "a test", drainMs: 0 });
    await running.printed(new RegExp(`\n${TIME} broken   watch:b somebody-else \\(token ${second.fencingToken}\\)\n$`));
    const lost = await service.locks.acquire("watch:c", { leaseMs: 1000, heartbeat: false });
    await running.printed(new RegExp(`\n${TIME} lost     watch:c somebody-else \\(token ${lost.fencingToken}\\)\n$`));
    running.signal("SIGINT");
    const { status, stdout, stderr } = await running.ended;
    expect({ status, stderr, lines: stdout.split("\n").length }).toEqual({ status: 130, stderr: "", lines: 7 });
    await second.release();
  });

  it("as JSON prints one object a line", async () => {
    const lease = await service.locks.acquire("json:a", { owner: "me" });
    const running = start(["watch", "json:", "--json", "--interval", "200ms"], service.env);
    const held = JSON.parse(await running.printed(/\n$/)) as unknown;
    await lease.release();
    const [, ended = ""] = (await running.printed(/\n.*\n$/)).split("\n");
    running.signal("SIGTERM");
    expect(await running.ended).toMatchObject({ status: 143, stderr: "" });
    const hold = {
      key: "json:a",
      owner: "me",
      mode: "exclusive",
      permits: 1,
      fencingToken: lease.fencingToken,
      leaseMs: 30_000,
      waiting: 0,
    };
    const times = { heldMs: expect.any(Number) as number, remainingMs: expect.any(Number) as number };
    const at = expect.stringMatching(new RegExp(`^${TIME}$`)) as string;
    expect(held).toEqual({ at, event: "held", ...hold, ...times });
    expect(JSON.parse(ended)).toEqual({ at, event: "ended", ending: "released", ...hold, ...times });
  });

  it.each([
    [[], /^holdfast: watch: .*no answer.*\n$/],
    [["--json"], /^\{"error":\{"status":69,"code":"unavailable","message":"watch: [^\n]*no answer[^\n]*\n$/],
  ])("says that nobody answers, once, and goes on until somebody does: %j", async (options, said) => {
    const away = await serve();
    const running = start(["watch", ...options, "--interval", "200ms"], away.env);
    await away.locks.acquire("seen");
    await running.printed(/seen/);
    await away.goAway();
    await running.said(said);
    running.signal("SIGINT");
    expect(await running.ended).toMatchObject({ status: 130 });
    away.table.client.destroy();
  });

  it("ends when nobody reads it any more", async () => {
    await using _lease = await service.locks.acquire("unread:a");
    const running = start(["watch", "unread:", "--interval", "200ms"], service.env);
    await running.printed(/unread:a/);
    running.closeOutput();
    await service.locks.acquire("unread:b");
    expect(await running.ended).toMatchObject({ status: 141, stderr: "" });
  });
});

describe("what changed between two looks", () => {
  const hold = {
    key: "a",
    owner: "me",
    mode: "exclusive",
    permits: 1,
    fencingToken: 1,
    heldMs: 0,
    remainingMs: 1000,
    leaseMs: 1000,
    waiting: 0,
  } as const;

  it("is no renewal, but each other grant of the same key", () => {
    expect(changesBetween([hold], [{ ...hold, heldMs: 500, remainingMs: 2000 }])).toEqual([]);
    const next = { ...hold, fencingToken: 2 };
    expect(changesBetween([hold], [next])).toEqual([
      { event: "ended", hold },
      { event: "held", hold: next },
    ]);
  });
});

describe("the end of a hold", () => {
  const hold = {
    key: "a",
    owner: "me",
    mode: "exclusive",
    permits: 1,
    fencingToken: 2,
    heldMs: 0,
    remainingMs: 1000,
    leaseMs: 1000,
    waiting: 0,
  } as const;
  const known = { key: "a", version: 9, mode: "exclusive", fencingToken: 2, holders: [], waiters: [] } as const;
  const ends = (...endings: readonly ("released" | "taken" | "expired" | "broken" | "cancelled")[]) => ({
    recent: endings.map((ending) => ({ askedAgoMs: 1000, ending })),
  });

  it.each([
    ["the latest, if nothing was granted since", { ...known, ...ends("broken", "released") }, "broken"],
    ["the latest of those that held", { ...known, ...ends("cancelled", "released", "broken") }, "released"],
    [
      "a loss, if its lease is over",
      { ...known, lapsed: [{ owner: "me", fencingToken: 2, heldMs: 1, endedAgoMs: 1 }], ...ends("released") },
      "expired",
    ],
    ["that of all, if others were granted since", { ...known, fencingToken: 5, ...ends("released", "released") }, "released"],
    ["nobody's, if those ended in other ways", { ...known, fencingToken: 5, ...ends("released", "broken") }, undefined],
    ["nobody's, if the key remembers none", known, undefined],
  ])("is %s", (_, inspection, ending) => expect(endingOf(hold, inspection)).toBe(ending));

  it("is nobody's for a shared hold if another may have ended since", () => {
    expect(endingOf({ ...hold, mode: "shared" }, { ...known, ...ends("released", "broken") })).toBeUndefined();
  });
});

describe("watch on a terminal", () => {
  beforeEach(({ skip }) => skip(!HAS_SCRIPT, "there is no script (of util-linux) on the path"));

  it("draws a table, draws it anew when it changes, and gives the terminal back", async () => {
    const lease = await service.locks.acquire("drawn:a", { owner: "me" });
    const terminal = inTerminal(["watch", "drawn:", "--interval", "200ms"], service.env, { columns: 80, rows: 10 });
    await terminal.showed(/1 held key below drawn:, every 200ms; Ctrl-C ends/);
    await terminal.showed(new RegExp(`drawn:a +me +exclusive +${lease.fencingToken} `));
    await lease.release();
    await terminal.showed(/0 held keys/);
    terminal.type("\u0003");
    const { status, shown } = await terminal.ended;
    expect(status).toBe(130);
    expect(shown).toContain("\u001B[?1049h");
    expect(shown.trimEnd()).toMatch(/\u001B\[\?1049l$/u);
  });

  it("draws its table anew, no wider than the terminal, when that becomes narrower", async () => {
    const owner = `${"o".repeat(20)}@build-7`;
    await using _lease = await service.locks.acquire(`narrow:${"x".repeat(50)}:1`, { owner });
    const terminal = inTerminal(["watch", "narrow:", "--interval", "1h"], service.env, { columns: 120, rows: 10 });
    await terminal.showed(new RegExp(`x:1 +${owner} `));
    terminal.resize(60);
    const shown = await terminal.showed(/narrow:x+…x+:1 +o+…\S*ld-7 /);
    const last = stripVTControlCharacters(shown.slice(shown.lastIndexOf("1 held key"))).split(/\r?\n/);
    expect(last).toHaveLength(4);
    expect(Math.max(...last.map(widthOf))).toBeLessThanOrEqual(60);
    terminal.type("\u0003");
    await terminal.ended;
  });

  it("has the key first that is waited for", async () => {
    for (const name of ["waited:1", "waited:2"]) await service.locks.acquire(name);
    const giveUp = new AbortController();
    const waits = service.locks
      .scope("the one who waits")
      .acquire("waited:2", { waitMs: 60_000, signal: giveUp.signal })
      .catch(() => undefined);
    while ((await service.locks.inspect("waited:2")).waiters.length === 0);
    const terminal = inTerminal(["watch", "waited:", "--interval", "1h"], service.env, { columns: 80, rows: 10 });
    await terminal.showed(/waited:2[^]*waited:1/);
    terminal.type("\u0003");
    await terminal.ended;
    giveUp.abort();
    await waits;
  });

  it("says how old the rows are while nobody answers", async () => {
    const away = await serve();
    await away.locks.acquire("seen");
    const terminal = inTerminal(["watch", "--interval", "200ms"], away.env, { columns: 80, rows: 10 });
    await terminal.showed(/seen/);
    await away.goAway();
    await terminal.showed(/as of \ds ago: no answer yet/);
    await terminal.showed(/as of \d+s ago: watch: .*no answer/);
    terminal.type("\u0003");
    expect(await terminal.ended).toMatchObject({ status: 130 });
    away.table.client.destroy();
  });

  it("shows no more lines than there is room for", async () => {
    await Promise.all(Array.from({ length: 20 }, (_, at) => service.locks.acquire(`many:${at + 10}`)));
    const terminal = inTerminal(["watch", "many:", "--interval", "1h"], service.env, { columns: 80, rows: 10 });
    const shown = await terminal.showed(/… \d+ more/);
    expect(shown.match(/many:\d\d/g)).toHaveLength(5);
    expect(shown).toContain("… 15 more");
    terminal.type("\u0003");
    await terminal.ended;
  });
});
