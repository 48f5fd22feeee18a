/** The outcome of a run over HTTP: recorded once, by the lease that holds the run, and returned as it was sent. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "PAID");

const SUCCEEDED = { state: "succeeded", result: { id: 7, lines: [1, 2] } };

describe("an outcome", () => {
  it.each([
    ["a success", SUCCEEDED],
    ["a success without a result", { state: "succeeded" }],
    ["a success whose result isn't kept", { state: "succeeded", resultOmitted: true }],
    ["a final failure", { state: "failed", error: { code: "E_CARD" }, retryable: false }],
    ["a retryable failure", { state: "failed", error: "later", retryable: true }],
  ])("(%s) is recorded: 200; again: 200, and says that it is a replay", async (_what, outcome) => {
    const { url } = await runs.begin();
    const first = await runs.complete(url, outcome);
    expect([first.status, first.body, first.headers["idempotent-replayed"]]).toEqual([200, { recorded: true }, undefined]);
    for (const _time of [1, 2]) {
      const again = await runs.complete(url, outcome);
      expect([again.status, again.body, again.headers["idempotent-replayed"]]).toEqual([200, { recorded: true }, "true"]);
    }
  });

  it("is the same in whatever order its members come", async () => {
    const { url } = await runs.begin();
    await runs.complete(url, '{"state":"succeeded","result":{"a":1,"b":{"c":[2],"d":3}}}');
    const again = await runs.complete(url, '{ "result": {"b":{"d":3,"c":[2]},"a":1}, "state": "succeeded" }');
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
  });

  it.each([
    { state: "succeeded", result: { id: 8, lines: [1, 2] } },
    { state: "succeeded", result: { id: 7, lines: [2, 1] } },
    { state: "succeeded", result: null },
    { state: "succeeded" },
    { state: "succeeded", resultOmitted: true },
    { state: "failed", error: SUCCEEDED.result, retryable: false },
    { state: "failed", error: SUCCEEDED.result, retryable: true },
  ])("that differs from the one recorded before (%j) is 409, and changes nothing", async (other) => {
    const { key, url } = await runs.begin();
    await runs.complete(url, SUCCEEDED);
    const reply = await runs.complete(url, other);
    expect([...told(reply), reply.body.definite, reply.body.retry]).toEqual([409, "outcome-differs", true, "never"]);
    expect((await runs.ask(key)).body).toEqual({ ...SUCCEEDED, attempt: 1 });
  });

  it("ends the lease: it is renewed no more, and nobody has to wait for it", async () => {
    const { key, url } = await runs.begin();
    await runs.complete(url, { state: "failed", error: "no", retryable: true });
    for (const reply of [await service.send("POST", `${url}/renew`), await service.send("GET", url)])
      expect([...told(reply), reply.body.reason]).toEqual([410, "lease-lost", "released"]);
    await runs.begin(key);
  });
});

describe("a value", () => {
  /** JSON texts that must be preserved to the last character. */
  const VALUES = ["null", "false", "0", '""', "[]", "{}", "-1.5e-7", '"Zoë \\ud83d"', '{"":1,"__proto__":{"a":[]},"constructor":2,"10":3}'];

  it.each(VALUES)("%s is replayed as it is, as a result and as an error", async (text) => {
    const asSent = JSON.stringify(JSON.parse(text));
    const succeeded = await runs.finished({ state: "succeeded", result: JSON.parse(text) as unknown });
    for (const reply of [await runs.ask(succeeded), await runs.look(succeeded)]) {
      expect(Object.hasOwn(reply.body as object, "result")).toBe(true);
      expect(JSON.stringify(reply.body.result)).toBe(asSent);
    }
    const failed = await runs.finished({ state: "failed", error: JSON.parse(text) as unknown, retryable: false });
    for (const reply of [await runs.ask(failed), await runs.look(failed)]) expect(JSON.stringify(reply.body.error)).toBe(asSent);
  });

  it.each([
    ["absent is absent, which null is not", { state: "succeeded" }, { state: "succeeded", attempt: 1 }],
    ["omitted says so", { state: "succeeded", resultOmitted: true }, { state: "succeeded", attempt: 1, resultOmitted: true }],
  ])("that is %s", async (_what, outcome, replayed) => {
    const key = await runs.finished(outcome);
    expect((await runs.ask(key)).body).toEqual(replayed);
    const { result, error, resultOmitted } = (await runs.look(key)).body as Record<string, unknown>;
    expect([result, error, resultOmitted]).toEqual([undefined, undefined, (outcome as { resultOmitted?: true }).resultOmitted]);
  });

  it("nested a hundred deep is kept; deeper is 400, naming the field, and not recorded", async () => {
    const nested = (depth: number): string => `{"state":"succeeded","result":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    for (const depth of [101, 100_000]) {
      const { key, url } = await runs.begin();
      const reply = await runs.complete(url, nested(depth));
      expect([...told(reply), reply.body.field]).toEqual([400, "invalid-request", "result"]);
      expect((await runs.look(key)).body.state).toBe("running");
    }
    const { key, url } = await runs.begin();
    expect((await runs.complete(url, nested(100))).status).toBe(200);
    expect(JSON.stringify((await runs.ask(key)).body.result)).toBe("[".repeat(100) + "]".repeat(100));
  });
});

describe("a large value", () => {
  const MAX = LIMITS.resultBytes;
  /** Text whose JSON has exactly that many bytes. */
  const textOf = (bytes: number, character = "x"): string => {
    const each = Buffer.byteLength(character);
    return character.repeat(Math.floor((bytes - 2) / each)) + "x".repeat((bytes - 2) % each);
  };

  it.each([
    [LIMITS.inlineBytes, "x"],
    [LIMITS.inlineBytes + 1, "x"],
    [17 * 1024, "x"],
    [MAX, "x"],
    [MAX, "é"],
    [MAX, "😀"],
  ])("of exactly %i bytes of %s is kept, and replayed to everybody who asks", async (bytes, character) => {
    const result = textOf(bytes, character);
    expect(Buffer.byteLength(JSON.stringify(result))).toBe(bytes);
    const { key, url } = await runs.begin();
    const outcome = { state: "succeeded", result };
    expect((await runs.complete(url, outcome)).status).toBe(200);
    expect((await runs.complete(url, outcome)).headers["idempotent-replayed"]).toBe("true");
    for (const reply of [await runs.ask(key), await runs.ask(key, { as: "bob" }), await runs.look(key), await service.send("PUT", url)])
      expect(reply.body.result === result, "the same text").toBe(true);
  });

  it.each([
    ["result", { state: "succeeded", result: textOf(MAX + 1) }],
    ["result", { state: "succeeded", result: textOf(MAX + 1, "é") }],
    ["error", { state: "failed", error: textOf(MAX + 1), retryable: false }],
  ])("of one byte more is 413, naming %s; nothing is recorded, and a smaller one may follow", async (field, outcome) => {
    const { key, url } = await runs.begin();
    const reply = await runs.complete(url, outcome);
    expect([...told(reply), reply.body.field, reply.body.definite, reply.body.retry]).toEqual([413, "too-large", field, true, "never"]);
    expect([(await runs.look(key)).body.state, (await service.send("GET", url)).status]).toEqual(["running", 200]);
    expect((await runs.complete(url, { state: "succeeded", resultOmitted: true })).status).toBe(200);
  });

  it("in a body beyond all measure is 413", async () => {
    const { url } = await runs.begin();
    expect(told(await runs.complete(url, { state: "succeeded", result: textOf(1024 * 1024) }))).toEqual([413, "too-large"]);
  });

  it("as an error is kept as well", async () => {
    const error = { stack: textOf(MAX - 20) };
    const key = await runs.finished({ state: "failed", error, retryable: false });
    expect((await runs.ask(key)).body).toEqual({ state: "failed", attempt: 1, error });
  });

  it("differs from another of its size", async () => {
    const { url } = await runs.begin();
    await runs.complete(url, { state: "succeeded", result: textOf(5_000) });
    expect(told(await runs.complete(url, { state: "succeeded", result: textOf(5_000, "y") }))).toEqual([409, "outcome-differs"]);
  });
});

describe("who holds the run no more", () => {
  const LEASE_MS = 5_000;
  const OUTCOMES = [
    ["small", { state: "succeeded", result: "zombie" }],
    ["large", { state: "succeeded", result: "zombie".repeat(1_000) }],
    ["a failure", { state: "failed", error: "zombie", retryable: false }],
  ] as const;

  it.each(OUTCOMES)(
    "is told 410 lease-lost, not recorded (%s): the next attempt's outcome stands, before and after",
    async (_what, outcome) => {
      const { key, url } = await runs.begin(undefined, { body: { leaseMs: LEASE_MS } });
      await service.clock.advance(LEASE_MS + takeoverMarginMs(LEASE_MS));
      const next = await runs.begin(key);
      const attempt = async () => {
        const reply = await runs.complete(url, outcome);
        expect([...told(reply), reply.body.reason, reply.body.definite]).toEqual([410, "lease-lost", "taken", true]);
      };
      await attempt();
      expect((await runs.look(key)).body).toMatchObject({ state: "running", attempt: 2 });
      // Control: from the lease that holds the run, the same outcome is recorded.
      expect((await runs.complete(next.url, SUCCEEDED)).status).toBe(200);
      await attempt();
      expect((await runs.ask(key)).body).toEqual({ ...SUCCEEDED, attempt: 2 });
      const control = await runs.begin();
      expect((await runs.complete(control.url, outcome)).status).toBe(200);
    },
  );

  it.each(OUTCOMES)("because it never did, or gave up, is told so (%s)", async (_what, outcome) => {
    const never = await runs.complete(runs.url(runs.freshKey()), outcome);
    expect([...told(never), never.body.reason]).toEqual([410, "lease-lost", "never"]);
    const { key, url } = await runs.begin();
    expect((await runs.complete(runs.url(key), outcome)).body.reason).toBe("never");
    await service.send("DELETE", url);
    const gaveUp = await runs.complete(url, outcome);
    expect([...told(gaveUp), gaveUp.body.reason]).toEqual([410, "lease-lost", "released"]);
    expect((await runs.look(key)).status).toBe(404);
  });
});
