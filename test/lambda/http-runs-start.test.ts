/** The start of a run over HTTP: the caller that runs, the callers that get the outcome, and the callers that may retry. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "PAY");

describe("a first PUT", () => {
  it("is told to run: 201, the run and its lease in one flat body", async () => {
    const { key, leaseId, reply } = await runs.begin(undefined, { body: { leaseMs: 20_000, owner: "billing-3", fingerprint: "f" } });
    const { version, ...body } = reply.body;
    expect(body).toEqual({
      state: "running",
      attempt: 1,
      takeover: false,
      key,
      leaseId,
      owner: "billing-3",
      mode: "exclusive",
      permits: 1,
      holdCount: 1,
      fencingToken: service.clock.wallMs(),
      leaseMs: 20_000,
      remainingMs: 20_000,
      renewAfterMs: 6_666,
      serverTimeMs: service.clock.wallMs(),
    });
    expect(reply.headers["etag"]).toBe(`"v${version}"`);
    expect(reply.headers["cache-control"]).toBe("no-store");
    expect(reply.headers).not.toHaveProperty("idempotent-replayed");
  });

  it.each([
    ["no body", undefined],
    ["an empty object", {}],
    ["all defaults written out", { leaseMs: 30_000, owner: "", keepResultMs: 86_400_000, maxAttempts: 5 }],
  ])("takes %s for the defaults", async (_what, body) => {
    const { url, reply } = await runs.begin(undefined, { ...(body && { body }) });
    expect([reply.body.leaseMs, reply.body.owner]).toEqual([30_000, ""]);
    // So they are the same start.
    const again = await service.send("PUT", url, { body: { leaseMs: 30_000, owner: "", keepResultMs: 86_400_000, maxAttempts: 5 } });
    expect(again.status).toBe(200);
  });

  it("has nothing to do with the lock of that key", async () => {
    const { key, leaseId } = await runs.begin();
    expect((await service.send("PUT", `/v1/locks/${key}/leases/${leaseId}`)).status).toBe(201);
    expect((await service.send("DELETE", `/v1/locks/${key}/leases/${leaseId}`)).headers["lease-state"]).toBe("released");
    expect((await runs.look(key)).body.state).toBe("running");
  });
});

describe("the same PUT again", () => {
  it("runs already: 200, the same token and attempt, not extended, and says that it is a replay", async () => {
    const { url, reply } = await runs.begin();
    await service.clock.advance(4_000);
    const again = await service.send("PUT", url);
    expect([again.status, again.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(again.headers["etag"]).toBe(reply.headers["etag"]);
    expect(again.body).toEqual({ ...reply.body, remainingMs: 26_000, serverTimeMs: service.clock.wallMs() });
  });

  it.each([
    { leaseMs: 31_000 },
    { owner: "b" },
    { fingerprint: "g" },
    { keepResultMs: 60_000 },
    { keepResultMs: "forever" },
    { maxAttempts: 6 },
  ])("with other parameters (%o) is 422 lease-reused", async (other) => {
    const body = { owner: "a", fingerprint: "f" };
    const { url } = await runs.begin(undefined, { body });
    const reply = await service.send("PUT", url, { body: { ...body, ...other } });
    expect([...told(reply), reply.body.retry]).toEqual([422, "lease-reused", "new-lease"]);
  });

  it.each([
    ["success", { state: "succeeded", result: { id: 7 } }, { state: "succeeded", attempt: 1, result: { id: 7 } }],
    ["final failure", { state: "failed", error: "no", retryable: false }, { state: "failed", attempt: 1, error: "no" }],
  ])("after its own %s is told that", async (_what, outcome, body) => {
    const { url } = await runs.begin();
    await runs.complete(url, outcome);
    const again = await service.send("PUT", url);
    expect([again.status, again.headers["idempotent-replayed"], again.body]).toEqual([200, "true", body]);
  });

  it("after its own retryable failure is 410 lease-over: another attempt needs another lease", async () => {
    const { url } = await runs.begin();
    await runs.complete(url, { state: "failed", error: "no", retryable: true });
    const again = await service.send("PUT", url);
    expect([...told(again), again.body.retry, again.body.definite]).toEqual([410, "lease-over", "new-lease", true]);
  });
});

describe("another leaseId", () => {
  it("is told 409 while the work is under way, and when its lease would be over", async () => {
    const { key, leaseId } = await runs.begin(undefined, { body: { owner: "billing-3", fingerprint: "secret-of-it" }, as: "alice" });
    await service.clock.advance(1_500);
    const reply = await runs.ask(key, { as: "bob" });
    expect(reply.status).toBe(409);
    expect(reply.body).toMatchObject({ code: "run-in-progress", definite: true, retry: "later", instance: `/v1/runs/${key}` });
    expect(reply.body.retryAfterMs).toBe(28_500 + takeoverMarginMs(30_000));
    expect(reply.headers["retry-after"]).toBe("30");
    const said = JSON.stringify([reply.headers, reply.body]);
    for (const secret of [leaseId, "alice", "secret-of-it"]) expect(said).not.toContain(secret);
  });

  it.each([
    ["success", { state: "succeeded", result: [1] }, { state: "succeeded", attempt: 1, result: [1] }],
    ["success without a result", { state: "succeeded" }, { state: "succeeded", attempt: 1 }],
    ["final failure", { state: "failed", error: { name: "E" }, retryable: false }, { state: "failed", attempt: 1, error: { name: "E" } }],
  ])("is told of the %s, and runs nothing: 200, a replay", async (_what, outcome, body) => {
    const key = await runs.finished(outcome);
    for (const parts of [{}, { as: "bob", body: { leaseMs: 5_000, owner: "b", keepResultMs: 60_000, maxAttempts: 1 } }]) {
      const { status, headers, body: replayed } = await runs.ask(key, parts);
      expect([status, headers["idempotent-replayed"], replayed]).toEqual([200, "true", body]);
    }
  });

  it("runs the next attempt after a retryable failure: 201, a larger token, no takeover", async () => {
    const key = runs.freshKey();
    let token = 0;
    for (const attempt of [1, 2, 3]) {
      const { url, reply } = await runs.begin(key);
      expect(reply.body).toMatchObject({ attempt, takeover: false });
      expect(reply.body.fencingToken).toBeGreaterThan(token);
      token = reply.body.fencingToken as number;
      await runs.complete(url, { state: "failed", error: attempt, retryable: true });
    }
  });

  it("whose time is off is 422 lease-id-time where it would run, and is told the outcome all the same", async () => {
    const off = leaseIdAt(service.clock.wallMs() + 60_000);
    const reply = await service.send("PUT", runs.url(runs.freshKey(), off));
    expect([...told(reply), reply.body.serverTimeMs]).toEqual([422, "lease-id-time", service.clock.wallMs()]);
    const key = await runs.finished({ state: "succeeded", result: 1 });
    expect((await service.send("PUT", runs.url(key, off))).body.result).toBe(1);
  });
});

describe("the attempts of a run", () => {
  const failTimes = async (key: string, times: number): Promise<void> => {
    for (let time = 0; time < times; time++)
      await runs.finished({ state: "failed", error: time, retryable: true }, { body: { maxAttempts: 0 } }, key);
  };

  it.each([
    ["five, if none is said", {}, 4, 5],
    ["as many as the caller says", { maxAttempts: 1 }, 0, 1],
    ["as many as this caller says, whatever others said", { maxAttempts: 7 }, 6, 7],
  ])("are %s; then it is 409 attempts-exhausted", async (_what, body, allowedAfter, refusedAfter) => {
    const allowed = runs.freshKey();
    await failTimes(allowed, allowedAfter);
    expect((await runs.ask(allowed, { body })).body.attempt).toBe(allowedAfter + 1);
    const refused = runs.freshKey();
    await failTimes(refused, refusedAfter);
    const { status, body: problem, headers } = await runs.ask(refused, { body });
    expect([status, problem.code, problem.definite, problem.retry]).toEqual([409, "attempts-exhausted", true, "never"]);
    expect(headers).not.toHaveProperty("retry-after");
    expect((await runs.begin(refused, { body: { maxAttempts: 0 } })).reply.body.attempt).toBe(refusedAfter + 1);
  });
});

describe("a fingerprint", () => {
  const RUNNING = 409;
  /** The first fingerprint, the second fingerprint, and the second's status while the first runs. */
  const pairs: readonly (readonly [string | undefined, string | undefined, status: number])[] = [
    ["f", "f", RUNNING],
    ["f", "g", 422],
    [undefined, "g", RUNNING],
    ["f", undefined, RUNNING],
    [undefined, undefined, RUNNING],
  ];
  const fingerprinted = (fingerprint: string | undefined) => ({ body: { ...(fingerprint !== undefined && { fingerprint }) } });

  it.each(pairs)("%s, then %s: %i while it runs, and likewise once it is over or may be tried again", async (first, second, status) => {
    const expected = (otherwise: number): number => (status === 422 ? 422 : otherwise);
    const { key } = await runs.begin(undefined, fingerprinted(first));
    const during = await runs.ask(key, fingerprinted(second));
    expect(during.status).toBe(status);
    if (status === 422)
      expect(during.body).toMatchObject({ code: "fingerprint-mismatch", definite: true, retry: "never", instance: `/v1/runs/${key}` });

    for (const outcome of [
      { state: "succeeded", result: 1 },
      { state: "failed", error: "no", retryable: false },
    ]) {
      const over = await runs.finished(outcome, fingerprinted(first));
      expect((await runs.ask(over, fingerprinted(second))).status).toBe(expected(200));
    }
    const again = await runs.finished({ state: "failed", error: "no", retryable: true }, fingerprinted(first));
    expect((await runs.ask(again, fingerprinted(second))).status).toBe(expected(201));
  });

  it("that a later attempt brings is the run's from then on", async () => {
    const key = await runs.finished({ state: "failed", error: "no", retryable: true });
    await runs.finished({ state: "succeeded" }, fingerprinted("f"), key);
    expect((await runs.ask(key, fingerprinted("g"))).status).toBe(422);
    expect((await runs.ask(key, fingerprinted("f"))).status).toBe(200);
  });
});

