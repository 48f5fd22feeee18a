/** Runs of runners that went silent, and the expiry of outcomes: with a clock that the test advances. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../lib/core/limits.js";
import { serve } from "../support/http-service.js";
import type { HttpService } from "../support/http-service.js";
import type { Begun } from "./runs.js";
import { runsOf, told } from "./runs.js";

let service: HttpService;
beforeAll(async () => void (service = await serve()));
afterAll(() => service.close());
const runs = runsOf(() => service, "GONE");

const LEASE_MS = 10_000;
const MARGIN_MS = takeoverMarginMs(LEASE_MS);
const crashed = (): Promise<Begun> => runs.begin(undefined, { body: { leaseMs: LEASE_MS, owner: "crashed" } });
const SUCCEEDED = { state: "succeeded", result: "late" };

describe("a crashed runner's run", () => {
  it("is taken over within lease + margin, not a millisecond before: the next attempt, with a larger token", async () => {
    const { key, reply } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS - 1);
    const early = await runs.ask(key);
    expect([...told(early), early.body.retryAfterMs, early.headers["retry-after"]]).toEqual([409, "run-in-progress", 1, "1"]);
    await service.clock.advance(1);
    const next = await runs.begin(key);
    expect(next.reply.body).toMatchObject({ attempt: 2, takeover: true, remainingMs: 30_000 });
    expect(next.reply.body.fencingToken).toBeGreaterThan(reply.body.fencingToken);
  });

  it("goes to who comes back after retryAfterMs", async () => {
    const { key } = await crashed();
    await service.clock.advance((await runs.ask(key)).body.retryAfterMs as number);
    await runs.begin(key);
  });

  it("is running to the end of its margin for who looks, and interrupted from then on", async () => {
    const { key } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS - 1);
    const before = await runs.look(key);
    expect(before.body).toMatchObject({ state: "running", owner: "crashed", heldMs: LEASE_MS + MARGIN_MS - 1, remainingMs: 0 });
    await service.clock.advance(1);
    const after = await runs.look(key);
    expect(after.body).toMatchObject({ state: "interrupted", attempt: 1, owner: "crashed", endedAgoMs: MARGIN_MS });
    for (const gone of ["heldMs", "remainingMs"]) expect(after.body).not.toHaveProperty(gone);
    expect(after.headers["etag"]).not.toBe(before.headers["etag"]);
  });

  it("counts among its attempts", async () => {
    const { key } = await crashed();
    await service.clock.advance(LEASE_MS + MARGIN_MS);
    expect(told(await runs.ask(key, { body: { maxAttempts: 1 } }))).toEqual([409, "attempts-exhausted"]);
    expect((await runs.ask(key, { body: { maxAttempts: 2 } })).status).toBe(201);
  });
});

describe("a lease that ran out", () => {
  it.each([
    ["at its end", LEASE_MS],
    ["at the end of its margin", LEASE_MS + MARGIN_MS],
    ["much later", 3_600_000],
  ])("still records its outcome %s, as long as nobody took the run over", async (_when, afterMs) => {
    for (const outcome of [SUCCEEDED, { state: "succeeded", result: "large".repeat(1_000) }]) {
      const { key, url } = await crashed();
      await service.clock.advance(afterMs);
      expect((await runs.complete(url, outcome)).status).toBe(200);
      expect((await runs.complete(url, outcome)).headers["idempotent-replayed"]).toBe("true");
      expect((await runs.ask(key)).body).toEqual({ ...outcome, attempt: 1 });
      expect((await service.send("DELETE", url)).headers["lease-state"]).toBe("expired");
    }
  });

  it.each([
    ["expired", LEASE_MS, false],
    ["taken", LEASE_MS + MARGIN_MS, true],
  ])("is not renewed, nor asked for, nor checked: 410, %s", async (reason, afterMs, isTaken) => {
    const { key, url } = await crashed();
    await service.clock.advance(afterMs);
    if (isTaken) await runs.begin(key);
    for (const reply of [
      await service.send("POST", `${url}/renew`),
      await service.send("POST", `${url}/renew`, { body: { checkpoint: 1 } }),
      await service.send("POST", `${url}/renew`, { body: { checkpoint: "large".repeat(1_000) } }),
      await service.send("GET", url),
    ])
      expect([...told(reply), reply.body.reason, reply.body.definite]).toEqual([410, "lease-lost", reason, true]);
    const again = await service.send("PUT", url, { body: { leaseMs: LEASE_MS, owner: "crashed" } });
    expect(told(again)).toEqual([410, "lease-over"]);
  });

  it.each([
    ["expired", LEASE_MS, false],
    ["lost", LEASE_MS + MARGIN_MS, true],
  ])("is given up: 204 %s", async (state, afterMs, isTaken) => {
    const { key, url } = await crashed();
    await service.clock.advance(afterMs);
    const next = isTaken ? await runs.begin(key) : undefined;
    for (const _time of [1, 2]) expect((await service.send("DELETE", url)).headers["lease-state"]).toBe(state);
    if (next) expect((await service.send("GET", next.url)).status).toBe(200);
  });
});

describe("an outcome", () => {
  const DAY_MS = 86_400_000;

  it.each<[what: string, keepResultMs: number | "forever" | undefined, keptForMs: number]>([
    ["a day, if nothing is said", undefined, DAY_MS],
    ["as long as is said", 60_000, 60_000],
    ["at most 365 days", 365 * DAY_MS, 365 * DAY_MS],
  ])("is kept for %s, and forgotten then: the next start is a first attempt", async (_what, keepResultMs, keptForMs) => {
    const outcome = { state: "succeeded", result: "large".repeat(1_000) };
    const key = await runs.finished(outcome, { body: { ...(keepResultMs !== undefined && { keepResultMs }), fingerprint: "f" } });
    expect((await runs.look(key)).body.keptForMs).toBe(keptForMs);
    await service.clock.advance(keptForMs - 1);
    expect((await runs.look(key)).body.keptForMs).toBe(1);
    expect((await runs.ask(key)).body).toEqual({ ...outcome, attempt: 1 });
    await service.clock.advance(1);
    expect(told(await runs.look(key))).toEqual([404, "not-found"]);
    expect((await service.send("GET", `/v1/runs?prefix=${key}`)).body.items).toEqual([]);
    expect((await runs.begin(key, { body: { fingerprint: "g" } })).reply.body).toMatchObject({ attempt: 1, takeover: false });
  });

  it("is kept by the length that its attempt said, from when it was recorded", async () => {
    const { key, url } = await runs.begin(undefined, { body: { keepResultMs: 60_000 } });
    await service.clock.advance(20_000);
    await runs.complete(url, SUCCEEDED);
    // A later caller's option changes nothing.
    await runs.ask(key, { body: { keepResultMs: 3_600_000 } });
    await service.clock.advance(59_999);
    expect((await runs.ask(key)).status).toBe(200);
    await service.clock.advance(1);
    await runs.begin(key);
  });

  it("may be kept for ever", async () => {
    const key = await runs.finished(SUCCEEDED, { body: { keepResultMs: "forever" } });
    await service.clock.advance(1_000 * DAY_MS);
    expect((await runs.look(key)).body).toMatchObject({ state: "succeeded", keptForMs: "forever", result: "late" });
    expect((await runs.ask(key)).body).toEqual({ ...SUCCEEDED, attempt: 1 });
  });

  it("that may be tried again is never forgotten by time alone, nor are its attempts", async () => {
    const key = await runs.finished({ state: "failed", error: "e", retryable: true }, { body: { keepResultMs: 60_000 } });
    await service.clock.advance(3_600_000);
    expect((await runs.look(key)).body).toMatchObject({ state: "failed", retryable: true, attempt: 1, error: "e" });
    expect(told(await runs.ask(key, { body: { maxAttempts: 1 } }))).toEqual([409, "attempts-exhausted"]);
  });
});
