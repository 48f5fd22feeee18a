/** `holdfast lock`: one command at a time, which otherwise behaves as if it ran by itself. */
import { describe, expect, it } from "vitest";
import { run, start } from "./holdfast.js";
import { serveHere } from "./service.js";

const service = serveHere();

const lock = (key: string, ...rest: readonly string[]) => run(["lock", key, ...rest], service.env);

describe("a command under a lock", () => {
  it("finds the key, its token and its floor in its environment, and nothing else that is new", async () => {
    const { stdout } = await run(["lock", "env", "--", "env"], { ...service.env, MINE: "1" });
    const { fencingToken } = await service.locks.inspect("env");
    const found = stdout.split("\n").filter((line) => /^(HOLDFAST|AWS|MINE)/.test(line));
    expect(found.toSorted()).toEqual([
      `HOLDFAST_FENCE_FLOOR=${fencingToken}`,
      `HOLDFAST_FENCING_TOKEN=${fencingToken}`,
      "HOLDFAST_KEY=env",
      `HOLDFAST_URL=${service.url}`,
      "MINE=1",
    ]);
  });

  it("has the key while it runs, and not after it", async () => {
    const running = start(["lock", "while", "--owner", "me", "--", "sh", "-c", "echo runs; read line"], service.env);
    await running.printed(/runs/);
    expect((await service.locks.inspect("while")).holders).toMatchObject([{ owner: "me", mode: "exclusive" }]);
    expect(await service.locks.tryAcquire("while")).toBeNull();
    running.stdin.end();
    await running.ended;
    expect((await service.locks.inspect("while")).holders).toEqual([]);
  });

  it("reads stdin, and what it prints is there at once", async () => {
    const running = start(["lock", "io", "--", "cat"], service.env);
    running.stdin.write("first\n");
    await running.printed(/^first\n$/);
    running.stdin.end("second\n");
    expect(await running.ended).toEqual({ status: 0, stdout: "first\nsecond\n", stderr: "" });
  });

  it("ends it with its status", async () => {
    expect(await lock("status", "--", "sh", "-c", "exit 3")).toEqual({ status: 3, stdout: "", stderr: "" });
    expect((await service.locks.inspect("status")).holders).toEqual([]);
  });

  it("is sent a signal, and what it started too", async () => {
    const inner = 'trap "echo inner; exit" TERM; echo in; while :; do sleep 0.05; done';
    const running = start(["lock", "signal", "--", "sh", "-c", `trap : TERM; sh -c '${inner}'; echo outer; exit 9`], service.env);
    await running.printed(/in\n/);
    running.signal("SIGTERM");
    const { status, stdout } = await running.ended;
    expect(stdout).toMatch(/inner\nouter\n$/);
    expect(status).toBe(9);
  });
});

describe("several keys", () => {
  it("are held while the command runs, which finds their tokens, and not after it", async () => {
    const script = 'echo "$HOLDFAST_KEY $HOLDFAST_FENCING_TOKENS $HOLDFAST_FENCING_TOKEN"; read line';
    const running = start(["lock", "disk", "net", "--also-shared", "host", "-v", "--", "sh", "-c", script], service.env);
    const said = await running.printed(/\n/);
    const [disk, net, host] = (await Promise.all(["disk", "net", "host"].map((key) => service.locks.inspect(key)))).map(
      ({ holders }) => holders[0]!,
    );
    expect([disk, net, host].map((hold) => hold!.mode)).toEqual(["exclusive", "exclusive", "shared"]);
    const tokens = JSON.stringify({ disk: disk!.fencingToken, host: host!.fencingToken, net: net!.fencingToken });
    expect(said).toBe(`disk net host ${tokens} \n`);
    running.stdin.end();
    expect((await running.ended).stderr).toBe(`holdfast: disk net host are held under ${tokens}\n`);
    expect((await service.locks.inspect("disk")).holders).toEqual([]);
  });

  it("are held all or none: the key in the way and its holder are named", async () => {
    const theirs = await service.locks.acquire("net-2", { owner: "them" });
    const { status, stderr } = await run(["lock", "disk-2", "net-2", "--no-wait", "--", "true"], service.env);
    expect([status, stderr]).toEqual([75, expect.stringContaining("could not lock net-2 (disk-2 net-2): held by them")]);
    expect((await service.locks.inspect("disk-2")).holders).toEqual([]);
    await theirs.release();
  });

  it("let two share what both only share, and not one of them have it alone", async () => {
    const running = start(["lock", "src_a", "--also-shared", "src", "--", "sh", "-c", "echo in; read line"], service.env);
    await running.printed(/in/);
    const other = (...keys: readonly string[]) => run(["lock", ...keys, "--no-wait", "--", "true"], service.env);
    expect((await other("src_b", "--also-shared", "src")).status).toBe(0);
    expect(await other("src")).toMatchObject({ status: 75, stderr: expect.stringContaining("could not lock src: held by") as string });
    running.stdin.end();
    await running.ended;
    expect((await other("src")).status).toBe(0);
  });
});

