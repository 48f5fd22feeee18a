/** `holdfast limit`: so many commands in a time, and at once; each otherwise behaves as if it ran by itself. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { endAll, isRunning, run, start } from "./holdfast.js";
import { serve } from "./service.js";
import type { Service } from "./service.js";

let service: Service;

beforeAll(async () => void (service = await serve()));
afterAll(async () => {
  await endAll();
  await service.close();
});

const limit = (key: string, ...rest: readonly string[]) => run(["limit", key, ...rest], service.env);
const takeOne = (key: string, count: number, perMs: number, cost: number) =>
  service.locks.limiter(key, { rates: [{ count, perMs }] }).take({ cost });
const LONG_MS = 3_600_000;

describe("a command under a limit", () => {
  it.each(["service", "table"])("takes from each rate what it costs, and ends it with its status, by the %s", async (way) => {
    const env = way === "table" ? service.tableEnv : service.env;
    const options = ["--rate", "10/1h", "--rate", "8/30m/4", "--cost", "3"];
    expect(await run(["limit", `cost-${way}`, ...options, "--", "sh", "-c", "echo ran; exit 3"], env)).toEqual({
      status: 3,
      stdout: "ran\n",
      stderr: "",
    });
    const rates = [
      { count: 10, perMs: LONG_MS, burst: 10 },
      { count: 8, perMs: LONG_MS / 2, burst: 4 },
    ];
    // The table tells its time to the second, so a take there may be dated that much later.
    await vi.waitFor(
      async () => expect((await service.locks.limits.list({ prefix: `cost-${way}` })).items).toMatchObject([{ rates, remaining: [7, 1] }]),
      5000,
    );
  });

  it("finds the key in its environment, and holds nothing", async () => {
    const { stdout } = await limit("env", "--rate", "9/1h", "--", "env");
    expect(stdout.match(/^HOLDFAST_\w+/gm)?.toSorted()).toEqual(["HOLDFAST_KEY", "HOLDFAST_URL"]);
    expect(await service.locks.inspect("env")).toMatchObject({ fencingToken: 0 });
  });

  it("starts when there is room; control: without waiting it doesn't", async () => {
    await takeOne("later", 1, 2000, 1);
    const waiting = start(["limit", "later", "-v", "--rate", "1/2s", "--", "echo", "ran"], service.env);
    await vi.waitFor(async () => expect((await service.locks.limits.list({ prefix: "later" })).items[0]?.fullInMs).toBeGreaterThan(2000));
    expect(await limit("later", "--rate", "1/2s", "--no-wait", "--", "echo", "ran")).toMatchObject({ status: 75, stdout: "" });
    expect(await waiting.ended).toMatchObject({
      status: 0,
      stdout: "ran\n",
      stderr: expect.stringMatching(/holdfast: later lets it start\n$/),
    });
  });

  it("is not run without room in time: 75, or the status that was asked for, and when to try again", async () => {
    await takeOne("full", 5, LONG_MS, 5);
    expect(await limit("full", "--rate", "5/1h", "--wait", "2s", "--", "echo", "ran")).toEqual({
      status: 75,
      stdout: "",
      stderr: expect.stringMatching(
        /^holdfast: full has no room under 5\/1h within 2s: try again in 1[12]m( \d+s)?\nThe command was not run\. Wait longer by --wait, or look: holdfast limits full\n$/,
      ),
    });
    const asked = await limit("full", "--json", "--rate", "5/1h", "-n", "-E", "3", "--", "echo", "ran");
    expect(asked).toMatchObject({ status: 3, stdout: "" });
    expect(JSON.parse(asked.stderr)).toMatchObject({ error: { status: 3, code: "rate-limited", definite: true } });
  });

  it("by other rates than others use is refused for good", async () => {
    await takeOne("rates", 5, LONG_MS, 5);
    const { status, stderr } = await limit("rates", "--rate", "6/1h", "--", "true");
    expect({ status, stderr }).toEqual({
      status: 65,
      stderr: expect.stringMatching(/^holdfast: limit rates: .*rates.*\nThe command was not run\.\n$/),
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

  it("is sent signals, and what it started too", async () => {
    const inner = 'trap "echo inner; exit" USR1; echo in; while :; do sleep 0.05; done';
    const running = start(["limit", "signal", "--rate", "9/1h", "--", "sh", "-c", `trap : USR1; sh -c '${inner}'; exit 9`], service.env);
    await running.printed(/in\n/);
    running.signal("SIGUSR1");
    expect(await running.ended).toMatchObject({ status: 9, stdout: "in\ninner\n" });
  });

  it("ends with a holdfast that is killed, as under a lock", async () => {
    const running = start(["limit", "killed", "--rate", "9/1h", "--", "sh", "-c", "echo $$; exec sleep 60"], service.env);
    const pid = Number(await running.printed(/\d+\n/));
    running.signal("SIGKILL");
    await vi.waitFor(async () => expect(await isRunning(pid)).toBe(false), 10_000);
  });
});

describe("with --concurrent, a command", () => {
  const two = ["--rate", "9/1h", "--concurrent", "2"] as const;

  it("holds a permit with its lease while it runs, and finds its token", async () => {
    const running = start(["limit", "permit", ...two, "--lease", "1h", "--", "sh", "-c", "echo $HOLDFAST_FENCING_TOKEN; cat"], service.env);
    const token = Number(await running.printed(/\d+\n/));
    const found = await service.locks.inspect("permit");
    expect(found).toMatchObject({ limit: 2, holders: [{ permits: 1, fencingToken: token, leaseMs: LONG_MS }] });
    running.stdin.end();
    await running.ended;
    expect((await service.locks.inspect("permit")).holders).toEqual([]);
  });

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
