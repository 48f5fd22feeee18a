/** Runs of durable executions: work once for a key, whatever executions are started for it, and wherever their processes die. */
import { describe, expect, it } from "vitest";
import { FinalError } from "../../lib/client/wire/errors.js";
import { withDurableRun } from "../../lib/durable.js";
import { createGate } from "../support/run-gate.js";
import type { Execution, Handler, RequestPoint } from "./durable-lambda.js";
import { type Scene, KEY, scene } from "./scene.js";

const namesOf = ({ operations }: Execution) => operations.map(({ Type, Name, Status }) => `${Type} ${Name}: ${Status}`);
/** Work that never ends: the one who starts it holds the run until its lease runs out. */
const forEver = () => new Promise<never>(() => undefined);

describe("a run of a durable execution", () => {
  it("is three operations and as many requests if nobody else wants it, and a renewal for each step", async () => {
    const its = scene();
    const order = its.startRun("a", (run) => run.step("charge", async ({ fencingToken }) => fencingToken === run.fencingToken));
    await its.lambda.run();
    expect(order).toMatchObject({ status: "SUCCEEDED", result: { value: true, replayed: false, attempt: 1 }, invocations: 1 });
    expect(namesOf(order)).toEqual([
      "STEP ORDER_1: lease id: SUCCEEDED",
      "STEP ORDER_1: start: SUCCEEDED",
      "STEP charge: SUCCEEDED",
      "STEP ORDER_1: outcome: SUCCEEDED",
    ]);
    expect(its.requests).toEqual([
      "PUT /v1/runs/ORDER_1/leases/{id}",
      "POST /v1/runs/ORDER_1/leases/{id}/renew",
      "PUT /v1/runs/ORDER_1/leases/{id}/outcome",
    ]);
  });

  it("is done once: another execution, and another process, get its result", async () => {
    const its = scene();
    let runs = 0;
    const work = async () => ({ charged: ++runs });
    its.startRun("a", work);
    await its.lambda.run();
    const again = its.startRun("b", work);
    await its.lambda.run();
    expect(again.result).toEqual({ value: { charged: 1 }, replayed: true, attempt: 1 });
    expect(await its.rival.runOnce(KEY, work)).toEqual({ value: { charged: 1 }, replayed: true, attempt: 1 });
    expect(runs).toBe(1);
  });

  it("keeps its lease over a wait of a day", async () => {
    const its = scene();
    const order = its.startRun("a", async (run) => {
      await run.wait("cool down", { hours: 23 });
      return run.step("ship", async (lease) => lease.isHeld());
    });
    await its.lambda.run();
    await its.clock.advance(23 * 3_600_000 - 1000);
    await expect(its.rival.runOnce(KEY, { waitMs: 0 }, () => "twice")).rejects.toMatchObject({ code: "wait-timeout" });
    await its.pass(1);
    expect(order.result).toMatchObject({ value: true });
  });
});

describe("a durable execution that wants the run of another", () => {
  /** Somebody holds the run for these minutes, and then records what `end` returns or throws. */
  function held(its: Scene, minutes: number, end: () => string) {
    const ended = its.rival.runOnce(KEY, async () => {
      await new Promise<void>((resolve) => void its.clock.after(minutes * 60_000, resolve));
      return end();
    });
    ended.catch(() => undefined);
    return ended;
  }

  it("waits suspended, looks ever less often, and gets the result", async () => {
    const its = scene();
    void held(its, 30, () => "charged");
    await its.clock.advance(0);
    const order = its.startRun("a", async () => "twice");
    await its.pass(32);
    expect(order.result).toEqual({ value: "charged", replayed: true, attempt: 1 });
    expect(namesOf(order)).toEqual([
      ...["STEP ORDER_1: lease id: SUCCEEDED", "STEP ORDER_1: start: SUCCEEDED", "STEP ORDER_1: in progress: SUCCEEDED"],
      ...["STEP ORDER_1: lease id: SUCCEEDED", "STEP ORDER_1: start: SUCCEEDED"],
    ]);
    // Six looks in the first minute, and then one in each.
    expect(its.requests.filter((request) => request === "GET /v1/runs/ORDER_1").length).toBeLessThanOrEqual(6 + 30);
    expect(its.requests.filter((request) => request.startsWith("PUT"))).toHaveLength(2);
  });

  it("is the next attempt if the other one fails", async () => {
    const its = scene();
    void held(its, 2, () => {
      throw new Error("declined");
    });
    await its.clock.advance(0);
    const order = its.startRun("a", async ({ attempt, takeover }) => [attempt, takeover]);
    await its.pass(5);
    expect(order.result).toMatchObject({ value: [2, false], attempt: 2 });
  });

  it("takes over if the other one is stopped", async () => {
    const its = scene();
    its.startRun("a", forEver);
    void its.lambda.run();
    await its.clock.advance(1000);
    const order = its.startRun("b", async ({ attempt, takeover }) => [attempt, takeover]);
    await its.pass(8);
    expect(order.result).toMatchObject({ value: [2, true], attempt: 2 });
  });

  it("fails if it may not look, and doesn't start again and again", async () => {
    const its = scene();
    void held(its, 60, () => "charged");
    await its.clock.advance(0);
    const order = its.lambda.start("a", (ctx, { fetch }) => {
      const mayNotLook: typeof fetch = async (url, init) =>
        init?.method === "GET" ? Response.json({ message: "Forbidden" }, { status: 403 }) : fetch(url, init);
      return withDurableRun(ctx, its.client({ fetch: mayNotLook }), KEY, async () => "twice");
    });
    await its.pass(1);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorMessage: expect.stringContaining("Forbidden") as string } });
    expect(its.requests.filter((request) => request.startsWith("PUT"))).toHaveLength(1);
  });

  it("of 0 ms asks once", async () => {
    const its = scene();
    void held(its, 60, () => "charged");
    await its.clock.advance(0);
    const order = its.startRun("a", async () => "twice", { waitMs: 0 });
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" }, invocations: 1 });
    expect(its.requests.filter((request) => request.startsWith("PUT"))).toHaveLength(1);
  });

  it("times out after its wait, and not a second sooner", async () => {
    const its = scene();
    void held(its, 60, () => "charged");
    await its.clock.advance(0);
    const order = its.startRun("a", async () => "twice", { waitMs: 600_000 });
    for (let second = 0; second < 600; second++) {
      await its.lambda.run();
      expect(order.status).toBe("RUNNING");
      await its.clock.advance(1000);
    }
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockTimeoutError" } });
  });
});

