/** `holdfast limit`: so many commands in a time, and at once; each otherwise behaves as if it ran by itself. */
import { describe, expect, it, vi } from "vitest";
import { run, start } from "./holdfast.js";
import { serveHere } from "./service.js";

const service = serveHere();

const limit = (key: string, ...rest: readonly string[]) => run(["limit", key, ...rest], service.env);
const takeOne = (key: string, count: number, perMs: number, cost: number) =>
  service.locks.limiter(key, { rates: [{ count, perMs }] }).take({ cost });
const LONG_MS = 3_600_000;

describe("a command under a limit", () => {
  it.each(["service", "table"])("takes from each rate what it costs, and ends it with its status, by the %s", async (way) => {
    const env = way === "table" ? service.tableEnv : service.env;
    const options = ["--rate", "20/1h", "--rate", "8/30m/4", "--cost", "3"];
    expect(await run(["limit", `cost-${way}`, ...options, "--", "sh", "-c", "echo ran; exit 3"], env)).toEqual({
      status: 3,
      stdout: "ran\n",
      stderr: "",
    });
    const rates = [
      { count: 16, perMs: LONG_MS, burst: 5 },
      { count: 8, perMs: LONG_MS / 2, burst: 4 },
    ];
    // The table tells its time to the second, so a take there may be dated that much later.
    await vi.waitFor(
      async () => expect((await service.locks.limits.list({ prefix: `cost-${way}` })).items).toMatchObject([{ rates, remaining: [2, 1] }]),
      5000,
    );
  });

  it("finds the key in its environment, and holds nothing", async () => {
    const { stdout } = await limit("env", "--rate", "9/1h", "--", "env");
    expect(stdout.match(/^HOLDFAST_\w+/gm)?.toSorted()).toEqual(["HOLDFAST_KEY", "HOLDFAST_URL"]);
    expect(await service.locks.inspect("env")).toMatchObject({ fencingToken: 0 });
  });

  it("is not run without room in time: 75, or the status that was asked for, and when to try again", async () => {
    await takeOne("full", 5, LONG_MS, 2);
    expect(await limit("full", "--rate", "5/1h", "--wait", "2s", "--", "echo", "ran")).toEqual({
      status: 75,
      stdout: "",
      stderr: expect.stringMatching(
        /^holdfast: full has no room under 5 in 1h within 2s: try again in 1[45]m( \d+s)?\nThe command was not run\. Wait longer by --wait, or look: holdfast limits full\n$/,
      ),
    });
    const asked = await limit("full", "--json", "--rate", "5/1h", "-n", "-E", "3", "--", "echo", "ran");
    expect(asked).toMatchObject({ status: 3, stdout: "" });
    expect(JSON.parse(asked.stderr)).toMatchObject({ error: { status: 3, code: "rate-limited", definite: true } });
  });

  it("by other rates than others use is refused for good", async () => {
    await takeOne("rates", 5, LONG_MS, 1);
    const { status, stderr } = await limit("rates", "--rate", "6/1h", "--", "true");
    expect({ status, stderr }).toEqual({
      status: 65,
      stderr: expect.stringMatching(/^holdfast: limit rates: .*rates.*\nThe command was not run\. All who use a name give the same .*\n$/),
    });
    // It names them as the list does.
    const [, theirs = "nothing"] = / {2}(\S+ in .*? \(bursts of \d+\)) /.exec((await run(["limits", "rates"], service.env)).stdout) ?? [];
    expect(stderr).toContain(`Others use this limit at other rates, ${theirs}, until`);
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
});
