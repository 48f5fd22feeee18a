/** A limiter of a client: the requests that it sends and saves, and how its waits end. In memory, with the clock turned. */
import { describe, expect, it } from "vitest";
import {
  type Limiter,
  type LimiterOptions,
  type TakeOptions,
  InvalidRequestError,
  limitAll,
  LimitExceededError,
  LockError,
} from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";
import { createHarness } from "./harness.js";

const TEN: LimiterOptions = { rates: [{ count: 10, perMs: 1000, burst: 10 }] };

/** A client whose requests are counted from the last `forget` on. */
function counted() {
  const { clock, locks, rival, wire } = createHarness();
  let from = 0;
  return {
    clock,
    locks,
    rival,
    asked: () => wire.sent.slice(from).map(({ operation }) => operation),
    forget: () => void (from = wire.sent.length),
  };
}

describe("a client that was refused", () => {
  it("asks nobody until there can be room for as much, whichever of its limiters is asked", async () => {
    const { clock, asked, forget, locks } = counted();
    const take = (cost: number, waitMs = 0) => locks.limiter("partner", TEN).take({ cost, waitMs });
    await take(8);
    await expect(take(5)).rejects.toMatchObject({ retryAfterMs: 300 });
    forget();
    await clock.advance(299);
    await expect(take(5)).rejects.toMatchObject({ retryAfterMs: 1 });
    expect(asked()).toEqual([]);
    await take(4);
    await clock.advance(401);
    await take(5);
    expect(asked()).toEqual(["take", "take"]);
  });

  it("asks for another cost and for other rates, whose answers are their own", async () => {
    const { asked, forget, locks } = counted();
    const hourly: LimiterOptions = { rates: [{ count: 100, perMs: 3_600_000, burst: 100 }] };
    const take = (cost: number, options = hourly) => locks.limiter("partner", options).take({ cost });
    await take(100);
    await expect(take(1)).rejects.toMatchObject({ retryAfterMs: 36_000 });
    forget();
    await expect(take(50)).rejects.toMatchObject({ retryAfterMs: 1_800_000 });
    await expect(take(50, TEN)).rejects.toMatchObject({ field: "cost" });
    await expect(take(10, TEN)).rejects.toMatchObject({ code: "limit-mismatch" });
    expect(asked()).toEqual(["take", "take"]);
  });

  it("asks again 5 s later, so that it learns of a reset; control: not before", async () => {
    const { clock, asked, forget, locks } = counted();
    const limiter = locks.limiter("partner", { rates: [{ count: 1, perMs: 3_600_000 }] });
    await limiter.take();
    await expect(limiter.take()).rejects.toThrow(LimitExceededError);
    forget();
    await clock.advance(5000);
    await expect(limiter.take()).rejects.toThrow(LimitExceededError);
    expect(asked()).toEqual([]);
    await clock.advance(1);
    await expect(limiter.take()).rejects.toThrow(LimitExceededError);
    expect(asked()).toEqual(["take"]);
  });

  it("is granted what a reset of its own made free, at once; control: nothing without a reason", async () => {
    const { locks } = counted();
    const limiter = locks.limiter("partner", TEN);
    await limiter.take({ cost: 10 });
    await expect(limiter.take({ cost: 10 })).rejects.toThrow(LimitExceededError);
    await expect(locks.limits.reset("partner", { reason: "" })).rejects.toMatchObject({ field: "reason" });
    await locks.limits.reset("partner", { reason: "wrong rates" });
    expect((await limiter.take({ cost: 10 })).remaining).toEqual([0]);
    await expect(locks.limits.reset("nobody", { reason: "wrong rates" })).rejects.toMatchObject({ code: "not-found" });
  });

  it("asks at once for a take that may wait long enough, and for another limit", async () => {
    const { clock, asked, forget, locks } = counted();
    const limiter = locks.limiter("partner", TEN);
    await limiter.take({ cost: 10 });
    await expect(limiter.take()).rejects.toThrow(LimitExceededError);
    forget();
    await clock.settle(limiter.take({ waitMs: 100 }));
    await locks.limiter("other", TEN).take();
    expect(asked()).toEqual(["take", "take"]);
  });
});

