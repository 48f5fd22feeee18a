/**
 * The two clocks of a request, the function's and the gateway's: each decision uses the clock whose error is safe. A
 * control beside each shows that the other clock would have decided otherwise.
 */
import { describe, expect, it } from "vitest";
import { DEFAULTS, takeoverMarginMs } from "../../lib/core/limits.js";
import {
  ACQUIRE,
  CANCEL_START,
  CHECK,
  COMPLETE_RUN,
  directService,
  INSPECT_RUN,
  RELEASE,
  RENEW,
  START,
} from "../support/direct-service.js";
import { DECISIONS } from "./every-request.js";

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
const OFF_MS = 5_000;
const WAIT = { headers: { prefer: "wait=5" } };
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
    askBoth: (routeKey: string, leaseId: string, body?: object, headers = {}) =>
      service.ask(routeKey, { leaseId, body, headers, timeEpoch: gatewayMs() }),
  };
}

describe.each(AHEAD)("when %s clock is ahead", (ahead) => {
  it("a lease is granted and renewed by the later clock", async () => {
    const { askBoth, ask, newId, clock, earliestMs, latestMs } = apart(ahead);
    const leaseId = newId();
    const granted = await askBoth(ACQUIRE, leaseId, { leaseMs: LEASE_MS });
    expect([granted.status, granted.body.serverTimeMs]).toEqual([201, latestMs()]);
    // Tokens are made from the function's own clock, as far as the gateway's allows it, and that one tells the millisecond.
    expect(granted.body.fencingToken).toBe(ahead === "the gateway's" ? latestMs() : earliestMs());
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

  it("a lease that is granted after a wait runs from its grant, by the later clock, and is of full length", async () => {
    const { askBoth, newId, clock, latestMs } = apart(ahead);
    const leaseId = newId();
    await askBoth(START, leaseId, { leaseMs: LEASE_MS });
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
    for (const [routeKey, body] of [...DECISIONS, ["GET /v1/health"] as const]) {
      const { body: problem } = await ask(routeKey, { ...skewed, body, ...WAIT });
      expect(problem, routeKey).toMatchObject({ status: 503, code: "clock-skew", definite: true, retry: "later", retryAfterMs: 1_000 });
    }
    expect(lines.filter(({ event }) => event !== "refused")).toHaveLength(2);
  });

  it.each([guardMs + 1, -guardMs - 1, 3_600_000, -3_600_000])(
    "end a lease all the same, and cancel what comes late (%i ms apart)",
    async (offMs) => {
      const { ask, newId, clock } = directService();
      const [leaseId, late] = [newId(), newId()];
      const timeEpoch = clock.wallMs() + offMs;
      for (const [start, end] of [
        [ACQUIRE, RELEASE],
        [START, CANCEL_START],
      ] as const) {
        await ask(start, { leaseId });
        for (const _time of [1, 2]) expect((await ask(end, { leaseId, timeEpoch })).headers["lease-state"]).toBe(endedBy(offMs));
        expect((await ask(end, { leaseId: late, timeEpoch })).status).toBe(204);
        expect((await ask(start, { leaseId: late })).body.code).toBe("lease-over");
      }
      expect((await ask("GET /v1/locks/{key}")).body.holders).toEqual([]);
      expect((await ask(INSPECT_RUN)).status).toBe(404);
    },
  );

  it.each([guardMs, -guardMs, 0])("still decide at the guard (%i ms apart)", async (offMs) => {
    const { ask, newId, clock } = directService();
    expect((await ask(ACQUIRE, { leaseId: newId(), timeEpoch: clock.wallMs() + offMs })).status).toBe(201);
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

describe("a gateway whose time is missing or can't be read", () => {
  it.each([null, Number.NaN, "2027-01-01T00:00:00Z"])("(%j): nothing is decided by the function's clock alone", async (timeEpoch) => {
    const { ask, newId, clock, lines } = directService();
    const leaseId = newId();
    await ask(ACQUIRE, { leaseId });
    await ask(START, { leaseId });
    for (const [routeKey, body] of [...DECISIONS, [RELEASE] as const, [CANCEL_START] as const, ["GET /v1/health"] as const]) {
      const { body: problem } = await ask(routeKey, { leaseId, body, ...WAIT, timeEpoch: timeEpoch as number });
      expect(problem, routeKey).toMatchObject({ status: 500, code: "clock-unknown", definite: true, retry: "never" });
    }
    expect(lines.filter(({ event }) => event !== "refused")).toHaveLength(2);
    expect(lines.at(-1)).toMatchObject({ operateAtMs: clock.wallMs() });
    // Control: with the gateway's time, the lease is there and ends.
    expect((await ask(RELEASE, { leaseId })).headers["lease-state"]).toBe("released");
  });
});
