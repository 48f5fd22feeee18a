/** A client of several services of one table: the first that answers carries out a request. */
import { describe, expect, it } from "vitest";
import { refuse, refuseLocally } from "../../../lib/core/errors.js";
import { createLockClient } from "../../../lib/index.js";
import type { LockClient } from "../../../lib/index.js";
import { type Doors, type DoorsOptions, severalDoors, urlAt } from "./two-ways.js";
import type { Fate } from "../wire.js";

const MINUTE = 60_000;
const SILENT: Fate = { lost: "request", silently: true };

/** The ways in which a service fails. */
const FAILURES: readonly [what: string, fate: Fate][] = [
  ["its connections break", { lost: "request" }],
  ["it is silent", SILENT],
  ["its answers are lost", { lost: "reply", silently: true }],
  ["it answers unavailable, and asks for a minute", { instead: refuse("unavailable", { retryAfterMs: MINUTE }) }],
  ["it answers unavailable, to be asked later", { instead: refuse("unavailable", { definite: true, retry: "later" }) }],
  ["it answers with an internal error", { instead: refuse("internal") }],
  ["nobody is there", { instead: refuseLocally("not-configured", { undecided: true, unreached: true, retry: "same" }) }],
  ["nobody ever was there", { instead: refuseLocally("not-configured", { undecided: true, unreached: true, retry: "never" }) }],
];

const switches = ({ events }: Doors): readonly string[] => events.map(({ type }) => type).filter((type) => /^fail|^fall/.test(type));

/** A client that has a lease of the first service, and found it at the others. */
async function ready(options: DoorsOptions = {}): Promise<Doors> {
  const made = severalDoors(options);
  await made.clock.settle(made.locks.acquire("first"));
  await made.clock.advance(1000);
  return made;
}

const stateOf = async ({ clock, locks }: Doors) => (await clock.settle(locks.health())).failover;