describe("a take", () => {
  it("whose answer was lost is sent again, and charged twice: stricter, never looser", async () => {
    const locks = createLockClient();
    const limiter = locks.limiter("partner", TEN);
    locks.faults.loseNextResponse("take");
    expect((await locks.clock.settle(limiter.take())).remaining).toEqual([8]);
  });

  it("whose caller gives up stays taken", async () => {
    const locks = createLockClient();
    const limiter = locks.limiter("partner", TEN);
    await limiter.take({ cost: 10 });
    const giveUp = new AbortController();
    const taking = limiter.take({ waitMs: 5000, signal: giveUp.signal });
    const ended = expect(taking).rejects.toMatchObject({ name: "AbortError", cause: "enough" });
    await locks.clock.advance(50);
    giveUp.abort("enough");
    await ended;
    await locks.clock.advance(50);
    await expect(limiter.take()).rejects.toMatchObject({ retryAfterMs: 100 });
  });

  it("whose caller gave up before it, or whose client is closed, is not sent; control: another is", async () => {
    const { clock, asked, locks } = counted();
    const limiter = locks.limiter("partner", TEN);
    await clock.settle(limiter.take({ cost: 10 }));
    await expect(clock.settle(limiter.take())).rejects.toBeInstanceOf(LimitExceededError);
    expect(asked()).toEqual(["take", "take"]);
    await expect(limiter.take({ signal: AbortSignal.abort("enough") })).rejects.toMatchObject({ name: "AbortError", cause: "enough" });
    await locks.close();
    await expect(limiter.take()).rejects.toThrow("the client is closed");
    expect(asked()).toEqual(["take", "take"]);
  });

  it("ends at once when its caller gives up, also while nobody answers; control: without that it waits for an answer", async () => {
    const locks = createLockClient();
    for (let times = 0; times < 100; times++) locks.faults.loseNextRequest("take");
    const giveUp = new AbortController();
    let ended = "";
    const taking = (name: string, signal?: AbortSignal) =>
      locks
        .limiter("partner", TEN)
        .take({ signal })
        .catch((error: unknown) => void (ended += `${name}: ${(error as Error).name} `));
    const both = Promise.all([taking("one", giveUp.signal), taking("other")]);
    await locks.clock.advance(100);
    giveUp.abort();
    await locks.clock.advance(1);
    expect(ended).toBe("one: AbortError ");
    await locks.clock.settle(both);
    expect(ended).toBe("one: AbortError other: LockUnavailableError ");
  });

  it("that waits ends when the client is closed", async () => {
    const locks = createLockClient();
    const limiter = locks.limiter("partner", TEN);
    await limiter.take({ cost: 10 });
    const ended = expect(limiter.take({ waitMs: 5000 })).rejects.toThrow(LockError);
    await locks.clock.advance(10);
    await locks.close();
    await ended;
  });

  it("starts within its wait after a lost answer too: what is sent again asks for what is left of it", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const second = { rates: [{ count: 1, perMs: 1000 }] };
    const waits = Array.from({ length: 8 }, () => rival.limiter("partner", second).take({ waitMs: 60_000 }));
    await clock.advance(0);
    wire.next("take", { lost: "reply", silently: true });
    // Its first request is charged for a start after 8 s. The next one is sent after 5 s and a pause of 25 ms, when the next start is 4 s away.
    await expect(clock.settle(locks.limiter("partner", second).take({ waitMs: 8000 }))).rejects.toBeInstanceOf(LimitExceededError);
    expect(wire.of("take").map(({ request }) => request)).toMatchObject([{ waitMs: 8000 }, { waitMs: 2975 }]);
    await clock.settle(Promise.all(waits));
  });

  it("of work that could start only after the invocation is refused, and the work isn't done; control: with time left it is", async () => {
    const worked = async (leftMs: number): Promise<string> => {
      const locks = createLockClient();
      let remainingMs = 3000;
      const limiter = locks.forInvocation({ getRemainingTimeInMillis: () => remainingMs }).limiter("partner", TEN);
      await limiter.take({ cost: 10 });
      const running = limiter.run({ waitMs: 1000 }, () => "done").catch((error: unknown) => (error as LockError).code);
      await locks.clock.advance(50);
      remainingMs = leftMs;
      return locks.clock.settle(running);
    };
    expect([await worked(-906), await worked(1)]).toEqual(["invocation-ends", "done"]);
  });

  it("without an answer ends after timeoutMs; control: by default after 10 s", async () => {
    const endedAfterMs = async (options: TakeOptions): Promise<number> => {
      const { clock, locks, wire } = createHarness();
      wire.always("take", { lost: "request", silently: true });
      const beganMs = clock.monotonicMs();
      await expect(clock.settle(locks.limiter("partner", TEN).take(options))).rejects.toThrow("take from partner");
      return clock.monotonicMs() - beganMs;
    };
    expect([await endedAfterMs({ timeoutMs: 800 }), await endedAfterMs({})]).toEqual([800, 10_000]);
  });

  it("waits no longer than an invocation leaves it", async () => {
    const locks = createLockClient();
    const invocation = locks.forInvocation({ getRemainingTimeInMillis: () => 1500 });
    const limiter = invocation.limiter("partner", { rates: [{ count: 1, perMs: 1000 }] });
    await limiter.take();
    await expect(limiter.take({ waitMs: 60_000 })).rejects.toMatchObject({ code: "rate-limited", retryAfterMs: 1000 });
  });
});

