/** `holdfast limit`: its waits, its signals, and its permits. What a user meets first is in limit.test.ts. */
import { describe, expect, it, vi } from "vitest";
import { isRunning, run, start } from "./holdfast.js";
import { serveHere } from "./service.js";

const service = serveHere();

const limit = (key: string, ...rest: readonly string[]) => run(["limit", key, ...rest], service.env);
const takeOne = (key: string, count: number, perMs: number, cost: number) =>
  service.locks.limiter(key, { rates: [{ count, perMs }] }).take({ cost });

describe("a command under a limit", () => {
  it("starts when there is room; control: without waiting it doesn't", async () => {
    await takeOne("later", 1, 10_000, 1);
    const waiting = start(["limit", "later", "-v", "--rate", "1/10s", "--", "echo", "ran"], service.env);
    await waiting.said(/^holdfast: waiting for room under later/);
    expect(await limit("later", "--rate", "1/10s", "--no-wait", "--", "echo", "ran")).toMatchObject({ status: 75, stdout: "" });
    expect(await waiting.ended).toMatchObject({
      status: 0,
      stdout: "ran\n",
      stderr: expect.stringMatching(/holdfast: later lets it start\n$/),
    });
  });

  it("is given up by a signal while it waits", async () => {
    await takeOne("given-up", 1, 40_000, 1);
    const running = start(["limit", "given-up", "-v", "--rate", "1/40s", "--", "echo", "ran"], service.env);
    await running.said(/^holdfast: waiting for room under given-up, for at most 45s\n/);
    running.signal("SIGTERM");
    expect(await running.ended).toMatchObject({
      status: 143,
      stdout: "",
      stderr: expect.stringContaining("given up by SIGTERM while waiting for given-up: the command was not run\n"),
    });
  });

  it("ends with a holdfast that is killed, as under a lock", async () => {
    const script = "trap 'echo heard' USR1; echo $$; while :; do sleep 0.05; done";
    const running = start(["limit", "killed", "--rate", "9/1h", "--", "sh", "-c", script], service.env);
    const pid = Number(await running.printed(/\d+\n/));
    // Until it forwards signals, it may not have told its watchdog what to watch.
    await vi.waitFor(async () => {
      running.signal("SIGUSR1");
      await running.printed(/heard/, 500);
    }, 15_000);
    running.signal("SIGKILL");
    await vi.waitFor(async () => expect(await isRunning(pid)).toBe(false), 15_000);
  });
});

describe("with --concurrent, a command", () => {
  const two = ["--rate", "9/1h", "--concurrent", "2"] as const;

  it("without a permit is 75 and names who has them, and takes nothing", async () => {
    await using _one = await service.locks.acquire("permits", { limit: 2, permits: 2, owner: "checkout-7" });
    expect(await limit("permits", ...two, "-n", "--", "echo", "ran")).toEqual({
      status: 75,
      stdout: "",
      stderr: expect.stringMatching(
        /^holdfast: could not lock permits: held by checkout-7 .*\nThe command was not run\. .* holdfast show permits\n$/,
      ),
    });
    expect((await service.locks.limits.list({ prefix: "permits" })).items).toEqual([]);
  });

  it("is ended with its lease, and that is 76", async () => {
    const running = start(["limit", "ended", ...two, "--lease", "1s", "--", "sh", "-c", "echo runs; exec sleep 60"], service.env);
    await running.printed(/runs/);
    const [holder] = (await service.locks.inspect("ended")).holders;
    await service.locks.forceRelease("ended", { fencingToken: holder!.fencingToken, reason: "a test", drainMs: 0 });
    expect(await running.ended).toMatchObject({ status: 76, stderr: expect.stringContaining("the command was ended") });
  });
});
