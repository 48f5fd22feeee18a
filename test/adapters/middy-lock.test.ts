/**
 * The lock among other Middy middlewares: its place, errors and early responses, and a control with a middleware that
 * only acquires before and releases after.
 */
import middy from "@middy/core";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { describe, expect, expectTypeOf, it } from "vitest";
import type { Lease, LeaseSet, LockClient } from "../../lib/index.js";
import { key } from "../../lib/index.js";
import type { HttpAnswer, LambdaContext } from "../../lib/middy.js";
import { lockHandler, lockMiddleware } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { problemOf, requestV2, SCHEDULED } from "./events.js";
import { invocation } from "../support/invocation.js";

const KEY = "ORDER_1";

describe("lockMiddleware", () => {
  const of = (locks: LockClient) => lockMiddleware({ locks, key: () => KEY, leaseMs: 6000 });

  it("shows its lease to the handler and to other middlewares, for as long as the handler runs", async () => {
    const { clock, locks } = createHarness();
    const seen: unknown[] = [];
    const look = ({ context, internal }: { context: unknown; internal: unknown }): void => {
      seen.push((context as { lease?: Lease }).lease?.key, (internal as { lease?: Lease }).lease?.key);
    };
    const handler = middy()
      .use({ after: look })
      .use(of(locks))
      .handler(async (_event: unknown, context: unknown) => (context as { lease: Lease }).lease.key);
    expect(await clock.settle(handler(SCHEDULED, invocation(clock) as Context))).toBe(KEY);
    const inside = middy()
      .use(of(locks))
      .use({ before: look })
      .handler(async () => "done");
    await clock.settle(inside(SCHEDULED, invocation(clock) as Context));
    expect(seen).toEqual([undefined, undefined, KEY, KEY]);
  });

  it("finds an event that parsers before it have parsed", async () => {
    const { clock, locks, wire } = createHarness();
    const parser = {
      before(request: { event: { body: unknown } }): void {
        request.event.body = JSON.parse(request.event.body as string);
      },
    };
    const handler = middy()
      .use(parser)
      .use(lockMiddleware({ locks, key: (event: { body: { order: number } }) => key("ORDER", event.body.order) }))
      .handler(async () => ({ statusCode: 204 }));
    await clock.settle(handler(requestV2({ body: { order: 7 } }) as never, invocation(clock) as Context));
    expect(wire.of("acquire").map(({ request }) => request.key)).toEqual(["ORDER_7"]);
  });

  it("lets error handlers and loggers hear of a refusal, and keeps the headers that they add to its answer", async () => {
    const { clock, locks, rival } = createHarness();
    await rival.acquire(KEY);
    const heard: unknown[] = [];
    const logger = { onError: ({ error }: { error: unknown }) => void heard.push((error as Error).name) };
    const cors = {
      onError(request: { response: unknown }): void {
        const response = request.response as HttpAnswer;
        request.response = { ...response, headers: { ...response.headers, "access-control-allow-origin": "*" } };
      },
    };
    const handler = middy()
      .use(logger)
      .use(cors)
      .use(of(locks))
      .handler(async () => expect.unreachable("the key is held"));
    const answer = (await clock.settle(handler(requestV2(), invocation(clock) as Context))) as HttpAnswer;
    expect(problemOf(answer)).toMatchObject({ statusCode: 423, code: "locked" });
    expect(answer.headers["access-control-allow-origin"]).toBe("*");
    expect(heard).toEqual(["LockTimeoutError"]);
  });

  it("leaves an error of the handler to the error handler of the application, and frees the key before that", async () => {
    const { clock, locks, rival } = createHarness();
    const onError = async (request: { response: unknown; error: unknown }): Promise<void> => {
      expect(await rival.tryAcquire(KEY)).not.toBeNull();
      request.response = { statusCode: 404, body: (request.error as Error).message };
    };
    const handler = middy()
      .use({ onError })
      .use(of(locks))
      .handler(async () => Promise.reject(new Error("no such order")));
    expect(await clock.settle(handler(requestV2(), invocation(clock) as Context))).toEqual({ statusCode: 404, body: "no such order" });
  });

  it("frees the key when a middleware after it fails before the handler, or a validator refuses the event", async () => {
    const { clock, locks, rival } = createHarness();
    const failing = { before: () => Promise.reject(new Error("not valid")) };
    const handler = middy()
      .use(of(locks))
      .use(failing)
      .handler(async () => expect.unreachable("not valid"));
    expect(await clock.settle(thrownBy(handler(SCHEDULED, invocation(clock) as Context)))).toMatchObject({ message: "not valid" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("frees the key when Middy gives the handler up because its time is up", async () => {
    const { clock, locks, rival } = createHarness();
    const gate = createGate();
    // The test's clock is stopped, but Middy's timer isn't: it is due at once.
    const handler = middy({ timeoutEarlyInMillis: 59_990 })
      .use(of(locks))
      .handler(() => gate.pass());
    const outcome = await thrownBy(handler(SCHEDULED, invocation(clock) as Context));
    expect(outcome).toMatchObject({ name: "TimeoutError" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    gate.open();
  });

  it("owes two requests at once their own answers", async () => {
    const { clock, locks } = createHarness();
    const handler = middy()
      .use(lockMiddleware({ locks, key: (event: { body: string }) => key("ORDER", event.body) }))
      .handler(async (event: { body: string }, context: unknown) => [event.body, (context as { lease: Lease }).lease.key]);
    const call = (body: string): Promise<unknown> => handler(requestV2({ body }), invocation(clock) as Context);
    const answers = await clock.settle(Promise.all(["1", "2", "1", "3"].map(call)));
    expect(answers).toEqual(["1", "2", "1", "3"].map((body) => [body, `ORDER_${body}`]));
  });
});

describe("an early answer of another middleware", () => {
  const early = { before: () => "from the cache" };
  const LEFT_MS = 20_000;

  it("before the lock, which belongs last, takes no lock at all", async () => {
    const { clock, locks, wire } = createHarness();
    const handler = middy()
      .use(early)
      .use(lockMiddleware({ locks, key: () => KEY }))
      .handler(async () => "worked");
    expect(await clock.settle(handler(SCHEDULED, invocation(clock, LEFT_MS) as Context))).toBe("from the cache");
    expect(wire.sent).toEqual([]);
  });

  it("after it leaves the key held, for Middy tells nobody; half a second before the invocation ends it is free", async () => {
    const { clock, locks, rival } = createHarness();
    const handler = middy()
      .use(lockMiddleware({ locks, key: () => KEY }))
      .use(early)
      .handler(async () => "worked");
    expect(await clock.settle(handler(SCHEDULED, invocation(clock, LEFT_MS) as Context))).toBe("from the cache");
    await clock.advance(LEFT_MS - 501);
    expect(await rival.tryAcquire(KEY)).toBeNull();
    await clock.advance(1);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("is none of lockHandler's business, wherever Middy is", async () => {
    const { clock, locks, wire, rival } = createHarness();
    const work = async (): Promise<string> => "worked";
    const inside = middy()
      .use(early)
      .handler(lockHandler({ locks, key: () => KEY }, work));
    expect(await clock.settle(inside(SCHEDULED, invocation(clock) as Context))).toBe("from the cache");
    expect(wire.sent).toEqual([]);
    const around = lockHandler({ locks, key: () => KEY }, middy().use(early).handler(work));
    expect(await clock.settle(around(SCHEDULED, invocation(clock) as Context))).toBe("from the cache");
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});

describe("control: a middleware that only acquires and releases", () => {
  /** Ignores a loss of the lease between the two calls. */
  function naive(locks: LockClient) {
    const held = new WeakMap<object, Lease>();
    const end = async (request: object): Promise<void> => void (await held.get(request)?.release());
    return {
      before: async (request: object) => void held.set(request, await locks.acquire(KEY, { leaseMs: 6000 })),
      after: end,
      onError: end,
    };
  }

  it.each([
    ["it", naive, { statusCode: 200 }],
    ["lockMiddleware", (locks: LockClient) => lockMiddleware({ locks, key: () => KEY, leaseMs: 6000 }), { statusCode: 503 }],
  ])("%s, when the key was lost meanwhile, says", async (_name, middlewareOf, said) => {
    const { clock, locks, rival } = createHarness();
    const gate = createGate();
    const handler = middy()
      .use(middlewareOf(locks))
      .handler(async () => gate.pass().then(() => ({ statusCode: 200 })));
    const working = handler(requestV2(), invocation(clock, 90_000) as Context);
    await clock.advance(0);
    await gate.reached;
    await clock.freeze(20_000);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    gate.open();
    expect(await clock.settle(working)).toMatchObject(said);
  });
});

it("keeps Middy's types: event, context with the lease, result", async () => {
  const { clock, locks } = createHarness();
  const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
    .use(lockMiddleware({ locks, key: (event: APIGatewayProxyEventV2) => key("ORDER", event.rawPath) }))
    .handler(async (event, context) => {
      const path: string = event.rawPath;
      const lease: Lease | LeaseSet | undefined = context.lease;
      // @ts-expect-error -- a lease is no number
      const wrong: number = context.lease;
      return { statusCode: 200, body: `${path} ${String(lease === (wrong as unknown))} ${context.awsRequestId}` };
    });
  const context = { ...invocation(clock), awsRequestId: "request-1" } as Context;
  const event = requestV2() as unknown as APIGatewayProxyEventV2;
  const answer: APIGatewayProxyStructuredResultV2 = await clock.settle(handler(event, context));
  expect(answer).toEqual({ statusCode: 200, body: "/orders true request-1" });
});

it("has Lambda's own context, member by member, without its package", () => {
  expectTypeOf<keyof LambdaContext>().toEqualTypeOf<keyof Context>();
  const ours = (context: Context): LambdaContext => context;
  const theirs = (context: LambdaContext): Context => context;
  const context = { awsRequestId: "request-1" } as Context;
  expect(theirs(ours(context))).toBe(context);
});