describe("limitAll()", () => {
  it.each<[field: string, limiters: (limiter: Limiter) => unknown, options: unknown]>([
    ["limiters", () => undefined, {}],
    ["limiters", (limiter) => limiter, {}],
    ["options", (limiter) => [limiter], null],
    ["options", (limiter) => [limiter], 5],
    ["waitMs", (limiter) => [limiter], { waitMs: "long" }],
  ])("without right %s is refused, and takes nothing", async (field, limiters, options) => {
    const { locks, asked } = counted();
    const taking = limitAll(limiters(locks.limiter("partner", TEN)) as readonly Limiter[], options as TakeOptions);
    await expect(taking).rejects.toMatchObject({ name: "InvalidRequestError", field });
    expect(asked()).toEqual([]);
  });
});

describe("limitAll(), when one of the limits refused the same lately", () => {
  it("charges none of them if others use one with other rates; control: the refusal itself charged the earlier one", async () => {
    const { locks, rival, asked, forget } = counted();
    const [user, total] = [locks.limiter("user", TEN), locks.limiter("total", TEN)];
    await rival.limiter("total", { rates: [{ count: 1, perMs: 60_000 }] }).take();
    await expect(limitAll([user, total])).rejects.toMatchObject({ code: "limit-mismatch", retryAfterMs: 60_000 });
    expect(await user.remaining()).toEqual([9]);
    forget();
    for (const refused of [limitAll([user, total]), total.take({ waitMs: 86_400_000 })])
      await expect(refused).rejects.toMatchObject({ code: "limit-mismatch", definite: true, retryAfterMs: 60_000 });
    expect(asked()).toEqual([]);
    expect(await user.remaining()).toEqual([9]);
  });

  it("charges none of them if the invocation ends before there is room; control: with time left it waits for that", async () => {
    const locks = createLockClient();
    let remainingMs = 1500;
    const invocation = locks.forInvocation({ getRemainingTimeInMillis: () => remainingMs });
    const [user, total] = [invocation.limiter("user", TEN), invocation.limiter("total", { rates: [{ count: 1, perMs: 1000 }] })];
    await total.take();
    await expect(total.take()).rejects.toMatchObject({ retryAfterMs: 1000 });
    await expect(limitAll([user, total], { waitMs: 5000 })).rejects.toMatchObject({ retryAfterMs: 1000 });
    expect(await user.remaining()).toEqual([10]);
    remainingMs = 10_000;
    await locks.clock.settle(limitAll([user, total], { waitMs: 5000 }));
    expect(await user.remaining()).toEqual([10]);
  });

  it("charges none of them, and asks nobody; control: the refusal itself charged the earlier one", async () => {
    const { locks, asked, forget } = counted();
    const [user, total] = [locks.limiter("user", TEN), locks.limiter("total", { rates: [{ count: 1, perMs: 60_000 }] })];
    await limitAll([user, total]);
    await expect(limitAll([user, total])).rejects.toMatchObject({ retryAfterMs: 60_000 });
    expect(await user.remaining()).toEqual([8]);
    forget();
    await expect(limitAll([user, total])).rejects.toMatchObject({ code: "rate-limited", retryAfterMs: 60_000 });
    expect(asked()).toEqual([]);
    expect(await user.remaining()).toEqual([8]);
  });
});

