/** Locks of durable executions, on a service and an agent in memory: what is asked and kept, and what a suspension does to the lease. */
import { describe, expect, it } from "vitest";
import { InvalidRequestError, LockLostError } from "../../lib/client/wire/errors.js";
import { createLockClient as onTable } from "../../lib/dynamodb.js";
import { withDurableLock } from "../../lib/durable.js";
import { createGate } from "../support/run-gate.js";
import { invocation } from "../support/invocation.js";
import type { Execution } from "./durable-lambda.js";
import { inMemory, KEY, scene } from "./scene.js";

const DAY_MS = 86_400_000;
const namesOf = ({ operations }: Execution) => operations.map(({ Type, Name, Status }) => `${Type} ${Name}: ${Status}`);

describe("a lock of a durable execution", () => {
  it("is three operations and as many requests if the key is free", async () => {
    const its = scene();
    const order = its.start("a", async () => "done");
    await its.lambda.run();
    expect(order).toMatchObject({ status: "SUCCEEDED", result: "done", invocations: 1 });
    expect(namesOf(order)).toEqual([
      "STEP ORDER_1: lease id: SUCCEEDED",
      "STEP ORDER_1: acquire: SUCCEEDED",
      "STEP ORDER_1: release: SUCCEEDED",
    ]);
    expect(its.requests).toEqual(["PUT /v1/locks/ORDER_1/leases/{id}", "DELETE /v1/locks/ORDER_1/leases/{id}"]);
    expect((await its.rival.inspect(KEY)).holders).toEqual([]);
  });

  it("is five operations if the key is held, and no request while it waits", async () => {
    const its = scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.start("a", (lock) => lock.step("charge", async ({ fencingToken }) => fencingToken > rival.fencingToken));
    await its.lambda.run();
    const asked = its.requests.length;
    await its.pass(30);
    expect(its.requests).toHaveLength(asked);
    expect(order).toMatchObject({ status: "RUNNING", invocations: 1 });
    await rival.release();
    await its.pass(1);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: true, invocations: 2 });
    expect(namesOf(order)).toEqual([
      "STEP ORDER_1: lease id: SUCCEEDED",
      "STEP ORDER_1: acquire: SUCCEEDED",
      "CALLBACK ORDER_1: turn: SUCCEEDED",
      "STEP ORDER_1: sleep: SUCCEEDED",
      "STEP charge: SUCCEEDED",
      "STEP ORDER_1: release: SUCCEEDED",
    ]);
  });

  it("has one token in all invocations, and each attempt of a step has the lease", async () => {
    const its = scene();
    const seen: [token: number, isOver: boolean][] = [];
    const order = its.start("a", async (lock) => {
      await lock.step("charge", async ({ fencingToken, signal }) => {
        seen.push([fencingToken, signal.aborted]);
        if (seen.length < 3) throw new Error("declined");
      });
      return lock.fencingToken;
    });
    await its.pass(3);
    expect(order).toMatchObject({ status: "SUCCEEDED", invocations: 3 });
    expect(seen).toEqual(Array(3).fill([order.result, false]));
  });

  it("tries a step as often as it is told to", async () => {
    const its = scene();
    let attempts = 0;
    const charge = async () => (attempts++, Promise.reject(new Error("declined")));
    const order = its.start("a", (lock) => lock.step("charge", charge, { retryStrategy: () => ({ shouldRetry: false }) }));
    await its.pass(3);
    expect(attempts).toBe(1);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorMessage: "declined" } });
    expect((await its.rival.inspect(KEY)).holders).toEqual([]);
  });

  it.each([
    ["acquire", false],
    ["sleep", true],
  ])("asks again under a new id if the key was so busy that the id is old, at the step %s", async (_step, isHeld) => {
    const its = scene();
    let rival = isHeld ? await its.rival.acquire(KEY) : undefined;
    let asked = 0;
    its.onRequest = async () => {
      if (asked++ !== Number(isHeld)) return;
      for (let round = 0; round < 10; round++) {
        await rival?.release();
        await its.clock.advance(5);
        rival = await its.rival.acquire(KEY);
      }
      await rival?.release();
    };
    const order = its.start("a", async () => undefined);
    await its.lambda.run();
    expect(order.status).toBe("SUCCEEDED");
    expect(namesOf(order).filter((name) => name.includes("lease id"))).toHaveLength(2);
    expect((await its.rival.inspect(KEY)).waiters).toEqual([]);
  });

  it("is LockUnavailableError after six attempts without an answer, and asks again before", async () => {
    const its = scene();
    its.onRequest = () => Promise.reject(new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNRESET" }) }));
    const order = its.start("a", async () => "never");
    // The clock is turned while invocations run: a request without an answer is repeated by it.
    for (let turn = 0; order.status === "RUNNING" && turn < 100_000; turn++) {
      void its.lambda.run();
      await its.clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockUnavailableError" } });
    expect(order.operations.find(({ Name }) => Name === "ORDER_1: acquire")?.StepDetails?.Attempt).toBe(6);
  });
});

