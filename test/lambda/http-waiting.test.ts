/**
 * Requests that wait (`Prefer: wait=N`), over HTTP with a clock that the test advances meanwhile: for the outcome of another
 * caller's run, or for a change. Nothing here depends on the speed of the machine.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LIMITS, takeoverMarginMs } from "../../lib/core/limits.js";
import { type Put, told } from "../e2e/calls.js";
import { type HttpService, serve } from "../support/http-service.js";
import type { Reply } from "../support/reply.js";
import { localCalls } from "./local-calls.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const { get, post, put, hold, release, start, begin, complete } = localCalls(() => service, "WAIT");

/** The time within which a waiting request notices a change. */
const NOTICED_MS = 400;
const CAP_MS = LIMITS.serverWaitMs;
const waits = (seconds: number) => ({ prefer: `wait=${seconds}` });

describe("an acquire that waits", () => {
  it("is answered at once also when it is next, however long it would wait", async () => {
    const { key } = await hold();
    const { answer, passedMs } = await service.clock.passUntil(put(key, {}, waits(60)));
    expect([answer.status, answer.body.position, passedMs]).toEqual([202, 1, 0]);
  });
});

describe("a start that waits", () => {
  it("is answered with the outcome as soon as it is there: 200, a replay", async () => {
    const run = await begin();
    const waiting = start(run.key, {}, waits(5));
    await service.clock.passWaiting(2_000);
    await complete(run, { state: "succeeded", result: { id: 7 } });
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.headers["idempotent-replayed"]]).toEqual([200, "true"]);
    expect(answer.body).toEqual({ state: "succeeded", attempt: 1, result: { id: 7 } });
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
  });

  it.each([
    ["none", "", 0],
    ["wait=0", "wait=0", 0],
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
    ["by a longer name", "wait-minutes=5", 0],
    ["with a unit", "wait=5 s", 0],
    ["with a fraction", "wait=1.5", 0],
    ["something else altogether", '"', 0],
  ])("that prefers %s (%s) is told 409 after %i ms", async (_what, header, waitedMs) => {
    const { key } = await begin();
    const { answer, passedMs } = await service.clock.passUntil(start(key, {}, { prefer: header }));
    expect([...told(answer), passedMs]).toEqual([409, "run-in-progress", waitedMs]);
  });

  it("doesn't wait where it needn't: it runs, it ran, or it is refused for another reason", async () => {
    const run = await begin(undefined, { fingerprint: "f" }, waits(5));
    const { key, leaseId } = run;
    expect(told(await start(key, { fingerprint: "f" }, { leaseId, ...waits(5) }))).toEqual([200, undefined]);
    expect(told(await start(key, { fingerprint: "g" }, waits(5)))).toEqual([422, "fingerprint-mismatch"]);
    await complete(run, { state: "succeeded" });
    expect(told(await start(key, {}, waits(5)))).toEqual([200, undefined]);
  });

  it("runs the next attempt itself when the one that it waited for fails and may be tried again, with a lease of full length", async () => {
    const run = await begin();
    const waiting = start(run.key, { leaseMs: 4_000 }, waits(5));
    await service.clock.passWaiting(4_500);
    await complete(run, { state: "failed", error: "e", retryable: true });
    const { answer } = await service.clock.passUntil(waiting);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ attempt: 2, takeover: false, remainingMs: 4_000, serverTimeMs: service.clock.wallMs() });
    expect(answer.body.fencingToken).toBeGreaterThanOrEqual((run.body.fencingToken as number) + 4_500);
    // Other callers, who go by the record, see the full length too.
    expect((await start(run.key)).body.retryAfterMs).toBe(4_000 + takeoverMarginMs(4_000));
  });

  it("takes over as soon as the other's lease and margin are over", async () => {
    const leaseMs = 2_000;
    const { key } = await begin(undefined, { leaseMs });
    const { answer, passedMs } = await service.clock.passUntil(start(key, {}, waits(5)));
    expect(answer.body).toMatchObject({ state: "running", attempt: 2, takeover: true, remainingMs: 30_000 });
    expect(passedMs).toBeGreaterThanOrEqual(leaseMs + takeoverMarginMs(leaseMs));
    expect(passedMs).toBeLessThanOrEqual(leaseMs + takeoverMarginMs(leaseMs) + NOTICED_MS);
  });

  const failed = (retryable: boolean) => (run: Put) => complete(run, { state: "failed", error: "no", retryable });
  it.each<[event: string, maxAttempts: number, end: (run: Put) => Promise<unknown>, answer: object]>([
    ["gives up", 5, (run) => release(run), { state: "running", attempt: 1, takeover: false }],
    ["fails for good", 5, failed(false), { state: "failed", error: "no" }],
    ["fails for the last time that this caller allows", 1, failed(true), { code: "attempts-exhausted" }],
  ])("is answered when the other %s", async (_event, maxAttempts, end, answer) => {
    const run = await begin();
    const waiting = start(run.key, { maxAttempts }, waits(5));
    await service.clock.untilPaused();
    await end(run);
    expect((await service.clock.passUntil(waiting)).answer.body).toMatchObject(answer);
  });

  it("is told 409 by its own time when others are always first, and never comes to run", async () => {
    const first = await begin();
    const waiting = start(first.key, {}, waits(3));
    await service.clock.passWaiting(1_500);
    await complete(first, { state: "failed", error: "no", retryable: true });
    const second = await begin(first.key);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([...told(answer), passedMs]).toEqual([409, "run-in-progress", 1_500]);
    await complete(second, { state: "failed", error: "no", retryable: true });
    expect((await get(`/v1/runs/${first.key}`)).body).toMatchObject({ state: "failed", attempt: 2 });
  });

  it("control: stays where it is while the clock stands still", async () => {
    const run = await begin();
    const waiting = start(run.key, {}, waits(1));
    await service.clock.untilPaused();
    await complete(run, { state: "succeeded" });
    expect(await Promise.race([waiting, get(`/v1/runs/${run.key}`).then(() => "not answered")])).toBe("not answered");
    await service.clock.passUntil(waiting);
  });
});

