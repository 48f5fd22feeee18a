/** Leader election: at most one leader at a time, dead and resigned leaders are replaced, and the election ends on request. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../../lib/core/limits.js";
import { refuse } from "../../../lib/core/errors.js";
import { renewAfterMs } from "../../../lib/core/renewal.js";
import { type Lease, type LockClient, LockError, LockLostError } from "../../../lib/index.js";
import { type Harness, createHarness } from "../harness.js";

const KEY = "scheduler";
const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
const INTERVAL_MS = renewAfterMs(DEFAULTS.leaseMs);
/** The time at which a dead leader can be replaced, and the jitter of the candidates' requests. */
const FREE_AFTER_MS = DEFAULTS.leaseMs + takeoverMarginMs(DEFAULTS.leaseMs);

/** Resolves when the lease is lost. */
const untilLost = ({ signal }: Lease): Promise<void> => new Promise((resolve) => void signal.addEventListener("abort", () => resolve()));

describe("who leads", () => {
  it("leads for as long as it likes, under a lease that is kept alive", async () => {
    const { locks, clock } = createHarness();
    const leases: Lease[] = [];
    void locks.elect(KEY, (lease) => {
      leases.push(lease);
      return untilLost(lease);
    });
    await clock.advance(HOUR_MS);
    expect(leases).toHaveLength(1);
    expect(leases[0]?.state).toBe("held");
  });

  it("and resigns is replaced within a renewal interval, and stands again", async () => {
    const { locks, rival, clock } = createHarness();
    const order: string[] = [];
    const lead = (who: string) => async (): Promise<void> => {
      order.push(who);
      await new Promise<void>((resolve) => void clock.after(SECOND_MS, resolve));
    };
    void locks.elect(KEY, lead("locks"));
    void rival.elect(KEY, lead("rival"));
    await clock.advance(2 * SECOND_MS + INTERVAL_MS);
    expect(order.slice(0, 2).toSorted()).toEqual(["locks", "rival"]);
    await clock.advance(6 * INTERVAL_MS);
    expect(order.filter((who) => who === "locks").length).toBeGreaterThan(1);
    expect(order.filter((who) => who === "rival").length).toBeGreaterThan(1);
  });

  it("and loses the lease is told, stands again, and leads with a later token", async () => {
    const { locks, wire, clock, events } = createHarness();
    const tokens: number[] = [];
    void locks.elect(KEY, (lease) => {
      tokens.push(lease.fencingToken);
      return untilLost(lease);
    });
    await clock.advance(SECOND_MS);
    wire.always("renew", { lost: "request" });
    await clock.advance(DEFAULTS.leaseMs);
    expect(events.map(({ type }) => type)).toContain("lost");
    wire.always("renew", undefined);
    await clock.advance(2 * FREE_AFTER_MS);
    expect(tokens).toHaveLength(2);
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
  });

  it("and throws frees the key, and ends the election with its error", async () => {
    const { locks, rival, clock } = createHarness();
    const failing = locks.elect(KEY, () => Promise.reject(new RangeError("its own")));
    await expect(clock.settle(failing)).rejects.toThrow(new RangeError("its own"));
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  describe("and was lost meanwhile", () => {
    /** Leads until the lease is lost, and then runs `wind`; `ended` is the election's outcome, if it ended. */
    async function lost(wind: (lease: Lease) => unknown) {
      const { locks, wire, clock } = createHarness();
      let turns = 0;
      let ended: unknown;
      void locks
        .elect(KEY, async (lease) => {
          turns++;
          await untilLost(lease);
          await wind(lease);
        })
        .then(
          () => (ended = "resolved"),
          (error: unknown) => (ended = error),
        );
      await clock.advance(SECOND_MS);
      wire.next("renew", {
        instead: { ok: false, code: "lease-lost", detail: "broken", definite: true, retry: "new-lease", reason: "broken" },
      });
      await clock.advance(4 * FREE_AFTER_MS);
      return { turns, ended };
    }

    it.each<[what: string, error: unknown]>([
      ["an error of its own", new RangeError("its own")],
      ["the loss of another lock", new LockLostError("other: lost", "taken")],
    ])("throws %s: the election ends with that", async (_what, error) => {
      expect(await lost(() => Promise.reject(error as Error))).toEqual({ turns: 1, ended: error });
    });

    it.each<[what: string, wind: (lease: Lease) => unknown]>([
      ["assertHeld", (lease) => lease.assertHeld()],
      ["renew", (lease) => lease.renew()],
      ["what its signal stops", ({ signal }) => Promise.reject(signal.reason as Error)],
      ["what wraps its signal's reason", ({ signal }) => sleep(1000, undefined, { signal })],
    ])("stops by what %s throws: that is the loss, and it stands again", async (_what, wind) => {
      const { turns, ended } = await lost(wind);
      expect(turns).toBeGreaterThan(1);
      expect(ended).toBeUndefined();
    });
  });

  it("stands in vain for the same key meanwhile, and the listener is told at once", async () => {
    const { locks, clock, events } = createHarness();
    const end = new AbortController();
    const { signal } = end;
    const within = locks.elect(KEY, { signal }, () => locks.elect(KEY, { signal }, () => expect.unreachable("it leads already")));
    await clock.advance(0);
    expect(events.filter(({ type }) => type === "self-wait")).toMatchObject([{ key: KEY }]);
    await clock.advance(120_000);
    end.abort();
    await clock.settle(within);
  });
});

describe("an election that is told to end", () => {
  it("tells who leads, keeps the key until it has stopped, frees it, and resolves", async () => {
    const { locks, rival, clock } = createHarness();
    const end = new AbortController();
    let signal: AbortSignal | undefined;
    const election = locks.elect(KEY, { signal: end.signal }, async (lease) => {
      ({ signal } = lease);
      await untilLost(lease);
      await new Promise<void>((resolve) => void clock.after(3 * SECOND_MS, resolve)); // winding up
    });
    await clock.advance(SECOND_MS);
    end.abort();
    await clock.advance(SECOND_MS);
    expect(signal?.aborted).toBe(true);
    expect(await rival.tryAcquire(KEY)).toBeNull();
    await clock.settle(election);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("ends with what its leader throws on the way out, unless that is the signal's", async () => {
    const own = new RangeError("its own");
    for (const error of [own, "the shutdown", undefined]) {
      const { locks, clock } = createHarness();
      const end = new AbortController();
      const election = locks.elect(KEY, { signal: end.signal }, async (lease) => {
        await untilLost(lease);
        if (error !== undefined) throw error as Error;
        lease.assertHeld();
      });
      await clock.advance(SECOND_MS);
      end.abort("the shutdown");
      const ended = await clock.settle(election.catch((reason: unknown) => reason));
      expect(ended).toBe(error === own ? own : undefined);
    }
  });

  it.each<[how: string, end: (harness: { locks: LockClient; given: AbortController }) => unknown]>([
    ["by its signal", ({ given }) => given.abort()],
    ["by the end of its client", ({ locks }) => locks.close()],
  ])("%s leaves nothing behind of who stood by", async (_how, end) => {
    const { locks, rival, wire, clock } = createHarness();
    const given = new AbortController();
    const held = await rival.acquire(KEY);
    const election = locks.elect(KEY, { signal: given.signal }, () => expect.unreachable());
    await clock.advance(15 * SECOND_MS);
    end({ locks, given });
    await clock.settle(election);
    const asked = wire.sent.length;
    await held.release();
    await clock.advance(HOUR_MS);
    expect(wire.sent).toHaveLength(asked);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("before it began resolves without a request", async () => {
    const { locks, wire } = createHarness();
    await locks.elect(KEY, { signal: AbortSignal.abort() }, () => expect.unreachable());
    expect(wire.sent).toHaveLength(0);
  });

  it("with its invocation, in time to say so", async () => {
    const { locks, rival, clock } = createHarness();
    const endsAtMs = clock.monotonicMs() + 5 * SECOND_MS;
    await rival.acquire(KEY);
    const view = locks.forInvocation({ getRemainingTimeInMillis: () => endsAtMs - clock.monotonicMs() });
    await clock.settle(view.elect(KEY, () => expect.unreachable()));
    expect(clock.monotonicMs()).toBeGreaterThan(endsAtMs - 2 * SECOND_MS);
  });
});

describe("standing by", () => {
  it("costs a request each renewal interval, or less than twice as many", async () => {
    const { locks, rival, wire, clock } = createHarness();
    await rival.acquire(KEY);
    void locks.elect(KEY, () => expect.unreachable());
    await clock.advance(HOUR_MS);
    const intervals = HOUR_MS / INTERVAL_MS;
    expect(wire.sent.length).toBeGreaterThanOrEqual(intervals);
    expect(wire.sent.length).toBeLessThan(2 * intervals);
  });

  it.each(["contended", "key-full"] as const)("outlasts that the key is %s", async (code) => {
    const { locks, wire, clock } = createHarness();
    let leads = 0;
    wire.always("acquire", { instead: refuse(code) });
    void locks.elect(KEY, (lease) => {
      leads++;
      return untilLost(lease);
    });
    await clock.advance(60 * SECOND_MS);
    wire.always("acquire", undefined);
    await clock.advance(60 * SECOND_MS);
    expect(leads).toBe(1);
  });

  it("outlasts a service that can't be reached, asking less and less often", async () => {
    const { locks, wire, clock } = createHarness();
    let leads = 0;
    wire.always("acquire", { lost: "request" });
    wire.always("release", { lost: "request" });
    void locks.elect(KEY, (lease) => {
      leads++;
      return untilLost(lease);
    });
    await clock.advance(HOUR_MS);
    const asked = wire.of("acquire").length;
    await clock.advance(HOUR_MS);
    expect(wire.of("acquire").length - asked).toBeLessThanOrEqual(asked);
    wire.always("acquire", undefined);
    wire.always("release", undefined);
    await clock.advance(60 * SECOND_MS);
    expect(leads).toBe(1);
  });
});

describe("an election that can't be", () => {
  it.each<[field: string, elect: (locks: LockClient) => Promise<void>]>([
    ["waitMs", (locks) => locks.elect(KEY, { waitMs: 1 } as never, () => undefined)],
    ["leaseMs", (locks) => locks.elect(KEY, { leaseMs: 1 }, () => undefined)],
    ["signal", (locks) => locks.elect(KEY, { signal: 1 } as never, () => undefined)],
    ["lead", (locks) => locks.elect(KEY, undefined as never)],
    ["key", (locks) => locks.elect("", () => undefined)],
  ])("is refused by the name of %s", async (field, elect) => {
    const { locks, wire } = createHarness();
    await expect(elect(locks)).rejects.toMatchObject({ name: "InvalidRequestError", field });
    expect(wire.sent).toHaveLength(0);
  });

  it.each(["forbidden", "not-configured"] as const)("is %s at its first request, and ends with that, by name", async (code) => {
    const { locks, wire, clock, events } = createHarness();
    wire.always("acquire", { instead: refused(code) });
    const election = locks.elect(KEY, () => expect.unreachable());
    await expect(clock.settle(election)).rejects.toBeInstanceOf(LockError);
    await expect(election).rejects.toMatchObject({ code, message: `elect ${KEY}: refused meanwhile` });
    expect(events).toMatchObject([{ type: "refused", key: KEY, error: { code } }]);
  });
});

/** A refusal that asks for no further request. */
const refused = (code: "forbidden" | "not-configured" | "not-found" | "limit-mismatch") =>
  ({ ok: false, code, detail: "refused meanwhile", definite: true, retry: "never" }) as const;

describe.each(["forbidden", "not-configured", "not-found", "limit-mismatch"] as const)(
  "an election that is refused as %s meanwhile",
  (code) => {
    it.each([
      ["stood by", async ({ rival }: Harness) => void (await rival.acquire(KEY, { leaseMs: 2000, heartbeat: false })), 0],
      ["led, and lost that", async ({ wire }: Harness) => wire.always("renew", { instead: refused(code) }), 1],
    ])("goes on for who %s, says so, asks less and less often, and leads when it may", async (_who, begin, before) => {
      const harness = createHarness();
      const { locks, wire, clock, events } = harness;
      await begin(harness);
      let leads = 0;
      void locks.elect(KEY, async (lease) => {
        leads++;
        await untilLost(lease);
      });
      await clock.advance(SECOND_MS);
      expect(leads).toBe(before);
      wire.always("acquire", { instead: refused(code) });
      await clock.advance(HOUR_MS);
      expect(events.filter(({ type }) => type === "refused")).toMatchObject([
        { key: KEY, error: { code, message: `elect ${KEY}: refused meanwhile` } },
      ]);
      const asked = wire.of("acquire").length;
      // The longest pause is 30 s, with jitter half of it.
      expect(asked).toBeGreaterThan(200);
      expect(asked).toBeLessThan(300);
      for (const operation of ["acquire", "renew"] as const) wire.always(operation, undefined);
      await clock.advance(60 * SECOND_MS);
      expect(leads).toBe(before + 1);
    });
  },
);

describe("an election that is refused after an outage", () => {
  it("says both, each once", async () => {
    const { locks, rival, wire, clock, events } = createHarness();
    await rival.acquire(KEY);
    void locks.elect(KEY, () => expect.unreachable());
    await clock.advance(SECOND_MS);
    wire.always("acquire", { lost: "request" });
    await clock.advance(120 * SECOND_MS);
    wire.always("acquire", { instead: refused("forbidden") });
    await clock.advance(120 * SECOND_MS);
    expect(events.map(({ type }) => type)).toEqual(["unavailable", "refused"]);
  });
});