describe("the lease of a durable execution", () => {
  it("is kept alive while a step runs, and not a moment longer", async () => {
    const its = scene();
    const [begun, end] = [createGate(), createGate()];
    const order = its.start("a", async (lock) => lock.step("charge", () => (begun.open(), end.opened)));
    const running = its.lambda.run();
    await begun.opened;
    await its.clock.advance(20 * 60_000);
    expect(await its.rival.tryAcquire(KEY)).toBeNull();
    end.open();
    await running;
    expect(order.status).toBe("SUCCEEDED");
    const asked = its.requests.length;
    await its.clock.advance(20 * 60_000);
    expect(its.requests).toHaveLength(asked);
  });

  it("outlasts a wait of the lock, whatever its own length", async () => {
    const its = scene();
    const order = its.start(
      "a",
      async (lock) => {
        await lock.wait("cool down", { hours: 2 });
        return lock.step("ship", async ({ fencingToken }) => fencingToken - lock.fencingToken);
      },
      { leaseMs: 30_000 },
    );
    await its.lambda.run();
    await its.clock.advance(2 * 3_600_000 - 1000);
    expect(await its.rival.tryAcquire(KEY)).toBeNull();
    await its.pass(1);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: 0 });
  });

  it("lasts for a pause of its own length after a wait of the lock", async () => {
    const its = scene();
    const order = its.lambda.start("a", (ctx, sandbox) =>
      withDurableLock(ctx, its.client(sandbox), KEY, { leaseMs: 600_000 }, async (lock) => {
        await ctx.wait("before", { minutes: 9 });
        await lock.wait("cool down", { minutes: 5 });
        await ctx.wait("after", { minutes: 9 });
        return lock.step("ship", async () => "shipped");
      }),
    );
    await its.pass(25);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: "shipped" });
  });

  it("is short again after a wait: a crash then blocks the key for a minute", async () => {
    const its = scene();
    const begun = createGate();
    its.start(
      "a",
      async (lock) => {
        await lock.wait("cool down", { hours: 2 });
        await lock.step("ship", () => (begun.open(), createGate().opened));
      },
      { leaseMs: 30_000 },
    );
    await its.lambda.run();
    await its.clock.advance(2 * 3_600_000);
    void its.lambda.run();
    await begun.opened;
    await its.clock.advance(600_000);
    expect((await its.rival.inspect(KEY)).holders).toMatchObject([{ leaseMs: 60_000 }]);
  });

  it("that ended during a bare wait fails the next step, which doesn't run and isn't tried again", async () => {
    const its = scene();
    let runs = 0;
    const caught: unknown[] = [];
    const order = its.lambda.start("a", (ctx, sandbox) =>
      withDurableLock(ctx, its.client(sandbox), KEY, async (lock) => {
        await ctx.wait("too long", { minutes: 30 });
        await lock.step("ship", async () => runs++).catch((error: unknown) => caught.push(error));
        await ctx.wait("replay", { minutes: 1 });
        await lock.step("again", async () => runs++);
      }),
    );
    await its.lambda.run();
    await its.clock.advance(10 * 60_000);
    await (await its.rival.acquire(KEY)).release();
    await its.pass(40);
    expect(runs).toBe(0);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockLostError" } });
    // Twice: from the step itself, and from the history.
    expect(caught).toEqual([expect.any(LockLostError), expect.any(LockLostError)]);
  });

  it("that ended during a step makes its result no success", async () => {
    const its = scene();
    let runs = 0;
    const begun = createGate();
    const order = its.start("a", (lock) =>
      lock.step("charge", async ({ signal, fencingToken }) => {
        runs++;
        await its.rival.forceRelease(KEY, { reason: "stuck", fencingToken, drainMs: 0 });
        begun.open();
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return "charged";
      }),
    );
    const running = its.lambda.run();
    await begun.opened;
    await its.clock.advance(180_000);
    await running;
    expect(runs).toBe(1);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockLostError" } });
    expect(namesOf(order)).toContain("STEP charge: FAILED");
  });

  it("is over in a step that the work didn't wait for, before its release is sent", async () => {
    const its = scene();
    const [begun, end] = [createGate(), createGate()];
    const atRelease: unknown[] = [];
    const order = its.start("a", (lock) =>
      Promise.all([
        lock.step("charge", async (lease) => {
          its.onRequest = async () => void atRelease.push(its.requests.at(-1)?.slice(0, 6), lease.isHeld(), lease.signal.aborted);
          begun.open();
          await end.opened;
        }),
        begun.opened.then(() => Promise.reject(new Error("no stock"))),
      ]),
    );
    await its.lambda.run();
    end.open();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorMessage: "no stock" } });
    expect(atRelease).toEqual(["DELETE", false, true]);
  });

  it("begins no step whose renewal is answered once the release is on its way", async () => {
    const its = scene();
    const [asked, released] = [createGate(), createGate()];
    let began = 0;
    its.start("a", (lock) =>
      Promise.all([lock.step("charge", async () => void began++), asked.opened.then(() => Promise.reject(new Error("no stock")))]),
    );
    its.onRequest = async () => {
      const request = its.requests.at(-1);
      if (request?.endsWith("/renew")) {
        asked.open();
        await released.opened;
      } else if (request?.startsWith("DELETE")) {
        released.open();
        // The renewal comes first.
        await new Promise(setImmediate);
      }
    };
    await its.lambda.run();
    expect(its.requests.map((request) => request.replace(/ .*\//, " "))).toEqual(["PUT {id}", "POST renew", "DELETE {id}"]);
    expect(began).toBe(0);
  });

  it("that was taken after the last step makes the execution no success", async () => {
    const its = scene();
    const order = its.start("a", async ({ fencingToken }) => {
      await its.rival.forceRelease(KEY, { reason: "stuck", fencingToken, drainMs: 0 });
      await its.clock.advance(60_000);
      await its.rival.acquire(KEY);
    });
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockLostError" } });
  });
});

describe("the wait of a durable execution", () => {
  it("ends in a timeout, and leaves nothing behind", async () => {
    const its = scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.start("a", async () => "never", { waitMs: 120_000 });
    await its.pass(3);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" } });
    expect((await its.rival.inspect(KEY)).waiters).toEqual([]);
    await rival.release();
    await its.pass(2);
    expect((await its.rival.inspect(KEY)).holders).toEqual([]);
    expect(its.failures).toEqual([]);
  });

  it("of 0 ms asks once", async () => {
    const its = scene();
    await its.rival.acquire(KEY);
    const order = its.start("a", async () => "never", { waitMs: 0 });
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" }, invocations: 1 });
  });

  it("ends when its place is lost", async () => {
    const its = scene();
    await its.rival.acquire(KEY);
    const order = its.start("a", async () => "never");
    await its.lambda.run();
    const callback = order.operations.find(({ Type }) => Type === "CALLBACK")?.CallbackDetails?.CallbackId ?? "";
    expect(await its.tell({ callbackId: callback }, "Holdfast.LostPlace")).toBe("told");
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" } });
    expect((await its.rival.inspect(KEY)).waiters).toEqual([]);
  });

  it.each(["", "null", '"go on"'])("ends if somebody else completes its callback, with %s: that grants nothing", async (Result) => {
    const its = scene();
    await its.rival.acquire(KEY);
    let runs = 0;
    const order = its.start("a", async () => runs++);
    await its.lambda.run();
    const callback = order.operations.find(({ Type }) => Type === "CALLBACK")?.CallbackDetails?.CallbackId ?? "";
    its.lambda.complete(callback, { Result });
    await its.pass(1);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" } });
    expect(runs).toBe(0);
    expect(await its.rival.inspect(KEY)).toMatchObject({ waiters: [] });
  });

  it("outlasts a telling that fails, whatever the length of the lease: the next sweep tells it", async () => {
    const its = scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.start("a", (lock) => lock.step("charge", async () => "charged"), { leaseMs: 10_000 });
    await its.lambda.run();
    await rival.release();
    await its.sweep(() => Promise.reject(new Error("ThrottlingException")));
    await its.clock.advance(60_000);
    await its.pass(1);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: "charged" });
  });

  it("needs a service with an agent: the error says so, and nothing is left behind", async () => {
    const its = scene((clock) => ({ store: inMemory(clock).store }));
    await its.rival.acquire(KEY);
    const order = its.start("a", async () => "never");
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "InvalidRequestError" } });
    expect(order.error?.ErrorMessage).toContain("wake: this service has no agent that wakes sleepers");
  });
});

