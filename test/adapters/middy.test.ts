/**
 * Locks and runs among other Middy middlewares: their places, errors and early responses, and both together. Each place has a control: a
 * middleware used elsewhere, and one that only acquires before and releases after.
 */
import { Readable } from "node:stream";
import { ReadableStream } from "node:stream/web";
import middy from "@middy/core";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { describe, expect, expectTypeOf, it } from "vitest";
import { type Lease, type LeaseSet, type LockClient, type Run, key } from "../../lib/index.js";
import type { HttpAnswer, LambdaContext } from "../../lib/middy.js";
import { idempotencyHandler, idempotencyMiddleware, lockHandler, lockMiddleware } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { invocation } from "../support/invocation.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { problemOf, requestV2, SCHEDULED } from "./events.js";

const KEY = "ORDER_1";
const OF_ALL = { service: "shop", caller: "none" } as const;
const RUN = "shop_~http_POST_~2Forders_form-8f3a";
const REQUEST = requestV2({ headers: { "Idempotency-Key": "form-8f3a" } });

/** A harness that calls handlers of Middy. */
function inMiddy() {
  const harness = createHarness();
  const { clock } = harness;
  type Handler = (event: never, context: Context) => Promise<unknown>;
  const call = (handler: Handler, event: object = SCHEDULED, leftMs?: number): Promise<unknown> =>
    clock.settle(thrownBy(handler(event as never, invocation(clock, leftMs) as Context)));
  const twice = async (handler: Handler) => [await call(handler, REQUEST), await call(handler, REQUEST)];
  return { ...harness, call, twice };
}

