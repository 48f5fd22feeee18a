/** `holdfast limit`: its waits, its signals, and its permits. What a user meets first is in limit.test.ts. */
import { describe, expect, it } from "vitest";
import { run, start } from "./holdfast.js";
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
});