describe("work under a limit", () => {
  it("frees its permit if the rate has no room for it", async () => {
    const locks = createLockClient();
    const limiter = locks.limiter("partner", { ...TEN, concurrent: 1 });
    await limiter.take({ cost: 10 });
    await expect(limiter.run(() => undefined)).rejects.toThrow(LimitExceededError);
    expect((await locks.inspect("partner")).holders).toEqual([]);
  });

  it("doesn't begin if its permit was lost while it waited for its start; control: it begins if the permit was kept", async () => {
    for (const [awayMs, begun] of [[0, 1] as const, [120_000, 0] as const]) {
      const locks = createLockClient();
      const limiter = locks.limiter("partner", { ...TEN, concurrent: 1 });
      await limiter.take({ cost: 10 });
      let begins = 0;
      const running = limiter.run({ waitMs: 5000 }, () => void begins++).catch((error: unknown) => (error as LockError).code);
      await locks.clock.advance(50);
      await locks.clock.freeze(awayMs);
      expect([await locks.clock.settle(running), begins]).toEqual([begun === 1 ? undefined : "lease-lost", begun]);
    }
  });

  it("takes the wait for a permit from the wait for its start", async () => {
    const locks = createLockClient();
    const limiter = locks.limiter("partner", { rates: [{ count: 1, perMs: 1000 }], concurrent: 1 });
    const holder = limiter.run(() => new Promise((resolve) => void locks.clock.after(700, () => resolve(undefined))));
    await locks.clock.advance(1);
    const late = expect(limiter.run({ waitMs: 900 }, () => undefined)).rejects.toThrow(LimitExceededError);
    await locks.clock.settle(holder);
    await locks.clock.settle(late);
  });
});

describe("what was used beyond a take", () => {
  it("is charged at once, and later takes wait until it has flowed in; control: without it they start", async () => {
    const { clock, locks } = createHarness();
    const began = clock.monotonicMs();
    const used = async (name: string, ...charges: readonly number[]) => {
      const limiter = locks.limiter(name, TEN);
      await limiter.take();
      for (const cost of charges) await limiter.charge(cost);
      return limiter.take().catch((error: unknown) => ({ retryAfterMs: (error as LimitExceededError).retryAfterMs }));
    };
    expect(await used("none")).toMatchObject({ waitedMs: 0 });
    expect([await used("once", 10), await used("twice", 10, 10)]).toEqual([{ retryAfterMs: 200 }, { retryAfterMs: 1200 }]);
    expect(clock.monotonicMs()).toBe(began);
  });

  it("is refused if it is more than a day's inflow beyond what is there, and charges nothing then", async () => {
    const { clock, locks } = createHarness();
    const daily = locks.limiter("daily", { rates: [{ count: 1, perMs: 86_400_000, burst: 1 }] });
    for (let day = 0; day < 2; day++) await daily.charge(1);
    await expect(daily.charge(1)).rejects.toThrow(LimitExceededError);
    await clock.advance(86_400_000);
    await daily.charge(1);
    await expect(daily.charge(1)).rejects.toThrow(LimitExceededError);
  });

  it("is refused by name where no take could cost it", async () => {
    const { asked, locks } = counted();
    const limiter = locks.limiter("partner", TEN);
    for (const cost of [-1, 11, 1.5, undefined]) await expect(limiter.charge(cost!)).rejects.toMatchObject({ field: "cost" });
    for (const options of [{ waitMs: 5 }, 5000, null])
      await expect(limiter.charge(1, options as object)).rejects.toThrow(InvalidRequestError);
    await limiter.charge(0);
    expect(asked()).toEqual([]);
  });

  it("is charged by work that goes on while its client closes, which waits for it; control: nothing is taken then", async () => {
    const { clock, locks, rival } = createHarness();
    const limiter = locks.limiter("partner", { ...TEN, concurrent: 1 });
    let close = (): void => undefined;
    const closes = new Promise<void>((resolve) => (close = resolve));
    const work = limiter.run(async () => {
      await closes;
      await expect(limiter.take()).rejects.toThrow("the client is closed");
      await limiter.charge(9);
      return "done";
    });
    await clock.advance(1000);
    const closed = locks.close({ drainMs: 5000 });
    close();
    expect(await clock.settle(work)).toBe("done");
    await clock.settle(closed);
    expect(await rival.limiter("partner", TEN).remaining()).toEqual([1]);
  });
});