describe("misuse", () => {
  const ctx = {} as Parameters<typeof withDurableLock>[0];
  const work = async () => undefined;

  it.each<[what: string, call: () => Promise<unknown>, field: string]>([
    ["no client", () => withDurableLock(ctx, {} as never, KEY, work), "locks"],
    ["a client on the table", () => withDurableLock(ctx, onTable({ tableName: "locks", region: "eu-west-1" }), KEY, work), "locks"],
    ["a view for one invocation", () => withDurableLock(ctx, view(), KEY, work), "locks"],
    ["no function", () => withDurableLock(ctx, scene().rival, KEY, {}, undefined as never), "work"],
    ["an option of other calls", () => withDurableLock(ctx, scene().rival, KEY, { heartbeat: false } as object, work), "heartbeat"],
    ["a time without progress", () => withDurableLock(ctx, scene().rival, KEY, { progressMs: 900_000 } as object, work), "progressMs"],
    ["a tie that is neither true nor false", () => withDurableLock(ctx, scene().rival, KEY, { tied: "yes" as never }, work), "tied"],
    ["a wait of over a year", () => withDurableLock(ctx, scene().rival, KEY, { waitMs: 366 * DAY_MS }, work), "waitMs"],
    ["a bad key", () => withDurableLock(ctx, scene().rival, "a/b", work), "key"],
  ])("is refused before anything is asked: %s", async (_what, call, field) => {
    await expect(call()).rejects.toThrow(expect.objectContaining({ name: "InvalidRequestError", field }));
  });

  it.each([{ days: 1 }, { seconds: -90 }])("is refused: a wait with the lock that no lease can last (%o)", async (duration) => {
    const its = scene();
    const caught: unknown[] = [];
    its.start("a", (lock) => lock.wait("long", duration).catch((error: unknown) => caught.push(error)));
    await its.lambda.run();
    expect(caught).toEqual([expect.any(InvalidRequestError)]);
  });

  it("is told at once: a role that may not call the service", async () => {
    const its = scene();
    const forbidden = its.client({ fetch: async () => Response.json({ message: "Forbidden" }, { status: 403 }) });
    const order = its.lambda.start("a", (ctx) => withDurableLock(ctx, forbidden, KEY, work));
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorMessage: expect.stringContaining("Forbidden") as string } });
  });

  function view() {
    const its = scene();
    return its.rival.forInvocation(invocation(its.clock));
  }
});

