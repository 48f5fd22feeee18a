/** An occurrence of a schedule is worked on once, whoever delivers it; two occurrences never overlap; nothing is skipped by its own remains. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cron } from "../../../lib/cron.js";
import type { LockClient, RunningBefore, Schedule, Tick, TickOptions, TickResult } from "../../../lib/index.js";
import { InvalidRequestError, LockLostError, LockTimeoutError } from "../../../lib/index.js";
import { scheduleHandler } from "../../../lib/middy.js";
import { createPolicy } from "../../../lib/core/policy.js";
import { type TestLockClient, createLockClient, VirtualClock } from "../../../lib/testing.js";
import { invocation } from "../../support/invocation.js";
import { createMemoryStore } from "../../support/memory-store.js";
import { sized } from "../../support/tier.js";
import { createHarness } from "../harness.js";
import { cutOff } from "./provider.js";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const AT_3 = new Date("2027-01-01T03:00:00Z");
const AT_4 = new Date("2027-01-01T04:00:00Z");

/** The machines that have the same schedule. */
function fleet(): { first: TestLockClient; clock: TestLockClient["clock"]; machine: (owner: string) => TestLockClient } {
  const clock = new VirtualClock();
  // The reference takes less than half of the CPU of the real store, and a timer of each hour makes hundreds of requests.
  const store = createMemoryStore({ policy: createPolicy(), clock });
  const first = createLockClient({ owner: "m0", clock, store });
  return { first, clock, machine: (owner) => createLockClient({ owner, clock, store }) };
}

const hows = (results: readonly TickResult<unknown>[]): readonly string[] => results.map(({ how }) => how);
const lasting =
  ({ clock }: TestLockClient, ms: number) =>
  (): Promise<string> =>
    new Promise((resolve) => void clock.after(ms, () => resolve("report")));

