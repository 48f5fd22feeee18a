/** `holdfast lock`: every option of the hold, status and signal. What a user meets first is in lock.test.ts. */
import { describe, expect, it } from "vitest";
import { run, start } from "./holdfast.js";
import { serveHere } from "./service.js";

const service = serveHere();

const lock = (key: string, ...rest: readonly string[]) => run(["lock", key, ...rest], service.env);

describe("a command under a lock", () => {
  it.each([
    [["--shared", "--lease", "1h"], { mode: "shared", permits: 1, leaseMs: 3_600_000 }],
    [["--limit", "3", "--permits", "2"], { mode: "exclusive", permits: 2, leaseMs: 30_000 }],
  ])("has the hold that the options ask for: %j", async (options, holder) => {
    const running = start(["lock", "options", ...options, "--", "cat"], service.env);
    running.stdin.write("runs\n");
    await running.printed(/runs/);
    expect((await service.locks.inspect("options")).holders).toMatchObject([holder]);
    running.stdin.end();
    await running.ended;
  });

  it.each([
    ["0", "true", 0],
    ["75, which is its own", "exit 75", 75],
    ["137 for SIGKILL", "kill -KILL $$", 137],
    ["143 for SIGTERM", "kill -TERM $$", 143],
  ])("ends it with its status: %s", async (_what, script, status) => {
    expect(await lock("status", "--", "sh", "-c", script)).toEqual({ status, stdout: "", stderr: "" });
    expect((await service.locks.inspect("status")).holders).toEqual([]);
  });

  it("has what stands after -- to itself, options and further dashes too", async () => {
    const { stdout } = await lock("dashes", "--", "printf", "%s|", "--json", "--url", "x", "--", "--help", "a b");
    expect(stdout).toBe("--json|--url|x|--|--help|a b|");
  });

  it("that is empty text is not found", async () => {
    expect(await lock("empty", "--", "")).toEqual({ status: 127, stdout: "", stderr: "holdfast: the command after -- is empty text\n" });
    expect((await service.locks.inspect("empty")).holders).toEqual([]);
  });

  it.each(["SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT", "SIGALRM", "SIGVTALRM", "SIGXCPU", "SIGXFSZ"] as const)(
    "is sent %s, and what it started too",
    async (name) => {
      const trap = name.replace("SIG", "");
      const inner = `trap "echo inner; exit" ${trap}; echo in; while :; do sleep 0.05; done`;
      const running = start(
        ["lock", `signal-${name}`, "--", "sh", "-c", `trap : ${trap}; sh -c '${inner}'; echo outer; exit 9`],
        service.env,
      );
      await running.printed(/in\n/);
      running.signal(name);
      const { status, stdout } = await running.ended;
      expect(stdout).toMatch(/inner\nouter\n$/);
      expect(status).toBe(9);
    },
  );
});

describe("a key that is held", () => {
  it("by one without a name is held by another", async () => {
    await using _theirs = await service.locks.acquire("nameless", { owner: "" });
    expect((await lock("nameless", "-n", "--", "true")).stderr).toMatch(/^holdfast: could not lock nameless: held by another \(token /);
  });

  it("and not got has the status that was asked for", async () => {
    await using _theirs = await service.locks.acquire("asked");
    expect(await lock("asked", "-n", "-E", "0", "--", "echo", "ran")).toMatchObject({ status: 0, stdout: "" });
  });

  it("by another limit is refused for good", async () => {
    await using _theirs = await service.locks.acquire("limits", { limit: 3 });
    const { status, stderr } = await lock("limits", "--limit", "4", "--", "true");
    expect({ status, stderr }).toEqual({
      status: 65,
      stderr: expect.stringMatching(/limit.*\nThe command was not run\. All who use a name give the same .*\n$/),
    });
  });
});