describe("the failure of a durable run", () => {
  it("is recorded, and the next execution is the next attempt", async () => {
    const its = scene();
    const first = its.startRun("a", (run) =>
      run.step("charge", () => Promise.reject(new Error("declined")), { retryStrategy: () => ({ shouldRetry: false }) }),
    );
    await its.lambda.run();
    expect(first).toMatchObject({ status: "FAILED", error: { ErrorMessage: "declined" } });
    expect(await its.rival.runs.get(KEY)).toMatchObject({ state: "failed", retryable: true });
    const second = its.startRun("b", async ({ attempt }) => attempt);
    await its.lambda.run();
    expect(second.result).toMatchObject({ value: 2 });
  });

  it("ends the lease in a step that the work didn't wait for, before it is recorded", async () => {
    const its = scene();
    const [begun, end] = [createGate(), createGate()];
    const atOutcome: unknown[] = [];
    its.startRun("a", (run) =>
      Promise.all([
        run.step("charge", async (lease) => {
          its.onRequest = async () => void atOutcome.push(its.requests.at(-1)?.split("/").at(-1), lease.isHeld(), lease.signal.aborted);
          begun.open();
          await end.opened;
        }),
        begun.opened.then(() => Promise.reject(new Error("declined"))),
      ]),
    );
    await its.lambda.run();
    end.open();
    expect(atOutcome).toEqual(["outcome", false, true]);
  });

  it("is final if a step throws a FinalError: it isn't tried again, here or in another execution", async () => {
    const its = scene();
    let attempts = 0;
    const charge = () => (attempts++, Promise.reject(new FinalError("card declined")));
    its.startRun("a", async (run) => {
      try {
        return await run.step("charge", charge);
      } catch (error) {
        // A further invocation has the error from its history.
        await run.wait("replay", { seconds: 5 });
        throw error;
      }
    });
    await its.pass(2);
    const second = its.startRun("b", (run) => run.step("charge", charge));
    await its.lambda.run();
    expect(attempts).toBe(1);
    expect(second).toMatchObject({ status: "FAILED", error: { ErrorType: "RunFailedError", ErrorMessage: "ORDER_1: card declined" } });
  });

  it("is LockLostError if the run was taken over, and the other's outcome stands", async () => {
    const its = scene();
    let runs = 0;
    const order = its.lambda.start("a", (ctx, sandbox) =>
      withDurableRun(ctx, its.client(sandbox), KEY, async (run) => {
        await ctx.wait("too long", { minutes: 30 });
        return run.step("charge", async () => ++runs);
      }),
    );
    await its.lambda.run();
    await its.clock.advance(10 * 60_000);
    expect(await its.rival.runOnce(KEY, () => "the other's")).toMatchObject({ attempt: 2 });
    await its.pass(30);
    expect(runs).toBe(0);
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockLostError" } });
    expect(await its.rival.runs.get(KEY)).toMatchObject({ state: "succeeded", result: "the other's" });
  });

  it("is LockLostError if the run was taken over after its last step", async () => {
    const its = scene();
    const order = its.startRun("a", async () => {
      await its.clock.advance(10 * 60_000);
      await its.rival.runOnce(KEY, () => "the other's");
    });
    await its.lambda.run();
    expect(order).toMatchObject({ status: "FAILED", error: { ErrorType: "LockLostError" } });
  });

  it("of a step is tried again if it is the loss of a lock of the run's name", async () => {
    const its = scene();
    let attempts = 0;
    const order = its.startRun("a", (run, sandbox) =>
      run.step("ship", async () => {
        if (++attempts > 1) return "shipped";
        return its
          .client(sandbox)
          .withLock(KEY, ({ fencingToken }) => its.rival.forceRelease(KEY, { reason: "stuck", fencingToken, drainMs: 0 }));
      }),
    );
    await its.lambda.run();
    await its.pass(2);
    expect(order).toMatchObject({ status: "SUCCEEDED", result: { value: "shipped" } });
  });

  it("is the refusal of the service: another payload under the same key", async () => {
    const its = scene();
    its.startRun("a", async () => "charged", { payload: { amount: 1 } });
    await its.lambda.run();
    const other = its.startRun("b", async () => "charged", { payload: { amount: 2 } });
    await its.lambda.run();
    expect(other.error?.ErrorMessage).toContain("run ORDER_1:");
    expect(other.status).toBe("FAILED");
  });
});