describe("an occurrence", () => {
  it("that is delivered twice, and once more later, is worked on once", async () => {
    const { first, clock, machine } = fleet();
    let runs = 0;
    const deliver = (owner: string): Promise<TickResult<string>> =>
      machine(owner).tick("nightly", { occurrence: AT_3 }, () => (runs++, lasting(first, 2000)()));
    const both = await clock.settle(Promise.all([deliver("a"), deliver("b")]));
    await clock.advance(10 * MINUTE_MS);
    const late = await clock.settle(deliver("c"));
    expect(both).toEqual([
      { occurrence: AT_3, how: "ran", value: "report", attempt: 1 },
      { occurrence: AT_3, how: "running" },
    ]);
    expect(late).toEqual({ occurrence: AT_3, how: "done-before", value: "report", attempt: 1 });
    expect(runs).toBe(1);
  });

  it("costs four requests, and one for each later delivery", async () => {
    const { clock, wire, locks } = createHarness();
    const deliver = (): Promise<TickResult<string>> => clock.settle(locks.tick("nightly", { occurrence: AT_3 }, () => "report"));
    await deliver();
    expect(wire.sent.map(({ operation }) => operation)).toEqual(["start", "acquire", "release", "complete"]);
    await deliver();
    expect(wire.of("start")).toHaveLength(2);
    expect(wire.sent).toHaveLength(5);
  });

  it("control: with a lock alone, whoever comes after the work does it again", async () => {
    const { first, clock, machine } = fleet();
    let runs = 0;
    const deliver = (owner: string): Promise<unknown> => machine(owner).withLock("nightly", () => (runs++, lasting(first, 2000)()));
    await clock.settle(Promise.all([deliver("a"), deliver("b")]));
    expect(runs).toBe(2);
  });

  it("can be waited for, and its value is had by all", async () => {
    const { first, clock, machine } = fleet();
    const deliver = (owner: string): Promise<TickResult<string>> =>
      machine(owner).tick("nightly", { occurrence: AT_3, waitMs: MINUTE_MS }, lasting(first, 2000));
    expect(hows(await clock.settle(Promise.all([deliver("a"), deliver("b")])))).toEqual(["ran", "done-before"]);
  });

  it("of an interval runs once an hour on twelve machines with timers of their own", async () => {
    const { first, clock, machine } = fleet();
    const machines = Array.from({ length: 12 }, (_, index) => machine(`m${index}`));
    const ran: string[] = [];
    for (let hour = 0; hour < 3; hour++) {
      const ticks = machines.map(async (locks, index) => {
        await lasting(first, 40 * index)();
        await locks.tick("hourly", { everyMs: HOUR_MS }, ({ occurrence }) => void ran.push(occurrence.toISOString()));
      });
      await clock.settle(Promise.all(ticks));
      await clock.advance(HOUR_MS);
    }
    expect(ran).toEqual(["2027-01-01T00:00:00.000Z", "2027-01-01T01:00:00.000Z", "2027-01-01T02:00:00.000Z"]);
  });

  it("of a schedule is its last one by the client's clock", async () => {
    const { first, clock } = fleet();
    await clock.advance(3.5 * HOUR_MS);
    const result = await clock.settle(first.tick("nightly", { cron: daily }, () => "done"));
    expect(result).toMatchObject({ how: "ran", occurrence: AT_3 });
  });

  it("that is late is not run again: its outcome is kept for longer than the interval", async () => {
    const { first, clock } = fleet();
    const month = { everyMs: 30 * DAY_MS, maxLateMs: 30 * DAY_MS };
    const began = clock.wallMs();
    expect((await clock.settle(first.tick("monthly", month, () => "done"))).how).toBe("ran");
    await clock.advance(30 * DAY_MS - (began % (30 * DAY_MS)) - SECOND_MS);
    expect((await clock.settle(first.tick("monthly", month, () => "done"))).how).toBe("done-before");
    await clock.advance(SECOND_MS);
    expect((await clock.settle(first.tick("monthly", month, () => "done"))).how).toBe("ran");
  });

  it("has a run of its own, whose key is the name and the time, after the client's prefix", async () => {
    const first = createLockClient({ prefix: "shop:" });
    const seen: Tick[] = [];
    await first.clock.settle(first.tick("nightly", { occurrence: AT_3 }, (tick) => void seen.push(tick)));
    expect(seen[0]).toMatchObject({ idempotencyKey: "shop:nightly_2027-01-01T03:00:00.000Z", attempt: 1, takeover: false });
    expect(await first.runs.get("nightly_2027-01-01T03:00:00.000Z")).toMatchObject({ state: "succeeded" });
    expect((await first.inspect("nightly")).holders).toEqual([]);
  });

  it("whose value can't be stored is done all the same", async () => {
    const { first, clock } = fleet();
    const deliver = (): Promise<TickResult<unknown>> => clock.settle(first.tick("nightly", { occurrence: AT_3 }, () => new Map()));
    expect(await deliver()).toMatchObject({ how: "ran", value: new Map() });
    expect(await deliver()).toMatchObject({ how: "done-before", value: undefined });
  });
});

const daily: Schedule = {
  last: (time) => new Date(Math.floor((time.getTime() - 3 * HOUR_MS) / DAY_MS) * DAY_MS + 3 * HOUR_MS),
  next: (time) => new Date(daily.last(time).getTime() + DAY_MS),
};

/** The calls that name an occurrence by the time at which they are made, and the handler of events that name it themselves. */
const TIMED: readonly (readonly [
  what: string,
  deliver: (locks: TestLockClient, dueMs: number, work: (tick: Tick) => void) => Promise<unknown>,
])[] = [
  ["everyMs", (locks, _dueMs, work) => locks.tick("hourly", { everyMs: HOUR_MS }, work)],
  ["cron", (locks, _dueMs, work) => locks.tick("hourly", { cron: cron("0 * * * *") }, work)],
  [
    "scheduleHandler",
    (locks, dueMs, work) =>
      scheduleHandler({ locks, name: "hourly" }, work)({ scheduledTime: new Date(dueMs).toISOString() }, invocation(locks.clock, HOUR_MS)),
  ],
];