describe("a client of two services", () => {
  it("asks the first, names it, and looks its first lease up at the second", async () => {
    const made = await ready();
    const { clock, locks, wires } = made;
    expect(wires[0]!.of("acquire").length).toBe(1);
    expect(wires[1]!.sent.map(({ operation }) => operation)).toEqual(["health", "check"]);
    expect(await clock.settle(locks.health())).toMatchObject({ door: urlAt(0), via: "service", failover: { state: "ready" } });
  });

  it.each(FAILURES)("goes on at the second, and returns to the first: %s", async (_what, fate) => {
    const made = await ready();
    const { clock, locks, wires } = made;
    const before = await clock.settle(locks.acquire("before", { leaseMs: 6000 }));
    made.fail(0, fate);
    const during = await clock.settle(locks.acquire("during", { leaseMs: 6000 }));
    await clock.advance(20_000);
    expect([switches(made), (await clock.settle(locks.health())).door]).toEqual([["failover"], urlAt(1)]);
    const sent = wires[0]!.sent.length;
    await clock.settle(locks.withLock("k", () => undefined));
    expect(wires[0]!.sent.length).toBe(sent);
    made.fail(0, undefined);
    await clock.advance(3 * MINUTE);
    expect([switches(made), (await clock.settle(locks.health())).door]).toEqual([["failover", "fallback"], urlAt(0)]);
    expect([before.isHeld(), during.isHeld()]).toEqual([true, true]);
  });

  it.each(FAILURES)("has an attempt repeated there at once, and none at the first is waited for: %s", async (_what, fate) => {
    const made = await ready();
    const { clock, locks, wires } = made;
    made.fail(0, fate);
    const asked = locks.acquire("k");
    await clock.advance(1200);
    expect([wires[0]!.of("acquire").length, wires[1]!.of("acquire").length]).toEqual([2, 1]);
    expect((await clock.settle(asked)).isHeld()).toBe(true);
  });

  it.each(FAILURES)("has a read repeated there, also where reads are not retried: %s", async (_what, fate) => {
    const { clock, wires, fail, born } = await ready();
    fail(0, fate);
    const locks = born({ retryReads: false });
    expect((await clock.settle(locks.inspect("first"))).holders).toHaveLength(1);
    expect([wires[0]!.of("inspect").length, wires[1]!.of("inspect").length]).toEqual([1, 1]);
    fail(1, fate);
    await expect(clock.settle(locks.list())).rejects.toThrow();
    expect([wires[0]!.of("list").length, wires[1]!.of("list").length]).toEqual([1, 1]);
  });

  it("control: a client of the first alone waits for it", async () => {
    const { clock, alone, fail } = await ready();
    fail(0, SILENT);
    await expect(clock.settle(alone.acquire("k", { waitMs: 5000 }))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("awaits an answer of the second for as long as ever, if the first is silent too", async () => {
    const made = await ready();
    const { clock, locks, wires, fail } = made;
    fail(0, SILENT);
    fail(1, { replyMs: 2500 });
    expect((await clock.settle(locks.acquire("k"))).isHeld()).toBe(true);
    expect(wires[1]!.of("acquire").length).toBe(1);
  });

  it("awaits an answer that the service may hold", async () => {
    const made = await ready();
    const { clock, locks, wires } = made;
    const waiter = made.born();
    await clock.settle(waiter.acquire("other"));
    const running = locks.runOnce("run", () => new Promise((resolve) => void clock.after(20_000, () => resolve("done"))));
    await clock.advance(100);
    const asked = waiter.runOnce("run", { waitMs: MINUTE }, () => "never");
    expect((await clock.settle(Promise.all([running, asked]))).map(({ value }) => value)).toEqual(["done", "done"]);
    expect([wires[1]!.of("start"), switches(made)]).toEqual([[], []]);
  });

  it.each(FAILURES.filter(([, { lost }]) => lost !== "reply"))(
    "takes from a limit at the second, and is charged once: %s",
    async (_what, fate) => {
      const { clock, locks, wires, fail } = await ready();
      const limiter = locks.limiter("partner", { rates: [{ count: 10, perMs: MINUTE, burst: 10 }] });
      await clock.settle(limiter.take());
      fail(0, fate);
      await clock.settle(limiter.take());
      expect([wires[0]!.of("take").length, wires[1]!.of("take").length]).toEqual([2, 1]);
      for (let taken = 1; taken < 5; taken++) await clock.settle(limiter.take());
      expect(await clock.settle(limiter.remaining())).toEqual([4]);
      expect(wires[1]!.of("take").length).toBe(5);
    },
  );

  it.each(FAILURES)("reads at the second too: %s", async (_what, fate) => {
    const { clock, locks, wires, fail } = await ready();
    fail(0, fate);
    const reading = Promise.all([locks.inspect("first"), locks.list(), locks.runs.list()]);
    await clock.advance(1200);
    expect(["inspect", "list", "runs"].map((operation) => wires[1]!.of(operation as "list").length)).toEqual([1, 1, 1]);
    await clock.settle(reading);
  });

  it("doesn't take the first one's word that it is up for an answer of its table", async () => {
    const { clock, locks, wires } = await ready();
    wires[0]!.always("acquire", { instead: refuse("unavailable") });
    for (let turn = 0; turn < 3; turn++) {
      await clock.settle(locks.acquire(`k${turn}`));
      await clock.settle(locks.health());
    }
    expect((await clock.settle(locks.health())).door).toBe(urlAt(1));
  });

  it("doesn't refuse a second one that is not there yet: it is compared later", async () => {
    const made = severalDoors();
    const { clock, locks, fail } = made;
    fail(1, { instead: refuseLocally("not-configured", { undecided: true, unreached: true }) });
    await clock.settle(locks.acquire("k", { leaseMs: 6000 }));
    await clock.advance(20_000);
    expect([(await stateOf(made))?.state, switches(made)]).toEqual(["pending", []]);
    fail(1, undefined);
    await clock.advance(20_000);
    expect((await stateOf(made))?.state).toBe("ready");
  });
});

describe("a client of three services", () => {
  it("goes from one to the next, and back to the first that answers", async () => {
    const made = await ready({ count: 3 });
    const { clock, locks, fail } = made;
    const lease = await clock.settle(locks.acquire("k", { leaseMs: 6000 }));
    const door = async (): Promise<string | undefined> => (await clock.settle(locks.health())).door;
    fail(0, SILENT);
    await clock.advance(20_000);
    expect(await door()).toBe(urlAt(1));
    fail(1, { lost: "request" });
    await clock.advance(20_000);
    expect(await door()).toBe(urlAt(2));
    fail(1, undefined);
    await clock.advance(3 * MINUTE);
    expect(await door()).toBe(urlAt(1));
    fail(0, undefined);
    await clock.advance(3 * MINUTE);
    expect([await door(), lease.isHeld()]).toEqual([urlAt(0), true]);
  });
});

/** Lets a client begin while the first service fails so, and ask for a key. */
async function bornIn(fate: Fate, options: DoorsOptions): Promise<Doors & { readonly client: LockClient; readonly outcome: string }> {
  const made = severalDoors(options);
  made.fail(0, fate);
  const client = made.born();
  const outcome = await made.clock.settle(
    client.acquire("k", { waitMs: 8000 }).then(
      (lease) => `held: ${lease.isHeld()}`,
      (error: unknown) => (error as { readonly code: string }).code,
    ),
  );
  return { ...made, client, outcome };
}

describe("a client that begins while its first service fails", () => {
  it.each(FAILURES)("gets its lock at the second, whose table lists the first: %s", async (_what, fate) => {
    const { clock, wires, client, outcome } = await bornIn(fate, {});
    expect(outcome).toBe("held: true");
    expect(wires[1]!.of("acquire").length).toBe(1);
    expect(await clock.settle(client.health())).toMatchObject({ door: urlAt(1), failover: { state: "ready" } });
  });

  it.each(FAILURES)("asks the second within a second and a half: %s", async (_what, fate) => {
    const made = severalDoors();
    made.fail(0, fate);
    const asked = made.born().acquire("k");
    await made.clock.advance(1500);
    expect(made.wires[1]!.of("acquire").length).toBe(1);
    await made.clock.settle(asked);
  });

  it.each<[what: string, options: DoorsOptions, why: RegExp]>([
    [
      "the second one's table doesn't list the first",
      { areApart: true },
      /^failover: https:\/\/a\.example\/api doesn't answer, and https:\/\/b\.example\/api is not used in its place, since the table there doesn't list it/,
    ],
    ["no table lists any", { listed: [] }, /the table there doesn't list it/],
    ["the table lists one whose URL only begins like the first one's", { listed: ["https://a.example/ap", urlAt(1)] }, /doesn't list it/],
  ])("is refused there with one clear error, and nothing is granted: %s", async (_what, options, why) => {
    const { clock, wires, client, events, outcome } = await bornIn({ lost: "request" }, options);
    expect([outcome, wires[1]!.of("acquire")]).toEqual(["unavailable", []]);
    await clock.settle(client.acquire("k", { waitMs: 20_000 }).catch(() => undefined));
    const told = events.filter(({ type }) => type === "failover-refused");
    expect(told.map(({ error }) => error)).toEqual([
      expect.objectContaining({ code: "not-configured", message: expect.stringMatching(why) }),
    ]);
    expect(wires[1]!.sent.filter(({ operation }) => operation !== "health")).toEqual([]);
  });

  it("goes on with the first one once that answers, and then knows the second by a lease", async () => {
    const { clock, client, fail, ...made } = await bornIn({ lost: "request" }, { listed: [] });
    fail(0, undefined);
    await clock.settle(client.acquire("k", { leaseMs: 6000 }));
    await clock.advance(20_000);
    expect((await clock.settle(client.health())).failover).toEqual({ state: "ready" });
    expect(made.wires[1]!.of("check").length).toBeGreaterThan(0);
  });

  it.each(["/namespaces/tenant", "/"])("knows the first by a listed URL of which its own is the beginning of a path: %s", async (path) => {
    const listed = path === "/" ? `${urlAt(0)}/` : urlAt(0).replace("/api", "");
    expect((await bornIn({ lost: "request" }, { listed: [listed] })).outcome).toBe("held: true");
  });
});

describe("a second service is refused, and the first alone is used", () => {
  it.each<[what: string, options: DoorsOptions, why: RegExp]>([
    [
      "its table is another",
      { areApart: true },
      /^failover: https:\/\/a\.example\/api and https:\/\/b\.example\/api don't use the same table$/,
    ],
    [
      "its namespace is another",
      { told: { namespace: "tenant" } },
      /^failover: namespace: "tenant" at https:\/\/b.*, "default" at https:\/\/a/,
    ],
    ["its principal is another", { told: { principal: "account/other" } }, /^failover: principal: "account\/other" at/],
    ["its format is another", { told: { format: 2 } }, /^failover: format: 2 at/],
    ["its clock error is another", { told: { clockErrorMs: 250 } }, /^failover: clockErrorMs: 250 at/],
    ["its retention is another", { told: { retentionMs: 7_200_000 } }, /^failover: retentionMs: 7200000 at/],
  ])("if %s", async (_what, options, why) => {
    const made = await ready(options);
    const { clock, locks, events, wires } = made;
    for (const key of ["second", "third"]) {
      await clock.settle(locks.acquire(key));
      await clock.advance(1000);
    }
    expect(switches(made)).toEqual(["failover-refused"]);
    expect(events.find(({ type }) => type === "failover-refused")?.error).toMatchObject({ message: expect.stringMatching(why) });
    expect(await stateOf(made)).toEqual({ state: "refused", why: expect.stringMatching(why) });
    made.fail(0, { lost: "request" });
    await expect(clock.settle(locks.acquire("later", { waitMs: 5000 }))).rejects.toMatchObject({ code: "unavailable" });
    expect(wires[1]!.of("acquire")).toEqual([]);
  });

  it.each<[what: string, told: NonNullable<DoorsOptions["told"]>]>([
    ["namespace", { namespace: "tenant" }],
    ["principal", { principal: "account/other" }],
  ])("also by a client that began while the first failed, as soon as it has asked both: another %s", async (_what, told) => {
    const made = await bornIn({ lost: "request" }, { told });
    expect(made.outcome).toBe("held: true");
    made.fail(0, undefined);
    await made.clock.advance(5 * MINUTE);
    expect(switches(made)).toEqual(["failover-refused"]);
  });
});

describe("the option url", () => {
  it.each<[what: string, url: unknown]>([
    ["an empty list", []],
    ["a list with no URL in it", ["https://a.example", "b"]],
    ["a list with an empty text", ["https://a.example", ""]],
    ["no text in a list", ["https://a.example", 5]],
    ["a number", 5],
    ["an object", {}],
    ["an empty part", "https://a.example,"],
  ])("may not be %s", (_what, url) => {
    expect(() => createLockClient({ url: url as string })).toThrow(expect.objectContaining({ name: "InvalidRequestError", field: "url" }));
  });
});
