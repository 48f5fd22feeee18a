/** A handler that works once per idempotency key: the recorded responses, the replays, and the HTTP status of each refusal. */
import { describe, expect, it } from "vitest";
import { LIMITS } from "../../lib/core/limits.js";
import type { Run } from "../../lib/index.js";
import { FinalError, key } from "../../lib/index.js";
import type { HttpAnswer, IdempotencyOptions } from "../../lib/middy.js";
import { idempotencyHandler } from "../../lib/middy.js";
import { createHarness } from "../client/harness.js";
import { createGate, thrownBy } from "../support/run-gate.js";
import type { RequestParts } from "./events.js";
import { problemOf, requestMade, requestOfLattice, requestV1, requestV2, SCHEDULED } from "./events.js";
import { invocation } from "../support/invocation.js";
import type { Work } from "./shapes.js";
import { ONCE_SHAPES } from "./shapes.js";

const HEADERS = { "idempotency-key": '"form-8f3a"' };
const RUN = "shop_~http_POST_~2Forders_form-8f3a";
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

    it.each<[what: string, headers: Record<string, string>]>([
      ["no key", {}],
      ["an empty key", { "Idempotency-Key": "" }],
    ])("with %s is answered 400, and does not run", async (_what, headers) => {
      const { call, calls, wire } = deployed(async () => ({ statusCode: 200 }));
      const problem = problemOf(await call(request({ headers })));
      expect(problem).toMatchObject({ statusCode: 400, contentType: "application/problem+json", code: "invalid-request", retry: "never" });
      expect(problem["detail"]).toContain("Idempotency-Key");
      expect([calls, wire.sent]).toEqual([[], []]);
    });

    it("with a used key and another body is answered 422", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 200 }));
      await call(request({ headers: HEADERS }));
      const problem = problemOf(await call(request({ headers: HEADERS, body: { order: 2 } })));
      expect(problem).toMatchObject({ statusCode: 422, code: "fingerprint-mismatch", definite: true, retry: "never" });
      expect(problem["retryAfter"]).toBeUndefined();
      expect(calls).toHaveLength(1);
    });

    it.each<[what: string, first: string, second: string]>([
      ["an integer beyond 2^53", '{"order": 9007199254740992}', '{"order": 9007199254740993}'],
      ["a negative one", '{"order": [-9007199254740993]}', '{"order": [-9007199254740992]}'],
      ["a fraction beyond a double's digits", '{"cents": 0.1}', '{"cents": 0.10000000000000000001}'],
      ["an exponent beyond a double's", '{"cents": 1e400}', '{"cents": 2e400}'],
    ])("with a used key and a body that differs in %s is another request", async (_what, first, second) => {
      const { call, calls } = deployed(async () => ({ statusCode: 200 }));
      await call(request({ headers: HEADERS, body: first }));
      expect(problemOf(await call(request({ headers: HEADERS, body: second })))).toMatchObject({ code: "fingerprint-mismatch" });
      expect(await call(request({ headers: HEADERS, body: first }))).toMatchObject({ statusCode: 200 });
      expect(calls).toHaveLength(1);
    });

    it.each([
      ['{"a":0.30000000000000004,"b":9007199254740991}', '{ "b": 9007199254740991, "a": 0.30000000000000004 }'],
      ['{"a":1e21,"b":1e-7,"c":-0.5}', '{"b":0.0000001,"a":1E+21,"c":-5e-1}'],
      ['{"a":"9007199254740993 \\" 1e400","b":1.50}', '{"b":1.5,"a":"9007199254740993 \\" 1e400"}'],
    ])("is the same request as long as its numbers are, however they are written: %s", async (first, second) => {
      const { call, calls } = deployed(async () => ({ statusCode: 200 }));
      await call(request({ headers: HEADERS, body: first }));
      expect(await call(request({ headers: HEADERS, body: second }))).toMatchObject({ statusCode: 200 });
      expect(calls).toHaveLength(1);
    });

    it("with a used key and other bytes that are no UTF-8 is another request", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 200 }));
      const latin1 = (text: string): object => ({
        ...request({ headers: HEADERS }),
        body: Buffer.from(text, "latin1").toString("base64"),
        isBase64Encoded: true,
      });
      await call(latin1('{"city":"K\u00f6ln"}'));
      expect(problemOf(await call(latin1('{"city":"K\u00e4ln"}')))).toMatchObject({ code: "fingerprint-mismatch" });
      expect(calls).toHaveLength(1);
    });

    it.each<[what: string, parts: RequestParts]>([
      ["spaces and the order of members", { body: '{ "b": 2,\n"a": 1 }' }],
      ["its encoding", { body: { a: 1, b: 2 }, base64: true }],
      ["other headers", { body: { a: 1, b: 2 }, headers: { ...HEADERS, "x-request-id": "2" } }],
    ])("is the same request whatever %s", async (_what, parts) => {
      const { call, calls } = deployed(async () => ({ statusCode: 200, body: "done" }));
      await call(request({ headers: HEADERS, body: { a: 1, b: 2 } }));
      expect(await call(request({ headers: HEADERS, ...parts }))).toMatchObject({ statusCode: 200, body: "done" });
      expect(calls).toHaveLength(1);
    });

    it.each([
      [60_000, undefined, 5_000],
      [60_000, 700, 700],
      [60_000, 0, 0],
      [3_000, 20_000, 2_000],
    ])(
      "with %d ms left and waitMs %s waits for another's answer for %d ms, and is then answered 409",
      async (leftMs, waitMs, expectedMs) => {
        const { clock, call, rival, calls } = deployed(async () => ({ statusCode: 200 }), waitMs === undefined ? {} : { waitMs });
        void thrownBy(rival.runOnce(runKey, () => createGate().pass()));
        await clock.advance(0);
        const began = clock.monotonicMs();
        const problem = problemOf(await call(request({ headers: HEADERS }), leftMs));
        expect(clock.monotonicMs() - began).toBe(expectedMs);
        expect(problem).toMatchObject({ statusCode: 409, code: "run-in-progress", definite: true, retry: "later" });
        expect(Number(problem["retryAfter"])).toBeGreaterThanOrEqual(1);
        expect(calls).toEqual([]);
      },
    );

    it("that waited gets the other's answer", async () => {
      const gate = createGate();
      const { clock, handler, calls } = deployed(() => gate.pass().then(() => ({ statusCode: 201, body: "1" })));
      const call = (): Promise<unknown> => handler(request({ headers: HEADERS }), invocation(clock));
      const both = Promise.all([call(), call()]);
      clock.after(1000, gate.open);
      const answers = (await clock.settle(both)) as HttpAnswer[];
      expect(answers.map(({ statusCode, body }) => [statusCode, body])).toEqual([
        [201, "1"],
        [201, "1"],
      ]);
      expect(answers.filter(({ headers }) => (headers as object | undefined) !== undefined)).toHaveLength(1);
      expect(calls).toHaveLength(1);
    });

    it.each([200, 204, 302, 400, 402, 404, 410, 412, 422])("records an answer of %d", async (statusCode) => {
      const { call, calls } = deployed(async () => ({ statusCode, body: "first" }));
      await call(request({ headers: HEADERS }));
      expect(await call(request({ headers: HEADERS }))).toMatchObject({
        statusCode,
        body: "first",
        headers: { "Idempotent-Replayed": "true" },
      });
      expect(calls).toEqual([1]);
    });

    it.each([401, 403, 408, 409, 423, 425, 429, 500, 502, 503, 504])(
      "gives an answer of %d, and runs again for the next",
      async (statusCode) => {
        const { call, calls } = deployed(async (run) => ({ statusCode: run!.attempt > 2 ? 200 : statusCode, body: String(run!.attempt) }));
        const answers = [];
        for (let asked = 0; asked < 4; asked++) answers.push(await call(request({ headers: HEADERS })));
        const [first, second, third, fourth] = answers;
        expect([first, second, third]).toEqual([
          { statusCode, body: "1" },
          { statusCode, body: "2" },
          { statusCode: 200, body: "3" },
        ]);
        expect(fourth).toMatchObject({ statusCode: 200, body: "3" });
        expect(calls).toEqual([1, 2, 3]);
      },
    );

    it("records what isRecorded says instead", async () => {
      const isRecorded = (response: unknown): boolean => (response as HttpAnswer).statusCode === 503;
      const { call, calls } = deployed(async () => ({ statusCode: 503 }), { isRecorded });
      await call(request({ headers: HEADERS }));
      expect(await call(request({ headers: HEADERS }))).toMatchObject({ statusCode: 503, headers: { "Idempotent-Replayed": "true" } });
      expect(calls).toHaveLength(1);
    });

    it("may fail as often as it is asked, unless maxAttempts says how often", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 500 }));
      for (let asked = 0; asked < 8; asked++) expect(await call(request({ headers: HEADERS }))).toEqual({ statusCode: 500 });
      expect(calls).toHaveLength(8);
      const bounded = deployed(async () => ({ statusCode: 500 }), { maxAttempts: 2 });
      for (let asked = 0; asked < 2; asked++) await bounded.call(request({ headers: HEADERS }));
      expect(problemOf(await bounded.call(request({ headers: HEADERS })))).toMatchObject({ statusCode: 409, code: "attempts-exhausted" });
    });

    it("runs again after an error, and not after a final one", async () => {
      const thrown = [new Error("the bank is closed"), new FinalError("no such account")];
      const { call, calls } = deployed(async () => Promise.reject(thrown[calls.length - 1]!));
      expect(await call(request({ headers: HEADERS }))).toBe(thrown[0]);
      expect(await call(request({ headers: HEADERS }))).toBe(thrown[1]);
      expect(await call(request({ headers: HEADERS }))).toMatchObject({
        name: "RunFailedError",
        message: expect.stringContaining("no such account"),
      });
      expect(calls).toEqual([1, 2]);
    });

    it("that was taken over while it was frozen is told so, and the one that took over is what is replayed", async () => {
      const gate = createGate();
      const { clock, handler, call, rival } = deployed(() => gate.pass().then(() => ({ statusCode: 200, body: "frozen" })));
      const working = thrownBy(handler(request({ headers: HEADERS }), invocation(clock, 900_000)));
      await clock.advance(0);
      await gate.reached;
      await clock.freeze(60_000);
      const next = await clock.settle(rival.runOnce(runKey, ({ takeover }) => ({ statusCode: 200, body: `took over: ${takeover}` })));
      gate.open();
      expect(problemOf(await clock.settle(working))).toMatchObject({ statusCode: 409, code: "run-in-progress", retryAfter: "1" });
      expect(await call(request({ headers: HEADERS }))).toMatchObject(next.value);
    });

    it("whose handler stops because its run was lost is answered 503, and may come again at once", async () => {
      const gate = createGate();
      const { clock, handler, call } = deployed(async (run) => {
        if (run!.attempt > 1) return { statusCode: 200 };
        await gate.pass();
        run!.assertHeld();
        return expect.unreachable("it was lost");
      });
      const working = thrownBy(handler(request({ headers: HEADERS }), invocation(clock, 10_000)));
      await clock.advance(9_600);
      gate.open();
      expect(problemOf(await clock.settle(working))).toMatchObject({ statusCode: 503, code: "lease-lost", definite: false });
      expect(await call(request({ headers: HEADERS }))).toEqual({ statusCode: 200 });
    });

    it.each([400, 0])("with %d ms left does not run, and keeps nobody out", async (leftMs) => {
      const { call, rival, calls } = deployed(async () => ({ statusCode: 200 }));
      expect(problemOf(await call(request({ headers: HEADERS }), leftMs))).toMatchObject({ statusCode: 503, code: "unavailable" });
      expect(await rival.runs.get(runKey)).toBeNull();
      expect(calls).toEqual([]);
    });

    it("is answered 503 when the service can't be reached; and as indefinite when that is so only after the work", async () => {
      const before = deployed(async () => ({ statusCode: 200 }));
      before.wire.always("start", { lost: "request" });
      before.wire.always("release", { lost: "request" });
      expect(problemOf(await before.call(request({ headers: HEADERS })))).toMatchObject({
        statusCode: 503,
        code: "unavailable",
        definite: true,
      });
      const after = deployed(async () => ({ statusCode: 200 }));
      after.wire.always("complete", { lost: "request" });
      expect(problemOf(await after.call(request({ headers: HEADERS })))).toMatchObject({
        statusCode: 503,
        code: "not-recorded",
        definite: false,
      });
      expect([before.calls, after.calls]).toEqual([[], [1]]);
    });

    it.each(["throw", "skip", "proceed"] as const)("when the service can't be reached: %s", async (whenUnavailable) => {
      const { call, calls, wire, events } = deployed(async (run) => ({ statusCode: 200, body: typeof run }), { whenUnavailable });
      for (const operation of ["start", "release"] as const) wire.always(operation, { lost: "request" });
      const outcome = await call(request({ headers: HEADERS }));
      if (whenUnavailable === "proceed") expect([outcome, calls]).toEqual([{ statusCode: 200, body: "undefined" }, [undefined]]);
      else expect([problemOf(outcome), calls]).toMatchObject([{ statusCode: 503, code: "unavailable" }, []]);
      expect(events.map(({ type }) => type)).toEqual([whenUnavailable === "proceed" ? "proceeded" : "unavailable"]);
    });

    it("with an answer that is too large to keep gives it once, and says so afterwards", async () => {
      const body = "x".repeat(LIMITS.resultBytes + 1);
      const { call, calls } = deployed(async () => ({ statusCode: 200, body }));
      expect(await call(request({ headers: HEADERS }))).toEqual({ statusCode: 200, body });
      expect(problemOf(await call(request({ headers: HEADERS })))).toMatchObject({
        statusCode: 409,
        code: "result-omitted",
        definite: false,
      });
      expect(calls).toHaveLength(1);
    });

    it("control: without a run the handler runs for each of them", async () => {
      let orders = 0;
      const plain = async (): Promise<unknown> => ({ statusCode: 201, body: String(++orders) });
      await Promise.all([plain(), plain(), plain()]);
      expect(orders).toBe(3);
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

    it("refuses the same key with another payload", async () => {
      const { call } = deployed(async () => "done", { ...once, payload: (event) => (event as typeof SCHEDULED).detail });
      await call(SCHEDULED);
      expect(await call({ ...SCHEDULED, detail: { order: 2 } })).toMatchObject({ name: "LockError", code: "fingerprint-mismatch" });
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

    it("never gives one caller's answer to another; control: without callers it does", async () => {
      for (const [options, orders] of [
        [{ caller }, ["ann", "bob"]],
        [{ caller: "none" }, ["ann", "ann"]],
      ] as const) {
        const { call } = deployed(async (_run, event: { sub: string }) => ({ statusCode: 201, body: event.sub }), options);
        const answers = [await call(asked("ann")), await call(asked("bob"))] as HttpAnswer[];
        expect(answers.map(({ body }) => body)).toEqual(orders);
      }
    });

    it("never gives one service's answer to another; control: under one name it does", async () => {
      const { locks, clock } = createHarness();
      const answerOf = async (service: string, made: string): Promise<unknown> => {
        const handler = deploy({ locks, service, caller }, async () => ({ statusCode: 201, body: made }));
        return ((await clock.settle(handler(asked("ann"), invocation(clock)))) as HttpAnswer).body;
      };
      expect([await answerOf("orders", "an order"), await answerOf("shipping", "a parcel")]).toEqual(["an order", "a parcel"]);
      expect(await answerOf("orders", "another order")).toBe("an order");
    });

    it("puts service, caller and route before the text that `key` makes of a request, as before the header", async () => {
      const keys: unknown[] = [];
      const key = (event: unknown): string => (JSON.parse((event as { body: string }).body) as { id: string }).id;
      const { call } = deployed(async (run) => ({ statusCode: 201, body: String(keys.push(run!.idempotencyKey)) }), { caller, key });
      await call(asked("ann", { body: { id: "evt_1" } }));
      await call(asked("bob", { body: { id: "evt_1" } }));
      expect(keys).toEqual(["ann", "bob"].map((name) => `shop_~http_${name}_POST_~2Forders_evt~5F1`));
    });

    it("has no run that the application starts by itself", async () => {
      const { call, rival, calls } = deployed(async () => ({ statusCode: 201, body: "made" }), { caller });
      await rival.runOnce("nightly", () => "a secret of the application");
      expect(await call(asked("ann", { headers: { "idempotency-key": "nightly" } }))).toMatchObject({ statusCode: 201, body: "made" });
      expect(calls).toHaveLength(1);
    });

    it("runs nothing for a caller that is a credential", async () => {
      const { call, calls } = deployed(async () => ({ statusCode: 201 }), { caller });
      expect(await call(asked("Bearer 7f3a"))).toMatchObject({ name: "InvalidRequestError", field: "caller" });
      expect(calls).toEqual([]);
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

  it("reads the headers of a load balancer that sends several of each", async () => {
    const { call, calls } = deployed(async () => ({ statusCode: 200 }));
    const event = { ...requestV1(), headers: null, multiValueHeaders: { "idempotency-key": ["form-8f3a", "another"] } };
    expect(await call(event)).toEqual({ statusCode: 200 });
    expect(calls).toHaveLength(1);
  });
});

it.each<[options: object, message: string]>([
  [{ locks: {} }, "locks: must be a client"],
  [{ service: undefined }, "service: name the service whose requests these are"],
  [{ caller: undefined }, "caller: undefined given; it must be a function"],
  [{ key: "k" }, "key: must be a function"],
  [{ payload: {} }, "payload: must be a function"],
  [{ isRecorded: true }, "isRecorded: must be a function"],
  [{ keepResultMs: 5 }, "keepResultMs: 5 given; it is a whole number of ms"],
  [{ largeResult: "omit" }, "largeResult: is not an option here"],
  [{ keep: 5 }, "keep: is not an option of runOnce"],
])("refuses %j before any call", (wrong, message) => {
  const options = { locks: createHarness().locks, service: "shop", caller: "none", ...wrong } as IdempotencyOptions<unknown, unknown>;
  expect(() => idempotencyHandler(options, async () => undefined)).toThrow(message);
});

it("refuses a handler that is none", () => {
  expect(() => idempotencyHandler({ locks: createHarness().locks, service: "shop", caller: "none" }, undefined as never)).toThrow(
    "handler: must be a function",
  );
});
