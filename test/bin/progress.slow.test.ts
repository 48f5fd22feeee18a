/** `holdfast lock --progress`: what counts as progress, what the command's output goes through, and the end without any. In real time. */
import { spawnSync } from "node:child_process";
import { describe, expect, it, vi } from "vitest";
import { isRunning, run, start } from "./holdfast.js";
import { serveHere } from "./service.js";
import { inTerminal } from "./terminal.js";

const service = serveHere();

/** The lease, and the time without output: so long that a busy machine loses no lease within it. */
const LEASE = "5s";
/** Prints its and its child's process id, and then nothing. */
const HANGS = "sleep 600 & echo $! $$; wait";

const lock = (key: string, progress: string, script: string) =>
  start(["lock", key, "--lease", LEASE, "--progress", progress, "--", "sh", "-c", script], service.env);

describe("a command that must print", () => {
  it("is ended when it prints nothing for so long, with all that it started, and frees its key", async () => {
    const running = lock("silent", LEASE, HANGS);
    const pids = (await running.printed(/^\d+ \d+\n/)).trim().split(" ").map(Number);
    const { status, stderr } = await running.ended;
    expect({ status, stderr }).toEqual({
      status: 76,
      stderr:
        "holdfast: silent: the command printed nothing for 5s, so its lease was lost, and the command was ended\n" +
        "The key stayed held while it ended. Raise --progress if it prints more rarely.\n",
    });
    await vi.waitFor(async () => expect(await Promise.all(pids.map(isRunning))).toEqual([false, false]), 10_000);
    expect((await service.locks.inspect("silent")).holders).toEqual([]);
  });

  it.each([
    ["stdout", "echo on"],
    ["stderr", "echo on >&2"],
  ])("goes on for as long as it prints to %s", async (_where, prints) => {
    const { status } = await lock("prints", LEASE, `for step in 1 2 3 4 5 6; do ${prints}; sleep 1; done; exit 5`).ended;
    expect(status).toBe(5);
  });

  it("control: without --progress it may be silent", async () => {
    const running = start(["lock", "free", "--lease", LEASE, "--", "sh", "-c", "sleep 6; exit 5"], service.env);
    expect(await running.ended).toEqual({ status: 5, stdout: "", stderr: "" });
  });

  it("has what it prints passed on at once, byte for byte, each to its own stream, and reads stdin", async () => {
    const running = lock("bytes", "60s", String.raw`printf '\377\000\n'; printf '\376half' >&2; read line; echo "$line"`);
    await running.printed(/^\uFFFD\0\n$/);
    await running.said(/^\uFFFDhalf$/);
    running.stdin.end("second\n");
    expect(await running.ended).toEqual({ status: 0, stdout: "\uFFFD\0\nsecond\n", stderr: "\uFFFDhalf" });
  });

  it("holds several keys, and loses all of them", async () => {
    const running = start(["lock", "disk", "net", "--lease", LEASE, "--progress", LEASE, "--", "sh", "-c", HANGS], service.env);
    expect((await running.ended).stderr).toContain("disk net: the command printed nothing for 5s");
    expect(await service.locks.tryAcquireAll(["disk", "net"])).not.toBeNull();
  });

  it("has no terminal to print to, but reads from it", async ({ skip }) => {
    skip(spawnSync("script", ["--version"]).status !== 0, "there is no script (of util-linux) on the path");
    const script = "for fd in 0 1 2; do [ -t $fd ] && echo $fd is one || echo $fd is none; done";
    const shownBy = async (...more: readonly string[]) => {
      const terminal = inTerminal(["lock", "terminal", ...more, "--", "sh", "-c", script], service.env);
      return (await terminal.ended).shown.replaceAll("\r", "");
    };
    expect(await shownBy("--progress", "1m")).toBe("0 is one\n1 is none\n2 is none\n");
    expect(await shownBy()).toBe("0 is one\n1 is one\n2 is one\n");
  });
});

describe("a time without output", () => {
  it("is at least the lease", async () => {
    const { status, stderr } = await run(["lock", "short", "--progress", "29s", "--", "true"], service.env);
    expect([status, stderr]).toEqual([64, expect.stringMatching(/^holdfast: --progress: must be at least --lease\n/)]);
  });

  it.each([["once"], ["limit", "--rate", "1/1s"]])("is no option of %s, which says so", async (...words) => {
    const [command = "", ...options] = words;
    const { status, stderr } = await run([command, "key", ...options, "--progress", "1m", "--", "true"], service.env);
    expect([status, stderr]).toEqual([64, expect.stringContaining("unknown option '--progress'")]);
  });
});
