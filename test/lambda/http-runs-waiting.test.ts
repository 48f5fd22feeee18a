/**
 * Requests that wait (`Prefer: wait=N`), over HTTP with a clock that the test advances meanwhile: for the outcome of
 * another caller's run, or for a change of one. Nothing here depends on the speed of the machine.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "WAIT");

/** The time within which a waiting request notices a change. */
const NOTICED_MS = 400;
const CAP_MS = LIMITS.serverWaitMs;
const prefer = (wait: string) => ({ headers: { prefer: wait } });
const waits = (seconds: number) => prefer(`wait=${seconds}`);

describe("a PUT that waits", () => {
  it("is answered with the outcome as soon as it is there: 200, a replay", async () => {
    const { key, url } = await runs.begin();
    const waiting = runs.ask(key, waits(5));
    await service.clock.passWaiting(2_000);
    await runs.complete(url, { state: "succeeded", result: { id: 7 } });
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(answer.body).toEqual({ state: "succeeded", attempt: 1, result: { id: 7 } });
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
  });

  it("gets a final failure and a large result as well", async () => {
    for (const [outcome, body] of [
      [
        { state: "failed", error: "no", retryable: false },
        { state: "failed", attempt: 1, error: "no" },
      ],
      [
        { state: "succeeded", result: "x".repeat(100_000) },
        { state: "succeeded", attempt: 1, result: "x".repeat(100_000) },
      ],
    ]) {
      const { key, url } = await runs.begin();
      const waiting = runs.ask(key, waits(5));
      await service.clock.untilPaused();
      await runs.complete(url, outcome);
      expect((await service.clock.passUntil(waiting)).answer.body).toEqual(body);
    }
  });

  it.each([
    ["none", undefined, 0],
    ["wait=0", "wait=0", 0],
    ["wait=1", "wait=1", 1_000],
    ["wait=3", "wait=3", 3_000],
    ["the cap", "wait=5", CAP_MS],
    ["more than the cap", "wait=6", CAP_MS],
    ["far more than the cap", "wait=99999999999999999999", CAP_MS],
    ["in quotes", 'wait="2"', 2_000],
    ["in capitals, among others", "respond-async, Wait=2, handling=lenient", 2_000],
    ["with spaces", "return=minimal ,  wait = 2", 2_000],
    ["without a number", "wait", 0],
    ["with an empty one", "wait=", 0],
    ["with a negative one", "wait=-5", 0],
    ["with words", "wait=long", 0],
    ["by another name", "await=5", 0],
    ["in minutes, so to say", "wait-minutes=5", 0],
    ["something else altogether", '"', 0],
  ])("that prefers %s (%s) is told 409 after %i ms", async (_what, header, waitedMs) => {
    const { key } = await runs.begin();
    const { answer, passedMs } = await service.clock.passUntil(runs.ask(key, header === undefined ? {} : prefer(header)));
    expect([...told(answer), passedMs]).toEqual([409, "run-in-progress", waitedMs]);
  });

  it("doesn't wait where it needn't: it runs, it ran, or it is refused for another reason", async () => {
    const run = await runs.begin(undefined, { body: { fingerprint: "f" }, ...waits(5) });
    expect(told(await service.send("PUT", run.url, { body: { fingerprint: "f" }, ...waits(5) }))).toEqual([200, undefined]);
    expect(told(await service.send("PUT", run.url, waits(5)))).toEqual([422, "lease-reused"]);
    expect(told(await runs.ask(run.key, { body: { fingerprint: "g" }, ...waits(5) }))).toEqual([422, "fingerprint-mismatch"]);
    await runs.complete(run.url, { state: "succeeded" });
    expect(told(await runs.ask(run.key, waits(5)))).toEqual([200, undefined]);
  });

  it("runs the next attempt itself when the one that it waited for fails and may be tried again, with a lease of full length", async () => {
    const { key, url, reply } = await runs.begin();
    const waiting = runs.ask(key, { body: { leaseMs: 4_000 }, ...waits(5) });
    await service.clock.passWaiting(4_500);
    await runs.complete(url, { state: "failed", error: "e", retryable: true });
    const { answer } = await service.clock.passUntil(waiting);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ attempt: 2, takeover: false, leaseMs: 4_000, remainingMs: 4_000 });
    expect(answer.body.serverTimeMs).toBe(service.clock.wallMs());
    expect(answer.body.fencingToken).toBeGreaterThan((reply.body.fencingToken as number) + 4_500 - 1);
    // Other callers, who go by the record, see the full length too.
    expect((await runs.ask(key)).body.retryAfterMs).toBe(4_000 + takeoverMarginMs(4_000));
  });

  it("takes over as soon as the other's lease and margin are over", async () => {
    const leaseMs = 2_000;
    const { key } = await runs.begin(undefined, { body: { leaseMs } });
    const { answer, passedMs } = await service.clock.passUntil(runs.ask(key, waits(5)));
    expect(answer.body).toMatchObject({ state: "running", attempt: 2, takeover: true, remainingMs: 30_000 });
    expect(passedMs).toBeGreaterThanOrEqual(leaseMs + takeoverMarginMs(leaseMs));
    expect(passedMs).toBeLessThanOrEqual(leaseMs + takeoverMarginMs(leaseMs) + NOTICED_MS);
  });

  it("starts afresh when the other gives up", async () => {
    const { key, url } = await runs.begin();
    const waiting = runs.ask(key, waits(5));
    await service.clock.untilPaused();
    await service.send("DELETE", url);
    expect((await service.clock.passUntil(waiting)).answer.body).toMatchObject({ state: "running", attempt: 1, takeover: false });
  });

  it("is told why not, if that is what it comes to", async () => {
    const { key, url } = await runs.begin();
    const waiting = runs.ask(key, { body: { maxAttempts: 1 }, ...waits(5) });
    await service.clock.untilPaused();
    await runs.complete(url, { state: "failed", error: "no", retryable: true });
    expect(told((await service.clock.passUntil(waiting)).answer)).toEqual([409, "attempts-exhausted"]);
  });

  it("waits once for several: among many, one runs and the rest get its outcome, within one wait", async () => {
    const first = await runs.begin();
    const urls = Array.from({ length: 4 }, () => runs.url(first.key));
    const waiting = urls.map((url) => service.send("PUT", url, waits(5)));
    await service.clock.passWaiting(1_000, 4);
    await runs.complete(first.url, { state: "failed", error: "no", retryable: true });
    // One of them runs next; the others keep waiting for that one.
    const next = await service.clock.passUntil(Promise.race(waiting));
    expect([next.answer.status, next.answer.body.attempt]).toEqual([201, 2]);
    await service.clock.untilPaused(3);
    await runs.complete(runs.url(first.key, next.answer.body.leaseId as string), { state: "succeeded", result: "once" });
    const { answer: all, passedMs } = await service.clock.passUntil(Promise.all(waiting));
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
    expect(all.map(({ status }) => status).sort()).toEqual([200, 200, 200, 201]);
    for (const { status, body } of all) if (status === 200) expect(body).toEqual({ state: "succeeded", attempt: 2, result: "once" });
  });

  it("is told 409 by its own time when others are always first", async () => {
    const first = await runs.begin();
    const waiting = runs.ask(first.key, waits(3));
    await service.clock.passWaiting(1_500);
    await runs.complete(first.url, { state: "failed", error: "no", retryable: true });
    await runs.begin(first.key);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([...told(answer), passedMs]).toEqual([409, "run-in-progress", 1_500]);
  });

  it("leaves nothing behind: nobody is queued, and who waited in vain never comes to run", async () => {
    const { key, url } = await runs.begin();
    await service.clock.passUntil(runs.ask(key, waits(1)));
    await runs.complete(url, { state: "failed", error: "no", retryable: true });
    expect((await runs.look(key)).body).toMatchObject({ state: "failed", attempt: 1 });
    expect((await runs.begin(key)).reply.body.attempt).toBe(2);
  });
});

