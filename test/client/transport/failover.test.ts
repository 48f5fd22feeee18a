/** A client with two ways: the service over HTTP, and the table while the service can't be reached. */
import { describe, expect, it } from "vitest";
import { refuse } from "../../../lib/core/errors.js";
import { createLockClient as createTableClient } from "../../../lib/dynamodb.js";
import { createLockClient as createHttpClient } from "../../../lib/index.js";
import { LIMITS } from "../../../lib/core/limits.js";
import type { LockClient, Run, Via } from "../../../lib/index.js";
import { type TwoWays, type TwoWaysOptions, memoryStore, rivalOn, twoWays } from "./two-ways.js";
import type { Fate } from "../wire.js";

const REST_MS = 60_000;
const BROKEN: Fate = { lost: "request" };
const SILENT: Fate = { lost: "reply", silently: true };
const MINUTE = 60_000;

const switches = ({ events }: TwoWays): readonly string[] => events.map(({ type }) => type).filter((type) => /^fail|^fall/.test(type));

/** A client that has a lease of the service, and found it on the table. */
async function ready(options: TwoWaysOptions = {}): Promise<TwoWays> {
  const made = twoWays(options);
  await made.clock.settle(made.locks.acquire("first"));
  await made.clock.advance(1000);
  return made;
}

/** A client whose service has failed until the breaker tripped. */
async function failedOver(fate: Fate = BROKEN): Promise<TwoWays> {
  const made = await ready();
  made.fail(fate);
  for (let index = 0; index < 3; index++) await made.clock.settle(made.locks.acquire(`tripping:${index}`, { waitMs: 20_000 }));
  return made;
}

