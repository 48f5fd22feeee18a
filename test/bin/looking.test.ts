/** `ls`, `show`, `runs` and `limits`: their output for people and for programs. */
import pico from "picocolors";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { PLAIN } from "../../bin/terminal.js";
import type { CommandContext } from "../../bin/context.js";
import { limits, ls } from "../../bin/inspect/lists.js";
import { createLockClient, FinalError, key } from "../../lib/index.js";
import { DEFAULTS } from "../../lib/core/limits.js";
import { PATIENCE } from "../support/patience.js";
import { jsonOf, run } from "./in-process.js";
import { type Service, serve } from "./service.js";

let service: Service;

beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const holdfast = (...args: readonly string[]) => run(args, service.env);
const json = (...args: readonly string[]) => jsonOf(args, service.env);
/** The lines, split into words. */
const words = (text: string): readonly (readonly string[])[] =>
  text
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/ {2,}/));
const A_WHILE = expect.stringMatching(/^(\d+ms|\d+s|\d+m( \d+s)?)$/) as string;
const A_NUMBER = expect.any(Number) as number;
const LONG_MS = 600_000;

describe("ls", () => {
  it("lists who holds what, the holders of one key below each other", async () => {
    await using one = await service.locks.acquire("ls:a", { owner: "me", leaseMs: LONG_MS });
    await using two = await service.locks.acquire("ls:b", { mode: "shared", leaseMs: LONG_MS });
    await using three = await service.locks.acquire("ls:b", { mode: "shared", leaseMs: LONG_MS });
    await using four = await service.locks.acquire("ls:c", { limit: 5, permits: 2, leaseMs: LONG_MS });
    await using _other = await service.locks.acquire("other");
    const { status, stdout, stderr } = await holdfast("ls", "ls:");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(words(stdout)).toEqual([
      ["KEY", "OWNER", "MODE", "TOKEN", "HELD FOR", "REMAINING"],
      ["ls:a", "me", "exclusive", String(one.fencingToken), A_WHILE, A_WHILE],
      ["ls:b", "somebody-else", "shared", String(two.fencingToken), A_WHILE, A_WHILE],
      ["ls:b", "somebody-else", "shared", String(three.fencingToken), A_WHILE, A_WHILE],
      ["ls:c", "somebody-else", "2 of 5", String(four.fencingToken), A_WHILE, A_WHILE],
    ]);
    expect(stdout).not.toContain("\u001B");
    expect(words((await holdfast("ls", "ls:", "--owner", "me")).stdout)).toHaveLength(2);
  });

  it("has the key first that is waited for longest, as the console has, and as JSON by name", async () => {
    const { locks } = service;
    await using _a = await locks.acquire("busy:a", { leaseMs: LONG_MS });
    await using _b = await locks.acquire("busy:b", { leaseMs: LONG_MS });
    const giveUp = new AbortController();
    const waits = locks.scope("the one who waits").acquire("busy:b", { waitMs: LONG_MS, signal: giveUp.signal });
    const gaveUp = waits.catch(() => undefined);
    await vi.waitUntil(async () => (await locks.inspect("busy:b")).waiters.length === 1);
    const { stdout } = await holdfast("ls", "busy:");
    expect(words(stdout).map(([key]) => key)).toEqual(["KEY", "busy:b", "busy:a"]);
    expect(await json("ls", "busy:")).toMatchObject({ items: [{ key: "busy:a" }, { key: "busy:b" }] });
    giveUp.abort();
    await gaveUp;
  });

  it("and the other commands print an owner as JSON without what a terminal obeys", async () => {
    const owner = "a\u009B31m\u007F\u2028b";
    await using lease = await service.locks.acquire("hostile", { owner, leaseMs: LONG_MS });
    const token = String(lease.fencingToken);
    for (const args of [
      ["ls", "hostile"],
      ["show", "hostile"],
      ["break", "hostile", "--reason", "a test"],
      ["break", "hostile", "--reason", owner, "--token", `${token}1`],
    ]) {
      const { stdout, stderr } = await holdfast("--json", ...args);
      expect(stdout + stderr).not.toMatch(/[\u007F-\u009F\u2028\u2029]/);
    }
    expect(await json("show", "hostile")).toMatchObject({ holders: [{ owner }] });
  });

  it("says how many wait, and which parts an encoded key is made from", async () => {
    const name = key("stripe", "evt_1");
    await using _held = await service.locks.acquire(name, { leaseMs: LONG_MS });
    await using _cut = await service.locks.acquire("stripe~", { leaseMs: LONG_MS });
    // Callers of one client share a place.
    await using one = createLockClient({ url: service.url });
    await using other = createLockClient({ url: service.url });
    const waits = [one, other].map((locks) => locks.acquire(name, { waitMs: LONG_MS }).catch((error: unknown) => error));
    await vi.waitFor(async () => expect((await service.locks.inspect(name)).waiters).toHaveLength(waits.length), PATIENCE);
    const rows = words((await holdfast("ls", "stripe")).stdout);
    expect(rows.map((row) => [row[0], row.at(-1)])).toEqual([
      ["KEY", "WAITING"],
      ["stripe_evt~5F1 (stripe, evt_1)", "2"],
      ["stripe~", "0"],
    ]);
    expect((await holdfast("show", name)).stdout).toMatch(
      /^stripe_evt~5F1 \(stripe, evt_1\) is held by somebody-else for \S+, .*; 2 wait, next /,
    );
    await Promise.all([one.close(), other.close()]);
    await Promise.all(waits);
  });

  it("as JSON has the service's own members", async () => {
    await using lease = await service.locks.acquire("lsj:a", { owner: "me" });
    const holder = {
      owner: "me",
      mode: "exclusive",
      permits: 1,
      fencingToken: lease.fencingToken,
      heldMs: A_NUMBER,
      remainingMs: A_NUMBER,
      leaseMs: 30_000,
    };
    expect(await json("ls", "lsj:")).toEqual({
      namespace: "default",
      items: [{ key: "lsj:a", version: A_NUMBER, mode: "exclusive", fencingToken: lease.fencingToken, holders: [holder], waiters: [] }],
      more: false,
    });
  });

  it("says the namespace if it is not the default one", async () => {
    const signals = { offerInterrupts: vi.fn(), handBack: vi.fn() };
    const context = { locks: { list: () => Promise.resolve({ namespace: "acme", items: [] }) }, signals, say: vi.fn() };
    await ls({ prefix: "", max: 1 }, context as unknown as CommandContext);
    expect(context.say.mock.calls).toEqual([["namespace acme"], ["nobody holds a key"]]);
  });

  it("says that nobody holds any, on stderr, and is none the worse for it", async () => {
    expect(await holdfast("ls", "nothing:")).toEqual({
      status: 0,
      stdout: "",
      stderr: "holdfast: nobody holds a key that begins with nothing:\n",
    });
    expect(await json("ls", "nothing:")).toEqual({ namespace: "default", items: [], more: false });
  });

  it("says when there may be more than it was to show, and goes on with those", async () => {
    for (const name of ["page:1", "page:2"]) await service.locks.acquire(name, { leaseMs: LONG_MS });
    const { stdout, stderr } = await holdfast("ls", "page:", "--max", "1");
    expect(words(stdout).map(([key]) => key)).toEqual(["KEY", "page:1"]);
    const said = /^holdfast: there may be more than these 1: give a prefix, a larger --max, or --cursor (\S+) to go on\n$/;
    expect(stderr).toMatch(said);
    const [, cursor = ""] = said.exec(stderr)!;
    expect(await json("ls", "page:", "--max", "1")).toMatchObject({ items: [{ key: "page:1" }], more: true, cursor });
    expect(await json("ls", "page:", "--cursor", cursor)).toMatchObject({ items: [{ key: "page:2" }], more: false });
  });

  it("says how far it is among keys that nobody holds, and ends at Ctrl-C with what it found", async () => {
    const [found] = (await service.locks.list({ prefix: "page:1" })).items;
    let interrupt = (): boolean => false;
    const signals = { offerInterrupts: (listener: () => boolean) => (interrupt = listener), handBack: vi.fn() };
    const taken: boolean[] = [];
    let asked = 0;
    const list = () => {
      if ([1, 60, 120].includes(++asked)) taken.push(interrupt());
      return Promise.resolve({ items: asked === 100 ? [found] : [], cursor: `after-${asked}` });
    };
    const context = { locks: { list }, signals, screen: PLAIN, say: vi.fn(), print: vi.fn() };
    await ls({ prefix: "", max: 9 }, context as unknown as CommandContext);
    expect(context.say.mock.calls.flat()).toEqual([
      "0 found so far, in 50 requests",
      "1 found so far, in 100 requests; Ctrl-C shows them",
      "there may be more than these 1: give a prefix, a larger --max, or --cursor after-120 to go on",
    ]);
    expect(words(String(context.print.mock.calls)).map(([key]) => key)).toEqual(["KEY", "page:1"]);
    // With nothing to show, and the second time, it ends the process.
    expect([...taken, interrupt()]).toEqual([false, false, true, false]);
    expect(signals.handBack).toHaveBeenCalledTimes(1);
  });

  it("doesn't say that nobody holds a key where not all was read", async () => {
    const list = () => Promise.resolve({ items: [], cursor: "z" });
    const signals = { offerInterrupts: vi.fn(), handBack: vi.fn() };
    const context = { locks: { list }, signals, say: vi.fn() };
    await ls({ prefix: "", max: 9 }, context as unknown as CommandContext);
    expect(context.say.mock.calls.flat().slice(-2)).toEqual([
      "nobody holds a key, as far as was read",
      "not all was read: give a prefix, a larger --max, or --cursor z to go on",
    ]);
  });

  it("shows what others wrote as text, whatever a terminal would make of it", async () => {
    await using _lease = await service.locks.acquire("evil", { owner: "a\u001B[2Jb\nc\u202Ed" });
    expect((await holdfast("ls", "evil")).stdout).toContain("a\uFFFD[2Jb\uFFFDc\uFFFDd");
  });
});

