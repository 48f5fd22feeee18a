/** The retention of runs: the outcome is stored for the requested time, the record for longer than anything in it matters. */
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Command } from "../../lib/core/commands.js";
import { FOREVER_MS, LIMITS } from "../../lib/core/limits.js";
import type { LockRecord } from "../../lib/core/record.js";
import { outlivedBy, payloadTtlAtSec } from "../../lib/core/run/run.js";
import { leaseIdAt } from "../support/lease-ids.js";
import { sized } from "../support/tier.js";
import {
  after,
  at,
  complete,
  DAY_MS,
  decided,
  hold,
  LEASE_MS,
  MARGIN_MS,
  ME,
  NOW_MS,
  record,
  POLICY,
  run,
  said,
  start,
  BY_ME,
} from "./run-parts.js";

const NEXT = { leaseId: leaseIdAt(NOW_MS + DAY_MS) };
const RETENTION_MS = POLICY.retentionMs;
/** The last second that a table's TTL may have: the end of the year 9999. */
const LAST_SEC = Date.UTC(10_000, 0, 1) / 1000 - 1;
const toSec = (ms: number): number => Math.ceil((NOW_MS + ms) / 1000);

/** A run completed `aheadMs` after now by the latest clock, with a result stored for a day. */
const succeeded = (aheadMs = 0, keepResultMs = DAY_MS): LockRecord =>
  after(decided(record({ holds: { [ME]: hold() }, run: run({ keepResultMs }) }), complete("succeeded"), at(0, aheadMs)));

describe("an outcome is forgotten", () => {
  it.each([
    { earlier: DAY_MS - 1, ahead: 0, comes: "succeeded" },
    { earlier: DAY_MS - 1, ahead: 9_999, comes: "succeeded" },
    { earlier: DAY_MS, ahead: 0, comes: "granted" },
    { earlier: DAY_MS, ahead: 9_999, comes: "granted" },
  ])("when it was kept as long as was asked, by the earlier clock: at $earlier ms, $comes", ({ earlier, ahead, comes }) => {
    expect(said(decided(succeeded(), start(NEXT), at(earlier, ahead)))).toBe(comes);
  });

  it("counted from the later clock at its recording", () => {
    expect(said(decided(succeeded(700), start(NEXT), at(DAY_MS + 699)))).toBe("succeeded");
    expect(said(decided(succeeded(700), start(NEXT), at(DAY_MS + 700)))).toBe("granted");
  });

  it("as asked by the start that ran, and not by one that asks for it", () => {
    const before = succeeded(0, LIMITS.keepResultMinMs);
    const asks = start({ leaseId: leaseIdAt(NOW_MS + 60_000), keepResultMs: FOREVER_MS });
    expect(said(decided(before, asks, at(LIMITS.keepResultMinMs - 1)))).toBe("succeeded");
    expect(said(decided(before, asks, at(LIMITS.keepResultMinMs)))).toBe("granted");
  });

  it("whole: what runs next is a first attempt, about whatever it says", () => {
    const known = record({ holds: { [ME]: hold() }, run: run({ attempt: 7, takeover: true, fingerprint: "old" }) });
    const before = after(decided(known, complete("failed")));
    const { next, answer } = decided(before, start({ ...NEXT, fingerprint: "new", maxAttempts: 1 }), at(DAY_MS));
    expect(answer).toMatchObject({ state: "running", attempt: 1, takeover: false });
    expect(next?.run).toEqual(run({ fingerprint: "new" }));
  });

  it("never, if it is kept for ever", () => {
    const before = succeeded(9_999, FOREVER_MS);
    const farMs = Date.UTC(9999, 11, 31) - NOW_MS;
    expect(said(decided(before, start({ leaseId: leaseIdAt(NOW_MS + farMs) }), at(farMs)))).toBe("succeeded");
    expect(before.ttlAtSec).toBe(LAST_SEC);
  });

  it("only if it is final: one that may be tried again is known as long as the record", () => {
    const retry = after(decided(record({ holds: { [ME]: hold() }, run: run({ fingerprint: "f" }) }), complete("retry")));
    expect(retry.run?.outcome).toEqual(BY_ME);
    const late = 400 * DAY_MS;
    expect(said(decided(retry, start({ leaseId: leaseIdAt(NOW_MS + late), fingerprint: "g" }), at(late)))).toBe("fingerprint-mismatch");
    expect(decided(retry, start({ leaseId: leaseIdAt(NOW_MS + late) }), at(late)).answer).toMatchObject({ attempt: 2 });
  });
});

