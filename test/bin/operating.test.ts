/** `break` and `reset`: their effects, and their output for people and for programs. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { jsonOf, run } from "./in-process.js";
import { type Service, serve } from "./service.js";

let service: Service;

beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());

const holdfast = (...args: readonly string[]) => run(args, service.env);
const json = (...args: readonly string[]) => jsonOf(args, service.env);
const A_NUMBER = expect.any(Number) as number;
const LONG_MS = 600_000;

describe("break", () => {
  it("ends the only hold, names it, and leaves it its lease", async () => {
    const lease = await service.locks.acquire("break", { owner: "me", leaseMs: LONG_MS });
    const { status, stdout } = await holdfast("break", "break", "--reason", "stuck");
    expect({ status, stdout }).toEqual({
      status: 0,
      stdout: expect.stringMatching(
        /^break: the hold of me \(token \d+, held for \d+m?s\) can't be renewed and ends in (9m \d+s|10m( \ds)?) at the latest; then the key is free\n$/,
      ),
    });
    expect(stdout).toContain(`token ${lease.fencingToken},`);
    await expect(lease.renew()).rejects.toMatchObject({ reason: "broken" });
    expect((await service.locks.inspect("break")).holders).toHaveLength(1);
    expect(service.lines).toContainEqual(expect.objectContaining({ event: "breaking", id: "break", reason: "stuck" }));
  });

  it("ends it by force within the time to drain", async () => {
    const lease = await service.locks.acquire("drain", { owner: "me", leaseMs: LONG_MS });
    expect((await holdfast("break", "drain", "--reason", "stuck", "--drain", "0s")).stdout).toMatch(
      / is over now; the key is free; its holder learns of it /,
    );
    expect((await service.locks.inspect("drain")).holders).toEqual([]);
    await expect(lease.renew()).rejects.toMatchObject({ reason: "broken" });
  });

  it("says of a hold that ends before its lease that the work can run on, and of no other", async () => {
    const said = async (key: string, ...how: readonly string[]): Promise<string> => {
      const { fencingToken } = await service.locks.acquire(key, { leaseMs: LONG_MS });
      const named = how.includes("--token") ? [String(fencingToken)] : [];
      return (await holdfast("break", key, "--reason", "stuck", ...how, ...named)).stdout;
    };
    const runsOn =
      "; its holder learns of it at its next heartbeat, within about a third of its lease, and its work runs on until it heeds that, beside the next holder\n";
    expect(await said("drain-2s", "--drain", "2s")).toMatch(new RegExp(`ends in [12]s at the latest; then the key is free${runsOn}$`));
    expect(await said("drain-named", "--drain", "2s", "--token")).toContain(runsOn);
    for (const how of [[], ["--drain", "1h"]])
      expect(await said(`drained-${how.length}`, ...how)).toMatch(/ at the latest; then the key is free\n$/);
  });

  it("ends the hold that its token names, and no other", async () => {
    const [one, two] = [
      await service.locks.acquire("several", { mode: "shared" }),
      await service.locks.acquire("several", { mode: "shared" }),
    ];
    const which = await holdfast("break", "several", "--reason", "stuck");
    expect(which).toMatchObject({
      status: 64,
      stdout: "",
      stderr: expect.stringMatching(/^holdfast: several has 2 holders: say which by --token\n/),
    });
    for (const { fencingToken } of [one, two])
      expect(which.stderr).toMatch(
        new RegExp(`token ${fencingToken}, held for \\w+\\): if broken, its hold is over: the key stays held by`),
      );
    const three = await service.locks.acquire("several", { mode: "shared" });
    const named = ["break", "several", "--reason", "stuck", "--drain", "0s", "--token"];
    expect(await json(...named, String(three.fencingToken))).toEqual({
      key: "several",
      fencingToken: three.fencingToken,
      owner: expect.any(String) as string,
      breakInMs: 0,
    });
    const giveUp = new AbortController();
    const waits = service.locks.acquire("several", { signal: giveUp.signal }).catch(() => undefined);
    while ((await service.locks.inspect("several")).waiters.length === 0);
    const { stdout } = await holdfast(...named, String(two.fencingToken));
    expect(stdout).toMatch(/ is over now; its hold is over: the key stays held by \S+, and nobody who waits gets in; its holder learns /);
    expect((await service.locks.inspect("several")).holders).toMatchObject([{ fencingToken: one.fencingToken }]);
    expect(one.isHeld()).toBe(true);
    giveUp.abort();
    await waits;
  });

  it("as JSON says whose it was", async () => {
    const { fencingToken } = await service.locks.acquire("break-json", { owner: "me" });
    expect(await json("break", "break-json", "--reason", "stuck")).toEqual({
      key: "break-json",
      fencingToken,
      owner: "me",
      breakInMs: A_NUMBER,
    });
  });

  it("of a hold that is another's by now is refused, and of none there is nothing to break", async () => {
    await using lease = await service.locks.acquire("other-hold");
    const { status, stderr } = await holdfast("break", "other-hold", "--reason", "stuck", "--token", String(lease.fencingToken - 1));
    expect({ status, stderr }).toEqual({
      status: 65,
      stderr: expect.stringMatching(/^holdfast: break other-hold: .*another.*\nNothing was changed\.\n$/),
    });
    expect(await holdfast("break", "nobody", "--reason", "stuck")).toEqual({
      status: 66,
      stdout: "",
      stderr: "holdfast: nobody holds nobody\nThere is nothing to break.\n",
    });
  });
});

describe("reset", () => {
  it("forgets a run, and its reason is logged", async () => {
    await service.locks.runOnce("reset", () => "done");
    expect(await holdfast("reset", "reset", "--reason", "wrong source")).toEqual({
      status: 0,
      stdout: "reset is forgotten: the next start is a first attempt\n",
      stderr: "",
    });
    expect(await service.locks.runOnce("reset", () => "done anew")).toMatchObject({ value: "done anew", replayed: false, attempt: 1 });
    expect(await json("reset", "reset", "--reason", "wrong again")).toEqual({ key: "reset", reset: true });
    expect(service.lines).toContainEqual(expect.objectContaining({ event: "reset", id: "reset", reason: "wrong source" }));
  });

  it("names the checkpoint that it drops", async () => {
    const work = service.locks.runOnce("reset-far", async (run) => {
      await run.saveCheckpoint({ page: 3 });
      throw new Error("no paper");
    });
    await expect(work).rejects.toThrow("no paper");
    expect((await holdfast("reset", "reset-far", "--reason", "wrong source")).stdout).toBe(
      'reset-far is forgotten, and its checkpoint {"page":3} is dropped: the next start is a first attempt\n',
    );
  });

  it("of one that runs is 75, of none 66", async () => {
    let end = (): void => undefined;
    const running = service.locks.runOnce("runs", () => new Promise<void>((resolve) => (end = resolve)));
    while ((await service.locks.runs.get("runs")) === null);
    const { status, stderr } = await holdfast("reset", "runs", "--reason", "stuck");
    end();
    await running;
    expect({ status, stderr }).toEqual({ status: 75, stderr: expect.stringMatching(/\nNothing was changed\. Try again later\.\n$/) });
    expect(await holdfast("reset", "never", "--reason", "stuck")).toMatchObject({ status: 66 });
  });
});

describe("limits reset", () => {
  const WRONG = { rates: [{ count: 1, perMs: LONG_MS }] };

  it("gives back all of a limit for other rates, and logs the reason", async () => {
    await service.locks.limiter("partner", WRONG).take();
    expect(await holdfast("limits", "reset", "partner", "--reason", "wrong rates")).toEqual({
      status: 0,
      stdout: "partner is all back: the next take may bring other rates\n",
      stderr: "",
    });
    expect(await service.locks.limiter("partner", { rates: [{ count: 2, perMs: LONG_MS, burst: 2 }] }).take()).toMatchObject({
      remaining: [1],
    });
    expect(await json("limits", "reset", "partner", "--reason", "again")).toEqual({ key: "partner", reset: true });
    expect(service.lines).toContainEqual(expect.objectContaining({ event: "reset", kind: "limit", id: "partner", reason: "wrong rates" }));
  });

  it("needs a name and a reason, and a name that was used; without reset it lists as before", async () => {
    expect(await holdfast("limits", "reset", "--reason", "stuck")).toMatchObject({ status: 64 });
    expect(await holdfast("limits", "reset", "partner")).toMatchObject({ status: 64 });
    expect(await holdfast("limits", "reset", "never", "--reason", "stuck")).toMatchObject({ status: 66 });
    await service.locks.limiter("listed", WRONG).take();
    expect(await json("limits", "list")).toMatchObject({ items: [{ key: "listed" }] });
  });
});

describe("limits shut", () => {
  it("lets nobody start for a time, at the rates of the limit's users or at those given", async () => {
    const used = service.locks.limiter("shut-used", { rates: [{ count: 100, perMs: 60_000 }] });
    await used.take();
    expect(await holdfast("limits", "shut", "shut-used", "--for", "30m", "--reason", "maintenance")).toEqual({
      status: 0,
      stdout: "shut-used is shut for 30m\n",
      stderr: "",
    });
    await expect(used.take()).rejects.toMatchObject({ name: "LimitExceededError" });
    expect(service.lines).toContainEqual(
      expect.objectContaining({ event: "shut", id: "shut-used", reason: "maintenance", forMs: 1_800_000 }),
    );
    expect(await json("limits", "shut", "shut-new", "--for", "1h", "--rate", "5/1s", "--reason", "x")).toEqual({
      key: "shut-new",
      forMs: 3_600_000,
    });
    expect(await holdfast("limits", "shut", "never", "--for", "1h", "--reason", "x")).toMatchObject({ status: 66 });
    expect(await holdfast("limits", "shut", "shut-used", "--for", "25h", "--reason", "x")).toMatchObject({ status: 64 });
  });
});