describe("show", () => {
  it("shows who holds a key and who waits for it", async () => {
    await using lease = await service.locks.acquire("show", { owner: "me" });
    const giveUp = new AbortController();
    const waiting = service.locks.acquire("show", { priority: 3, signal: giveUp.signal }).catch(() => undefined);
    while ((await service.locks.inspect("show")).waiters.length === 0);
    const { stdout } = await holdfast("show", "show");
    const waiter = { owner: "somebody-else", mode: "exclusive", priority: 3, position: 1, waitingMs: A_NUMBER };
    const asJson = await json("show", "show");
    giveUp.abort();
    await waiting;
    expect(words(stdout)).toEqual([
      [expect.stringMatching(/^show is held by me for \S+, (not renewed yet: its lease is current|renewed \S+ ago); somebody-else waits$/)],
      [""],
      ["OWNER", "MODE", "TOKEN", "HELD FOR", "REMAINING"],
      ["me", "exclusive", String(lease.fencingToken), A_WHILE, A_WHILE],
      [""],
      ["PLACE", "WAITER", "MODE", "PRIORITY", "WAITING FOR"],
      ["1", "somebody-else", "exclusive", "3", A_WHILE],
    ]);
    expect(asJson).toMatchObject({ key: "show", fencingToken: lease.fencingToken, holders: [{ owner: "me" }], waiters: [waiter] });
  });

  it("says that all permits are out, and how many each waiter wants", async () => {
    await using _lease = await service.locks.acquire("permits", { limit: 2, permits: 2, owner: "me" });
    const giveUp = new AbortController();
    const waiting = service.locks.acquire("permits", { limit: 2, priority: 3, signal: giveUp.signal }).catch(() => undefined);
    while ((await service.locks.inspect("permits")).waiters.length === 0);
    const { stdout } = await holdfast("show", "permits");
    giveUp.abort();
    await waiting;
    expect(stdout).toMatch(/^permits: all 2 permits are out; somebody-else waits\n/);
    expect(words(stdout).slice(-2)).toEqual([
      ["PLACE", "WAITER", "MODE", "PRIORITY", "WAITING FOR"],
      ["1", "somebody-else", "1 of 2", "3", A_WHILE],
    ]);
  });

  it("shows that a key is free, and its last token", async () => {
    const token = await service.locks.withLock("was", ({ fencingToken }) => fencingToken);
    expect((await holdfast("show", "was")).stdout).toMatch(
      new RegExp(`^was is free; its last lease was asked for \\S+ ago \\(released\\)\nthe last grant was under token ${token}\n$`),
    );
    expect((await holdfast("show", "never")).stdout).toBe("never is free; no holder is on record\n");
    expect(await json("show", "never")).toEqual({ key: "never", version: 0, mode: "exclusive", fencingToken: 0, holders: [], waiters: [] });
  });

  it("shows a run and what came of it", async () => {
    await service.locks.runOnce("done", { keepResultMs: "forever" }, () => ({ refund: "re_1" }));
    const { fencingToken } = (await service.locks.runs.get("done"))!;
    expect((await holdfast("show", "--run", "done")).stdout).toEqual(
      expect.stringMatching(
        new RegExp(
          `^done succeeded\\. Attempt 1 has token ${fencingToken}; it ended \\S+ ago, took \\S+ and is kept for ever\nowner: somebody-else\nresult: {"refund":"re_1"}\n$`,
        ),
      ),
    );
    expect(await json("show", "--run", "done")).toEqual({
      ...{ key: "done", version: A_NUMBER, state: "succeeded", attempt: 1, fencingToken },
      ...{ owner: "somebody-else", endedAgoMs: A_NUMBER, tookMs: A_NUMBER },
      ...{ keptForMs: "forever", result: { refund: "re_1" } },
    });
  });

  it("shows why a run failed and how far it came", async () => {
    const work = service.locks.runOnce("failed", async (run) => {
      await run.saveCheckpoint({ page: 3 });
      throw new Error("no paper");
    });
    await expect(work).rejects.toThrow("no paper");
    expect((await holdfast("show", "--run", "failed")).stdout).toMatch(
      /^failed failed, and can be retried\. Attempt 1 has token \d+; it ended \S+ ago and took \S+\nowner: somebody-else\nerror: no paper\ncheckpoint: {"page":3}\n$/,
    );
    expect(await json("show", "--run", "failed")).toMatchObject({ error: { name: "Error", message: "no paper" }, checkpoint: { page: 3 } });
  });

  it("of a run that nobody knows is 66", async () => {
    expect(await holdfast("show", "--run", "never")).toEqual({
      status: 66,
      stdout: "",
      stderr: "holdfast: never has no run: it never ran, was reset, or is forgotten\n",
    });
  });
});