describe("garbage collection may take the record", () => {
  const LEASE_AND_MARGIN_MS = LEASE_MS + MARGIN_MS;
  const started = (keepResultMs = DAY_MS): LockRecord => after(decided(undefined, start({ keepResultMs }), at(0, 300)));

  it("of a run that started no sooner than two retentions and the keeping of its outcome after its lease", () => {
    expect(started().ttlAtSec).toBe(toSec(300 + LEASE_AND_MARGIN_MS + 2 * RETENTION_MS + DAY_MS));
    expect(started(FOREVER_MS).ttlAtSec).toBe(LAST_SEC);
  });

  it("as before, when an outcome is recorded within a retention of the start", () => {
    const before = started();
    const sameTtl = (ms: number): boolean => {
      const renewed = { ...before, holds: { [ME]: { ...before.holds[ME]!, expiresAtMs: NOW_MS + ms + LEASE_MS } } };
      return after(decided(renewed, complete("succeeded"), at(ms))).ttlAtSec === before.ttlAtSec;
    };
    expect([0, RETENTION_MS, RETENTION_MS + 300].map(sameTtl)).toEqual([true, true, true]);
    expect(sameTtl(RETENTION_MS + 300 + LEASE_AND_MARGIN_MS + 1_000)).toBe(false);
  });

  it("a retention after the outcome is forgotten, when it is recorded later", () => {
    const ms = 5 * DAY_MS;
    const late = record({ holds: { [ME]: hold({ expiresAtMs: NOW_MS + ms + LEASE_MS }) }, run: run(), ttlAtSec: 1 });
    expect(after(decided(late, complete("failed"), at(ms, 200))).ttlAtSec).toBe(toSec(ms + 200 + DAY_MS + RETENTION_MS));
    expect(after(decided(late, complete("retry"), at(ms, 200))).ttlAtSec).toBe(toSec(ms + 200 + RETENTION_MS));
  });

  it("never earlier for an outcome, a heartbeat or a cancel than before", () => {
    const long = record({ holds: { [ME]: hold() }, run: run(), ttlAtSec: LAST_SEC });
    for (const command of [complete("succeeded"), complete("retry"), renewal(), { ...renewal(), type: "release" } as const])
      expect(after(decided(long, command)).ttlAtSec, command.type).toBe(LAST_SEC);
  });

  it("later for a heartbeat only when it must, and then by two retentions", () => {
    const needed = toSec(LEASE_AND_MARGIN_MS + RETENTION_MS);
    const beats = (ttlAtSec: number): number =>
      after(decided(record({ holds: { [ME]: hold() }, run: run(), ttlAtSec }), renewal())).ttlAtSec;
    expect(beats(needed)).toBe(needed);
    expect(beats(needed - 1)).toBe(toSec(LEASE_AND_MARGIN_MS + 2 * RETENTION_MS));
  });

  it("a retention after a run is given up or reset, or later", () => {
    const known = record({ holds: { [ME]: hold() }, run: run(), ttlAtSec: 1 });
    expect(after(decided(known, { ...renewal(), type: "release" }, at(0, 300))).ttlAtSec).toBe(toSec(300 + RETENTION_MS));
    expect(after(decided(succeeded(0, FOREVER_MS), { type: "reset", key: "k" }, at(0, 300))).ttlAtSec).toBe(toSec(300 + RETENTION_MS));
  });

  it("never while anything in it still counts, whatever it went through", () => {
    fc.assert(
      fc.property(fc.array(lifeStep, { minLength: 1, maxLength: 20 }), (steps) => {
        let known: LockRecord | undefined;
        let nowMs = 0;
        for (const { passMs, aheadMs, command } of steps) {
          nowMs += passMs;
          const made = command(leaseIdAt(NOW_MS + nowMs), Object.keys(known?.holds ?? {})[0]);
          const reading = at(nowMs, aheadMs);
          const { next } = decided(known, made, reading);
          if (!next) continue;
          known = next;
          const untilMs = [
            reading.latestMs,
            ...Object.values(next.holds).map(({ expiresAtMs, marginMs }) => expiresAtMs + marginMs),
            next.run?.outcome?.keptUntilMs ?? 0,
          ];
          expect(next.ttlAtSec).toBeGreaterThanOrEqual(Math.min(LAST_SEC, Math.ceil((Math.max(...untilMs) + RETENTION_MS) / 1000)));
        }
      }),
      { seed: 20_270_101, numRuns: sized({ quick: 500, slow: 2_000 }) },
    );
  });
});

