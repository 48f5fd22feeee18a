/** The time for which a run belongs to its runner, and the time for which its result is stored. The two are independent. */
import { describe, expect, it } from "vitest";
import { takeoverMarginMs } from "../../../lib/core/limits.js";
import { type LockClient, type Run, type RunOptions, LockLostError } from "../../../lib/testing.js";
import { passed } from "../../support/invocation.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import { createHarness } from "../harness.js";

const KEY = "refund:42";
const DAY_MS = 86_400_000;
const told = ({ attempt, takeover, checkpoint }: Run) => ({ attempt, takeover, checkpoint });
/** Calls without waiting. Fails with a LockTimeoutError while another caller's lease is valid. */
const ask = (locks: LockClient, options: RunOptions = {}) => locks.runOnce(KEY, { waitMs: 0, ...options }, told);

describe("a job longer than its lease", () => {
  /** A minute of work under a lease of three seconds, and a rival that calls repeatedly. */
  async function longJob(options: RunOptions) {
    const { clock, locks, rival, wire } = createHarness();
    let calls = 0;
    const work = async (run: Run): Promise<string> => {
      calls++;
      await passed(clock, 60_000);
      return `attempt ${run.attempt}, ${run.isHeld() ? "held" : "lost"}`;
    };
    const first = thrownBy(locks.runOnce(KEY, { leaseMs: 3000, ...options }, work));
    await clock.advance(0);
    const second = thrownBy(rival.runOnce(KEY, { waitMs: 600_000 }, work));
    return { results: await clock.settle(Promise.all([first, second]), 600_000), calls, renewals: wire.of("renew").length };
  }

  it("is not run twice: heartbeats keep it, and whoever asks waits", async () => {
    const { results, calls, renewals } = await longJob({});
    expect(calls).toBe(1);
    expect(results).toEqual([
      { value: "attempt 1, held", replayed: false, attempt: 1 },
      { value: "attempt 1, held", replayed: true, attempt: 1 },
    ]);
    expect(renewals).toBeGreaterThan(40);
  });

  it("control: without heartbeats it is", async () => {
    const { results, calls, renewals } = await longJob({ heartbeat: false });
    expect(calls).toBe(2);
    expect(results[0]).toBeInstanceOf(LockLostError);
    expect(results[1]).toEqual({ value: "attempt 2, held", replayed: false, attempt: 2 });
    expect(renewals).toBe(0);
  });

  it("that is stopped past its lease holds nothing when it wakes, and its outcome counts only if nobody took over", async () => {
    const { clock, locks } = createHarness();
    const gate = createGate();
    let run: Run | undefined;
    const working = locks.runOnce(KEY, { leaseMs: 3000 }, async (given) => {
      run = given;
      await gate.pass();
      expect(() => given.assertHeld()).toThrow(LockLostError);
      await expect(given.saveCheckpoint("far")).rejects.toBeInstanceOf(LockLostError);
      return "late";
    });
    await gate.reached;
    await clock.freeze(10_000);
    expect([run!.isHeld(), run!.signal.aborted]).toEqual([false, true]);
    gate.open();
    expect(await clock.settle(working)).toEqual({ value: "late", replayed: false, attempt: 1 });
  });
});

describe("attempts that all crash", () => {
  it("are seen by an operator as interrupted, and a reset begins anew; the crashed one's outcome is not recorded then", async () => {
    const { clock, locks, rival } = createHarness();
    const gate = createGate();
    const working = thrownBy(locks.runOnce(KEY, { leaseMs: 1000, heartbeat: false }, () => gate.pass().then(() => "late")));
    await gate.reached;
    await clock.advance(1000);
    await expect(rival.runs.reset(KEY, { reason: "test" })).rejects.toMatchObject({ code: "run-in-progress" });
    await clock.advance(takeoverMarginMs(1000));
    expect((await rival.runs.list({ state: "interrupted" })).items).toMatchObject([{ key: KEY, state: "interrupted" }]);
    await rival.runs.reset(KEY, { reason: "test" });
    gate.open();
    expect(await clock.settle(working)).toMatchObject({ name: "LockLostError", reason: "broken" });
    expect(await ask(rival)).toMatchObject({ value: { attempt: 1, takeover: false } });
  });
});

describe("a result", () => {
  it.each([60_000, DAY_MS])(
    "is replayed for as long as it is kept, %d ms from the end of the work, and then forgotten",
    async (keepResultMs) => {
      const { clock, locks, rival } = createHarness();
      await clock.settle(locks.runOnce(KEY, { keepResultMs }, () => passed(clock, 90_000).then(() => "done")));
      await clock.advance(keepResultMs - 1);
      expect(await ask(rival)).toEqual({ value: "done", replayed: true, attempt: 1 });
      await clock.advance(1);
      expect(await rival.runs.get(KEY)).toBeNull();
      expect(await ask(rival)).toMatchObject({ value: { attempt: 1, takeover: false }, replayed: false });
    },
  );
});
