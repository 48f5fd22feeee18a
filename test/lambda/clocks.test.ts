/**
 * The two clocks of a request, the function's and the gateway's: each decision uses the clock whose error is safe. A
 * control beside each shows that the other clock would have decided otherwise.
 */
import { describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import {
  ACQUIRE,
  CHECK,
  CHECK_RUN,
  COMPLETE_RUN,
  directService,
  CANCEL_START,
  INSPECT_RUN,
  RELEASE,
  RENEW,
  RENEW_RUN,
  RESET,
  START,
} from "../support/direct-service.js";

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
const OFF_MS = 5_000;
/** The clock that is ahead by {@link OFF_MS}. */
const AHEAD = [["the function's"], ["the gateway's"]] as const;

/** A service whose clocks differ: one reads `nowMs`, the other is `OFF_MS` ahead. */
function apart(ahead: (typeof AHEAD)[number][0]) {
  const service = directService();
  const { clock } = service;
  const gatewayMs = (): number => clock.wallMs() + (ahead === "the gateway's" ? OFF_MS : -OFF_MS);
  const earliestMs = (): number => Math.min(clock.wallMs(), gatewayMs());
  return {
    ...service,
    earliestMs,
    latestMs: () => earliestMs() + OFF_MS,
    askBoth: (routeKey: string, leaseId: string, body?: object) => service.ask(routeKey, { leaseId, body, timeEpoch: gatewayMs() }),
  };
}

describe.each(AHEAD)("when %s clock is ahead", (ahead) => {
  it("a lease is granted and renewed by the later clock", async () => {
    const { askBoth, ask, newId, clock, latestMs } = apart(ahead);
    const leaseId = newId();
    const granted = await askBoth(ACQUIRE, leaseId, { leaseMs: LEASE_MS });
    expect([granted.status, granted.body.serverTimeMs, granted.body.fencingToken]).toEqual([201, latestMs(), latestMs()]);
    const untilMs = latestMs() + LEASE_MS;
    const byTheLater = await ask(CHECK, { leaseId, timeEpoch: clock.wallMs() });
    expect(byTheLater.body.remainingMs).toBe(Math.min(untilMs - clock.wallMs(), LEASE_MS));
    await clock.advance(1_000);
    const renewed = await askBoth(RENEW, leaseId);
    expect([renewed.body.remainingMs, renewed.body.serverTimeMs]).toEqual([LEASE_MS, latestMs()]);
  });

  it("a lease is taken over, and refused as expired, by the earlier clock", async () => {
    const { askBoth, newId, clock, latestMs } = apart(ahead);
    const leaseId = newId();
    const first = await askBoth(ACQUIRE, leaseId, { leaseMs: LEASE_MS });
    const untilMs = latestMs() + LEASE_MS;

    // By the latest clock it has expired.
    await clock.advance(LEASE_MS);
    expect(latestMs()).toBe(untilMs);
    const still = await askBoth(CHECK, leaseId);
    expect([still.status, still.body.remainingMs]).toEqual([200, 0]);
    // Now it has expired by the earliest clock too, and its margin is over by the latest.
    await clock.advance(OFF_MS);
    expect((await askBoth(RENEW, leaseId)).body.reason).toBe("expired");
    const refused = await askBoth(ACQUIRE, newId());
    expect([refused.status, refused.body.retryAfterMs]).toEqual([423, MARGIN_MS]);
    await clock.advance(MARGIN_MS);
    const taken = await askBoth(ACQUIRE, newId());
    expect(taken.status).toBe(201);
    expect(taken.body.fencingToken).toBeGreaterThan(first.body.fencingToken);
  });

  it("a renewal is granted as long as the earlier clock is not past the lease", async () => {
    const { askBoth, newId, clock } = apart(ahead);
    const leaseId = newId();
    await askBoth(ACQUIRE, leaseId, { leaseMs: LEASE_MS });
    await clock.advance(LEASE_MS + OFF_MS - 1);
    const renewed = await askBoth(RENEW, leaseId);
    expect([renewed.status, renewed.body.remainingMs]).toEqual([200, LEASE_MS]);
  });
});

describe("clocks that disagree too much", () => {
  const guardMs = DEFAULTS.clockGuardMs;
  /**
   * The expected ending of a lease of the default length that was just granted: by a clock an hour ahead it has
   * expired, by the other it is alive.
   */
  const endedBy = (offMs: number): string => (offMs > DEFAULTS.leaseMs ? "unknown" : "released");

  it.each([guardMs + 1, -guardMs - 1, 3_600_000])("decide nothing: 503 clock-skew, definite (%i ms apart)", async (offMs) => {
    const { ask, newId, clock, lines } = directService();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    await ask(START, { leaseId });
    const skewed = { leaseId, timeEpoch: clock.wallMs() + offMs };
    const asked: readonly (readonly [string, object?])[] = [
      [ACQUIRE],
      [RENEW],
      [CHECK],
      ["POST /v1/locks/{key}/leases/{leaseId}/transfer", { leaseId: newId() }],
      ["POST /v1/locks/{key}/break", { reason: "x", fencingToken: 1 }],
      ["GET /v1/locks/{key}"],
      ["GET /v1/locks"],
      [START],
      [CHECK_RUN],
      [RENEW_RUN],
      [RENEW_RUN, { checkpoint: "x".repeat(2_000) }],
      [COMPLETE_RUN, { state: "succeeded" }],
      [COMPLETE_RUN, { state: "succeeded", result: "x".repeat(2_000) }],
      [RESET, { reason: "x" }],
      [INSPECT_RUN],
      ["GET /v1/runs"],
      ["GET /v1/health"],
    ];
    for (const [routeKey, body] of asked) {
      const reply = await ask(routeKey, { ...skewed, body, headers: { prefer: "wait=5" } });
      expect([routeKey, reply.status, reply.body.code, reply.body.definite, reply.body.retry, reply.headers["retry-after"]]).toEqual([
        routeKey,
        503,
        "clock-skew",
        true,
        "later",
        "1",
      ]);
    }
    expect(lines.filter(({ event }) => event !== "refused")).toHaveLength(2);
  });

  it.each([guardMs + 1, -guardMs - 1, 3_600_000, -3_600_000])("release and cancel all the same (%i ms apart)", async (offMs) => {
    const { ask, newId, clock } = directService();
    const [leaseId, late] = [newId(), newId()];
    await ask(ACQUIRE, { leaseId });
    const timeEpoch = clock.wallMs() + offMs;
    for (const _time of [1, 2]) expect((await ask(RELEASE, { leaseId, timeEpoch })).headers["lease-state"]).toBe(endedBy(offMs));
    expect((await ask(RELEASE, { leaseId: late, timeEpoch })).status).toBe(204);
    expect((await ask("GET /v1/locks/{key}")).body.holders).toEqual([]);
  });

  it.each([guardMs + 1, -guardMs - 1, 3_600_000, -3_600_000])("give a run up all the same (%i ms apart)", async (offMs) => {
    const { ask, newId, clock } = directService();
    const [leaseId, late] = [newId(), newId()];
    await ask(START, { leaseId });
    const timeEpoch = clock.wallMs() + offMs;
    for (const _time of [1, 2]) expect((await ask(CANCEL_START, { leaseId, timeEpoch })).headers["lease-state"]).toBe(endedBy(offMs));
    expect((await ask(CANCEL_START, { leaseId: late, timeEpoch })).status).toBe(204);
    expect((await ask(INSPECT_RUN)).status).toBe(404);
    expect((await ask(START, { leaseId: late })).body.code).toBe("lease-over");
  });

  it.each([guardMs, -guardMs, 0])("still decide at the guard (%i ms apart)", async (offMs) => {
    const { ask, newId, clock } = directService();
    expect((await ask(ACQUIRE, { leaseId: newId(), timeEpoch: clock.wallMs() + offMs })).status).toBe(201);
  });
});

it("one clock has to do where there is no gateway", async () => {
  const { ask, newId, clock } = directService();
  const { status, body } = await ask(ACQUIRE, { leaseId: newId(), timeEpoch: null });
  expect([status, body.serverTimeMs]).toEqual([201, clock.wallMs()]);
});