describe("the own item of a large payload", () => {
  it.each([
    ["its record", { ttlAtSec: toSec(9 * DAY_MS) }, DAY_MS, toSec(9 * DAY_MS)],
    ["a retention after the outcome is forgotten", { ttlAtSec: 1 }, DAY_MS, toSec(500 + 2 * DAY_MS)],
    ["the end of time", { ttlAtSec: 1 }, FOREVER_MS, LAST_SEC],
  ])("is not collected before %s", (_, known, keepResultMs, ttlAtSec) => {
    expect(payloadTtlAtSec(record(known), run({ keepResultMs }), at(0, 500))).toBe(ttlAtSec);
  });

  it("is outlived only where it is an item, and may be collected before the record", () => {
    const payload = { digest: "d", bytes: 5_000 };
    expect(outlivedBy(undefined, 100)).toBeUndefined();
    expect(outlivedBy(payload, 100)).toBeUndefined();
    expect(outlivedBy({ ...payload, ttlAtSec: 100 }, 100)).toBeUndefined();
    expect(outlivedBy({ ...payload, ttlAtSec: 99 }, 100)).toEqual({ digest: "d", ttlAtSec: 100 });
  });

  it("is told of to a heartbeat that keeps the record for longer, until it was kept for as long", () => {
    const checkpoint = { digest: "d", bytes: 5_000, ttlAtSec: toSec(1_000) };
    const known = record({ holds: { [ME]: hold() }, run: run({ checkpoint }), ttlAtSec: toSec(1_000) });
    const beat = decided(known, renewal());
    const { ttlAtSec } = after(beat);
    expect(ttlAtSec).toBeGreaterThan(checkpoint.ttlAtSec);
    expect(beat.answer).toMatchObject({ ok: true, outlived: { digest: "d", ttlAtSec } });
    const told = decided(beat.next, { ...renewal(), prolonged: { digest: "d", ttlAtSec } });
    expect(told.answer).not.toHaveProperty("outlived");
    expect(after(told).run?.checkpoint).toEqual({ ...checkpoint, ttlAtSec });
  });

  it.each([
    ["another by now", { digest: "other", ttlAtSec: 100 }, 200],
    ["another by now, in the record", { digest: "other", text: "1" }, 200],
    ["kept for as long already", { digest: "d", ttlAtSec: 200 }, 199],
    ["in the record", { digest: "d", text: "1" }, 200],
  ])("changes nothing where the checkpoint is %s", (_, saved, ttlAtSec) => {
    const checkpoint = { bytes: 1, sequence: 3, ...saved };
    const known = record({ holds: { [ME]: hold() }, run: run({ checkpoint }), ttlAtSec: toSec(9 * DAY_MS) });
    expect(after(decided(known, { ...renewal(), prolonged: { digest: "d", ttlAtSec } })).run).toEqual(known.run);
  });
});

function renewal() {
  return { type: "renew", key: "k", leaseId: ME, principal: "me" } as const;
}

/** A step in the life of a run, by its holder if it has one. */
const lifeStep = fc.record({
  passMs: fc.constantFrom(0, 1_000, LEASE_MS, LEASE_MS + MARGIN_MS, RETENTION_MS, 3 * RETENTION_MS),
  aheadMs: fc.constantFrom(0, 1, 9_999),
  command: fc
    .record({
      type: fc.constantFrom("start", "start", "renew", "complete", "release", "reset"),
      keepResultMs: fc.constantFrom(LIMITS.keepResultMinMs, DAY_MS, LIMITS.keepResultMaxMs, FOREVER_MS),
      leaseMs: fc.constantFrom(LIMITS.leaseMinMs, LEASE_MS, LIMITS.leaseMaxMs),
      state: fc.constantFrom("succeeded" as const, "failed" as const, "retry" as const),
    })
    .map(({ type, keepResultMs, leaseMs, state }) => (fresh: string, holder: string | undefined): Command => {
      const leaseId = holder ?? fresh;
      if (type === "start" || holder === undefined) return start({ leaseId: fresh, keepResultMs, leaseMs });
      if (type === "complete") return complete(state, { leaseId });
      if (type === "reset") return { type, key: "k" };
      return type === "renew" ? { ...renewal(), leaseId, leaseMs } : { ...renewal(), type: "release", leaseId };
    }),
});