describe("a GET that waits", () => {
  /** A run that was read while running, with its ETag. */
  async function seen() {
    const run = await runs.begin(undefined, { body: { leaseMs: 10_000 } });
    const tag = (await runs.look(run.key)).headers["etag"] ?? "";
    return { ...run, tag, wait: (seconds: number) => runs.look(run.key, { "if-none-match": tag, prefer: `wait=${seconds}` }) };
  }

  it("for a change is answered as soon as the outcome is there: 200, another tag", async () => {
    const { url, tag, wait } = await seen();
    const waiting = wait(5);
    await service.clock.passWaiting(2_000);
    await runs.complete(url, { state: "succeeded", result: 1 });
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect(answer.body).toMatchObject({ state: "succeeded", attempt: 1, result: 1, keptForMs: 86_400_000 - passedMs });
    expect([answer.status, answer.headers["etag"] === tag]).toEqual([200, false]);
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
  });

  it.each([
    [0, 0],
    [2, 2_000],
    [60, CAP_MS],
  ])("(%i s) is told 304 after %i ms when nothing came, heartbeats aside", async (seconds, waitedMs) => {
    const { url, tag, wait } = await seen();
    const waiting = wait(seconds);
    if (waitedMs > 0) await service.clock.passWaiting(1_000);
    if (waitedMs > 0) await service.send("POST", `${url}/renew`);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.text, answer.headers["etag"]]).toEqual([304, "", tag]);
    expect(passedMs).toBe(Math.max(0, waitedMs - 1_000));
  });

  it("is told of a checkpoint, of the next attempt, and of a lease that ran out", async () => {
    const run = await seen();
    const checkpoint = run.wait(5);
    await service.clock.untilPaused();
    await service.send("POST", `${run.url}/renew`, { body: { checkpoint: { step: 2 } } });
    expect((await service.clock.passUntil(checkpoint)).answer.body).toMatchObject({ state: "running", checkpoint: { step: 2 } });

    const tried = await seen();
    const next = tried.wait(5);
    await service.clock.untilPaused();
    await runs.complete(tried.url, { state: "failed", error: "no", retryable: true });
    await runs.begin(tried.key);
    expect((await service.clock.passUntil(next)).answer.body).toMatchObject({ state: "running", attempt: 2 });

    const lost = await seen();
    await service.clock.advance(8_000);
    const { answer, passedMs } = await service.clock.passUntil(lost.wait(5));
    expect(answer.body.state).toBe("interrupted");
    expect(passedMs).toBeLessThanOrEqual(2_000 + takeoverMarginMs(10_000) + NOTICED_MS);
  });

  it("is told 404 when the run is reset or given up meanwhile", async () => {
    const { url, wait } = await seen();
    const waiting = wait(5);
    await service.clock.untilPaused();
    await service.send("DELETE", url);
    expect(told((await service.clock.passUntil(waiting)).answer)).toEqual([404, "not-found"]);
  });

  it("doesn't wait when what it knows is old, when it knows nothing, or when there is nothing", async () => {
    const { key } = await seen();
    for (const headers of [{ "if-none-match": '"older"' }, {}])
      expect((await runs.look(key, { ...headers, prefer: "wait=5" })).body.state).toBe("running");
    expect(told(await runs.look(runs.freshKey(), { "if-none-match": '"older"', prefer: "wait=5" }))).toEqual([404, "not-found"]);
  });

  it.each(["wait", "wait=", "wait=-5", "wait=long", "await=5"])("ignores %j: 304 at once", async (preferred) => {
    const { key, tag } = await seen();
    expect((await runs.look(key, { "if-none-match": tag, prefer: preferred })).status).toBe(304);
  });
});

it("control: a clock that is not turned keeps a request that waits where it is", async () => {
  const { key, url } = await runs.begin();
  const waiting = runs.ask(key, waits(1));
  await service.clock.untilPaused();
  await runs.complete(url, { state: "succeeded" });
  const first = await Promise.race([waiting, runs.look(key).then(() => "not answered")]);
  expect(first).toBe("not answered");
  await service.clock.passUntil(waiting);
});