describe("a timer of each hour", () => {
  const FIRST_MS = AT_3.getTime();
  /** Returns the occurrences that ran when the timers end so many ms after each, or before it. */
  async function ran(offsetsMs: readonly number[], [, deliver]: (typeof TIMED)[number]): Promise<readonly number[]> {
    const { first, clock } = fleet();
    const seen: number[] = [];
    for (const [index, offsetMs] of offsetsMs.entries()) {
      const dueMs = FIRST_MS + index * HOUR_MS;
      await clock.advance(dueMs + offsetMs - clock.wallMs());
      await clock.settle(deliver(first, dueMs, ({ occurrence }) => void seen.push(occurrence.getTime())));
    }
    return seen;
  }
  const each = (offsetsMs: readonly number[]): readonly number[] => offsetsMs.map((_offset, index) => FIRST_MS + index * HOUR_MS);

  it.each(TIMED)("that ends some ms early, or late, runs each occurrence once: %s", async (...way) => {
    const offset = fc.oneof(fc.integer({ min: -10, max: 10 }), fc.integer({ min: 0, max: 30 * MINUTE_MS }));
    const property = fc.asyncProperty(fc.array(offset, { minLength: 2, maxLength: 6 }), async (offsetsMs) => {
      expect(await ran(offsetsMs, way)).toEqual(each(offsetsMs));
    });
    await fc.assert(property, { numRuns: sized({ quick: 15, slow: 50 }), examples: [[[2, -2, 2]], [[-2, -2, -2]], [[-10, 10, 0]]] });
  });

  it.each(TIMED.slice(0, 2))("control: one that ends earlier than that is for the occurrence before: %s", async (...way) => {
    expect(await ran([2, -11, 2], way)).toEqual([FIRST_MS, FIRST_MS + 2 * HOUR_MS]);
  });
});

describe("an occurrence that nobody began in time", () => {
  const nightly = (locks: TestLockClient, options: Partial<TickOptions> = {}, work = (): unknown => "done") =>
    locks.clock.settle(locks.tick("nightly", { cron: daily, ...options }, work));

  it("is too late an hour after it, as at a deployment: it never runs, which is recorded", async () => {
    const { first, clock, machine } = fleet();
    await clock.advance(4 * HOUR_MS + 1);
    expect(await nightly(first)).toEqual({ how: "too-late", occurrence: AT_3, lateMs: HOUR_MS + 1 });
    await clock.advance(HOUR_MS);
    expect(await nightly(machine("other")), "as the first one found it").toMatchObject({ how: "too-late", lateMs: HOUR_MS + 1 });
    const run = await first.runs.get("nightly_2027-01-01T03:00:00.000Z");
    expect(run).toMatchObject({ state: "failed", error: { name: "TickTooLate", message: "1h 1s late, at most 1h" } });
    await clock.advance(22 * HOUR_MS);
    expect(await nightly(first), "the next one").toMatchObject({ how: "ran" });
  });

  it.each<[string, Partial<TickOptions>, string]>([
    ["an hour late", {}, "ran"],
    ["with a bound of its own", { maxLateMs: HOUR_MS - 1 }, "too-late"],
    ["with a longer bound", { maxLateMs: DAY_MS }, "ran"],
  ])("%s", async (_what, options, how) => {
    const { first, clock } = fleet();
    await clock.advance(4 * HOUR_MS);
    expect((await nightly(first, options)).how).toBe(how);
  });

  it("runs however late if the caller names it, and within a shorter interval always", async () => {
    const { first, clock } = fleet();
    await clock.advance(3 * DAY_MS + MINUTE_MS - 1);
    expect((await clock.settle(first.tick("named", { occurrence: AT_3 }, () => 1))).how).toBe("ran");
    expect((await clock.settle(first.tick("named", { occurrence: AT_4, maxLateMs: DAY_MS }, () => 1))).how).toBe("too-late");
    expect((await clock.settle(first.tick("minutely", { everyMs: MINUTE_MS }, () => 1))).how).toBe("ran");
  });

  it("is tried again however late, once it began in time", async () => {
    const { first, clock } = fleet();
    await clock.advance(4 * HOUR_MS);
    await expect(nightly(first, {}, () => Promise.reject(new Error("down")))).rejects.toThrow("down");
    await clock.advance(HOUR_MS);
    expect(await nightly(first)).toMatchObject({ how: "ran", attempt: 2 });
  });
});