describe("what a start is told first", () => {
  it("is its own run, then the outcome, then its leaseId, then the fingerprint, then who runs, then the attempts", async () => {
    const other = { fingerprint: "g" };
    const { key, url, leaseId } = await runs.begin(undefined, { body: { fingerprint: "f" } });
    expect(told(await service.send("PUT", url, { body: other }))).toEqual([422, "lease-reused"]);
    const off = runs.url(key, leaseIdAt(service.clock.wallMs() + 60_000));
    expect(told(await service.send("PUT", off, { body: other }))).toEqual([422, "lease-id-time"]);
    expect(told(await runs.ask(key, { body: { ...other, maxAttempts: 1 } }))).toEqual([422, "fingerprint-mismatch"]);
    expect(told(await runs.ask(key, { body: { maxAttempts: 1 } }))).toEqual([409, "run-in-progress"]);

    await runs.complete(url, { state: "failed", error: "no", retryable: true });
    expect(told(await service.send("PUT", url, { body: other }))).toEqual([410, "lease-over"]);
    expect(told(await runs.ask(key, { body: { ...other, maxAttempts: 1 } }))).toEqual([422, "fingerprint-mismatch"]);
    expect(told(await runs.ask(key, { body: { maxAttempts: 1 } }))).toEqual([409, "attempts-exhausted"]);

    await runs.finished({ state: "succeeded" }, {}, key);
    expect(told(await service.send("PUT", runs.url(key, leaseId), { body: other }))).toEqual([422, "fingerprint-mismatch"]);
    for (const ended of [url, off, runs.url(key)])
      expect(told(await service.send("PUT", ended, { body: { maxAttempts: 1 } }))).toEqual([200, undefined]);
  });
});