describe("a client with via auto", () => {
  it("asks the service, and looks its first lease up on the table, under the service's principal", async () => {
    const { locks, table, principals, clock } = await ready();
    expect(principals).toEqual(["account/role"]);
    expect(table.sent.map(({ operation }) => operation)).toEqual(["check"]);
    expect(await clock.settle(locks.health())).toMatchObject({ via: "service", failover: { state: "ready" } });
  });

  it("has not decided before the first lease", async () => {
    const { locks, clock, principals } = twoWays();
    expect(await clock.settle(locks.health())).toMatchObject({
      via: "service",
      viaSinceMs: clock.wallMs(),
      failover: { state: "pending" },
    });
    expect(principals).toEqual([]);
  });

  it.each<[what: string, fate: Fate]>([
    ["its connections break", BROKEN],
    ["it is silent", SILENT],
    ["it answers unavailable", { instead: refuse("unavailable") }],
    ["it answers with an internal error", { instead: refuse("internal") }],
  ])("goes to the table while the service can't be reached: %s; and tells of it", async (_what, fate) => {
    const made = await failedOver(fate);
    const { locks, clock, service } = made;
    expect(switches(made)).toEqual(["failover"]);
    const sinceMs = clock.wallMs();
    await clock.advance(5000);
    const sent = service.sent.length;
    const lease = await clock.settle(locks.acquire("meanwhile"));
    expect(lease.isHeld()).toBe(true);
    expect(service.sent.length).toBe(sent);
    const { via, viaSinceMs = 0 } = await clock.settle(locks.health());
    expect([via, viaSinceMs <= sinceMs, viaSinceMs > 0]).toEqual(["table", true, true]);
  });

  it.each<[what: string, fate: Fate]>([
    ["429", { instead: refuse("throttled") }],
    ["clock-skew", { instead: refuse("clock-skew") }],
    ["newer-format", { instead: refuse("newer-format") }],
    ["not-configured", { instead: refuse("not-configured") }],
    ["403", { instead: refuse("forbidden") }],
    ["400", { instead: refuse("invalid-request") }],
    ["423", { instead: refuse("locked") }],
  ])("never leaves a service that answers %s", async (_what, fate) => {
    const made = await ready();
    made.fail(fate);
    for (let index = 0; index < 10; index++) await made.clock.settle(made.locks.tryAcquire(`k${index}`).catch(() => null));
    expect(switches(made)).toEqual([]);
    expect(made.table.of("acquire")).toEqual([]);
  });

  it("doesn't count callers that give up, however often", async () => {
    const made = await ready();
    made.fail(SILENT);
    for (let index = 0; index < 10; index++) {
      const giveUp = new AbortController();
      const asked = made.locks.acquire(`k${index}`, { signal: giveUp.signal }).catch(() => undefined);
      await made.clock.advance(100);
      made.fail(undefined); // Its cancel is answered.
      giveUp.abort();
      await made.clock.settle(asked);
      made.fail(SILENT);
    }
    expect(switches(made)).toEqual([]);
  });

  it("doesn't count kept connections that the service had closed, and asks it again at once", async () => {
    const made = await ready();
    const { clock, locks, service } = made;
    for (let index = 0; index < 22; index++) service.next("acquire", { lost: "request", stale: true });
    const leases = await Promise.all(Array.from({ length: 22 }, (_, index) => clock.settle(locks.acquire(`k${index}`))));
    expect(leases.filter((lease) => !lease.isHeld())).toEqual([]);
    expect([switches(made), made.table.of("acquire")]).toEqual([[], []]);
  });

  it("repeats an attempt that failed on the other way with the same leaseId, before the breaker trips", async () => {
    const made = await ready();
    const { clock, locks, service, table } = made;
    service.next("acquire", { lost: "reply" });
    const lease = await clock.settle(locks.acquire("k"));
    expect(lease.isHeld()).toBe(true);
    const [first, second] = [service.of("acquire").at(-1), table.of("acquire").at(-1)];
    expect([first?.request.leaseId, second?.request.leaseId]).toEqual([lease.leaseId, lease.leaseId]);
    expect(switches(made)).toEqual([]);
  });

  it("keeps an operation indefinite whose attempt failed on one way and was refused on the other", async () => {
    const { clock, locks, service, table } = await ready();
    service.next("acquire", { lost: "request", silently: true });
    table.next("acquire", { instead: refuse("key-full") });
    await expect(clock.settle(locks.tryAcquire("k"))).rejects.toMatchObject({ code: "key-full", definite: false });
    // The id may still arrive on the first way, so it is cancelled.
    expect([...service.of("release"), ...table.of("release")]).toHaveLength(1);
  });

  it("keeps every lease through the outage and the return, of either way", async () => {
    const made = await ready();
    const { clock, locks, rival } = made;
    const before = await clock.settle(locks.acquire("before", { leaseMs: 6000 }));
    made.fail(SILENT);
    await clock.advance(MINUTE);
    const during = await clock.settle(locks.acquire("during", { leaseMs: 6000 }));
    expect(switches(made)).toEqual(["failover"]);
    made.fail(undefined);
    await clock.advance(3 * MINUTE);
    expect(switches(made)).toEqual(["failover", "fallback"]);
    expect([before.isHeld(), during.isHeld()]).toEqual([true, true]);
    expect(await rival.tryAcquire("before")).toBeNull();
    expect([await clock.settle(before.release()), await clock.settle(during.release())]).toEqual(["released", "released"]);
  });

  it("returns after three probes that reach the table and know the client, at most one each second", async () => {
    const made = await failedOver();
    const { clock, service, locks } = made;
    made.fail(undefined);
    const lease = await clock.settle(locks.acquire("k", { leaseMs: 1000 }));
    const probes = (): readonly number[] => service.of("health").map(({ atMs }) => atMs);
    const before = probes().length;
    await clock.advance(0.8 * REST_MS);
    expect(probes().length).toBe(before);
    await clock.advance(REST_MS);
    const [first = 0, second = 0, third = 0, ...more] = probes().slice(before);
    expect([second - first >= 1000, third - second >= 1000, more.length]).toEqual([true, true, 0]);
    expect(switches(made)).toEqual(["failover", "fallback"]);
    expect(lease.isHeld()).toBe(true);
  });

  it("doesn't rest again for a probe of a lease that a busy key has forgotten: it asks about a later one", async () => {
    const made = await failedOver();
    const { clock, locks, service } = made;
    made.fail(undefined);
    await clock.settle(locks.acquire("k", { leaseMs: 6000 }));
    service.next("check", ...Array.from({ length: 5 }, () => ({ instead: refuse("lease-lost", { reason: "taken" }) })));
    await clock.advance(1.2 * REST_MS + 30_000);
    expect([service.of("check").length, switches(made)]).toEqual([8, ["failover", "fallback"]]);
  });

  it("stays on the table while a probe gets no answer, and asks once for each rest", async () => {
    const made = await failedOver();
    const { clock, service } = made;
    made.fail(SILENT);
    const before = service.of("health").length;
    await clock.advance(10 * MINUTE);
    expect(service.of("health").length - before).toBeLessThanOrEqual(11);
    expect(switches(made)).toEqual(["failover"]);
  });

  it.each<[what: string, told: NonNullable<TwoWaysOptions["told"]>]>([
    ["another principal", { principal: "account/other" }],
    ["another namespace", { namespace: "tenant" }],
  ])("doesn't return to a service that knows it by %s now", async (_what, changed) => {
    const told: { principal?: string; namespace?: string } = {};
    const made = await ready({ told });
    made.fail(BROKEN);
    const lease = await made.clock.settle(made.locks.acquire("k", { leaseMs: 6000 }));
    await made.clock.advance(MINUTE);
    made.fail(undefined);
    Object.assign(told, changed);
    await made.clock.advance(10 * MINUTE);
    expect(switches(made)).toEqual(["failover"]);
    expect(lease.isHeld()).toBe(true);
  });
});