describe("a limit that is shut", () => {
  it("lets nobody start before its time who takes afterwards, whatever was left", async () => {
    const { clock, locks, rival } = counted();
    const limiter = locks.limiter("partner", TEN);
    await limiter.take({ cost: 2 });
    await limiter.shut({ forMs: 60_000, reason: "the partner asked" });
    await expect(rival.limiter("partner", TEN).take()).rejects.toMatchObject({ name: "LimitExceededError" });
    await clock.advance(59_000);
    await expect(limiter.take()).rejects.toThrow(LimitExceededError);
    const late = limiter.take({ waitMs: 10_000 });
    await clock.advance(1100);
    expect((await late).waitedMs).toBeGreaterThanOrEqual(999);
  });

  it.each<[what: string, error: (nowMs: number) => object, isShut: boolean]>([
    ["seconds in the headers of its response", () => ({ response: { headers: new Headers({ "retry-after": "30" }) } }), true],
    ["a date in its headers", (nowMs) => ({ headers: { "Retry-After": new Date(nowMs + 30_000).toUTCString() } }), true],
    ["seconds in those of its cause", () => ({ cause: { $response: { headers: { "retry-after": 30 } } } }), true],
    ["a date that is over", (nowMs) => ({ headers: { "retry-after": new Date(nowMs - 1000).toUTCString() } }), false],
    ["nothing", () => ({}), false],
  ])("is shut by itself by an error of its work with %s, if that was asked for", async (_what, error, isShut) => {
    const { asked, clock, forget, locks } = counted();
    const limiter = locks.limiter("partner", TEN);
    const thrown = Object.assign(new Error("busy"), error(clock.wallMs()));
    const fail = () => Promise.reject(thrown);
    await expect(limiter.run({ shutOnRetryAfter: true }, fail)).rejects.toBe(thrown);
    expect(asked()).toEqual(isShut ? ["take", "shutLimit"] : ["take"]);
    if (isShut) await expect(limiter.run(fail)).rejects.toThrow(LimitExceededError);
    forget();
    await expect(locks.limiter("other", TEN).run(fail)).rejects.toBe(thrown);
    expect(asked()).toEqual(["take"]);
  });

  it("refuses by name what it can't be shut for", async () => {
    const limiter = counted().locks.limiter("partner", TEN);
    await expect(limiter.shut({ forMs: 0, reason: "x" })).rejects.toMatchObject({ field: "forMs" });
    await expect(limiter.shut({ forMs: 86_400_001, reason: "x" })).rejects.toMatchObject({ field: "forMs" });
    await expect(limiter.shut({ forMs: 1, reason: "" })).rejects.toMatchObject({ field: "reason" });
    await expect(limiter.take({ shutOnRetryAfter: true } as TakeOptions)).rejects.toMatchObject({ field: "shutOnRetryAfter" });
  });
});