/** A thing that was looked at while it was held, and the tag that it had then. */
interface Seen {
  readonly url: string;
  readonly tag: string;
  look(headers: Readonly<Record<string, string>>): Promise<Reply>;
}

async function seenAt(path: string, { key, url }: Put): Promise<Seen> {
  const look: Seen["look"] = (headers) => get(`${path}/${key}`, headers);
  return { url, tag: (await look({})).headers["etag"]!, look };
}
const seenRun = async (): Promise<Seen> => seenAt("/v1/runs", await begin(undefined, { leaseMs: 10_000 }));
const seenLock = async (): Promise<Seen> => seenAt("/v1/locks", await hold(undefined, { leaseMs: 10_000 }));

const waitFor = ({ look, tag }: Seen, seconds: number) => look({ "if-none-match": tag, prefer: `wait=${seconds}` });

describe.each<[what: string, see: () => Promise<Seen>, end: (seen: Seen) => Promise<unknown>]>([
  ["a key", seenLock, (seen) => release(seen)],
  ["a run", seenRun, (seen) => complete(seen, { state: "succeeded" })],
])("a look at %s that waits", (_what, see, end) => {
  it("is answered as soon as there is a change, with another tag", async () => {
    const seen = await see();
    const waiting = waitFor(seen, 5);
    await service.clock.passWaiting(2_000);
    await end(seen);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.headers["etag"] === seen.tag]).toEqual([200, false]);
    expect(passedMs).toBeLessThanOrEqual(NOTICED_MS);
  });

  it.each([
    [0, 0],
    [2, 2_000],
    [60, CAP_MS],
  ])("(%i s) is told 304 after %i ms without a change; a heartbeat is none", async (seconds, waitedMs) => {
    const seen = await see();
    const waiting = waitFor(seen, seconds);
    if (waitedMs > 0) await service.clock.passWaiting(1_000);
    if (waitedMs > 0) await post(`${seen.url}/renew`);
    const { answer, passedMs } = await service.clock.passUntil(waiting);
    expect([answer.status, answer.text, answer.headers["etag"]]).toEqual([304, "", seen.tag]);
    expect(passedMs).toBe(Math.max(0, waitedMs - 1_000));
  });

  it("doesn't wait without a tag, nor with one of another time", async () => {
    const { look } = await see();
    for (const headers of [{}, { "if-none-match": '"another"' }]) {
      const { answer, passedMs } = await service.clock.passUntil(look({ ...headers, prefer: "wait=5" }));
      expect([answer.status, passedMs]).toEqual([200, 0]);
    }
  });
});

describe("a look at a run that waits", () => {
  it("is told of a checkpoint", async () => {
    const run = await seenRun();
    const waiting = waitFor(run, 5);
    await service.clock.untilPaused();
    await post(`${run.url}/renew`, { checkpoint: { step: 2 } });
    expect((await service.clock.passUntil(waiting)).answer.body).toMatchObject({ state: "running", checkpoint: { step: 2 } });
  });

  it("is told of a lease that ran out, which no write tells", async () => {
    const run = await seenRun();
    await service.clock.advance(8_000);
    const { answer, passedMs } = await service.clock.passUntil(waitFor(run, 5));
    expect(answer.body.state).toBe("interrupted");
    expect(passedMs).toBeLessThanOrEqual(2_000 + takeoverMarginMs(10_000) + NOTICED_MS);
  });

  it("is told 404 when the run is given up meanwhile", async () => {
    const run = await seenRun();
    const waiting = waitFor(run, 5);
    await service.clock.untilPaused();
    await release(run);
    expect(told((await service.clock.passUntil(waiting)).answer)).toEqual([404, "not-found"]);
  });
});
