/** A command must not outlive its lease: the signals that end it, their times, and the messages. In real time, with leases of seconds. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, expect, it, vi } from "vitest";
import { createLockClient as createTableClient } from "../../lib/dynamodb.js";
import { type Running, isRunning, run, start } from "./holdfast.js";
import { serve, serveHere } from "./service.js";

const service = serveHere();

/** Prints its and its child's process id, and runs for longer than any test. */
const LONG = "sleep 60 & echo $! $$; wait";
/** The same, but both ignore SIGTERM. */
const DEAF = `trap '' TERM; ${LONG}`;
/** Exits by itself on SIGTERM. */
const TIDY = "trap 'echo tidied; exit 0' TERM; echo 0 $$; while :; do sleep 0.05; done";
/** The same, but prints a line for each SIGUSR2, which its child ignores from its first moment. */
const HEARS = "trap '' USR2; sleep 60 & trap 'echo heard' USR2; echo $! $$; while kill -0 $!; do wait $!; done";
/** Makes a program stand still for 3.5 s after each renewal of a run. It then reads what came meanwhile before its timers run. */
const STANDS_AFTER_RENEWAL = `--import=data:text/javascript,${encodeURIComponent(`
  import { subscribe } from "node:diagnostics_channel";
  const stand = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3500);
  subscribe("http.client.response.finish", ({ request }) => request.path.endsWith("/renew") && setTimeout(stand, 5));
`)}`;

const lock = (key: string, script: string, ...how: readonly string[]): Running =>
  start(["lock", key, ...how, "--", "sh", "-c", script], service.env);

/** The processes of a command, once it runs. */
async function pidsOf(running: Running): Promise<readonly number[]> {
  const printed = await running.printed(/^\d+ \d+\n/);
  return printed.trim().split(/\s/).map(Number);
}

/** Resolves when the watchdog knows the command: a `holdfast` that forwards a signal has told it. The command is {@link HEARS}. */
const watched = (running: Running): Promise<void> =>
  vi.waitFor(async () => {
    running.signal("SIGUSR2");
    await running.printed(/heard/, 500);
  }, 15_000);

const gone = (pids: readonly number[]): Promise<void> =>
  vi.waitFor(async () => expect(await Promise.all(pids.map(isRunning))).toEqual(pids.map(() => false)), 10_000);

/** The process id of the watchdog of a `holdfast`. */
async function watchdogOf(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, "utf8")).trim().split(" ");
  const lines = await Promise.all(children.map((child) => readFile(`/proc/${child}/cmdline`, "utf8")));
  return Number(children[lines.findIndex((line) => line.includes("guard-main"))]);
}

async function breakByForce(key: string): Promise<void> {
  const { fencingToken } = await service.locks.inspect(key);
  await service.locks.forceRelease(key, { reason: "test", fencingToken, drainMs: 0 });
}

describe("a hold that an operator ends", () => {
  it.each([
    ["at once", 0, "An operator ended this hold"],
    ["with its lease", undefined, "An operator is ending this hold"],
  ])("%s: its command is asked to end, with all that it started", async (when, drainMs, why) => {
    const key = `broken-${when.replaceAll(" ", "-")}`;
    const running = lock(key, LONG, "--lease", "3s");
    const pids = await pidsOf(running);
    const { fencingToken } = await service.locks.inspect(key);
    await service.locks.forceRelease(key, { reason: "test", fencingToken, ...(drainMs !== undefined && { drainMs }) });
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 76,
      stderr:
        `holdfast: the lease was lost while the command ran, and the command was ended: ${key}: ${why}\n` +
        "Another may have held the key before it ended: look at what it did before it runs again.\n",
    });
    await gone(pids);
  });

  it("control: the command of another hold goes on", async () => {
    const running = lock("not-broken", LONG, "--lease", "3s");
    const pids = await pidsOf(running);
    await service.locks.withLock("something-else", () => breakByForce("something-else")).catch(() => undefined);
    expect(await Promise.all(pids.map(isRunning))).toEqual([true, true]);
    running.signal("SIGTERM");
    expect(await running.ended).toMatchObject({ status: 143, stderr: "" });
  });

  it("and whose command doesn't hear is ended by SIGKILL", async () => {
    const running = lock("deaf", DEAF, "--lease", "3s", "--kill-after", "200ms");
    const pids = await pidsOf(running);
    await breakByForce("deaf");
    expect((await running.ended).status).toBe(76);
    await gone(pids);
  });

  it("is 76 even if the command ends well by itself, before it is known", async () => {
    const running = lock("too-late", "echo 0 $$; read line");
    await pidsOf(running);
    await breakByForce("too-late");
    running.stdin.end("\n");
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 76,
      stderr: expect.stringContaining("the command had ended with 0: too-late: was taken or broken"),
    });
  });
});