/** The things that a client can hold, and the way to each. Each tells whether it still does. */
const HOLDS: readonly [what: string, hold: (locks: LockClient, key: string) => Promise<() => boolean>][] = [
  ["short runs", (locks, key) => locks.runOnce(key, () => "done").then(() => () => true)],
  [
    "a long run",
    (locks, key) =>
      new Promise((resolve, reject) => {
        const work = (run: Run): Promise<never> => new Promise(() => resolve(() => run.isHeld()));
        locks.runOnce(key, { leaseMs: 6000 }, work).catch(reject);
      }),
  ],
  [
    "a set",
    async (locks, key) => {
      const set = await locks.acquireAll([key, `${key}:2`], { leaseMs: 6000 });
      return () => set.isHeld();
    },
  ],
  [
    "a permit of a semaphore",
    async (locks, key) => {
      const lease = await locks.acquire(key, { limit: 3, leaseMs: 6000 });
      return () => lease.isHeld();
    },
  ],
  [
    "a key after the wait for a condition",
    async (locks, key) => {
      const lease = await locks.acquire(key, { leaseMs: 6000 });
      const waited = lease.wait("ready", { waitMs: MINUTE });
      await locks.withLock(key, (other) => other.notify("ready"));
      await waited;
      return () => lease.isHeld();
    },
  ],
];

describe.each(HOLDS)("a client that holds only %s", (_what, hold) => {
  it("fails over and returns, and keeps all of it", async () => {
    const made = twoWays();
    const { clock, locks, fail } = made;
    const held: (() => boolean)[] = [];
    const goOn = async (ms: number): Promise<void> => {
      for (let passedMs = 0; passedMs < ms; passedMs += 10_000) {
        held.push(await clock.settle(hold(locks, `k${held.length}`)));
        await clock.advance(10_000);
      }
    };
    await goOn(20_000);
    expect((await clock.settle(locks.health())).failover?.state).toBe("ready");
    fail(SILENT);
    await goOn(MINUTE);
    expect(switches(made)).toEqual(["failover"]);
    fail(undefined);
    await goOn(2 * MINUTE);
    expect(switches(made)).toEqual(["failover", "fallback"]);
    expect(held.filter((isHeld) => !isHeld())).toEqual([]);
  });
});

