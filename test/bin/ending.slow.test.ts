/** Commands that end early: by a signal, or on a full disk. Each is its own process. */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type StubServer, startStubServer } from "../client/transport/stub-server.js";
import { plainEnvironment } from "../docs/npm-start.js";
import { ROOT } from "../tidy/tree.js";
import { endAll, isRunning, programFile, run, start } from "./holdfast.js";
import { type Service, serve } from "./service.js";

let service: Service;
beforeAll(async () => void (service = await serve()));
afterAll(async () => {
  await endAll();
  await service.close();
});

const PERHAPS_DONE = "It may have been done or not. Look before you do it again: it may end, or forget, what came since.\n";

describe("a signal while the service says nothing", () => {
  let silent: StubServer;
  beforeEach(async () => {
    silent = await startStubServer();
    silent.answer({ status: "silent" });
  });
  afterEach(() => silent.close());

  const COMMANDS: readonly (readonly [args: readonly string[], next: string])[] = [
    [["ls"], ""],
    [["show", "k"], ""],
    [["show", "--run", "k"], ""],
    [["runs"], ""],
    [["break", "k", "--token", "1", "--reason", "x"], PERHAPS_DONE],
    [["reset", "k", "--reason", "x"], PERHAPS_DONE],
  ];
  const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

  it.each(COMMANDS.flatMap(([args, next]) => SIGNALS.map((name) => [args, name, next] as const)))(
    "ends %j at once: %s",
    async (args, name, next) => {
      const running = start(args, { HOLDFAST_URL: silent.url });
      await vi.waitFor(() => expect(silent.received).toHaveLength(1), { timeout: 15_000, interval: 10 });
      running.signal(name);
      expect(await running.ended).toEqual({
        status: 128 + constants.signals[name],
        stdout: "",
        stderr: `holdfast: given up by ${name}\n${next}`,
      });
      // An attempt without a response is repeated, but there was no time for that.
      expect(silent.received).toHaveLength(1);
    },
  );

  it.each(SIGNALS)("ends a watch at once, without a word: %s", async (name) => {
    const running = start(["watch"], { HOLDFAST_URL: silent.url });
    await vi.waitFor(() => expect(silent.received).toHaveLength(1), { timeout: 15_000, interval: 10 });
    running.signal(name);
    expect(await running.ended).toEqual({ status: 128 + constants.signals[name], stdout: "", stderr: "" });
    expect(silent.received).toHaveLength(1);
  });

  it.each(SIGNALS)("ends a lock that waits, once it has cancelled what it asked for: %s", async (name) => {
    const running = start(["lock", "k", "--", "echo", "ran"], { HOLDFAST_URL: silent.url });
    await vi.waitFor(() => expect(silent.received).toHaveLength(1), { timeout: 15_000, interval: 10 });
    running.signal(name);
    const { status, stdout } = await running.ended;
    expect({ status, stdout }).toEqual({ status: 128 + constants.signals[name], stdout: "" });
    expect(new Set(silent.received.slice(1).map(({ method }) => method))).toEqual(new Set(["DELETE"]));
  });
});

describe.skipIf(process.platform === "win32")("a supervisor that ends npx, which started holdfast", () => {
  const jobs = new Set<number>();
  afterEach(async () => {
    for (const job of jobs) if (await isRunning(job)) process.kill(job, "SIGKILL");
    jobs.clear();
  });

  /** Starts a job under a lock by npx, which has a shell between, and ends npx alone when the job runs. Returns the job's process. */
  async function endedNpx(key: string, name: NodeJS.Signals, before = ""): Promise<number> {
    const command = `${before} '${process.execPath}' '${programFile()}' lock ${key} -- sh -c 'echo job $$; exec sleep 60'`;
    const env = plainEnvironment({ ...service.env, npm_config_update_notifier: "false" });
    const npx = spawn("npx", ["-c", command], { cwd: ROOT, env, detached: true, stdio: ["ignore", "pipe", "ignore"] });
    let printed = "";
    npx.stdout.setEncoding("utf8").on("data", (text: string) => (printed += text));
    await vi.waitFor(() => expect(printed).toMatch(/job \d+\n/), { timeout: 60_000, interval: 50 });
    npx.kill(name);
    const job = Number(/job (\d+)/.exec(printed)![1]);
    jobs.add(job);
    return job;
  }

  it.each(["SIGTERM", "SIGKILL"] as const)(
    "ends the job too, and the key is free before its lease is over: %s",
    async (name) => {
      const key = `npx-${name}`;
      const job = await endedNpx(key, name);
      await vi.waitFor(async () => expect((await service.locks.inspect(key)).holders).toEqual([]), { timeout: 15_000, interval: 50 });
      expect(await isRunning(job)).toBe(false);
    },
    90_000,
  );

  it("control: what npm doesn't know to be holdfast, such as a job in the background of a script, goes on", async () => {
    const job = await endedNpx("npx-control", "SIGKILL", "exec env npm_lifecycle_script=./job.sh");
    await delay(2000);
    expect(await isRunning(job)).toBe(true);
  }, 90_000);
});

