/**
 * Bounds of the table's own time, from its responses. They are never wrong, however slow the responses, however far off
 * the client's clock, and however it jumps or stops. After a few responses they are about as narrow as a round trip.
 */
import { ListTablesCommand } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { DEFAULTS } from "../../lib/core/limits.js";
import { type Clock, type Instant, systemClock } from "../../lib/core/time.js";
import { createLockClient } from "../../lib/dynamodb.js";
import { sdkCalls } from "../support/sdk-calls.js";
import { narrowed, watchTableClock } from "../../lib/store/dynamo/table-clock.js";
import { freshTable } from "../support/engine.js";
import { A, B, dynamoStoreOn, Fixture } from "./fixture.js";

type Known = NonNullable<Parameters<typeof narrowed>[0]>;

const SECOND_MS = 1000;
const HOUR_MS = 3_600_000;
/** A whole second as the origin. */
const T = Date.UTC(2027, 0, 1);
/** The client's instant when both of its clocks are at `ms`. */
const instant = (ms: number, { wallBy = 0, frozenMs = 0 } = {}): Instant => ({ wallMs: ms + wallBy, monotonicMs: ms - frozenMs });
/** The error that the clock's rate may add to this time. */
const drift = (ms: number): number => ms * DEFAULTS.clockRateError;

describe("what one answer says", () => {
  it("bounds the table's time by its second and the round trip", () => {
    const known = narrowed(undefined, T, instant(5_000), instant(5_200));
    expect(known).toMatchObject({ lowMs: T, at: instant(5_200) });
    expect(known.highMs).toBeCloseTo(T + SECOND_MS + 200, 0);
  });

  it.each([
    { case: "a step back of the wall hides nothing", sent: instant(0), arrived: instant(200, { wallBy: -HOUR_MS }), roundTripMs: 200 },
    { case: "a freeze of the monotonic clock neither", sent: instant(0), arrived: instant(9_200, { frozenMs: 9_000 }), roundTripMs: 9_200 },
    { case: "a step forward only widens", sent: instant(0), arrived: instant(200, { wallBy: 60_000 }), roundTripMs: 60_200 },
  ])("takes too much time to have passed rather than too little: $case", ({ sent, arrived, roundTripMs }) => {
    const { highMs } = narrowed(undefined, T, sent, arrived);
    expect(highMs).toBeGreaterThanOrEqual(T + SECOND_MS + roundTripMs);
    expect(highMs).toBeLessThanOrEqual(T + SECOND_MS + roundTripMs + 2 * drift(roundTripMs));
  });
});

describe("what two answers say together", () => {
  it("narrows to the moment at which the second changed", () => {
    const first = narrowed(undefined, T, instant(0), instant(10));
    const second = narrowed(first, T + SECOND_MS, instant(20), instant(30));
    // 20 ms later it is the next second, so T + 1 s was between the two.
    expect(second.lowMs).toBe(T + SECOND_MS);
    expect(second.highMs).toBeCloseTo(T + SECOND_MS + 30, 0);
  });

  it("forgets nothing while nothing is heard, but for the drift", () => {
    const first = narrowed(narrowed(undefined, T, instant(0), instant(10)), T + SECOND_MS, instant(20), instant(30));
    const later = narrowed(first, T + SECOND_MS + HOUR_MS, instant(HOUR_MS), instant(HOUR_MS + 30));
    expect(later.highMs - later.lowMs).toBeLessThan(60 + SECOND_MS);
    expect(later.lowMs).toBeGreaterThanOrEqual(T + SECOND_MS + HOUR_MS);
  });

  it.each([
    { case: "the table's clock stepped back", date: T - HOUR_MS, arrived: instant(20) },
    { case: "the table's clock stepped forward", date: T + HOUR_MS, arrived: instant(20) },
  ])("takes the newer word where they contradict each other: $case", ({ date, arrived }) => {
    const first = narrowed(undefined, T, instant(0), instant(10));
    expect(narrowed(first, date, instant(10), arrived)).toEqual(narrowed(undefined, date, instant(10), arrived));
  });

  it.each([
    { case: "by the least that either clock shows, while frozen", now: instant(60_000, { frozenMs: 59_000 }), passedMs: 1_000 },
    { case: "by nothing, when the wall stepped back", now: instant(60_000, { wallBy: -HOUR_MS }), passedMs: 0 },
  ])("moves the lower bound on $case", ({ now, passedMs }) => {
    const first = narrowed(undefined, T, instant(0), instant(0));
    // An old response adds nothing to the lower bound.
    const { lowMs } = narrowed(first, T, instant(0), now);
    expect(lowMs).toBeLessThanOrEqual(T + passedMs);
    expect(lowMs).toBeGreaterThanOrEqual(T + passedMs - 2 * drift(passedMs));
  });
});

/** The true times of a request: until the table read its clock, until the client got the response, and the pause after it. */
const exchange = fc.record({
  thereMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 20_000 })),
  backMs: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 20_000 })),
  pauseMs: fc.oneof(fc.integer({ min: 0, max: 2_000 }), fc.integer({ min: 0, max: HOUR_MS })),
  /** In the pause: the wall clock is corrected, or the sandbox is frozen for all of it. */
  jumpMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.integer({ min: -HOUR_MS, max: HOUR_MS }) }),
  frozen: fc.integer({ min: 0, max: 9 }).map((draw) => draw === 0),
});
const rate = fc.constantFrom(-1, -1, 0, 0.5, 1).map((share) => 1 + share * DEFAULTS.clockRateError);
const world = fc.record({
  phaseMs: fc.oneof(fc.constantFrom(0, 999), fc.integer({ min: 0, max: 999 })),
  wallOffMs: fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
  wallRate: rate,
  monotonicRate: rate,
  exchanges: fc.array(exchange, { minLength: 1, maxLength: 12 }),
});