describe("a crash of an execution with a run", () => {
  type Work = (its: Scene, ran: string[]) => Handler;

  const once: Work = (its, ran) => (ctx, sandbox) =>
    withDurableRun(ctx, its.client(sandbox), KEY, async (run) => {
      for (const name of ["charge", "ship"]) await run.step(name, async () => void ran.push(name));
    });
  /** Control: the whole run is in one step of the execution. */
  const naively: Work = (its, ran) => (ctx, sandbox) =>
    ctx.step("all", async () => (await its.client(sandbox).runOnce(KEY, () => void ran.push("charge", "ship"))).attempt);

  /** Runs the work, and ends the process at the request number `killAt`, if there is one. */
  async function withKill(killAt: number, work: Work) {
    const its = scene();
    const points: RequestPoint[] = [];
    const ran: string[] = [];
    its.lambda.kills = (point) => points.push(point) - 1 === killAt;
    const execution = its.lambda.start("a", work(its, ran));
    for (let minute = 0; minute < 6; minute++) {
      void its.lambda.run();
      await its.clock.advance(60_000);
    }
    return { its, execution, ran, points };
  }

  it("at any request leaves it in its first attempt, and repeats no step that is in the history", async () => {
    const { points } = await withKill(-1, once);
    expect(points.length).toBeGreaterThan(10);
    for (const [killAt, { to, at, what }] of points.entries()) {
      const { its, execution, ran } = await withKill(killAt, once);
      const where = `killed ${at} ${to}: ${what}`;
      expect(execution, where).toMatchObject({ status: "SUCCEEDED", invocations: 2, result: { attempt: 1, replayed: false } });
      for (const step of ["charge", "ship"]) {
        const times = ran.filter((name) => name === step).length;
        // A body runs again only if it ended, and its end was never written down.
        expect(times, `${step}, ${where}`).toBe(at === "before" && what.includes(`SUCCEED ${step}`) ? 2 : 1);
      }
      expect(await its.rival.runs.get(KEY), where).toMatchObject({ state: "succeeded", attempt: 1 });
    }
  });

  it("control: with the run in one step, a crash makes a second attempt that repeats all of it", async () => {
    const { points } = await withKill(-1, naively);
    const killAt = points.findIndex(({ at, what }) => at === "before" && what.endsWith("/outcome"));
    const { ran } = await withKill(killAt, naively);
    expect(ran).toEqual(["charge", "ship", "charge", "ship"]);
  });
});

describe("misuse of a durable run", () => {
  const ctx = {} as Parameters<typeof withDurableRun>[0];
  const work = async () => undefined;

  it.each<[what: string, call: () => Promise<unknown>, field: string]>([
    ["no client", () => withDurableRun(ctx, {} as never, KEY, work), "locks"],
    ["no function", () => withDurableRun(ctx, scene().rival, KEY, {}, undefined as never), "work"],
    ["an option of other calls", () => withDurableRun(ctx, scene().rival, KEY, { heartbeat: false } as object, work), "heartbeat"],
    ["a time without progress", () => withDurableRun(ctx, scene().rival, KEY, { progressMs: 900_000 } as object, work), "progressMs"],
    ["a payload that is no JSON", () => withDurableRun(ctx, scene().rival, KEY, { payload: { lines: new Map() } }, work), "payload"],
    ["a wait of over a year", () => withDurableRun(ctx, scene().rival, KEY, { waitMs: 366 * 86_400_000 }, work), "waitMs"],
  ])("is refused before anything is asked: %s", async (_what, call, field) => {
    await expect(call()).rejects.toThrow(expect.objectContaining({ name: "InvalidRequestError", field }));
  });
});