describe("runs", () => {
  it("lists runs with their states, and those of one state", async () => {
    await service.locks.runOnce("runs:a", () => "done");
    await service.locks.runOnce("runs:b", () => Promise.reject(new Error("again"))).catch(() => undefined);
    await service.locks.runOnce("runs:c", () => Promise.reject(new FinalError("never"))).catch(() => undefined);
    let end = (): void => undefined;
    const running = service.locks.runOnce("runs:d", { owner: "me" }, () => new Promise<void>((resolve) => (end = resolve)));
    while ((await service.locks.runs.get("runs:d")) === null);
    const { stdout } = await holdfast("runs", "runs:");
    const failed = await holdfast("runs", "runs:", "--state", "failed");
    const asJson = await json("runs", "runs:", "--state", "running");
    end();
    await running;
    const kept = expect.stringMatching(/^(23h 59m|1d)$/) as string;
    const started = expect.stringMatching(/^\d+m?s ago$/) as string;
    const ended = [started, A_WHILE, "somebody-else"];
    expect(words(stdout)).toEqual([
      ["KEY", "STATE", "ATTEMPT", "STARTED", "TOOK", "BY", "KEPT FOR"],
      ["runs:a", "succeeded", "1", ...ended, kept],
      ["runs:b", "failed, can be retried", "1", ...ended],
      ["runs:c", "failed", "1", ...ended, kept],
      ["runs:d", "running", "1", started, "-", "me"],
    ]);
    expect(words(failed.stdout).map(([key]) => key)).toEqual(["KEY", "runs:b", "runs:c"]);
    const common = { key: "runs:d", version: A_NUMBER, state: "running", attempt: 1, fencingToken: A_NUMBER };
    expect(asJson).toEqual({ items: [{ ...common, owner: "me", heldMs: A_NUMBER, remainingMs: A_NUMBER }], more: false });
  });

  it("lists by the states that it prints, and says that there are more only of those", async () => {
    const at = (day: number) => ({ occurrence: new Date(`2026-01-0${day}T02:00:00.000Z`) });
    const fail = () => Promise.reject(new FinalError("down"));
    await service.locks.tick("states", at(1), fail).catch(() => undefined);
    await service.locks.withLock("states", () => service.locks.tick("states", at(2), fail));
    await service.locks.tick("states", { ...at(3), maxLateMs: 1000 }, fail);
    await service.locks.tick("states", at(4), fail).catch(() => undefined);
    await service.locks.withLock("states", () => service.locks.tick("states", at(5), fail));
    const listed = async (...args: readonly string[]) => {
      const { items, more } = (await json("runs", "states_", ...args)) as { items: readonly { key: string }[]; more: boolean };
      return [items.map(({ key }) => Number(key.slice("states_2026-01-0".length)[0])), more];
    };
    expect(await listed("--state", "failed")).toEqual([[1, 4], false]);
    expect(await listed("--state", "failed", "--max", "1")).toEqual([[1], true]);
    expect(await listed("--state", "failed", "--max", "2")).toEqual([[1, 4], false]);
    expect(await listed("--state", "skipped")).toEqual([[2, 5], false]);
    expect(await listed("--state", "too-late")).toEqual([[3], false]);
    expect(words((await holdfast("runs", "states_", "--state", "too-late")).stdout)[1]?.[1]).toBe("too late");
  });

  it("lists those first that are out of attempts, and says what ends that", async () => {
    await service.locks.runOnce("tries:a", () => "done");
    const fail = () => service.locks.runOnce("tries:b", () => Promise.reject(new Error("down"))).catch(() => undefined);
    for (let attempt = 1; attempt <= DEFAULTS.maxAttempts; attempt++) await fail();
    const { stdout, stderr } = await holdfast("runs", "tries:");
    expect(words(stdout).map(([key, state, attempt]) => [key, state, attempt])).toEqual([
      ["KEY", "STATE", "ATTEMPT"],
      ["tries:b", "out of attempts", "5"],
      ["tries:a", "succeeded", "1"],
    ]);
    expect(stderr).toBe(
      "holdfast: a run out of attempts is refused until it is reset, unless its caller allows more than 5: holdfast reset KEY --reason TEXT\n",
    );
    expect((await holdfast("show", "--run", "tries:b")).stdout).toMatch(
      /^tries:b failed 5 times, and is refused until it is reset\. Attempt 5 has token /,
    );
  });

  it("says that there are none", async () => {
    expect(await holdfast("runs", "nothing:")).toEqual({ status: 0, stdout: "", stderr: "holdfast: there are no such runs\n" });
  });
});