describe("lockMiddleware", () => {
  const of = (locks: LockClient) => lockMiddleware({ locks, key: () => KEY, leaseMs: 6000 });

  it("shows its lease to the handler and to other middlewares, for as long as the handler runs", async () => {
    const { call, locks } = inMiddy();
    const seen: unknown[] = [];
    const look = ({ context, internal }: { context: unknown; internal: unknown }): void => {
      seen.push((context as { lease?: Lease }).lease?.key, (internal as { lease?: Lease }).lease?.key);
    };
    const handler = middy()
      .use({ after: look })
      .use(of(locks))
      .handler(async (_event: unknown, context: unknown) => (context as { lease: Lease }).lease.key);
    expect(await call(handler)).toBe(KEY);
    const inside = middy()
      .use(of(locks))
      .use({ before: look })
      .handler(async () => "done");
    await call(inside);
    expect(seen).toEqual([undefined, undefined, KEY, KEY]);
  });

  it("finds an event that parsers before it have parsed", async () => {
    const { call, locks, wire } = inMiddy();
    const parser = {
      before(request: { event: { body: unknown } }): void {
        request.event.body = JSON.parse(request.event.body as string);
      },
    };
    const handler = middy()
      .use(parser)
      .use(lockMiddleware({ locks, key: (event: { body: { order: number } }) => key("ORDER", event.body.order) }))
      .handler(async () => ({ statusCode: 204 }));
    await call(handler, requestV2({ body: { order: 7 } }));
    expect(wire.of("acquire").map(({ request }) => request.key)).toEqual(["ORDER_7"]);
  });

  it("lets error handlers and loggers hear of a refusal, and keeps the headers that they add to its answer", async () => {
    const { call, locks, rival } = inMiddy();
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
    const answer = (await call(handler, requestV2())) as HttpAnswer;
    expect(problemOf(answer)).toMatchObject({ statusCode: 423, code: "locked" });
    expect(answer.headers["access-control-allow-origin"]).toBe("*");
    expect(heard).toEqual(["LockTimeoutError"]);
  });

  it("leaves an error of the handler to the error handler of the application, and frees the key before that", async () => {
    const { call, locks, rival } = inMiddy();
    const onError = async (request: { response: unknown; error: unknown }): Promise<void> => {
      expect(await rival.tryAcquire(KEY)).not.toBeNull();
      request.response = { statusCode: 404, body: (request.error as Error).message };
    };
    const handler = middy()
      .use({ onError })
      .use(of(locks))
      .handler(async () => Promise.reject(new Error("no such order")));
    expect(await call(handler, requestV2())).toEqual({ statusCode: 404, body: "no such order" });
  });

  it("frees the key when a middleware after it fails before the handler, or a validator refuses the event", async () => {
    const { call, locks, rival } = inMiddy();
    const failing = { before: () => Promise.reject(new Error("not valid")) };
    const handler = middy()
      .use(of(locks))
      .use(failing)
      .handler(async () => expect.unreachable("not valid"));
    expect(await call(handler)).toMatchObject({ message: "not valid" });
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("owes two requests at once their own answers", async () => {
    const { clock, locks } = inMiddy();
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
    const { call, locks, wire } = inMiddy();
    const handler = middy()
      .use(early)
      .use(lockMiddleware({ locks, key: () => KEY }))
      .handler(async () => "worked");
    expect(await call(handler, SCHEDULED, LEFT_MS)).toBe("from the cache");
    expect(wire.sent).toEqual([]);
  });

  it("after it leaves the key held, for Middy tells nobody, until the lease is over, 2 s and its margin after the invocation", async () => {
    const { call, clock, locks, rival } = inMiddy();
    const handler = middy()
      .use(lockMiddleware({ locks, key: () => KEY }))
      .use(early)
      .handler(async () => "worked");
    expect(await call(handler, SCHEDULED, LEFT_MS)).toBe("from the cache");
    await clock.advance(LEFT_MS + 2000);
    expect(await rival.tryAcquire(KEY)).toBeNull();
    await clock.advance(1100);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });

  it("is none of lockHandler's business, wherever Middy is", async () => {
    const { call, locks, wire, rival } = inMiddy();
    const work = async (): Promise<string> => "worked";
    const inside = middy()
      .use(early)
      .handler(lockHandler({ locks, key: () => KEY }, work));
    expect(await call(inside)).toBe("from the cache");
    expect(wire.sent).toEqual([]);
    const around = lockHandler({ locks, key: () => KEY }, middy().use(early).handler(work));
    expect(await call(around)).toBe("from the cache");
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
  });
});

/** The ways to a lock or a run of one key, with Middy and without. */
const WAYS = [
  [
    "lockMiddleware",
    (locks: LockClient, work: () => Promise<unknown>, plugin?: { readonly timeoutEarlyInMillis: number }) =>
      middy(plugin)
        .use(lockMiddleware({ locks, key: () => KEY }))
        .handler(work),
  ],
  ["lockHandler", (locks: LockClient, work: () => Promise<unknown>) => lockHandler({ locks, key: () => KEY }, work)],
  [
    "idempotencyMiddleware",
    (locks: LockClient, work: () => Promise<unknown>, plugin?: { readonly timeoutEarlyInMillis: number }) =>
      middy(plugin)
        .use(idempotencyMiddleware({ locks, ...OF_ALL }))
        .handler(work),
  ],
  ["idempotencyHandler", (locks: LockClient, work: () => Promise<unknown>) => idempotencyHandler({ locks, ...OF_ALL }, work)],
] as const;

describe.each(WAYS.filter(([name]) => name.endsWith("Middleware")))("Middy's own time-out over %s", (name, deploy) => {
  const LEFT_MS = 20_000;

  it("leaves the key to the handler, which still works, until the lease is over", async () => {
    const { clock, locks, rival } = inMiddy();
    const gate = createGate();
    let at = 0;
    const work = (): Promise<void> => {
      at++;
      return gate.pass();
    };
    // The test's clock is stopped, but Middy's timer isn't: it is due at once.
    const handler: (event: never, context: Context) => Promise<unknown> = deploy(locks, work, { timeoutEarlyInMillis: LEFT_MS - 10 });
    expect(await thrownBy(handler(REQUEST as never, invocation(clock, LEFT_MS) as Context))).toMatchObject({ name: "TimeoutError" });
    expect(at).toBe(1);
    const isFree = (): Promise<boolean> =>
      name === "lockMiddleware"
        ? rival.tryAcquire(KEY).then((lease) => lease !== null)
        : rival
            .runOnce(RUN, { waitMs: 0 }, () => true)
            .then(
              ({ replayed }) => !replayed,
              () => false,
            );
    expect(await isFree()).toBe(false);
    await clock.advance(LEFT_MS + 2000);
    expect(await isFree()).toBe(false);
    await clock.advance(1100);
    expect(await isFree()).toBe(true);
    gate.open();
  });
});

describe.each(WAYS)("a stream that is returned under %s", (name, deploy) => {
  it("is refused, and its work is neither begun nor recorded", async () => {
    const { clock, call, locks, rival } = inMiddy();
    let ran = 0;
    async function* pages() {
      yield String(++ran);
    }
    const streams: (() => unknown)[] = [
      () => Readable.from(pages()),
      () => ({ statusCode: 200, body: Readable.from(pages()) }),
      () => ({ statusCode: 200, body: new ReadableStream({ pull: () => void ran++ }, { highWaterMark: 0 }) }),
    ];
    for (const stream of streams) {
      const refused = await call(
        deploy(locks, async () => stream()),
        REQUEST,
      );
      expect(refused).toMatchObject({ name: "InvalidRequestError", message: expect.stringContaining("a stream") as string });
    }
    expect(ran).toBe(0);
    expect(await rival.tryAcquire(KEY)).not.toBeNull();
    if (name.startsWith("idem")) expect(await clock.settle(rival.runOnce(RUN, () => "worked"))).toMatchObject({ replayed: false });
  });
});

it("leaves a stream of a request without a key to the handler: there is no run", async () => {
  const { call, locks } = inMiddy();
  const body = Readable.from(["page"]);
  const handler = middy()
    .use(idempotencyMiddleware({ locks, ...OF_ALL }))
    .handler(async () => ({ statusCode: 200, body }));
  expect(await call(handler, { ...REQUEST, requestContext: { http: { method: "GET" } } })).toMatchObject({ body });
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
    const { clock, locks, rival } = inMiddy();
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

it("keeps Middy's types with a lease: event, context, result", async () => {
  const { clock, locks } = inMiddy();
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

interface Passing {
  response: unknown;
  error: unknown;
}

/** Typical Middy middlewares: they serialize bodies, turn errors into responses, and add a CORS header to every response. */
const serializer = {
  after(request: Passing): void {
    const response = request.response as { body: unknown };
    request.response = { ...response, body: JSON.stringify(response.body) };
  },
};
const allowOrigin = (request: Passing): void => {
  const response = request.response as HttpAnswer | undefined;
  if (response) request.response = { ...response, headers: { ...response.headers, "access-control-allow-origin": "*" } };
};
const cors = { after: allowOrigin, onError: allowOrigin };
const errors = {
  onError(request: Passing): void {
    const { statusCode = 500, message } = request.error as { statusCode?: number; message: string };
    request.response ??= { statusCode, headers: { "Content-Type": "text/plain" }, body: message };
  },
};

/** The two ways in which it sees the final response. */
const PLACES = [
  [
    "idempotencyMiddleware, used first,",
    (locks: LockClient, work: () => Promise<unknown>) =>
      middy()
        .use(idempotencyMiddleware({ locks, ...OF_ALL }))
        .use(cors)
        .use(errors)
        .use(serializer)
        .handler(work),
  ],
  [
    "idempotencyHandler around Middy",
    (locks: LockClient, work: () => Promise<unknown>) =>
      idempotencyHandler({ locks, ...OF_ALL }, middy().use(cors).use(errors).use(serializer).handler(work)),
  ],
] as const;

describe.each(PLACES)("%s", (_name, deploy) => {
  it("records what the caller was told: serialized, and with all headers", async () => {
    const { locks, twice } = inMiddy();
    const [first, second] = await twice(deploy(locks, async () => ({ statusCode: 201, body: { order: 1 } })));
    expect(first).toEqual({ statusCode: 201, headers: { "access-control-allow-origin": "*" }, body: '{"order":1}' });
    const { headers, ...rest } = first as HttpAnswer;
    expect(second).toEqual({ ...rest, headers: { ...headers, "Idempotent-Replayed": "true" } });
  });

  it("records the answer that an error handler made of an error, if that one is final", async () => {
    const { locks, twice } = inMiddy();
    let ran = 0;
    const work = async (): Promise<unknown> => Promise.reject(Object.assign(new Error(`no such order (${++ran})`), { statusCode: 404 }));
    const [first, second] = await twice(deploy(locks, work));
    expect(first).toMatchObject({ statusCode: 404, body: "no such order (1)" });
    expect(second).toMatchObject({ statusCode: 404, body: "no such order (1)", headers: { "Idempotent-Replayed": "true" } });
  });

  it("records nothing of one that is not, and gives it", async () => {
    const { locks, twice } = inMiddy();
    let ran = 0;
    const work = async (): Promise<unknown> => Promise.reject(new Error(`the bank is closed (${++ran})`));
    const answers = await twice(deploy(locks, work));
    expect(answers).toMatchObject([
      { statusCode: 500, body: "the bank is closed (1)" },
      { statusCode: 500, body: "the bank is closed (2)" },
    ]);
  });
});

describe("idempotencyMiddleware", () => {
  it("answers a refusal over the error handler's answer, and keeps the headers that others added", async () => {
    const { clock, locks, twice } = inMiddy();
    const work = async (): Promise<unknown> => clock.advance(1).then(() => ({ statusCode: 200 }));
    const handler = middy()
      .use(idempotencyMiddleware({ locks, ...OF_ALL, payload: () => clock.monotonicMs() }))
      .use(cors)
      .use(errors)
      .handler(work);
    const [, second] = await twice(handler);
    expect(problemOf(second)).toMatchObject({ statusCode: 422, contentType: "application/problem+json" });
    const { headers } = second as HttpAnswer;
    expect(headers["access-control-allow-origin"]).toBe("*");
    expect(Object.keys(headers).filter((name) => name.toLowerCase() === "content-type")).toHaveLength(1);
  });

  it("control: used after others, it replays what is not what the caller was told", async () => {
    const { locks, twice } = inMiddy();
    const handler = middy()
      .use(cors)
      .use(serializer)
      .use(idempotencyMiddleware({ locks, ...OF_ALL }))
      .handler(async () => ({ statusCode: 201, body: { order: 1 } }));
    const [first, second] = await twice(handler);
    expect(first).toMatchObject({ body: '{"order":1}', headers: { "access-control-allow-origin": "*" } });
    expect(second).toEqual({ statusCode: 201, body: { order: 1 }, headers: { "Idempotent-Replayed": "true" } });
  });

  it("before a middleware that answers early records nothing, for Middy tells nobody, until the lease is over", async () => {
    const { clock, locks, rival, twice } = inMiddy();
    const early = { before: () => ({ statusCode: 200, body: "from the cache" }) };
    const handler = middy()
      .use(idempotencyMiddleware({ locks, ...OF_ALL, waitMs: 0 }))
      .use(early)
      .handler(async () => "worked");
    const [first, second] = await twice(handler);
    expect(first).toMatchObject({ body: "from the cache" });
    expect(problemOf(second)).toMatchObject({ statusCode: 409, code: "run-in-progress" });
    await clock.advance(120_000);
    expect(await rival.runOnce(RUN, ({ takeover }) => takeover)).toMatchObject({ value: true, replayed: false });
  });

  it("control: idempotencyHandler around Middy does record it", async () => {
    const { locks, twice } = inMiddy();
    const early = { before: () => ({ statusCode: 200, body: "from the cache" }) };
    const handler = idempotencyHandler(
      { locks, ...OF_ALL, waitMs: 0 },
      middy()
        .use(early)
        .handler(async () => "worked"),
    );
    const [, second] = await twice(handler);
    expect(second).toMatchObject({ body: "from the cache", headers: { "Idempotent-Replayed": "true" } });
  });
});

it("keeps Middy's types with a run: event, context, result", async () => {
  const { clock, locks } = inMiddy();
  const handler = middy<APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2>()
    .use(idempotencyMiddleware({ locks, ...OF_ALL, payload: (event: APIGatewayProxyEventV2) => event.body }))
    .handler(async (event, context) => {
      const run: Run | undefined = context.run;
      return { statusCode: 200, body: `${event.rawPath} ${run!.idempotencyKey}` };
    });
  const event = REQUEST as unknown as APIGatewayProxyEventV2;
  const answer: APIGatewayProxyStructuredResultV2 = await clock.settle(handler(event, invocation(clock) as Context));
  expect(answer).toEqual({ statusCode: 200, body: `/orders ${RUN}` });
  const around: (event: APIGatewayProxyEventV2, context: Context) => Promise<APIGatewayProxyStructuredResultV2> = idempotencyHandler(
    { locks, ...OF_ALL, key: () => "another" },
    handler,
  );
  expect(await clock.settle(around(event, invocation(clock) as Context))).toMatchObject({ statusCode: 200 });
});