describe("a client that only takes from limits", () => {
  const TEN = { rates: [{ count: 10, perMs: 1000, burst: 10 }] };

  /** A client that took once. */
  async function taking(options: TwoWaysOptions = {}) {
    const made = twoWays(options);
    const take = () => made.clock.settle(made.locks.limiter("partner", TEN).take());
    const takes = async (turns: number, everyMs: number): Promise<void> => {
      for (let turn = 0; turn < turns; turn++) {
        await take();
        await made.clock.advance(everyMs);
      }
    };
    const stateNow = async () => (await made.clock.settle(made.locks.health())).failover?.state;
    await take();
    await made.clock.advance(1000);
    return { ...made, made, take, takes, stateNow };
  }

  it("fails over and returns: a limit of a name that nobody else has is found on the table", async () => {
    const { made, clock, service, table, fail, takes, stateNow } = await taking();
    expect(await stateNow()).toBe("ready");
    const [, own] = service.of("take").map(({ request }) => request.key);
    expect(own).toMatch(/^partner_[0-9a-f]{32}$/);
    expect(table.sent.map(({ operation, request }) => [operation, request.key])).toEqual([["limit", own]]);
    expect((await clock.settle(made.locks.limits.list())).items).toEqual([]);
    fail(BROKEN);
    await takes(6, 10_000);
    expect([switches(made), table.of("take").length]).toEqual([["failover"], 6]);
    fail(undefined);
    await takes(12, 10_000);
    expect(switches(made)).toEqual(["failover", "fallback"]);
  });

  it("returns also if it had a lease long ago, of which no way knows any more", async () => {
    const { made, clock, locks, fail, takes } = await taking();
    await clock.settle(locks.withLock("k", () => undefined));
    await clock.advance(3 * 24 * 60 * MINUTE);
    for (const fate of [BROKEN, undefined]) {
      fail(fate);
      await takes(12, 10_000);
    }
    expect(switches(made)).toEqual(["failover", "fallback"]);
  });

  it("doesn't, if the tables differ, though both have a limit of that name", async () => {
    const { made, clock, tableStore, take, takes, stateNow } = await taking({ tableStore: memoryStore });
    await clock.settle(rivalOn(tableStore, clock).limiter("partner", TEN).take());
    await takes(2, 1000);
    expect([switches(made), await stateNow()]).toEqual([["failover-refused"], "refused"]);
    made.fail(BROKEN);
    await expect(take()).rejects.toMatchObject({ code: "unavailable" });
    expect(made.table.of("take")).toEqual([]);
  });

  it("compares its first lease as well, which also shows that the principal is the same", async () => {
    const { made, clock, locks, stateNow } = await taking({ onTableAs: { principal: "account/other" } });
    expect(await stateNow()).toBe("ready");
    await clock.settle(locks.acquire("k"));
    await clock.advance(1000);
    expect([switches(made), await stateNow()]).toEqual([["failover-refused"], "refused"]);
  });
});