describe("ticks", () => {
  const on = (name: string, day: string, work: () => unknown) =>
    service.locks.tick(name, { occurrence: new Date(`${day}T02:00:00.000Z`) }, work);

  it("lists the last occurrences of a schedule, with what became of each, and no other runs", async () => {
    await on("nightly", "2026-01-28", () => "done");
    await on("nightly", "2026-01-30", () => Promise.reject(new Error("down"))).catch(() => undefined);
    await using before = await service.locks.acquire("nightly");
    await on("nightly", "2026-01-31", () => "never");
    await before.release();
    await service.locks.tick("nightly", { occurrence: new Date("2026-02-01T02:00:00.000Z"), maxLateMs: 1000 }, () => "never");
    await on("nightly_eu", "2026-01-29", () => "done");
    await service.locks.runOnce("nightly_report", () => "done");
    const { stdout } = await holdfast("ticks", "nightly");
    const rows = words(stdout).map(([occurrence, after, state, attempt]) => [occurrence, after, state, attempt]);
    expect(rows).toEqual([
      ["OCCURRENCE", "AFTER", "STATE", "ATTEMPT"],
      ["2026-01-28T02:00:00.000Z", "-", "succeeded", "1"],
      ["2026-01-30T02:00:00.000Z", "2d", "failed, can be retried", "1"],
      ["2026-01-31T02:00:00.000Z", "1d", "skipped", "1"],
      ["2026-02-01T02:00:00.000Z", "1d", "too late", "1"],
    ]);
    const occurrence = "2026-02-01T02:00:00.000Z";
    const last = { key: `nightly_${occurrence}`, occurrence, afterMs: 86_400_000, state: "failed", errorName: "TickTooLate" };
    expect(await json("ticks", "nightly", "--max", "1")).toMatchObject({ items: [last] });
  });

  it("are what show --run points to for the schedule's name", async () => {
    await on("weekly", "2026-01-28", () => "done");
    await on("weekly_eu", "2026-01-28", () => "done");
    const said = (name: string, next: string) => ({
      status: 66,
      stdout: "",
      stderr: `holdfast: ${name} has no run: it never ran, was reset, or is forgotten\n${next}`,
    });
    const next = "It is a schedule, whose occurrences are shown by: holdfast ticks weekly\n";
    expect(await holdfast("show", "--run", "weekly")).toEqual(said("weekly", next));
    expect(await holdfast("show", "--run", "week")).toEqual(said("week", ""));
  });

  it("fails with --within if none was done in that time", async () => {
    await on("lately", "2026-01-30", () => "done");
    await on("never", "2026-01-30", () => Promise.reject(new FinalError("down"))).catch(() => undefined);
    expect(await holdfast("ticks", "lately", "--within", "1h")).toMatchObject({ status: 0, stderr: "" });
    await vi.waitUntil(async () => (await service.locks.runs.get("lately_2026-01-30T02:00:00.000Z"))!.endedAgoMs! > 1);
    for (const [name, within] of [
      ["lately", "1ms"],
      ["never", "1h"],
      ["unknown", "1h"],
    ] as const)
      expect(await holdfast("ticks", name, "--within", within)).toMatchObject({
        status: 66,
        stderr: expect.stringContaining(`no occurrence of ${name} was done within ${within}`) as string,
      });
  });
});

