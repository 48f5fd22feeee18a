/** Idempotency among other Middy middlewares: the reason for using it first or around all others, and its combination with a lock. */
import middy from "@middy/core";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { describe, expect, it } from "vitest";
import type { LockClient, Run } from "../../lib/index.js";
import type { HttpAnswer } from "../../lib/middy.js";
import { idempotencyHandler, idempotencyMiddleware, lockHandler, lockMiddleware } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { thrownBy } from "../support/run-gate.js";
import { problemOf, requestV2 } from "./events.js";
import { invocation } from "../support/invocation.js";

const OF_ALL = { service: "shop", caller: "none" } as const;
const RUN = "shop_~http_POST_~2Forders_form-8f3a";
const REQUEST = requestV2({ headers: { "Idempotency-Key": "form-8f3a" } });

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

/** Calls the handler that many times in sequence. */
async function calls(
  handler: (event: never, context: Context) => Promise<unknown>,
  harness: ReturnType<typeof createHarness>,
  times: number,
) {
  const answers: unknown[] = [];
  for (let call = 0; call < times; call++) {
    answers.push(await harness.clock.settle(thrownBy(handler(REQUEST as never, invocation(harness.clock) as Context))));
  }
  return answers;
}

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
    const harness = createHarness();
    const [first, second] = await calls(
      deploy(harness.locks, async () => ({ statusCode: 201, body: { order: 1 } })),
      harness,
      2,
    );
    expect(first).toEqual({ statusCode: 201, headers: { "access-control-allow-origin": "*" }, body: '{"order":1}' });
    const { headers, ...rest } = first as HttpAnswer;
    expect(second).toEqual({ ...rest, headers: { ...headers, "Idempotent-Replayed": "true" } });
  });

  it("records the answer that an error handler made of an error, if that one is final", async () => {
    const harness = createHarness();
    let ran = 0;
    const work = async (): Promise<unknown> => Promise.reject(Object.assign(new Error(`no such order (${++ran})`), { statusCode: 404 }));
    const [first, second] = await calls(deploy(harness.locks, work), harness, 2);
    expect(first).toMatchObject({ statusCode: 404, body: "no such order (1)" });
    expect(second).toMatchObject({ statusCode: 404, body: "no such order (1)", headers: { "Idempotent-Replayed": "true" } });
  });

  it("records nothing of one that is not, and gives it", async () => {
    const harness = createHarness();
    let ran = 0;
    const work = async (): Promise<unknown> => Promise.reject(new Error(`the bank is closed (${++ran})`));
    const answers = await calls(deploy(harness.locks, work), harness, 2);
    expect(answers).toMatchObject([
      { statusCode: 500, body: "the bank is closed (1)" },
      { statusCode: 500, body: "the bank is closed (2)" },
    ]);
  });
});

describe("idempotencyMiddleware", () => {
  it("answers a refusal over the error handler's answer, and keeps the headers that others added", async () => {
    const harness = createHarness();
    const work = async (): Promise<unknown> => harness.clock.advance(1).then(() => ({ statusCode: 200 }));
    const handler = middy()
      .use(idempotencyMiddleware({ locks: harness.locks, ...OF_ALL, payload: () => harness.clock.monotonicMs() }))
      .use(cors)
      .use(errors)
      .handler(work);
    const [, second] = await calls(handler, harness, 2);
    expect(problemOf(second)).toMatchObject({ statusCode: 422, contentType: "application/problem+json" });
    const { headers } = second as HttpAnswer;
    expect(headers["access-control-allow-origin"]).toBe("*");
    expect(Object.keys(headers).filter((name) => name.toLowerCase() === "content-type")).toHaveLength(1);
  });

  it("control: used after others, it replays what is not what the caller was told", async () => {
    const harness = createHarness();
    const handler = middy()
      .use(cors)
      .use(serializer)
      .use(idempotencyMiddleware({ locks: harness.locks, ...OF_ALL }))
      .handler(async () => ({ statusCode: 201, body: { order: 1 } }));
    const [first, second] = await calls(handler, harness, 2);
    expect(first).toMatchObject({ body: '{"order":1}', headers: { "access-control-allow-origin": "*" } });
    expect(second).toEqual({ statusCode: 201, body: { order: 1 }, headers: { "Idempotent-Replayed": "true" } });
  });

  it("before a middleware that answers early records nothing, for Middy tells nobody, until the lease is over", async () => {
    const harness = createHarness();
    const early = { before: () => ({ statusCode: 200, body: "from the cache" }) };
    const handler = middy()
      .use(idempotencyMiddleware({ locks: harness.locks, ...OF_ALL, waitMs: 0 }))
      .use(early)
      .handler(async () => "worked");
    const [first, second] = await calls(handler, harness, 2);
    expect(first).toMatchObject({ body: "from the cache" });
    expect(problemOf(second)).toMatchObject({ statusCode: 409, code: "run-in-progress" });
    await harness.clock.advance(120_000);
    expect(await harness.rival.runOnce(RUN, ({ takeover }) => takeover)).toMatchObject({ value: true, replayed: false });
  });

  it("control: idempotencyHandler around Middy does record it", async () => {
    const harness = createHarness();
    const early = { before: () => ({ statusCode: 200, body: "from the cache" }) };
    const handler = idempotencyHandler(
      { locks: harness.locks, ...OF_ALL, waitMs: 0 },
      middy()
        .use(early)
        .handler(async () => "worked"),
    );
    const [, second] = await calls(handler, harness, 2);
    expect(second).toMatchObject({ body: "from the cache", headers: { "Idempotent-Replayed": "true" } });
  });
});

/** A run outside and a lock inside, in both ways. */
const TOGETHER = [
  [
    "as middlewares",
    (locks: LockClient, work: () => Promise<unknown>) =>
      middy()
        .use(idempotencyMiddleware({ locks, ...OF_ALL }))
        .use(lockMiddleware({ locks, key: () => "ORDER_1", waitMs: 0 }))
        .handler(work),
  ],
  [
    "as handlers",
    (locks: LockClient, work: () => Promise<unknown>) =>
      idempotencyHandler({ locks, ...OF_ALL }, lockHandler({ locks, key: () => "ORDER_1", waitMs: 0 }, work)),
  ],
] as const;

describe.each(TOGETHER)("a run with a lock inside, %s", (_name, deploy) => {
  it("doesn't take a key that was held for what came of the work", async () => {
    const harness = createHarness();
    const lease = await harness.rival.acquire("ORDER_1");
    const handler = deploy(harness.locks, async () => ({ statusCode: 200, body: "paid" }));
    const [held] = await calls(handler, harness, 1);
    expect(problemOf(held)).toMatchObject({ statusCode: 423, code: "locked" });
    await lease.release();
    const [paid, replayed] = await calls(handler, harness, 2);
    expect([paid, replayed]).toMatchObject([{ body: "paid" }, { body: "paid", headers: { "Idempotent-Replayed": "true" } }]);
    expect((await harness.locks.inspect("ORDER_1")).holders).toEqual([]);
  });
});

it("keeps Middy's types: event, context with the run, result", async () => {
  const { clock, locks } = createHarness();
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
