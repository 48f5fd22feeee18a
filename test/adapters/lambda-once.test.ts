/** A handler that works once per idempotency key: the recorded responses, the replays, and the HTTP status of each refusal. */
import { describe, expect, it } from "vitest";
import { type Run, key } from "../../lib/index.js";
import type { HttpAnswer, IdempotencyOptions } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import { type RequestParts, problemOf, requestMade, requestOfLattice, requestV1, requestV2, SCHEDULED } from "./events.js";
import { invocation } from "../support/invocation.js";
import { type Work, ONCE_SHAPES } from "./shapes.js";

const HEADERS = { "idempotency-key": '"form-8f3a"' };
const RUN = "shop_~http_POST_~2Forders_form-8f3a";
const REQUEST = requestV2({ headers: HEADERS });
const GATEWAYS = [
  ["an HTTP API's", requestV2, RUN],
  ["a REST API's", requestV1, RUN],
] as const;
// A made request doesn't tell its method.
const KINDS = [...GATEWAYS, ["VPC Lattice's", requestOfLattice, RUN], ["a made", requestMade, RUN.replace("POST", "-")]] as const;

describe.each(ONCE_SHAPES)("$name", ({ deploy }) => {
  /** A handler on its own service, which counts its calls. */
  function deployed(work: Work<Run>, options: Partial<IdempotencyOptions<unknown, unknown>> = {}) {
    const harness = createHarness();
    const calls: unknown[] = [];
    const counted: Work<Run> = (run, event, context) => {
      calls.push(run?.attempt);
      return work(run, event, context);
    };
    const handler = deploy({ locks: harness.locks, service: "shop", caller: "none", ...options }, counted);
    const call = (event: unknown, leftMs?: number): Promise<unknown> =>
      harness.clock.settle(thrownBy(handler(event, invocation(harness.clock, leftMs))));
    return { ...harness, calls, handler, call };
  }

  describe.each(KINDS)("for %s request", (_kind, request, runKey) => {
    it("runs once, and every later call gets the same answer, marked as replayed", async () => {
      let orders = 0;
      const { call, calls } = deployed(async () => ({ statusCode: 201, headers: { location: "/orders/1" }, body: String(++orders) }));
      const first = await call(request({ headers: HEADERS }));
      expect(first).toEqual({ statusCode: 201, headers: { location: "/orders/1" }, body: "1" });
      const replay = { statusCode: 201, headers: { location: "/orders/1", "Idempotent-Replayed": "true" }, body: "1" };
      expect(await call(request({ headers: HEADERS }))).toEqual(replay);
      expect(await call(request({ headers: HEADERS }))).toEqual(replay);
      expect(calls).toEqual([1]);
    });

    it("hands the run to the handler: the key to pass on, the checkpoint of an attempt before it", async () => {
      const { call } = deployed(async (run) => {
        const number = (run!.checkpoint as number | undefined) ?? 42;
        await run!.saveCheckpoint(number);
        return { statusCode: run!.attempt === 1 ? 500 : 200, body: `${run!.idempotencyKey} ${number}` };
      });
      expect(await call(request({ headers: HEADERS }))).toMatchObject({ statusCode: 500 });
      expect(await call(request({ headers: HEADERS }))).toEqual({ statusCode: 200, body: `${runKey} 42` });
    });

    it.each<[what: string, parts: RequestParts, isSame: boolean]>([
      ["another body", { body: { a: 2, b: 2 } }, false],
      ["other spaces and another order of members", { body: '{ "b": 2,\n"a": 1 }' }, true],
      ["another encoding of the body", { base64: true }, true],
      ["other headers", { headers: { ...HEADERS, "x-request-id": "2" } }, true],
    ])("with a used key and %s is the same: %s", async (_what, parts, isSame) => {
      const { call, calls } = deployed(async () => ({ statusCode: 200, body: "done" }));
      const asked = { headers: HEADERS, body: { a: 1, b: 2 } };
      await call(request(asked));
      const second = await call(request({ ...asked, ...parts }));
      if (isSame) expect(second).toMatchObject({ statusCode: 200, body: "done" });
      else expect(problemOf(second)).toMatchObject({ statusCode: 422, code: "fingerprint-mismatch", definite: true, retry: "never" });
      expect(calls).toHaveLength(1);
    });
  });

  describe("a request", () => {
    it.each([
      [60_000, undefined, 5_000],
      [60_000, 700, 700],
      [60_000, 0, 0],
      [3_000, 20_000, 2_000],
    ])(
      "with %d ms left and waitMs %s waits for another's answer for %d ms, and is then answered 409",
      async (leftMs, waitMs, expectedMs) => {
        const { clock, call, rival, calls } = deployed(async () => ({ statusCode: 200 }), waitMs === undefined ? {} : { waitMs });
        void thrownBy(rival.runOnce(RUN, () => createGate().pass()));
        await clock.advance(0);
        const began = clock.monotonicMs();
        const problem = problemOf(await call(REQUEST, leftMs));
        expect(clock.monotonicMs() - began).toBe(expectedMs);
        expect(problem).toMatchObject({ statusCode: 409, code: "run-in-progress", definite: true, retry: "later" });
        expect(Number(problem["retryAfter"])).toBeGreaterThanOrEqual(1);
        expect(calls).toEqual([]);
      },
    );

    it("replays all headers but cookies, which the first caller alone gets", async () => {
      const made = {
        ...{ statusCode: 201, body: "1", cookies: ["session=ann"] },
        headers: { "set-cookie": "session=ann", "access-control-allow-origin": "*" },
        multiValueHeaders: { "Set-Cookie": ["session=ann"], link: ["</1>", "</2>"] },
      };
      const { call, locks } = deployed(async () => made);
      expect(await call(REQUEST)).toEqual(made);
      expect(await call(REQUEST)).toEqual({
        ...{ statusCode: 201, body: "1", multiValueHeaders: { link: ["</1>", "</2>"] } },
        headers: { "access-control-allow-origin": "*", "Idempotent-Replayed": "true" },
      });
      expect(JSON.stringify(await locks.runs.get(RUN))).not.toContain("ann");
    });

    it("records what isRecorded says instead", async () => {
      const isRecorded = (response: unknown): boolean => (response as HttpAnswer).statusCode === 503;
      const { call, calls } = deployed(async () => ({ statusCode: 503 }), { isRecorded });
      await call(REQUEST);
      expect(await call(REQUEST)).toMatchObject({ statusCode: 503, headers: { "Idempotent-Replayed": "true" } });
      expect(calls).toHaveLength(1);
    });

    it("ends for good with an error that isFinal, which is not asked about a response that is not recorded", async () => {
      const isFinal = (): boolean => true;
      const failing = deployed(async () => Promise.reject(new Error("no such account")), { isFinal });
      await failing.call(REQUEST);
      expect(await failing.call(REQUEST)).toMatchObject({ name: "RunFailedError" });
      const busy = deployed(async () => ({ statusCode: 503 }), { isFinal });
      for (let asked = 0; asked < 2; asked++) expect(await busy.call(REQUEST)).toEqual({ statusCode: 503 });
      expect([failing.calls, busy.calls]).toEqual([[1], [1, 2]]);
    });

    it("whose handler stops because its run was lost is answered 503, and may come again at once", async () => {
      const gate = createGate();
      const { clock, handler, call } = deployed(async (run) => {
        if (run!.attempt > 1) return { statusCode: 200 };
        await gate.pass();
        run!.assertHeld();
        return expect.unreachable("it was lost");
      });
      const working = thrownBy(handler(REQUEST, invocation(clock, 10_000)));
      await clock.advance(9_600);
      gate.open();
      expect(problemOf(await clock.settle(working))).toMatchObject({ statusCode: 503, code: "lease-lost", definite: false });
      expect(await call(REQUEST)).toEqual({ statusCode: 200 });
    });

    it.each([400, 0])("with %d ms left does not run, and keeps nobody out", async (leftMs) => {
      const { call, rival, calls } = deployed(async () => ({ statusCode: 200 }));
      expect(problemOf(await call(REQUEST, leftMs))).toMatchObject({ statusCode: 503, code: "unavailable" });
      expect(await rival.runs.get(RUN)).toBeNull();
      expect(calls).toEqual([]);
    });
  });

  it.each([
    ["a REST API", { queryStringParameters: { sku: "b" } }],
    ["a load balancer with lists", {}],
  ])("another repeated query parameter makes another request of %s", async (_gateway, rest) => {
    const { call, calls } = deployed(async () => ({ statusCode: 200 }));
    const buying = (...sku: string[]): object => ({
      ...requestV1({ headers: HEADERS }),
      ...rest,
      multiValueQueryStringParameters: { sku },
    });
    await call(buying("a", "b"));
    expect(problemOf(await call(buying("c", "b")))).toMatchObject({ code: "fingerprint-mismatch" });
    expect(await call(buying("a", "b"))).toMatchObject({ statusCode: 200 });
    expect(calls).toHaveLength(1);
  });

  describe.each(GATEWAYS)("for %s request", (_kind, request) => {
    it.each([
      [{ order: 1 }, JSON.stringify({ order: 1 })],
      ["done", "done"],
    ])("replays what a gateway would have made a 200 of: %j", async (response, body) => {
      const { call } = deployed(async () => response);
      expect(await call(request({ headers: HEADERS }))).toEqual(response);
      const headers = { "content-type": "application/json", "Idempotent-Replayed": "true" };
      expect(await call(request({ headers: HEADERS }))).toEqual({ statusCode: 200, headers, body });
    });
  });

  describe("for an event with headers that says nothing of its method", () => {
    it("is another request with another member, wherever what it asks for stands", async () => {
      const { call, calls } = deployed(async () => ({ id: 1 }));
      await call({ headers: HEADERS, order: { amount: 1 } });
      expect(problemOf(await call({ headers: HEADERS, order: { amount: 2 } }))).toMatchObject({ statusCode: 422 });
      expect(calls).toHaveLength(1);
    });

    it("replays a result without a status as it was, for nobody said that a gateway takes it", async () => {
      const { call } = deployed(async () => ({ id: 1 }));
      const event = { headers: HEADERS, order: { amount: 1 } };
      expect([await call(event), await call(event)]).toEqual([{ id: 1 }, { id: 1 }]);
    });

    it("is none if its headers are a list, as records have them", async () => {
      const { call } = deployed(async () => "done");
      expect(await call({ headers: [HEADERS] })).toMatchObject({ name: "InvalidRequestError" });
    });
  });

  describe("for other events", () => {
    const once = { key: () => key("nightly", "2027-01-01") };

    it("runs once for the key, and replays the result as it was", async () => {
      const { call, calls } = deployed(async () => ({ rows: 7 }), once);
      expect([await call(SCHEDULED), await call(SCHEDULED)]).toEqual([{ rows: 7 }, { rows: 7 }]);
      expect(calls).toHaveLength(1);
    });

    it("throws while another works on it, so that the trigger tries again", async () => {
      const { clock, call, rival } = deployed(async () => "done", { ...once, waitMs: 0 });
      void thrownBy(rival.runOnce(key("shop", "nightly", "2027-01-01"), () => createGate().pass()));
      await clock.advance(0);
      expect(await call(SCHEDULED)).toMatchObject({ name: "LockTimeoutError" });
    });

    it("needs a key", async () => {
      const { call } = deployed(async () => "done");
      for (const event of [SCHEDULED, null, "text"]) expect(await call(event)).toMatchObject({ name: "InvalidRequestError", field: "key" });
      const { call: callEmpty } = deployed(async () => "done", { key: () => "" });
      expect(await callEmpty(SCHEDULED)).toMatchObject({ name: "InvalidRequestError", field: "key" });
    });
  });

  describe("with a caller and a service", () => {
    /** The customer, as an authorizer tells it. */
    const caller = (event: unknown): string => (event as { readonly sub: string }).sub;
    const asked = (sub: string, parts: RequestParts = {}): object => ({ ...requestV2({ headers: HEADERS, ...parts }), sub });

    it("puts service, caller and route before the text that `key` makes of a request, as before the header", async () => {
      const keys: unknown[] = [];
      const key = (event: unknown): string => (JSON.parse((event as { body: string }).body) as { id: string }).id;
      const { call } = deployed(async (run) => ({ statusCode: 201, body: String(keys.push(run!.idempotencyKey)) }), { caller, key });
      await call(asked("ann", { body: { id: "evt_1" } }));
      await call(asked("bob", { body: { id: "evt_1" } }));
      expect(keys).toEqual(["ann", "bob"].map((name) => `shop_~http_${name}_POST_~2Forders_evt~5F1`));
    });

    it.each([
      ["a REST API", { ...requestV1({ headers: HEADERS, path: "/orders/7" }), resource: "/orders/{id}" }],
      ["an HTTP API", { ...requestV2({ headers: HEADERS, path: "/orders/7" }), routeKey: "POST /orders/{id}" }],
      ["an HTTP API with a stage", { ...requestV2({ headers: HEADERS, path: "/orders/7" }), routeKey: "ANY /{id}" }],
      ["a function URL", { ...requestV2({ headers: HEADERS, path: "/Orders/7/" }), routeKey: "$default" }],
    ])("names the route by its pattern where %s tells one", async (_gateway, event) => {
      const keys: string[] = [];
      const { call } = deployed(async (run) => ({ statusCode: 201, body: String(keys.push(run!.idempotencyKey)) }));
      await call(event);
      const { resource, routeKey } = event as { readonly resource?: string; readonly routeKey?: string };
      const route = routeKey === "$default" ? "/orders/7" : routeKey === "ANY /{id}" ? "/orders/{id}" : (resource ?? "/orders/{id}");
      expect(keys).toEqual([`shop_~http_POST_${key(route)}_form-8f3a`]);
    });

    it("takes a payload that is a promise for the developer's mistake, of which the caller hears nothing", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 201 }), { payload: async () => "the same" });
      expect([await call(REQUEST), calls]).toMatchObject([
        { name: "InvalidRequestError", message: expect.stringContaining("payload: returned a promise") as string },
        [],
      ]);
    });

    it("with its own payload still tells one thing from another of the same route", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 201 }), { payload: () => "the same" });
      const paying = (id: number): object => ({
        ...requestV2({ headers: HEADERS, path: `/orders/${id}/pay` }),
        routeKey: "POST /orders/{id}/pay",
      });
      expect(await call(paying(1))).toEqual({ statusCode: 201 });
      expect(problemOf(await call(paying(2)))).toMatchObject({ statusCode: 422 });
      expect(calls).toHaveLength(1);
    });
  });

  it.each(["GET", "HEAD", "OPTIONS"])("handles %s without a run, with a key or without; `key` makes a run of it", async (method) => {
    const ofGateways = (headers: Record<string, string>): readonly object[] => [
      { ...requestV2({ headers }), requestContext: { http: { method } } },
      { ...requestV1({ headers }), httpMethod: method },
      { ...requestOfLattice({ headers }), method },
    ];
    const { call, calls, wire } = deployed(async (run) => ({ statusCode: 200, body: typeof run }));
    for (const event of [...ofGateways({}), ...ofGateways(HEADERS)])
      expect(await call(event)).toEqual({ statusCode: 200, body: "undefined" });
    expect([calls.length, wire.sent]).toEqual([6, []]);

    const named = deployed(async () => ({ statusCode: 200 }), { key: () => "the one" });
    for (const event of [...ofGateways({}), ...ofGateways({})]) await named.call(event);
    expect(named.calls).toHaveLength(1);
  });

  it.each<[status: unknown, isKept: boolean]>([
    ["201", true],
    ["404", true],
    ["500", false],
    ["429", false],
    ["", false],
    ["done", false],
    [null, false],
    [Number.NaN, false],
  ])("gives an answer whose status is %j as it is, and keeps it: %s", async (statusCode, isKept) => {
    const { call, calls } = deployed(async (run) => ({ statusCode, body: String(run!.attempt) }));
    const [first, second] = [await call(requestV2({ headers: HEADERS })), await call(requestV2({ headers: HEADERS }))];
    expect(first).toEqual({ statusCode, body: "1" });
    if (isKept) expect(second).toEqual({ statusCode, body: "1", headers: { "Idempotent-Replayed": "true" } });
    else expect(second).toEqual({ statusCode, body: "2" });
    expect(calls).toHaveLength(isKept ? 1 : 2);
  });

  it.each<[gateway: string, event: (...keys: string[]) => object]>([
    ["a load balancer", (...keys) => ({ ...requestV1(), headers: null, multiValueHeaders: { "idempotency-key": keys } })],
    [
      "a REST API",
      (...keys) => ({ ...requestV1({ headers: { "Idempotency-Key": keys.at(-1)! } }), multiValueHeaders: { "Idempotency-Key": keys } }),
    ],
    ["an HTTP API", (...keys) => requestV2({ headers: { "idempotency-key": keys.join(",") } })],
    ["VPC Lattice", (...keys) => ({ ...requestOfLattice(), headers: { "idempotency-key": keys } })],
  ])("refuses a header that %s received twice, so that the retry that sends it once pays once", async (_gateway, event) => {
    const { call, calls } = deployed(async () => ({ statusCode: 200 }));
    for (const key of ["form-8f3a", '"form-8f3a"']) {
      expect(problemOf(await call(event(key, key)))).toMatchObject({ statusCode: 400, code: "invalid-request" });
    }
    expect([await call(event("form-8f3a")), calls.length]).toEqual([{ statusCode: 200 }, 1]);
  });
});
