/** A plain Lambda handler with a view of the client for each invocation. */
import { PassThrough } from "node:stream";
import type { DurableExecutionInvocationInput } from "@aws/durable-execution-sdk-js";
import { describe, expect, it } from "vitest";
import type { LockClient } from "../../lib/index.js";
import { idempotencyHandler, lockHandler, scheduleHandler, sqsHandler, withInvocation } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { DurableLambda } from "../durable/durable-lambda.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { SCHEDULED, requestV2 } from "./events.js";
import { invocation } from "../support/invocation.js";
import { LOCK_SHAPES, ONCE_SHAPES } from "./shapes.js";

const KEY = "ORDER_1";

describe.each<[name: string, wrap: (handler: never, locks: LockClient) => (...args: readonly unknown[]) => Promise<unknown>]>([
  ["idempotencyHandler", (handler, locks) => idempotencyHandler({ locks, service: "shop", caller: "none", key: () => KEY }, handler)],
  ["lockHandler", (handler, locks) => lockHandler({ locks, key: () => KEY }, handler)],
])("%s", (name, wrap) => {
  it("takes the answer of a handler that calls back", async () => {
    const { clock, locks } = createHarness();
    let calls = 0;
    const callsBack = (_event: unknown, _context: unknown, callback: (error: unknown, response?: unknown) => void): void =>
      void clock.after(10, () => (++calls === 1 ? callback(new Error("the bank is closed")) : callback(null, { statusCode: 201 })));
    const handler = wrap(callsBack as never, locks);
    const call = () => clock.settle(thrownBy(handler(SCHEDULED, invocation(clock), () => expect.unreachable("the promise answers"))));
    expect(await call()).toMatchObject({ message: "the bank is closed" });
    expect([await call(), await call()]).toEqual(Array(2).fill({ statusCode: 201 }));
    expect(calls).toBe(name === "lockHandler" ? 3 : 2);
  });

  it("refuses a handler that answers by a stream: when it is wrapped, or at the first call", async () => {
    const { locks } = createHarness();
    const streams = Object.assign(async () => undefined, { [Symbol.for("aws.lambda.runtime.handler.streaming")]: "response" });
    const refused = expect.objectContaining({
      field: "handler",
      message: expect.stringContaining("answers by a stream") as string,
    }) as Error;
    expect(() => wrap(streams as never, locks)).toThrow(refused);
    const handler = wrap((() => expect.unreachable("it is refused")) as never, locks);
    await expect(handler(SCHEDULED, new PassThrough(), { getRemainingTimeInMillis: () => 9000 })).rejects.toEqual(refused);
  });
});