describe("limits", () => {
  beforeAll(async () => {
    const rates = [
      { count: 100, perMs: LONG_MS, burst: 100 },
      { count: 5, perMs: 90_000, burst: 2 },
    ];
    await service.locks.limiter("limits:partner", { rates }).take({ cost: 2 });
    await service.locks.limiter("limits:short", { rates: [{ count: 9, perMs: LONG_MS, burst: 9 }] }).take();
  });

  it("lists those in use, with their rates in words and what is left of each", async () => {
    const { status, stdout, stderr } = await holdfast("limits", "limits:");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(words(stdout)).toEqual([
      ["KEY", "LIMITS", "LEFT", "NEXT IN", "ALL BACK IN"],
      ["limits:partner", "199 in 10m (bursts of 100), 6 in 90s (bursts of 2)", "98 of 100, 0 of 2", A_WHILE, A_WHILE],
      ["limits:short", "17 in 10m (bursts of 9)", "8 of 9", "now", A_WHILE],
    ]);
    expect(words((await holdfast("limits", "limits:", "--max", "1")).stdout)).toHaveLength(2);
  });

  it("says when one can be taken of a limit with nothing left", async () => {
    await service.locks.limiter("next:none", { rates: [{ count: 2, perMs: LONG_MS, burst: 2 }] }).take({ cost: 2 });
    await service.locks.limiter("next:some", { rates: [{ count: 2, perMs: LONG_MS, burst: 2 }] }).take();
    const five = expect.stringMatching(/^(4m \d+s|5m)$/) as string;
    const ten = expect.stringMatching(/^(9m \d+s|10m)$/) as string;
    expect(words((await holdfast("limits", "next:")).stdout)).toEqual([
      ["KEY", "LIMITS", "LEFT", "NEXT IN", "ALL BACK IN"],
      ["next:none", "3 in 10m (bursts of 2)", "0 of 2", five, ten],
      ["next:some", "3 in 10m (bursts of 2)", "1 of 2", "now", five],
    ]);
  });

  it("lists those whose permits are out, with who waits, beside their rates and without", async () => {
    await using _one = await service.locks.acquire("permits:a", { limit: 3, permits: 3, leaseMs: LONG_MS });
    await using _two = await service.locks.acquire("permits:b", { limit: 2, leaseMs: LONG_MS });
    await using _lock = await service.locks.acquire("permits:c", { leaseMs: LONG_MS });
    await service.locks.limiter("permits:b", { rates: [{ count: 9, perMs: LONG_MS, burst: 9 }] }).take();
    const giveUp = new AbortController();
    const waiting = service.locks.acquire("permits:a", { limit: 3, signal: giveUp.signal }).catch(() => undefined);
    while ((await service.locks.inspect("permits:a")).waiters.length === 0);
    const { stdout } = await holdfast("limits", "permits:");
    const { items } = (await json("limits", "permits:a")) as { readonly items: readonly unknown[] };
    giveUp.abort();
    await waiting;
    expect(words(stdout)).toEqual([
      ["KEY", "LIMITS", "LEFT", "ALL BACK IN", "WAITING"],
      ["permits:a", "3 at once", "0 of 3", "-", "1"],
      ["permits:b", "17 in 10m (bursts of 9), 2 at once", "8 of 9, 1 of 2", A_WHILE, "0"],
    ]);
    expect(items).toEqual([{ key: "permits:a", permits: { out: 3, of: 3, waiting: 1 } }]);
  });

  it("as JSON has the service's own members", async () => {
    const rates = [{ count: 9, perMs: LONG_MS, burst: 9 }];
    expect(await json("limits", "limits:s")).toEqual({
      items: [{ key: "limits:short", rates, remaining: [8], nextInMs: 0, fullInMs: A_NUMBER }],
      more: false,
    });
  });

  it("fits 80 columns, and marks what has nothing left", async () => {
    const rates = Array.from({ length: 4 }, () => ({ count: 1_000_000, perMs: 86_400_000, burst: 500_000 }));
    const listed = [
      { key: "limits:short", rates: rates.slice(0, 2), remaining: [98, 0], fullInMs: 1 },
      { key: "z".repeat(99), rates, remaining: [500_000, 0, 500_000, 1], fullInMs: 1 },
    ];
    const screen = { columns: 80, colors: { ...pico.createColors(false), yellow: (text: unknown) => `<${String(text)}>` } };
    const print = vi.fn();
    const locks = { limits: { list: () => Promise.resolve({ items: listed }) }, list: () => Promise.resolve({ items: [] }) };
    await limits({ prefix: "", max: 9 }, { locks, screen, print, say: vi.fn() } as unknown as CommandContext);
    const [text] = print.mock.calls[0] as [string];
    expect(text.match(/<\d[^>s]*>/g)).toEqual(["<98, 0>", "<500000, 0, 500000, 1>"]);
    expect(
      text
        .replaceAll(/[<>]/g, "")
        .split("\n")
        .filter((line) => line.length > 80),
    ).toEqual([]);
  });

  it("says that there are none, and how to take from one", async () => {
    expect(await holdfast("limits", "nothing:")).toEqual({
      status: 0,
      stdout: "",
      stderr:
        "holdfast: no limit that begins with nothing: is in use: all is back, and no permit is out. One at once is a lock: holdfast ls\n" +
        "holdfast: to take from one: holdfast limit KEY --rate 100/1m -- COMMAND\n",
    });
  });
});