describe("a service that goes away", () => {
  it("for longer than the lease: the command is over before the lease is, and nobody else can have had the key", async () => {
    const away = await serve();
    const table = createTableClient(away.table.place);
    const running = start(["lock", "away", "--lease", "3s", "--kill-after", "1s", "--", "sh", "-c", TIDY], away.env);
    await pidsOf(running);
    await away.goAway();
    await running.printed(/tidied/);
    expect((await table.inspect("away")).holders).toHaveLength(1); // Measured by the table's own clock, after the command has ended.
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 76,
      stderr: expect.stringMatching(
        /: no renewal of the lease succeeded \(the last one: .*no answer.*\), and the command was ended while it was still held\nNobody else/,
      ),
    });
    await table.close();
    away.table.client.destroy();
  });

  it("for longer than the lease: a command that had to be killed was over before the lease was, and this is said", async () => {
    const away = await serve();
    const running = start(["lock", "killed", "--lease", "6s", "--kill-after", "2s", "--", "sh", "-c", DEAF], away.env);
    const pids = await pidsOf(running);
    await away.goAway();
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 76,
      stderr: expect.stringMatching(
        /: no renewal of the lease succeeded \(the last one: .*no answer.*\), and the command was ended while it was still held\nNobody else/,
      ),
    });
    await gone(pids);
    away.table.client.destroy();
  });

  it("just when the command has ended: its status is the command's, and it is said that the key stays held for a while", async () => {
    const away = await serve();
    const running = start(["lock", "release", "--", "sh", "-c", "echo 0 $$; read line; exit 4"], away.env);
    await pidsOf(running);
    await away.goAway();
    running.stdin.end("\n");
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 4,
      stderr: expect.stringMatching(/^holdfast: release is free only when its lease is over: .*\n$/),
    });
    away.table.client.destroy();
  });
});

describe("a lease that is shorter than its command", () => {
  it("is renewed for as long as it runs", async () => {
    const running = lock("renewed", "echo 0 $$; read line; echo done", "--lease", "4s");
    await pidsOf(running);
    const first = await service.locks.inspect("renewed");
    await vi.waitFor(async () => {
      const { holders, version } = await service.locks.inspect("renewed");
      expect(holders).toHaveLength(1);
      expect(version - first.version).toBeGreaterThan(4); // Renewed every third of the lease: this takes longer than one.
    }, 30_000);
    running.stdin.end("\n");
    expect(await running.ended).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("a holdfast", () => {
  it.each(["lock", "once"])("that stands still has its command ended before another can begin: %s", async (how) => {
    const key = `still-${how}`;
    const script = `trap 'echo 0 $$; exit 0' TERM; ${HEARS}`;
    const running = start([how, key, "--lease", "3s", "--", "sh", "-c", script], service.env);
    const pids = await pidsOf(running);
    await watched(running);
    running.signal("SIGSTOP");
    const takeOver = how === "lock" ? service.locks.acquire(key) : service.locks.runOnce(key, { waitMs: 30_000 }, () => undefined);
    await takeOver;
    expect(await Promise.all(pids.map(isRunning))).toEqual([false, false]);
    running.signal("SIGCONT");
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({ status: 76, stderr: expect.stringContaining("and the command was ended: ") });
  });

  // The watchdog wasn't told of the last renewal, and ended the command though the lease goes on.
  it("that stands still after a renewal and goes on doesn't take its command's end for a success", async () => {
    const options = ["--lease", "6s", "--kill-after", "1500ms", "--", "sh", "-c", TIDY];
    const running = start(["once", "not-done", ...options], { ...service.env, NODE_OPTIONS: STANDS_AFTER_RENEWAL });
    const { status, stdout, stderr } = await running.ended;
    expect({ status, stdout, stderr }).toEqual({
      status: 76,
      stdout: expect.stringContaining("tidied"),
      stderr: expect.stringContaining("the command was ended while it was still held\n"),
    });
    expect(await service.locks.runs.get("not-done")).toMatchObject({ state: "failed", retryable: true });
  });

  it("control: if its watchdog stands still too, its command runs beside the next holder until it goes on", async () => {
    const running = lock("frozen", LONG, "--lease", "1s");
    const pids = await pidsOf(running);
    const watchdog = await watchdogOf(running.pid);
    process.kill(watchdog, "SIGSTOP");
    running.signal("SIGSTOP");
    await using _theirs = await service.locks.acquire("frozen");
    expect(await Promise.all(pids.map(isRunning))).toEqual([true, true]); // Therefore the token is passed to the command.
    running.signal("SIGCONT");
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({ status: 76, stderr: expect.stringContaining("Another may have held the key") });
    await gone(pids);
  });

  it.each([
    ["hears", ""],
    ["doesn't hear", "trap '' TERM; "],
  ])("that is killed takes its command with it, which %s, and what that started", async (what, deaf) => {
    const key = `killed-${what.replace(/\W/g, "-")}`;
    const running = lock(key, deaf + HEARS, "--lease", "1s");
    const pids = await pidsOf(running);
    await watched(running);
    running.signal("SIGKILL");
    expect((await running.ended).status).toBeNull();
    await gone(pids);
  });

  it("control: a shell that is killed leaves what it started running", async () => {
    const shell = spawn("sh", ["-c", "sleep 60 > /dev/null & echo $!; wait"], { stdio: ["ignore", "pipe", "ignore"] });
    const [printed] = (await once(shell.stdout, "data")) as [Buffer];
    shell.kill("SIGKILL");
    await once(shell, "close");
    const pid = Number(printed.toString());
    expect(await isRunning(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });

  it("leaves what its command left running alone, when that ended by itself", async () => {
    const { status, stdout } = await run(["lock", "daemon", "--", "sh", "-c", "sleep 60 > /dev/null 2>&1 & echo $!"], service.env);
    const pid = Number(stdout);
    expect(status).toBe(0);
    expect(await isRunning(pid)).toBe(true);
    process.kill(pid, "SIGKILL");
  });
});