describe("a key that is held", () => {
  it("is waited for, and got when it is free", async () => {
    const theirs = await service.locks.acquire("awaited");
    const running = start(["lock", "awaited", "-v", "--priority", "5", "--", "echo", "mine"], service.env);
    const waiters = async () => (await service.locks.inspect("awaited")).waiters;
    while ((await waiters()).length === 0);
    expect(await waiters()).toMatchObject([{ priority: 5 }]);
    await theirs.release();
    expect(await running.ended).toMatchObject({
      status: 0,
      stdout: "mine\n",
      stderr: expect.stringMatching(/^(holdfast: waiting for awaited: .*\n)*holdfast: awaited is held under token \d+\n$/),
    });
  });

  it.each([
    ["at once", ["--no-wait"], /^holdfast: could not lock KEY: held by /],
    ["in time", ["--wait", "300ms"], /^holdfast: could not lock KEY within 300ms: held by /],
  ])("and not got %s is 75, says who holds it, and runs nothing", async (what, how, first) => {
    const key = `held-${what.replace(" ", "-")}`;
    await using theirs = await service.locks.acquire(key, { owner: "checkout-7" });
    const { status, stdout, stderr } = await lock(key, ...how, "--", "echo", "ran");
    expect({ status, stdout }).toEqual({ status: 75, stdout: "" });
    expect(stderr.replaceAll(key, "KEY")).toMatch(first);
    expect(stderr).toContain(`held by checkout-7 (token ${theirs.fencingToken}, for `);
    expect(stderr).toContain(`The command was not run. Wait longer by --wait, or look: holdfast show ${key}\n`);
    expect((await service.locks.inspect(key)).waiters).toEqual([]);
  });

  it.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)("is given up by %s, and no place in its queue stays behind", async (name, status) => {
    const key = `given-up-${name}`;
    await using _theirs = await service.locks.acquire(key);
    const running = start(["lock", key, "--", "echo", "ran"], service.env);
    const waiters = async (): Promise<number> => (await service.locks.inspect(key)).waiters.length;
    while ((await waiters()) === 0);
    running.signal(name);
    expect(await running.ended).toEqual({
      status,
      stdout: "",
      stderr: `holdfast: given up by ${name} while waiting for ${key}: the command was not run\n`,
    });
    expect(await waiters()).toBe(0);
  });
});

describe("a command that can't be run", () => {
  it.each([
    ["is not there", "no-such-command", 127, "holdfast: no-such-command: command not found\n"],
    ["is no program", ".", 126, "holdfast: . could not be started (EACCES)\n"],
  ])("because it %s has the shell's status, and the key is free again", async (_what, command, status, stderr) => {
    expect(await lock("absent", "--", command)).toEqual({ status, stdout: "", stderr });
    expect((await service.locks.inspect("absent")).holders).toEqual([]);
  });
});