describe("a tied lease of a durable execution", () => {
  const inTheMiddle = async (lock: { wait: (name: string, time: { hours: number }) => Promise<void> }) =>
    lock.wait("cool down", { hours: 10 });

  it("keeps the key while the execution is suspended for hours, with a lease of three minutes", async () => {
    const its = scene();
    const order = its.start("a", async (lock) => (await inTheMiddle(lock), lock.step("ship", async () => "shipped")), { tied: true });
    await its.pass(10 * 60 - 1);
    expect((await its.rival.inspect(KEY)).holders).toMatchObject([{ leaseMs: 180_000 }]);
    expect(its.requests).toEqual(["PUT /v1/locks/ORDER_1/leases/{id}"]);
    await its.pass(2);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: "shipped" });
    expect(namesOf(order)).toEqual([
      "STEP ORDER_1: lease id: SUCCEEDED",
      "STEP ORDER_1: acquire: SUCCEEDED",
      "WAIT cool down: SUCCEEDED",
      "STEP ship: SUCCEEDED",
      "STEP ORDER_1: release: SUCCEEDED",
    ]);
    expect((await its.rival.inspect(KEY)).holders).toEqual([]);
  });

  it.each([
    ["is free at the next sweep", true, 0, 1],
    ["control: without the tie, is held until the lease ends", false, 599, 5],
  ])("%s, if the execution is stopped", async (_what, tied, heldMinutes, minutes) => {
    const its = scene();
    const order = its.start("a", inTheMiddle, { tied });
    await its.pass(3);
    order.stop();
    await its.pass(heldMinutes);
    expect(await its.rival.tryAcquire(KEY)).toBeNull();
    await its.pass(minutes);
    expect(await its.rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("is as tied if the execution had to wait for the key", async () => {
    const its = scene();
    const rival = await its.rival.acquire(KEY);
    const order = its.start("a", inTheMiddle, { tied: true });
    await its.pass(1);
    await rival.release();
    await its.pass(60);
    expect(await its.rival.tryAcquire(KEY)).toBeNull();
    order.stop();
    await its.pass(1);
    expect(await its.rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("is refused with a shorter lease, on the table, and by a service without an agent", async () => {
    const its = scene();
    const short = its.start("short", async () => undefined, { tied: true, leaseMs: 179_999 });
    const direct = its.lambda.start("direct", (ctx) =>
      withDurableLock(ctx, onTable({ tableName: "t" }), KEY, { tied: true, waitMs: 0 }, async () => undefined),
    );
    await its.lambda.run();
    expect(short.error?.ErrorMessage).toMatch(/leaseMs: 179999 given/);
    expect(direct.error?.ErrorMessage).toMatch(/locks: must be a client over HTTP.*renews a tied lease/);
    const without = scene((clock) => ({ store: inMemory(clock).store }));
    const order = without.start("a", async () => undefined, { tied: true });
    await without.lambda.run();
    expect(order.error).toMatchObject({ ErrorType: "InvalidRequestError" });
    expect(order.error?.ErrorMessage).toMatch(/tie: this service has no agent/);
  });
});
