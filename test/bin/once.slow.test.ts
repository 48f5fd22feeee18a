/** `holdfast once`: the command runs once, and every caller gets its outcome. */
import { appendFile, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { FinalError } from "../../lib/index.js";
import { LIMITS } from "../../lib/core/limits.js";
import { RESULT_BYTES } from "../../bin/exec/stored-output.js";
import { endAll, run, start } from "./holdfast.js";
import { type Service, serve } from "./service.js";

let service: Service;
let directory: string;
/** A file with a line for each run of a command. */
let diary: string;
let entries = 0;

beforeAll(async () => {
  service = await serve();
  directory = await mkdtemp(join(tmpdir(), "holdfast-"));
});
beforeEach(async () => {
  diary = join(directory, String(entries++));
  await appendFile(diary, "");
});
afterAll(async () => {
  await endAll();
  await service.close();
  await rm(directory, { recursive: true });
});

const once = (key: string, ...rest: readonly string[]) => run(["once", key, ...rest], service.env);
/** Runs a script that adds a line to the diary. */
const writing = (key: string, script: string, ...how: readonly string[]) =>
  once(key, ...how, "--", "sh", "-c", `echo ran >> ${diary}; ${script}`);
const timesRun = async (): Promise<number> => (await readFile(diary, "utf8")).split("\n").length - 1;

describe("a command that succeeded", () => {
  it("is not run again: who asks again is given what it printed", async () => {
    const first = await writing("twice", "echo result; echo words >&2");
    expect(first).toEqual({ status: 0, stdout: "result\n", stderr: "words\n" });
    expect(await writing("twice", "echo another result")).toEqual({ status: 0, stdout: "result\n", stderr: "" });
    expect(await timesRun()).toBe(1);
    expect(await service.locks.runs.get("twice")).toMatchObject({
      state: "succeeded",
      attempt: 1,
      result: { exitCode: 0, stdout: "result\n" },
    });
  });

  it("ends although a process that it left behind goes on printing", async () => {
    const script = "echo mine; (while :; do echo more; sleep 0.3; done) & echo $!";
    const { status, stdout } = await once("left", "--", "sh", "-c", script);
    process.kill(Number(/\d+/.exec(stdout)?.[0]), "SIGKILL");
    expect(status).toBe(0);
    expect(stdout).toContain("mine\n");
    expect(stdout.match(/more/g)!.length).toBeLessThan(10);
  });

  it("prints at once what it prints, before it is kept", async () => {
    const running = start(["once", "shown", "--", "sh", "-c", "echo first; read line; echo $line"], service.env);
    await running.printed(/^first\n$/);
    running.stdin.end("second\n");
    expect(await running.ended).toEqual({ status: 0, stdout: "first\nsecond\n", stderr: "" });
    expect((await once("shown", "--", "false")).stdout).toBe("first\nsecond\n");
  });

  it("may print what is not text, byte for byte", async () => {
    const script = String.raw`printf '\377\376\000\n'`;
    await once("bytes", "--", "sh", "-c", script);
    expect(await service.locks.runs.get("bytes")).toMatchObject({ result: { exitCode: 0, stdoutBase64: "//4ACg==" } });
    const running = start(["once", "bytes", "-v", "--", "false"], service.env);
    expect(await running.ended).toMatchObject({
      status: 0,
      stdout: "\uFFFD\uFFFD\0\n",
      stderr: "holdfast: bytes was done before, in attempt 1\n",
    });
  });

  it("goes on when nobody listens to what it prints any more, and that is kept", async () => {
    const script = "echo first; read line; echo second; echo third";
    const running = start(["once", "deaf", "--", "sh", "-c", script], service.env);
    await running.printed(/first/);
    running.closeOutput();
    running.stdin.end("go\n");
    expect((await running.ended).status).toBe(0);
    expect((await once("deaf", "--", "false")).stdout).toBe("first\nsecond\nthird\n");
  });
});

describe("what the command finds in its environment", () => {
  it("is its key, attempt and token, and whether another attempt broke off", async () => {
    const script = `env | grep ^HOLDFAST_ | sort | grep -v URL; [ $HOLDFAST_ATTEMPT -eq 2 ]`;
    const first = await once("env", "--", "sh", "-c", script);
    const second = await once("env", "--", "sh", "-c", script);
    const { fencingToken } = (await service.locks.runs.get("env"))!;
    const lines = (attempt: number, token: string) =>
      ["ATTEMPT=" + String(attempt), "FENCING_TOKEN=" + token, "IDEMPOTENCY_KEY=env", "KEY=env", "TAKEOVER=false"].map(
        (line) => `HOLDFAST_${line}\n`,
      );
    expect([first.status, second.status]).toEqual([1, 0]);
    expect(second.stdout).toBe(lines(2, String(fencingToken)).join(""));
    const [, tokenBefore = ""] = /FENCING_TOKEN=(\d+)/.exec(first.stdout) ?? [];
    expect(first.stdout).toBe(lines(1, tokenBefore).join(""));
    expect(Number(tokenBefore)).toBeLessThan(fencingToken);
  });

  it("says so when it takes over from one that was killed", async () => {
    const running = start(["once", "takeover", "--lease", "1s", "--", "sh", "-c", "echo runs; sleep 60"], service.env);
    await running.printed(/runs/);
    running.signal("SIGKILL");
    await running.ended;
    const { stdout } = await once("takeover", "--", "sh", "-c", "echo $HOLDFAST_ATTEMPT $HOLDFAST_TAKEOVER");
    expect(stdout).toBe("2 true\n");
  });
});

describe("a command that failed", () => {
  it("ends it with its status, and is run again by the next caller", async () => {
    expect(await writing("failing", "echo half; exit 3")).toEqual({ status: 3, stdout: "half\n", stderr: "" });
    expect(await service.locks.runs.get("failing")).toMatchObject({
      state: "failed",
      retryable: true,
      attempt: 1,
      error: { message: "exit status 3" },
    });
    expect(await writing("failing", "echo whole")).toEqual({ status: 0, stdout: "whole\n", stderr: "" });
    expect(await timesRun()).toBe(2);
  });

  it.each([
    ["by a signal", "kill -KILL $$", 137, "ended by SIGKILL"],
    ["because it is not there", undefined, 127, "no-such-command: command not found"],
  ])("%s, too", async (what, script, status, message) => {
    const key = `failed-${what.replaceAll(" ", "-")}`;
    expect((await once(key, "--", ...(script === undefined ? ["no-such-command"] : ["sh", "-c", script]))).status).toBe(status);
    expect(await service.locks.runs.get(key)).toMatchObject({ state: "failed", retryable: true, error: { message } });
  });

  it("as often as it may is not run any more, until it is reset", async () => {
    for (const attempt of [1, 2])
      expect(await writing("tired", "exit 1", "--max-attempts", "2"), String(attempt)).toMatchObject({ status: 1 });
    const { status, stderr } = await writing("tired", "exit 1", "--max-attempts", "2");
    const hint =
      /tired: The run was attempted 2 times, of 2 at most: reset it, or allow more attempts \(maxAttempts\)\. A failure that no retry changes ends a run at once: FinalError, --final, [^\n]+\nThe command was not run\. To have it begin anew: holdfast reset tired --reason …\n$/;
    expect({ status, stderr }).toEqual({ status: 65, stderr: expect.stringMatching(hint) });
    expect(await timesRun()).toBe(2);
    await service.locks.runs.reset("tired", { reason: "test" });
    expect(await writing("tired", "true", "--max-attempts", "2")).toMatchObject({ status: 0 });
  });

  it("with a status that is final is not run again, and replayed with it", async () => {
    expect(await writing("final", "echo no; exit 1", "--final", "1,2")).toEqual({ status: 1, stdout: "no\n", stderr: "" });
    expect(await writing("final", "true")).toEqual({ status: 1, stdout: "no\n", stderr: "" });
    expect(await timesRun()).toBe(1);
    expect(await writing("not-final", "exit 3", "--final", "1,2")).toMatchObject({ status: 3 });
    expect(await writing("not-final", "true", "--final", "1,2")).toMatchObject({ status: 0 });
  });
});

describe("a caller who comes while another runs it", () => {
  it("has 75 when that is not over in time, and runs nothing", async () => {
    const running = start(["once", "busy", "--", "sh", "-c", "echo runs; read line"], service.env);
    await running.printed(/runs/);
    for (const how of [["--no-wait"], ["--wait", "200ms"]]) {
      const { status, stdout, stderr } = await writing("busy", "true", ...how);
      expect({ status, stdout }).toEqual({ status: 75, stdout: "" });
      expect(stderr).toMatch(/^holdfast: busy is still run by another.*\nThe command was not run\. .*holdfast show --run busy\n$/);
    }
    expect(await writing("busy", "true", "-n", "--conflict-exit-code", "0")).toMatchObject({ status: 0 });
    expect(await timesRun()).toBe(0);
    running.stdin.end("\n");
    await running.ended;
  });

  it("gives up by a signal, and the other goes on", async () => {
    const running = start(["once", "calm", "--", "sh", "-c", "echo runs; read line; echo done"], service.env);
    await running.printed(/runs/);
    const waiting = start(["once", "calm", "-w", "1h", "--", "true"], service.env);
    waiting.stdin.end();
    const wasRefused = (line: object): boolean => /run-in-progress.*calm|calm.*run-in-progress/.test(JSON.stringify(line));
    await vi.waitFor(() => expect(service.lines.some(wasRefused)).toBe(true), 15_000);
    waiting.signal("SIGINT");
    expect(await waiting.ended).toMatchObject({ status: 130, stdout: "" });
    running.stdin.end("\n");
    expect(await running.ended).toMatchObject({ status: 0, stdout: "runs\ndone\n" });
  });
});

describe("a run", () => {
  it("of the SDK's is replayed: text as it is, everything else as JSON; one that failed for good is 65", async () => {
    await service.locks.runOnce("sdk-text", () => "text");
    await service.locks.runOnce("sdk-json", () => ({ refund: "re_1" }));
    await service.locks.runOnce("sdk-nothing", () => undefined);
    await service.locks
      .runOnce("sdk-failed", () => {
        throw new FinalError("the card is stolen");
      })
      .catch(() => undefined);
    expect(await writing("sdk-text", "true")).toMatchObject({ status: 0, stdout: "text" });
    expect(await writing("sdk-json", "true")).toMatchObject({ status: 0, stdout: '{"refund":"re_1"}\n' });
    expect(await writing("sdk-nothing", "true")).toMatchObject({ status: 0, stdout: "" });
    expect(await writing("sdk-failed", "true")).toMatchObject({ status: 65, stderr: expect.stringContaining("the card is stolen") });
    expect(await timesRun()).toBe(0);
  });
});

describe("output that is too large to be kept", () => {
  const bytes = RESULT_BYTES + 1;
  const script = `head -c ${bytes} /dev/zero | tr '\\0' x`;

  it("is what the service keeps at most", () => {
    expect(RESULT_BYTES).toBe(LIMITS.resultBytes);
  });

  it("is shown whole, and an error then and at each replay; the command is not run again", async () => {
    const first = await writing("large", script);
    expect(first.stdout).toHaveLength(bytes);
    for (const { status, stderr } of [first, await writing("large", script)]) {
      expect({ status, stderr }).toEqual({
        status: 73,
        stderr:
          `holdfast: large is done, with status 0; what the command printed was not kept: ${bytes} bytes are too many\n` +
          "It will not run again. With --large-output drop this is no error.\n",
      });
    }
    expect(await timesRun()).toBe(1);
    expect(await service.locks.runs.get("large")).toMatchObject({ state: "succeeded", result: { exitCode: 0, stdoutOmittedBytes: bytes } });
  });

  it("can be dropped: the status is the command's, then and at each replay", async () => {
    const first = await writing("dropped", `${script}; exit 2`, "--final", "2", "--large-output", "drop");
    expect({ ...first, stdout: first.stdout.length }).toEqual({ status: 2, stdout: bytes, stderr: "" });
    expect(await writing("dropped", script, "--large-output", "drop")).toEqual({
      status: 2,
      stdout: "",
      stderr: `holdfast: dropped: what the command printed was not kept: ${bytes} bytes are too many\n`,
    });
    expect(await timesRun()).toBe(1);
  });
});

describe("a service that goes away while the command runs", () => {
  it("is told, with the command's status: what came of it is perhaps not recorded", async () => {
    const away = await serve();
    const running = start(["once", "away", "--lease", "2s", "--", "sh", "-c", "echo runs; read line"], away.env);
    await running.printed(/runs/);
    await away.goAway();
    running.stdin.end("\n");
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 69,
      stderr: expect.stringMatching(
        /^holdfast: away: the command ended with 0, and that was perhaps not recorded: .*\nThe next caller may run it again\.\n$/,
      ),
    });
    away.table.client.destroy();
  });
});