describe("an occurrence whose work fails", () => {
  it("is the caller's error, and the repeated delivery is attempt 2", async () => {
    const { clock, machine } = fleet();
    const attempts: number[] = [];
    const deliver = (owner: string): Promise<TickResult<number>> =>
      machine(owner).tick("nightly", { occurrence: AT_3 }, ({ attempt }) => {
        attempts.push(attempt);
        if (attempt === 1) throw new Error("down");
        return attempt;
      });
    await expect(clock.settle(deliver("a"))).rejects.toThrow("down");
    expect(await clock.settle(deliver("b"))).toMatchObject({ how: "ran", attempt: 2 });
    expect(attempts).toEqual([1, 2]);
  });

  it("by a wait for a lock of its own is no occurrence that is running", async () => {
    const { first, clock, machine } = fleet();
    await machine("other").acquire("stock");
    const work = (): Promise<string> => first.withLock("stock", { waitMs: 1000 }, () => "done");
    await expect(clock.settle(first.tick("nightly", { occurrence: AT_3 }, work))).rejects.toBeInstanceOf(LockTimeoutError);
  });
});

describe("an occurrence whose process dies", () => {
  /** Lets the process die one second after the work began. */
  async function died(): Promise<ReturnType<typeof fleet>> {
    const all = fleet();
    const dying = all.machine("dying");
    void dying.tick("nightly", { occurrence: AT_3 }, lasting(dying, DAY_MS)).catch(() => undefined);
    await all.clock.advance(SECOND_MS);
    cutOff(dying);
    return all;
  }

  it("is running until its lease is over, then taken over", async () => {
    const { first, clock } = await died();
    const deliver = (): Promise<TickResult<Tick>> =>
      clock.settle(first.tick("nightly", { occurrence: AT_3 }, ({ attempt, takeover }) => ({ attempt, takeover }) as Tick));
    expect((await deliver()).how).toBe("running");
    await clock.advance(35 * SECOND_MS);
    expect(await deliver()).toMatchObject({ how: "ran", attempt: 2, value: { attempt: 2, takeover: true } });
  });

  it("is not skipped because of the lock that its own last attempt left behind", async () => {
    const { clock, machine } = fleet();
    const failing = machine("failing");
    for (let requests = 0; requests < 20; requests++) failing.faults.loseNextRequest("release");
    const failed = failing.tick("nightly", { occurrence: AT_3 }, () => Promise.reject(new Error("down")));
    await expect(clock.settle(failed)).rejects.toThrow("down");
    expect((await failing.inspect("nightly")).holders).toMatchObject([{ owner: "failing" }]);
    const again = machine("next").tick("nightly", { occurrence: AT_3 }, ({ attempt }) => attempt);
    expect(await clock.settle(again)).toMatchObject({ how: "ran", value: 2 });
  });
});