describe("failover is refused, and the service alone is used", () => {
  it.each<[what: string, options: TwoWaysOptions, why: RegExp]>([
    [
      "the service's namespace is another than the configured one",
      { configured: { namespace: "tenant" } },
      /^failover: namespace: "default" at/,
    ],
    ["the formats differ", { told: { format: 2 } }, /^failover: format: 2 at the service, 0 on the table$/],
    ["the configured clock error differs", { configured: { clockErrorMs: 250 } }, /^failover: clockErrorMs: 500 at/],
    ["the service doesn't tell who the caller is", { told: undefined }, /a version that doesn't tell/],
    ["the tables differ", { tableStore: memoryStore }, /don't use the same table/],
    ["the table doesn't know the principal", { onTableAs: { principal: "account/other" } }, /principal may not/],
  ])("if %s", async (_what, options, why) => {
    const made = await ready(options);
    const { clock, locks, events } = made;
    for (const key of ["second", "third"]) {
      await clock.settle(locks.acquire(key));
      await clock.advance(1000);
    }
    expect(switches(made)).toEqual(["failover-refused"]);
    expect(events.find(({ type }) => type === "failover-refused")?.error).toMatchObject({ message: expect.stringMatching(why) });
    const { failover } = await clock.settle(locks.health());
    expect([failover?.state, failover?.why]).toEqual(["refused", expect.stringMatching(why)]);
    made.fail(BROKEN);
    await expect(clock.settle(locks.acquire("later", { waitMs: 5000 }))).rejects.toMatchObject({ code: "unavailable" });
    await expect(clock.settle(locks.use("table"))).rejects.toMatchObject({ name: expect.stringMatching(/^Lock/) });
  });

  it("and must be: with another principal on the table, the leases of the service are lost there", async () => {
    const made = await ready({ onTableAs: { principal: "account/other" }, isDeceived: true });
    const { clock, locks, fail } = made;
    const lease = await clock.settle(locks.acquire("k", { leaseMs: 6000 }));
    fail(BROKEN);
    await clock.advance(6000);
    expect([switches(made), lease.isHeld()]).toEqual([["failover"], false]);
  });
});

describe("a table that never saw the lease", () => {
  const KEY = "X";

  /** Grants and releases the key there until it has forgotten every id of before. */
  async function wearOut({ clock, tableStore }: TwoWays): Promise<void> {
    const stranger = rivalOn(tableStore, clock);
    for (let ended = 0; ended <= LIMITS.tombstonesMax; ended++) {
      await clock.advance(10);
      await clock.settle(stranger.withLock(KEY, () => undefined));
    }
  }

  it.each<[answer: string, wear: (made: TwoWays) => Promise<void>]>([
    ["taken, because the id is below its watermark", wearOut],
    ["expired, because the id is old", ({ clock }) => clock.advance(LIMITS.leaseIdBehindMs + LIMITS.leaseIdAheadMs + MINUTE)],
  ])("is not used, although it answers as for a lease that ended: %s", async (_answer, wear) => {
    const made = twoWays({ via: "service", tableStore: memoryStore });
    const { clock, locks, tableStore } = made;
    const lease = await clock.settle(locks.acquire(KEY, { leaseMs: 6000 }));
    await wear(made);
    await expect(clock.settle(locks.use("table"))).rejects.toMatchObject({
      code: "not-configured",
      message: expect.stringMatching(/^failover: nothing shows that .* use the same table/),
    });
    // It would be granted a key there that others hold here.
    expect(await clock.settle(rivalOn(tableStore, clock).tryAcquire(KEY))).not.toBeNull();
    expect([lease.isHeld(), (await clock.settle(locks.health())).via]).toEqual([true, "service"]);
  });

  it("is neither ready nor refused while it answers so, and is asked again with later leases", async () => {
    const made = twoWays({ tableStore: memoryStore });
    const { clock, locks } = made;
    const stateAfter = async (leases: number): Promise<string | undefined> => {
      for (let turn = 0; turn < leases; turn++) {
        await clock.settle(locks.acquire(`k${turn}`).then((lease) => lease.release()));
        await clock.advance(10_000);
      }
      return (await clock.settle(locks.health())).failover?.state;
    };
    expect(await stateAfter(1)).toBe("pending");
    made.table.always("check", { instead: refuse("lease-lost", { reason: "taken" }) });
    expect(await stateAfter(10)).toBe("pending");
    made.fail(BROKEN);
    await expect(clock.settle(locks.tryAcquire("k"))).rejects.toMatchObject({ code: "unavailable" });
    made.fail(undefined);
    made.table.always("check", undefined);
    expect(await stateAfter(3)).toBe("refused");
  });
});

describe("use()", () => {
  it("switches by hand, and keeps the leases", async () => {
    const made = await ready();
    const { clock, locks, service, table } = made;
    const lease = await clock.settle(locks.acquire("k", { leaseMs: 6000 }));
    await clock.settle(locks.use("table"));
    const sent = service.sent.length;
    await clock.advance(MINUTE);
    expect([lease.isHeld(), service.sent.length - sent, table.of("renewMany").length + table.of("renew").length > 5]).toEqual([
      true,
      0,
      true,
    ]);
    await clock.settle(locks.use("service"));
    await clock.advance(MINUTE);
    expect([lease.isHeld(), service.sent.length > sent]).toEqual([true, true]);
    await clock.settle(locks.use("auto"));
    expect(switches(made)).toEqual(["failover", "fallback"]);
    expect((await clock.settle(locks.health())).via).toBe("service");
  });

  it("does not change what it was asked to use: with service, an outage is an outage", async () => {
    const made = await ready({ via: "service" });
    made.fail(BROKEN);
    await expect(made.clock.settle(made.locks.acquire("k", { waitMs: 5000 }))).rejects.toMatchObject({ code: "unavailable" });
    expect(switches(made)).toEqual([]);
  });

  it("leaves a way that was used only with a lease that the other way knows", async () => {
    const { clock, locks, principals } = twoWays({ via: "service" });
    await clock.settle(locks.list());
    await expect(clock.settle(locks.use("table"))).rejects.toMatchObject({
      code: "not-configured",
      message:
        "failover: nothing shows that the service and this client use the same table; acquire a key or take from a limit, and try again",
    });
    const lease = await clock.settle(locks.acquire("k"));
    await clock.settle(locks.use("table"));
    expect([lease.isHeld(), principals, (await clock.settle(locks.health())).via]).toEqual([true, ["account/role"], "table"]);
  });

  it("in an outage, can't go to a table on which the caller is unknown", async () => {
    const made = twoWays({ via: "service" });
    await made.clock.settle(made.locks.acquire("k"));
    made.fail(BROKEN);
    await expect(made.clock.settle(made.locks.use("table"))).rejects.toMatchObject({ code: "unavailable" });
    expect(await made.clock.settle(made.locks.health().catch(() => "still the service"))).toBe("still the service");
  });

  it("never takes leases of a client that was straight on the table to the service: they have another principal", async () => {
    const { clock, locks } = twoWays({ via: "table" });
    const lease = await clock.settle(locks.acquire("k"));
    for (const via of ["service", "auto"] as const)
      await expect(clock.settle(locks.use(via))).rejects.toMatchObject({
        code: "not-configured",
        message: 'failover: principal: "account/role" at the service, "direct" on the table',
      });
    expect(lease.isHeld()).toBe(true);
    expect((await clock.settle(locks.health())).via).toBe("table");
  });

  it("before the first request, is free to choose", async () => {
    const { clock, locks, principals } = twoWays({ via: "table" });
    await clock.settle(locks.use("auto"));
    await clock.settle(locks.acquire("k"));
    await clock.advance(1000);
    expect(principals).toEqual(["account/role"]);
  });

  it.each(["https", "", undefined, null, 1])("refuses %j, which is no way", async (via) => {
    const { locks } = twoWays();
    const rejection = {
      name: "InvalidRequestError",
      field: "via",
      message: expect.stringContaining('must be "service", "table" or "auto"'),
    };
    await expect(locks.use(via as Via)).rejects.toMatchObject(rejection);
  });

  it.each(["service", "auto"] as const)("refuses %s without a URL", async (via) => {
    const { locks } = twoWays({ via: "table", withoutService: true });
    await expect(locks.use(via)).rejects.toMatchObject({ name: "InvalidRequestError", field: "via" });
    await locks.use("table");
  });

  it("is refused by a client that has one way", async () => {
    const locks = createHttpClient({ url: "http://127.0.0.1:1" });
    await expect(locks.use("service")).rejects.toMatchObject({ name: "InvalidRequestError", field: "via" });
  });
});

describe("the options of a client on the table", () => {
  const options = { tableName: "locks" };
  it.each<[what: string, given: object, field: string]>([
    ["an unknown way", { via: "http" }, "via"],
    ["no URL for the service", { via: "service" }, "url"],
    ["no URL for both", { via: "auto" }, "url"],
    ["a URL that is none", { via: "auto", url: "localhost" }, "url"],
    ["a URL that is none, for later", { url: "localhost" }, "url"],
    ["no Regions in a list", { regions: [] }, "regions"],
    ["a Region that is no text", { regions: [5] }, "regions"],
    ["Regions and a Region", { regions: ["us-east-1"], region: "us-east-1" }, "region"],
    ["Regions and a client", { regions: ["us-east-1"], client: {} }, "regions"],
    ["one endpoint for Regions", { regions: ["us-east-1"], endpoint: "http://127.0.0.1:1" }, "endpoint"],
    ["no endpoint for one of its Regions", { regions: ["a", "b"], endpoint: { a: "http://127.0.0.1:1" } }, "endpoint"],
    ["an endpoint for another Region", { regions: ["a"], endpoint: { a: "http://127.0.0.1:1", b: "http://127.0.0.1:1" } }, "endpoint"],
    ["an endpoint of a Region that is no URL", { regions: ["a"], endpoint: { a: "localhost" } }, "endpoint"],
    ["endpoints by Region without Regions", { endpoint: { a: "http://127.0.0.1:1" } }, "endpoint"],
    ["a signer that is no function", { via: "auto", url: "http://127.0.0.1:1", sign: "sigv4" }, "sign"],
  ])("may not have %s", (_what, given, field) => {
    expect(() => createTableClient({ ...options, ...given })).toThrow(expect.objectContaining({ name: "InvalidRequestError", field }));
  });
});
