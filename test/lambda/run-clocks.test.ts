/**
 * The two clocks of a request about a run: each decision uses the clock whose error is safe, also after a wait in which
 * both have advanced. If one of them jumped meanwhile, nothing is decided.
 */
import { describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import { CHECK_RUN, COMPLETE_RUN, directService, INSPECT_RUN, RENEW_RUN, RESET, START } from "../support/direct-service.js";

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
const OFF_MS = 5_000;
const WAIT = { headers: { prefer: "wait=5" } };
/** The clock that is ahead by {@link OFF_MS}. */
const AHEAD = [["the function's"], ["the gateway's"]] as const;

/** A service whose clocks differ, and a run that was started with them. */
async function running(ahead: (typeof AHEAD)[number][0]) {
  const service = directService();
  const { clock } = service;
  const gatewayMs = (): number => clock.wallMs() + (ahead === "the gateway's" ? OFF_MS : -OFF_MS);
  const latestMs = (): number => Math.max(clock.wallMs(), gatewayMs());
  const askBoth = (routeKey: string, leaseId: string, body?: object, headers = {}) =>
    service.ask(routeKey, { leaseId, body, headers, timeEpoch: gatewayMs() });
  const leaseId = service.newId();
  const started = await askBoth(START, leaseId, { leaseMs: LEASE_MS, keepResultMs: 60_000 });
  return { ...service, latestMs, askBoth, leaseId, started };
}

describe.each(AHEAD)("when %s clock is ahead", (ahead) => {
  it("a run's lease is granted and renewed by the later clock", async () => {
    const { started, latestMs, askBoth, leaseId, clock } = await running(ahead);
    expect([started.status, started.body.serverTimeMs, started.body.fencingToken]).toEqual([201, latestMs(), latestMs()]);
    await clock.advance(1_000);
    const renewed = await askBoth(RENEW_RUN, leaseId);
    expect([renewed.body.remainingMs, renewed.body.serverTimeMs]).toEqual([LEASE_MS, latestMs()]);
  });

  it("a run is taken over, reset and shown as interrupted by the earlier clock", async () => {
    const { askBoth, leaseId, newId, clock } = await running(ahead);
    // By the latest clock, lease and margin are over.
    await clock.advance(LEASE_MS + MARGIN_MS);
    expect((await askBoth(CHECK_RUN, leaseId)).status).toBe(200);
    await clock.advance(OFF_MS - 1);
    expect((await askBoth(CHECK_RUN, leaseId)).body.reason).toBe("expired");
    expect((await askBoth(START, newId())).body).toMatchObject({ code: "run-in-progress", retryAfterMs: 1 });
    expect((await askBoth(RESET, newId(), { reason: "x" })).body).toMatchObject({ code: "run-in-progress", retryAfterMs: 1 });
    expect((await askBoth(INSPECT_RUN, newId())).body).toMatchObject({ state: "running", remainingMs: 0 });
    await clock.advance(1);
    expect((await askBoth(INSPECT_RUN, newId())).body.state).toBe("interrupted");
    expect((await askBoth(START, newId())).body).toMatchObject({ attempt: 2, takeover: true });
  });

  it("an outcome is kept from the later clock on, until the earlier one: what was run is not run again too soon", async () => {
    const { askBoth, leaseId, newId, clock } = await running(ahead);
    await askBoth(COMPLETE_RUN, leaseId, { state: "succeeded" });
    // By the latest clock its outcome has expired.
    await clock.advance(60_000);
    expect((await askBoth(START, newId())).body.state).toBe("succeeded");
    await clock.advance(OFF_MS - 1);
    expect((await askBoth(START, newId())).body.state).toBe("succeeded");
    await clock.advance(1);
    expect((await askBoth(START, newId())).body).toMatchObject({ state: "running", attempt: 1 });
  });

  it("a lease that is granted after a wait runs from its grant, by the later clock, and is of full length", async () => {
    const { askBoth, leaseId, newId, clock, latestMs } = await running(ahead);
    const waiting = askBoth(START, newId(), { leaseMs: 3_000 }, WAIT.headers);
    await clock.advance(4_000);
    await askBoth(COMPLETE_RUN, leaseId, { state: "failed", error: "no", retryable: true });
    const { status, body } = await clock.settle(waiting);
    expect([status, body.remainingMs, body.serverTimeMs]).toEqual([201, 3_000, latestMs()]);
    // By the clocks at the time of the request it would be over by now; for other callers it isn't.
    const refused = await askBoth(START, newId());
    expect([refused.status, refused.body.retryAfterMs]).toEqual([409, 3_000 + OFF_MS + takeoverMarginMs(3_000)]);
  });
});

describe("a clock that goes astray during a wait", () => {
  const FAR_MS = DEFAULTS.clockGuardMs + 1;

  it.each([FAR_MS, -FAR_MS, 3_600_000, -3_600_000])("by %i ms decides nothing, though the run is free: 503 clock-skew", async (jumpMs) => {
    const { ask, newId, clock, lines } = directService();
    const leaseId = newId();
    await ask(START, { leaseId });
    const waiting = ask(START, { leaseId: newId(), ...WAIT });
    await clock.advance(1_000);
    const nowMs = clock.wallMs();
    await ask(COMPLETE_RUN, { leaseId, body: { state: "failed", error: "no", retryable: true } });
    clock.jumpWall(jumpMs);
    const { status, body } = await clock.settle(waiting);
    expect([status, body.code, body.definite]).toEqual([503, "clock-skew", true]);
    expect(lines.filter(({ event }) => event === "granted")).toHaveLength(1);
    // Control: without the jump, it runs.
    clock.jumpWall(nowMs - clock.wallMs());
    expect((await ask(START, { leaseId: newId() })).status).toBe(201);
  });

  it.each([FAR_MS, -FAR_MS])("by %i ms does not take a run over whose lease goes on", async (jumpMs) => {
    const { ask, newId, clock } = directService();
    await ask(START, { leaseId: newId(), body: { leaseMs: 5_000 } });
    const waiting = ask(START, { leaseId: newId(), ...WAIT });
    await clock.advance(1_000);
    clock.jumpWall(jumpMs);
    const { status, body } = await clock.settle(waiting);
    expect([409, 503]).toContain(status);
    expect(["run-in-progress", "clock-skew"]).toContain(body.code);
    clock.jumpWall(-jumpMs);
    expect((await ask(INSPECT_RUN)).body).toMatchObject({ state: "running", attempt: 1 });
  });

  it("ends a look that waits: by such clocks nothing is told", async () => {
    const { ask, newId, clock } = directService();
    await ask(START, { leaseId: newId() });
    const tag = (await ask(INSPECT_RUN)).headers["etag"] ?? "";
    const waiting = ask(INSPECT_RUN, { headers: { "if-none-match": tag, prefer: "wait=5" } });
    await clock.advance(1_000);
    clock.jumpWall(3_600_000);
    expect((await clock.settle(waiting)).status).toBe(503);
  });
});

it("one clock has to do where there is no gateway, through a wait as well", async () => {
  const { ask, newId, clock } = directService();
  const leaseId = newId();
  await ask(START, { leaseId, timeEpoch: null });
  const waiting = ask(START, { leaseId: newId(), timeEpoch: null, ...WAIT });
  await clock.advance(1_000);
  await ask(COMPLETE_RUN, { leaseId, timeEpoch: null, body: { state: "succeeded", result: 1 } });
  expect((await clock.settle(waiting)).body).toEqual({ state: "succeeded", attempt: 1, result: 1 });
});