describe("an occurrence that comes while the one before is running", () => {
  it("is skipped for good, which is recorded with who was running", async () => {
    const { first, clock, machine } = fleet();
    const long = machine("long");
    const slow = long.tick("nightly", { occurrence: AT_3 }, lasting(long, 90 * MINUTE_MS));
    await clock.advance(HOUR_MS);
    const deliver = (): Promise<TickResult<string>> => clock.settle(first.tick("nightly", { occurrence: AT_4 }, () => "never"));
    const skipped = await deliver();
    expect(skipped).toMatchObject({ how: "skipped", occurrence: AT_4, running: [{ owner: "long" }] });
    expect((skipped as { running: readonly RunningBefore[] }).running[0]!.heldMs).toBeGreaterThan(59 * MINUTE_MS);
    expect((await clock.settle(slow, 2 * HOUR_MS)).how).toBe("ran");
    // Also when it is delivered again, and nothing runs any more.
    expect(await deliver()).toEqual(skipped);
    const found = await first.runs.list({ prefix: "nightly_", state: "failed" });
    expect(found.items.map(({ key }) => key)).toEqual(["nightly_2027-01-01T04:00:00.000Z"]);
    expect((await first.runs.get("nightly_2027-01-01T04:00:00.000Z"))?.error?.message).toMatch(/^skipped: .*long for 3\d+ ms$/);
  });

  it('with overlap "queue" runs when that one is over', async () => {
    const { first, clock, machine } = fleet();
    const long = machine("long");
    const order: string[] = [];
    const slow = long.tick("nightly", { occurrence: AT_3 }, async () => {
      await lasting(long, 90 * MINUTE_MS)();
      order.push("3");
    });
    await clock.advance(HOUR_MS);
    const queued = first.tick("nightly", { occurrence: AT_4, overlap: "queue" }, () => void order.push("4"));
    expect(hows(await clock.settle(Promise.all([slow, queued]), 2 * HOUR_MS))).toEqual(["ran", "ran"]);
    expect(order).toEqual(["3", "4"]);
  });

  it('with overlap "queue" counts no attempt that gave up waiting for that one', async () => {
    const { first, clock, machine } = fleet();
    const long = machine("long");
    const slow = long.tick("nightly", { occurrence: AT_3 }, lasting(long, 90 * MINUTE_MS));
    await clock.advance(HOUR_MS);
    const deliver = (signal?: AbortSignal): Promise<TickResult<number>> =>
      first.tick("nightly", { occurrence: AT_4, overlap: "queue", maxAttempts: 2, signal }, (tick) => tick.attempt);
    for (let turn = 0; turn < 3; turn++) {
      const giveUp = new AbortController();
      const given = deliver(giveUp.signal).catch((error: unknown) => (error as Error).name);
      await clock.advance(MINUTE_MS);
      giveUp.abort();
      expect(await clock.settle(given)).toBe("AbortError");
    }
    await clock.settle(slow, 2 * HOUR_MS);
    expect(await clock.settle(deliver())).toMatchObject({ how: "ran", value: 1 });
  });

  it("has a larger token, so late writes of the one before can be refused", async () => {
    const { first, clock } = fleet();
    const tokens: number[] = [];
    for (const occurrence of [AT_4, AT_3])
      await clock.settle(first.tick("n", { occurrence }, (tick) => void tokens.push(tick.fencingToken)));
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
  });
});