/** Plays the exchanges and returns the largest distance of the table's true time from the bounds. */
function worstMiss(
  { phaseMs, wallOffMs, wallRate, monotonicRate, exchanges }: typeof world extends fc.Arbitrary<infer W> ? W : never,
  learn = narrowed,
): number {
  let trueMs = 0;
  let wallMs = T + wallOffMs;
  let monotonicMs = 0;
  let known: Known | undefined;
  let worst = -Infinity;
  const pass = (ms: number, frozen = false): void => {
    trueMs += ms;
    wallMs += ms * wallRate;
    if (!frozen) monotonicMs += ms * monotonicRate;
  };
  for (const { thereMs, backMs, pauseMs, jumpMs, frozen } of exchanges) {
    const sentAt = { wallMs, monotonicMs };
    pass(thereMs);
    const dateMs = Math.floor((T + phaseMs + trueMs) / SECOND_MS) * SECOND_MS;
    pass(backMs);
    known = learn(known, dateMs, sentAt, { wallMs, monotonicMs });
    const tableMs = T + phaseMs + trueMs;
    worst = Math.max(worst, known.lowMs - tableMs, tableMs - known.highMs);
    pass(pauseMs, frozen);
    // One fault at a time: with a frozen clock and a jump together, no clock would be left to tell the time.
    if (!frozen) wallMs += jumpMs;
  }
  return worst;
}

/** The rounding error of sums of fractions at epoch times in ms. */
const ROUNDING_MS = 0.01;

describe("the bounds", () => {
  it("always hold the table's time, whatever the delays, the rates, the jumps and the freezes", () => {
    fc.assert(
      fc.property(world, (drawn) => worstMiss(drawn) <= ROUNDING_MS),
      { seed: 20_270_101, numRuns: 5_000 },
    );
  });

  it.each<[string, typeof narrowed]>([
    ["no second is added to the answer's", (known, dateMs, sentAt, arrivedAt) => narrowed(known, dateMs - SECOND_MS, sentAt, arrivedAt)],
    ["time on the way is not counted", (known, dateMs, _sentAt, arrivedAt) => narrowed(known, dateMs, arrivedAt, arrivedAt)],
    [
      "the monotonic clock is not heeded",
      (known, dateMs, sentAt, arrivedAt) => narrowed(known, dateMs, { ...sentAt, monotonicMs: 0 }, { ...arrivedAt, monotonicMs: 0 }),
    ],
  ])("control: do not when %s", (_, learn) => {
    const { failed } = fc.check(
      fc.property(world, (drawn) => worstMiss(drawn, learn) <= ROUNDING_MS),
      { seed: 20_270_101, numRuns: 5_000 },
    );
    expect(failed).toBe(true);
  });
});

describe("on a real client", () => {
  /** A clock of a machine that is an hour ahead. */
  const hourAhead: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + HOUR_MS };

  it.each([
    ["by a clock that is right", systemClock],
    ["by a clock that is an hour ahead", hourAhead],
  ])("tells the engine's time %s, from the first answer on", async (_, clock) => {
    const { client } = await freshTable();
    const time = watchTableClock(client, clock);
    expect(time()).toBeUndefined();
    for (let round = 0; round < 3; round++) {
      const { $metadata } = await client.send(new ListTablesCommand({}));
      expect($metadata.httpStatusCode).toBe(200);
      const told = time();
      // Every DynamoDB sends a Date header. Without it, direct clients would have only one clock.
      expect(told, "the engine sends no Date").toBeDefined();
      expect(told!.lowMs).toBeLessThanOrEqual(systemClock.wallMs());
      expect(told!.highMs).toBeGreaterThanOrEqual(systemClock.wallMs() - 1);
      expect(told!.highMs - told!.lowMs).toBeLessThan(5_000);
    }
  });

  it("hears it from a refused write as well, and through the store", async () => {
    const { client, tableName } = await freshTable();
    const other = dynamoStoreOn({ calls: sdkCalls(client), tableName }, () => 0);
    const lock = new Fixture(other);
    await lock.acquire(A);

    const time = watchTableClock(client, systemClock);
    expect(await lock.acquire(B)).toMatchObject({ code: "locked" });
    expect(time()?.lowMs).toBeLessThanOrEqual(systemClock.wallMs());
  });

  it("is heard by all that share it, and known at once to one that is made late", async () => {
    const { client } = await freshTable();
    const times = [systemClock, hourAhead, systemClock].map((clock) => watchTableClock(client, clock));
    expect(times.map((time) => time())).toEqual([undefined, undefined, undefined]);
    await client.send(new ListTablesCommand({}));
    for (const time of [...times, watchTableClock(client, systemClock)]) {
      const { lowMs, highMs } = time()!;
      expect(lowMs).toBeLessThanOrEqual(highMs);
      expect(Math.abs(lowMs - systemClock.wallMs())).toBeLessThan(10_000);
    }
  });

  it("is heard once for the document clients of one client", async () => {
    const { client, tableName } = await freshTable();
    const before = client.middlewareStack.identify().length;
    const documents = () => createLockClient({ client: DynamoDBDocumentClient.from(client), tableName });
    const [one, other] = [documents(), documents()];
    expect(client.middlewareStack.identify()).toHaveLength(before + 1);
    const lease = await one.acquire("ORDER_1231");
    expect(await other.tryAcquire("ORDER_1231")).toBeNull();
    await lease.release();
  });
});