describe("withInvocation", () => {
  it("hands event, context and the view to the handler, and returns what that returns", async () => {
    const { clock, locks } = createHarness();
    const handler = withInvocation(locks, async (event: typeof SCHEDULED, context: object, view) => [
      event,
      context,
      await view.withLock(KEY, ({ key }) => key),
    ]);
    const context = invocation(clock);
    expect(await clock.settle(handler(SCHEDULED, context))).toEqual([SCHEDULED, context, KEY]);
  });

  it.each(["returns", "throws"])("releases what the handler still holds when it %s, and sends no heartbeat after that", async (how) => {
    const { clock, locks, rival, wire } = createHarness();
    const mistake = new Error("no such order");
    const handler = withInvocation(locks, async (_event: object, _context: object, view) => {
      await view.acquire(KEY);
      if (how === "throws") throw mistake;
    });
    const outcome = await clock.settle(thrownBy(handler(SCHEDULED, invocation(clock))));
    expect(outcome).toBe(how === "throws" ? mistake : undefined);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    const sent = wire.sent.length;
    await clock.advance(60_000);
    expect(wire.sent).toHaveLength(sent);
  });

  it("control: with the client itself, the key stays held and heartbeats go on", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const plain = async (): Promise<void> => void (await locks.acquire(KEY));
    await clock.settle(plain());
    expect(await rival.tryAcquire(KEY)).toBeNull();
    await clock.advance(60_000);
    expect(wire.of("renew").length).toBeGreaterThan(2);
  });

  it("ends an acquire that nobody awaited", async () => {
    const { clock, locks, rival } = createHarness();
    const lease = await rival.acquire(KEY);
    let waiting: Promise<unknown> = Promise.resolve();
    const handler = withInvocation(locks, async (_event: object, _context: object, view) => void (waiting = thrownBy(view.acquire(KEY))));
    await clock.settle(handler(SCHEDULED, invocation(clock)));
    expect(await clock.settle(waiting)).toMatchObject({ code: "closed" });
    await lease.release();
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("bounds leases and waits by the time that is left, and tells the work before it is over", async () => {
    const { clock, locks, rival, wire } = createHarness();
    const gate = createGate();
    let signal: AbortSignal | undefined;
    const handler = withInvocation(locks, (_event: object, _context: object, view) =>
      view.withLock(KEY, (lease) => {
        ({ signal } = lease);
        return gate.pass();
      }),
    );
    const working = thrownBy(handler(SCHEDULED, invocation(clock, 10_000)));
    await clock.advance(9_500);
    expect(wire.of("acquire")[0]?.request.leaseMs).toBe(12_000);
    expect(signal?.reason).toMatchObject({ name: "LockLostError", reason: "invocation-ends" });
    // Work that goes on has the key until it returns.
    expect(await rival.tryAcquire(KEY)).toBeNull();
    gate.open();
    expect(await clock.settle(working)).toMatchObject({ name: "LockLostError", reason: "invocation-ends" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("leaves the client as it was: the next invocation has a view of its own", async () => {
    const { clock, locks } = createHarness();
    const views = new Set<LockClient>();
    const handler = withInvocation(locks, async (_event: object, _context: object, view) => void views.add(view));
    await handler(SCHEDULED, invocation(clock));
    await handler(SCHEDULED, {});
    expect(views.size).toBe(2);
    for (const view of views) await expect(view.tryAcquire(KEY)).rejects.toMatchObject({ code: "closed" });
    expect(await locks.tryAcquire(KEY)).not.toBeNull();
  });
});

describe("in a durable execution", () => {
  type Wrap = (locks: LockClient, work: () => Promise<unknown>) => (event: never, context: never) => Promise<unknown>;
  const once = { service: "shop", caller: "none", key: () => KEY } as const;
  const wraps: readonly (readonly [name: string, wrap: Wrap])[] = [
    ...LOCK_SHAPES.map(
      ({ name, deploy }) => [name, (locks: LockClient, work: () => Promise<unknown>) => deploy({ locks, key: () => KEY }, work)] as const,
    ),
    ...ONCE_SHAPES.map(
      ({ name, deploy }) => [name, (locks: LockClient, work: () => Promise<unknown>) => deploy({ locks, ...once }, work)] as const,
    ),
    ["sqsHandler", (locks, work) => sqsHandler({ locks }, work)],
    ["scheduleHandler", (locks, work) => scheduleHandler({ locks, name: "nightly" }, work)],
    ["withInvocation", (locks, work) => withInvocation(locks, work)],
  ];

  it.each(wraps)(
    "%s is refused at the first call, around the SDK's handler and inside of it, and the way that works is named",
    async (_name, wrap) => {
      const { clock, locks, wire } = createHarness();
      const handler = wrap(locks, () => expect.unreachable("it is refused"));
      const refusal = (field: string) => ({
        ...{ name: "InvalidRequestError", field },
        message: `${field}: is of a durable execution, whose work goes on in later invocations; use withDurableLock or withDurableRun of holdfast/durable inside of it`,
      });
      const event: DurableExecutionInvocationInput = {
        ...{ DurableExecutionArn: "arn:aws:lambda:us-east-1:111122223333:function:f:1/durable-execution/a", CheckpointToken: "1" },
        InitialExecutionState: { Operations: [] },
      };
      expect(await thrownBy(handler(event as never, invocation(clock) as never))).toMatchObject(refusal("event"));
      const lambda = new DurableLambda(clock, () => expect.unreachable("nothing is sent"));
      let thrown: unknown;
      const execution = lambda.start("a", async (ctx) => {
        thrown = await thrownBy(handler(requestV2() as never, ctx as never));
      });
      await lambda.run();
      expect([execution.status, thrown]).toMatchObject(["SUCCEEDED", refusal("context")]);
      expect(wire.sent).toEqual([]);
    },
  );
});