/** Runs it with its output on a full disk. */
function onFullDisk(args: readonly string[]): Promise<{ readonly status: number; readonly stderr: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      "sh",
      ["-c", 'exec "$0" "$@" > /dev/full', process.execPath, programFile(), ...args],
      { env: plainEnvironment(service.env) },
      (_error, _stdout, stderr) => resolve({ status: child.exitCode ?? -1, stderr }),
    );
    child.stdin?.end();
  });
}

describe.skipIf(!existsSync("/dev/full"))("on a full disk", () => {
  const SAID = "holdfast: the output could not be written: ENOSPC: no space left on device, write\n";

  it.each([
    [["--help"]],
    [["lock", "--help"]],
    [["--version"]],
    [["completion", "bash"]],
    [["complete", "--", "l"]],
    [["show", "full"]],
    [["--json", "ls"]],
    [["--json", "runs"]],
    [["watch", "full", "--interval", "200ms"]],
  ])("%j is no success: 74", async (args) => {
    await using _held = await service.locks.acquire("full");
    const { status, stderr } = await onFullDisk(args);
    expect({ status, stderr }).toEqual({ status: 74, stderr: args.includes("--json") ? expect.stringContaining('"status":74') : SAID });
  });

  it("a run is recorded, and its output kept for whoever asks again", async () => {
    expect(await onFullDisk(["once", "full", "--", "echo", "kept"])).toEqual({ status: 74, stderr: SAID });
    expect(await onFullDisk(["once", "full", "--", "echo", "again"])).toEqual({ status: 74, stderr: SAID });
    expect(await run(["once", "full", "--", "echo", "again"], service.env)).toEqual({ status: 0, stdout: "kept\n", stderr: "" });
  });

  it("the command's own failure stays its status", async () => {
    expect((await onFullDisk(["once", "failing", "--", "sh", "-c", "echo out; exit 3"])).status).toBe(3);
  });
});

describe("show", () => {
  it("of a run's key says how to see the run", async () => {
    await run(["once", "report", "--", "true"], service.env);
    expect(await run(["show", "report"], service.env)).toEqual({
      status: 0,
      stdout: "report is free; no holder is on record\n",
      stderr: "holdfast: there is a run of that key: holdfast show --run report\n",
    });
    expect(await run(["show", "nothing"], service.env)).toMatchObject({ status: 0, stderr: "" });
  });
});

describe("a URL with a wrong path", () => {
  it.each([
    [["ls"], "ls"],
    [["show", "--run", "k"], "show k"],
    [["lock", "k", "--", "echo", "ran"], "lock k"],
  ])("is told as such, by %j: 78", async (args, what) => {
    const url = `${service.url}/prod`;
    const { status, stdout, stderr } = await run(args, { HOLDFAST_URL: url });
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" });
    expect(stderr).toContain(`holdfast: ${what}: The API has no such path\n`);
    expect(stderr).toContain(`Is ${url} the URL of the API? Its path is the stage, or empty.\n`);
  });
});

describe("a connection that breaks off", () => {
  it("is told after every attempt: 69, and it may have been done", async () => {
    const breaking = createServer((request) => request.socket.destroy()).listen(0, "127.0.0.1");
    await once(breaking, "listening");
    const { port } = breaking.address() as AddressInfo;
    expect(await run(["limits", "reset", "k", "--reason", "x"], { HOLDFAST_URL: `http://127.0.0.1:${port}` })).toEqual({
      status: 69,
      stdout: "",
      stderr: expect.stringMatching(/^holdfast: reset k: .*no answer.*\nIt may have been done or not\. Look before you do it again: .*\n$/),
    });
    breaking.close();
  });
});

describe("a refused connection", () => {
  it("says what was refused: the service's URL, or the table's endpoint", async () => {
    const left = await startStubServer();
    await left.close();
    const { stderr } = await run(["ls"], { HOLDFAST_URL: left.url });
    expect(stderr).toContain(`(ECONNREFUSED) from ${left.url}`);
    const env = { ...service.tableEnv, AWS_ENDPOINT_URL_DYNAMODB: left.url };
    const onTable = await run(["ls"], env);
    expect(onTable).toMatchObject({
      status: 78,
      stdout: "",
      stderr: expect.stringContaining(`no answer (ECONNREFUSED) from ${left.url}`),
    });
    // The last attempt is cut off, and an earlier one has more information than the timeout.
    const inTime = await run(["lock", "k", "--wait", "300ms", "--", "true"], env);
    expect(inTime).toMatchObject({ status: 78, stderr: expect.stringContaining(`no answer (ECONNREFUSED) from ${left.url}`) });
  });
});
