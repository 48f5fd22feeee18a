/** The ends of runs: every failure names its cause and tells the next caller how to proceed. */
import { describe, expect, it } from "vitest";
import * as LIMITS from "../../../lib/core/request-limits.js";
import { FinalError, LockError, RunFailedError } from "../../../lib/index.js";
import { thrownBy } from "../../support/run-gate.js";
import type { Fixture } from "./conformance.js";

export function describeRunEnds(fixture: Fixture): void {
  const failing = (error: unknown) => (): never => {
    throw error;
  };

  describe("failures are explicit", () => {
    it("a thrown error reaches its caller as it is, and lets the next one start at once", async () => {
      const name = fixture.fresh();
      const error = new TypeError("no stock");
      await expect(fixture.locks.runOnce(name, failing(error))).rejects.toBe(error);
      expect(await fixture.rival.runs.get(name)).toMatchObject({
        state: "failed",
        retryable: true,
        attempt: 1,
        error: { name: "TypeError", message: "no stock" },
      });
      const next = await fixture.rival.runOnce(name, { waitMs: 0 }, ({ attempt, takeover }) => ({ attempt, takeover }));
      expect(next).toEqual({ value: { attempt: 2, takeover: false }, replayed: false, attempt: 2 });
    });

    it("a FinalError is kept, and replayed as RunFailedError without a call of the function", async () => {
      const name = fixture.fresh();
      const error = new FinalError("card refused");
      await expect(fixture.locks.runOnce(name, failing(error))).rejects.toBe(error);
      for (const locks of [fixture.locks, fixture.rival]) {
        const replayed = await thrownBy(locks.runOnce(name, () => expect.unreachable("it failed for good")));
        expect(replayed).toBeInstanceOf(RunFailedError);
        expect(replayed).toMatchObject({ code: "run-failed", definite: true, retry: "never", attempt: 1 });
        expect((replayed as RunFailedError).message).toBe(`${name}: card refused`);
        expect((replayed as RunFailedError).cause).toMatchObject({ name: "FinalError", message: "card refused" });
      }
      expect(await fixture.rival.runs.get(name)).toMatchObject({ state: "failed", retryable: false, attempt: 1 });
    });

    it("a FinalError's data is kept as a result is, and left out if it can't be", async () => {
      const data = { reason: "no-funds", missing: 250n, since: new Date(0) };
      const tooLarge = "x".repeat(LIMITS.resultBytes / 2 + 1);
      for (const [given, kept] of [
        [data, data],
        [undefined, undefined],
        [new Map([["not", "JSON"]]), undefined],
        [tooLarge.slice(3), tooLarge.slice(3)],
        [tooLarge, undefined],
      ] as const) {
        const name = fixture.fresh();
        await thrownBy(fixture.locks.runOnce(name, failing(new FinalError("\u0000".repeat(1000), { data: given }))));
        const replayed = (await thrownBy(fixture.rival.runOnce(name, () => "again"))) as RunFailedError;
        expect(replayed).toBeInstanceOf(RunFailedError);
        expect(replayed.data).toEqual(kept);
      }
    });

    it("an error that isFinal takes for final is kept, and no other", async () => {
      const isFinal = (error: unknown): boolean => error instanceof RangeError;
      const [final, passing] = [fixture.fresh(), fixture.fresh()];
      await thrownBy(fixture.locks.runOnce(final, { isFinal }, failing(new RangeError("over the limit"))));
      await thrownBy(fixture.locks.runOnce(passing, { isFinal }, failing(new Error("no stock"))));
      expect(await thrownBy(fixture.rival.runOnce(final, () => "again"))).toMatchObject({
        name: "RunFailedError",
        message: `${final}: over the limit`,
        cause: { name: "RangeError" },
      });
      expect(await fixture.rival.runOnce(passing, () => "again")).toMatchObject({ value: "again", attempt: 2 });
    });

    it.each<[what: string, thrown: unknown, message: string]>([
      ["text", "no stock", "no stock"],
      ["an error of many words", new Error("x".repeat(5000)), `${"x".repeat(800)}…`],
    ])("whatever is thrown is told: %s", async (_what, thrown, message) => {
      const name = fixture.fresh();
      expect(await thrownBy(fixture.locks.runOnce(name, { isFinal: () => true }, failing(thrown)))).toBe(thrown);
      expect(await thrownBy(fixture.rival.runOnce(name, () => "again"))).toMatchObject({ cause: { message } });
    });

    it("an error that can't be read frees its key like any other", async () => {
      const name = fixture.fresh();
      const thrown = Object.defineProperty(new Error(), "message", {
        get() {
          throw new Error("unreadable");
        },
      });
      expect(await thrownBy(fixture.locks.runOnce(name, failing(thrown)))).toBe(thrown);
      expect(await fixture.rival.runOnce(name, { waitMs: 0 }, ({ attempt }) => attempt)).toMatchObject({ value: 2 });
    });

    it("an isFinal that throws frees the key too, for it decided nothing", async () => {
      const name = fixture.fresh();
      const isFinal = (): boolean => {
        throw new Error("isFinal broke");
      };
      await thrownBy(fixture.locks.runOnce(name, { isFinal }, failing(new Error("no stock"))));
      expect(await fixture.rival.runOnce(name, { waitMs: 0 }, ({ attempt }) => attempt)).toMatchObject({ value: 2 });
    });
  });

  describe("attempts are counted", () => {
    it("and end a run that keeps failing with attempts-exhausted, by each caller's own limit", async () => {
      const name = fixture.fresh();
      for (const attempt of [1, 2]) {
        const error = new Error(`attempt ${attempt}`);
        await expect(fixture.locks.runOnce(name, { maxAttempts: 2 }, failing(error))).rejects.toBe(error);
      }
      const refused = await thrownBy(fixture.rival.runOnce(name, { maxAttempts: 2 }, () => expect.unreachable("it failed often enough")));
      expect(refused).toBeInstanceOf(LockError);
      expect(refused).toMatchObject({ code: "attempts-exhausted", definite: true, retry: "never" });
      expect((refused as LockError).message).toMatch(
        /attempted 2 times, of 2 at most: reset it, or allow more attempts \(maxAttempts\)\. A failure that no retry changes .+FinalError/,
      );
      expect(await fixture.rival.runOnce(name, { maxAttempts: 3 }, ({ attempt }) => attempt)).toMatchObject({ value: 3 });
    });

    it("to five where nobody says otherwise, and without end with 0", async () => {
      const name = fixture.fresh();
      for (let attempt = 1; attempt <= 5; attempt++) await thrownBy(fixture.locks.runOnce(name, failing(new Error("no stock"))));
      await expect(fixture.locks.runOnce(name, () => "again")).rejects.toMatchObject({ code: "attempts-exhausted" });
      await thrownBy(fixture.locks.runOnce(name, { maxAttempts: 0 }, failing(new Error("no stock"))));
      expect(await fixture.locks.runOnce(name, { maxAttempts: 0 }, ({ attempt }) => attempt)).toMatchObject({ value: 7 });
    });

    it("but what succeeded is replayed whatever the limit", async () => {
      const name = fixture.fresh();
      await thrownBy(fixture.locks.runOnce(name, failing(new Error("no stock"))));
      await fixture.locks.runOnce(name, () => "done");
      expect(await fixture.rival.runOnce(name, { maxAttempts: 1 }, () => "again")).toEqual({ value: "done", replayed: true, attempt: 2 });
    });
  });
}
