/** Conformance: runs for operators, who list them, inspect them, and reset them with a reason. */
import { describe, expect, it } from "vitest";
import { FinalError } from "../../../lib/index.js";
import { pages } from "../../support/pages.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import type { Fixture } from "./conformance.js";

export function describeRunOperators(fixture: Fixture): void {
  const fail = (name: string, error: Error) => thrownBy(fixture.locks.runOnce(name, () => Promise.reject(error)));

  describe("runs are shown", () => {
    it("one by one: who works since when, and nothing that proves it", async () => {
      const name = fixture.fresh();
      expect(await fixture.rival.runs.get(name)).toBeNull();
      const gate = createGate();
      const working = fixture.locks.runOnce(name, async (run) => {
        await run.saveCheckpoint({ step: 3n });
        await gate.pass();
        return run.fencingToken;
      });
      await gate.reached;
      const found = await fixture.rival.runs.get(name);
      expect(found).toMatchObject({ key: name, state: "running", attempt: 1, owner: "checkout-7", checkpoint: { step: 3n } });
      expect(found!.remainingMs).toBeGreaterThan(20_000);
      expect(JSON.stringify(found, (_name, value: unknown) => (typeof value === "bigint" ? String(value) : value))).not.toMatch(
        /[0-9a-f]{8}-[0-9a-f]{4}-7/,
      );
      gate.open();
      const { value } = await working;
      expect(found!.fencingToken).toBe(value);
      const over = await fixture.rival.runs.get(name);
      expect(over).toMatchObject({ state: "succeeded", attempt: 1, result: value });
      expect(over).not.toHaveProperty("checkpoint");
      expect(over).toMatchObject({ owner: found!.owner, endedAgoMs: expect.any(Number), tookMs: expect.any(Number) });
    });

    it("with the error of one that failed, as an error", async () => {
      const name = fixture.fresh();
      await fail(name, new FinalError("card refused"));
      const found = await fixture.rival.runs.get(name);
      expect(found?.error).toBeInstanceOf(Error);
      expect(found).toMatchObject({ state: "failed", retryable: false, error: { name: "FinalError", message: "card refused" } });
    });

    it("by prefix and state, a page at a time, without their values", async () => {
      const within = `${fixture.fresh()}:`;
      const gate = createGate();
      const working = fixture.locks.runOnce(`${within}a`, () => gate.pass());
      await gate.reached;
      await fixture.locks.runOnce(`${within}b`, () => "the value of b");
      await fail(`${within}c`, new FinalError("the error of c"));
      await fail(`${within}d`, new Error("the error of d"));
      await fixture.locks.runOnce(`${within}e`, () => "the value of e");
      await (await fixture.locks.acquire(`${within}f`)).release();

      const all = ["a", "b", "c", "d", "e"].map((letter) => within + letter);
      expect((await pages(fixture.rival.runs, { prefix: within, max: 2 })).flat()).toEqual(all);
      expect((await pages(fixture.rival.runs, { prefix: within, state: "running" })).flat()).toEqual([all[0]]);
      expect((await pages(fixture.rival.runs, { prefix: within, state: "succeeded", max: 1 })).flat()).toEqual([all[1], all[4]]);
      expect((await pages(fixture.rival.runs, { prefix: within, state: "failed" })).flat()).toEqual([all[2], all[3]]);
      expect((await pages(fixture.rival.runs, { prefix: within, state: "interrupted" })).flat()).toEqual([]);
      expect((await pages(fixture.rival.runs, { prefix: `${within}zz` })).flat()).toEqual([]);
      expect(JSON.stringify(await fixture.rival.runs.list({ prefix: within }))).not.toMatch(/the (value|error) of/);
      gate.open();
      await working;
    });

    it("within the client's prefix", async () => {
      const category = `${fixture.fresh()}:`;
      const within = fixture.backend.client({ prefix: category });
      const { value } = await within.runOnce("job", ({ idempotencyKey }) => idempotencyKey);
      expect(value).toBe(`${category}job`);
      expect((await pages(within.runs, {})).flat()).toEqual([`${category}job`]);
      expect(await within.runs.get("job")).toMatchObject({ key: `${category}job`, result: `${category}job` });
      await within.runs.reset("job", { reason: "conformance" });
      expect(await fixture.rival.runs.get(`${category}job`)).toBeNull();
      await within.close();
    });
  });

  describe("a reset", () => {
    it.each(["succeeded", "failed for good", "failed"] as const)("makes a run that %s start afresh", async (how) => {
      const name = fixture.fresh();
      if (how === "failed") await fail(name, new Error("no stock"));
      if (how === "failed for good") await fail(name, new FinalError("card refused"));
      if (how === "succeeded") await fixture.locks.runOnce(name, { payload: "one" }, () => "done");
      await fixture.rival.runs.reset(name, { reason: "conformance" });
      expect(await fixture.rival.runs.get(name)).toBeNull();
      const { value } = await fixture.locks.runOnce(name, { payload: "another" }, ({ attempt, takeover, checkpoint }) => ({
        attempt,
        takeover,
        checkpoint,
      }));
      expect(value).toEqual({ attempt: 1, takeover: false, checkpoint: undefined });
    });

    it("that is repeated with the run's token spares a run that began since", async () => {
      const name = fixture.fresh();
      await fixture.locks.runOnce(name, () => "first");
      const { fencingToken } = (await fixture.rival.runs.get(name)) ?? {};
      const again = () => fixture.rival.runs.reset(name, { reason: "conformance", fencingToken });
      await again();
      await again();
      await fixture.locks.runOnce(name, () => "second");
      expect(await thrownBy(again())).toMatchObject({ code: "other-hold", definite: true });
      expect(await fixture.rival.runs.get(name)).toMatchObject({ result: "second" });
    });
  });

  describe("a result is kept", () => {
    it("for ever where keepResultMs says so, and for a day where nothing does", async () => {
      const [forever, usual] = [fixture.fresh(), fixture.fresh()];
      await fixture.locks.runOnce(forever, { keepResultMs: "forever" }, () => "done");
      await fixture.locks.runOnce(usual, () => "done");
      expect((await fixture.rival.runs.get(forever))?.keptForMs).toBe("forever");
      const keptForMs = (await fixture.rival.runs.get(usual))?.keptForMs as number;
      expect(keptForMs).toBeGreaterThan(86_300_000);
      expect(keptForMs).toBeLessThanOrEqual(86_401_000);
    });
  });
}