describe("the work of a tick", () => {
  it("learns that it lost the lock, by its signal and by its end", async () => {
    const { first, clock, machine } = fleet();
    let seen: Tick | undefined;
    const ticking = first.tick("nightly", { occurrence: AT_3 }, async (tick) => {
      seen = tick;
      await lasting(first, MINUTE_MS)();
    });
    ticking.catch(() => undefined);
    await clock.advance(SECOND_MS);
    expect([seen!.isHeld(), seen!.signal.aborted, seen!.remainingMs() > 0]).toEqual([true, false, true]);
    const [holder] = (await first.inspect("nightly")).holders;
    await machine("op").forceRelease("nightly", { reason: "it hangs", fencingToken: holder!.fencingToken, drainMs: 0 });
    await clock.advance(20 * SECOND_MS);
    expect([seen!.isHeld(), seen!.signal.aborted, seen!.remainingMs()]).toEqual([false, true, 0]);
    expect(seen!.signal.reason).toBeInstanceOf(LockLostError);
    expect(() => seen!.assertHeld()).toThrow(LockLostError);
    await expect(clock.settle(ticking)).rejects.toBeInstanceOf(LockLostError);
  });

  it("saves checkpoints, which its next attempt finds", async () => {
    const { first, clock } = fleet();
    const deliver = (): Promise<TickResult<unknown>> =>
      clock.settle(
        first.tick("nightly", { occurrence: AT_3 }, async (tick) => {
          if (tick.attempt > 1) return tick.checkpoint;
          await tick.saveCheckpoint({ page: 7 });
          throw new Error(`down after ${JSON.stringify(tick.checkpoint)}`);
        }),
      );
    await expect(deliver()).rejects.toThrow('down after {"page":7}');
    expect(await deliver()).toMatchObject({ value: { page: 7 } });
  });

  it("in a scope excludes other occurrences, too", async () => {
    const { first, clock, machine } = fleet();
    const [a, b] = [first, machine("b")].map((locks): LockClient => locks.scope("a-scope-that-nobody-guesses"));
    const slow = a!.tick("nightly", { occurrence: AT_3 }, lasting(first, MINUTE_MS));
    await clock.advance(SECOND_MS);
    expect((await clock.settle(b!.tick("nightly", { occurrence: AT_4 }, () => "never"))).how).toBe("skipped");
    await clock.settle(slow);
  });
});

describe("refuses", () => {
  it.each<[string, TickOptions, string]>([
    ["no occurrence", {}, "occurrence: tick needs one of occurrence, everyMs, cron, not none"],
    [
      "two of them",
      { occurrence: AT_3, everyMs: HOUR_MS },
      "occurrence: tick needs one of occurrence, everyMs, cron, not occurrence and everyMs",
    ],
    ["a time that is none", { occurrence: new Date("soon") }, "occurrence: an object given; it must be a valid Date"],
    ["text for a time", { occurrence: "2027-01-01" as never }, 'occurrence: "2027-01-01" given; it must be a valid Date'],
    ["a late year", { occurrence: new Date(8e15) }, "occurrence: an object given; it must be a valid Date, from the year 0 to 9999"],
    ["an interval of 0", { everyMs: 0 }, "everyMs: 0 given; it is a whole number of ms from 1000 to 31536000000"],
    ["an expression as text", { cron: "0 3 * * *" as never }, 'cron: "0 3 * * *" given; it must be a schedule of cron() of holdfast/cron'],
    ["an unknown overlap", { everyMs: HOUR_MS, overlap: "wait" as never }, 'overlap: "wait" given; it must be "skip" or "queue"'],
    [
      "a memory that is too short",
      { everyMs: DAY_MS, keepMs: HOUR_MS },
      "keepMs: 3600000 given; it must be at least the interval of 86400000 ms",
    ],
    ["a misspelt option", { every: "1h" } as never, "every: is not an option of tick; these are: occurrence, everyMs, cron"],
    ["a negative wait", { everyMs: HOUR_MS, waitMs: -1 }, "waitMs: -1 given"],
  ])("%s, and names the rule", async (_what, options, message) => {
    const refused = createLockClient().tick("nightly", options, () => "done");
    await expect(refused).rejects.toBeInstanceOf(InvalidRequestError);
    await expect(refused).rejects.toThrow(message);
  });

  it("a call without work, and a name that is no key", async () => {
    const locks = createLockClient();
    await expect(locks.tick("nightly", { everyMs: HOUR_MS }, undefined as never)).rejects.toThrow(
      "tick: the last argument is the function",
    );
    await expect(locks.tick("a b", { everyMs: HOUR_MS }, () => 1)).rejects.toThrow("key: ");
  });
});
