/** Conformance: concurrent callers with one idempotency key. One works; the others wait, give up or get a conflict. */
import { describe, expect, it } from "vitest";
import { type RunOptions, LockError, LockTimeoutError } from "../../../lib/index.js";
import { createGate, thrownBy } from "../../support/run-gate.js";
import type { Fixture } from "./conformance.js";

export function describeRunCallers(fixture: Fixture): void {
  describe("concurrent callers wait for the winner's result", () => {
    it("and all get it, of one call of the function", async () => {
      const name = fixture.fresh();
      let calls = 0;
      const calling = Array.from({ length: 8 }, (_, index) =>
        (index % 2 ? fixture.locks : fixture.rival).runOnce(name, () => ({ receipt: ++calls })),
      );
      const results = await fixture.backend.passing(Promise.all(calling));
      expect(calls).toBe(1);
      expect(results.map(({ value, attempt }) => [value, attempt])).toEqual(Array(8).fill([{ receipt: 1 }, 1]));
      expect(results.filter(({ replayed }) => !replayed)).toHaveLength(1);
    });

    it("as soon as there is one, not after their wait", async () => {
      const name = fixture.fresh();
      const gate = createGate();
      const working = fixture.locks.runOnce(name, () => gate.pass().then(() => "done"));
      await gate.reached;
      const began = performance.now();
      const waiting = fixture.rival.runOnce(name, { waitMs: 600_000 }, () => "again");
      gate.open();
      expect(await fixture.backend.passing(waiting)).toEqual({ value: "done", replayed: true, attempt: 1 });
      expect(await working).toEqual({ value: "done", replayed: false, attempt: 1 });
      expect(performance.now() - began).toBeLessThan(10_000);
    });

    it("and start themselves when the winner fails", async () => {
      const name = fixture.fresh();
      const gate = createGate();
      const failing = thrownBy(fixture.locks.runOnce(name, () => gate.pass().then(() => Promise.reject(new Error("no stock")))));
      await gate.reached;
      const waiting = fixture.rival.runOnce(name, ({ attempt, takeover }) => ({ attempt, takeover }));
      gate.open();
      expect(await failing).toMatchObject({ message: "no stock" });
      expect(await fixture.backend.passing(waiting)).toEqual({ value: { attempt: 2, takeover: false }, replayed: false, attempt: 2 });
    });

    it("or ask once, with waitMs: 0", async () => {
      const { name, finish } = await busy(fixture);
      const error = await thrownBy(fixture.rival.runOnce(name, { waitMs: 0 }, () => expect.unreachable("another runs it")));
      expect(error).toBeInstanceOf(LockTimeoutError);
      expect(error).toMatchObject({ code: "wait-timeout", definite: true, retry: "later" });
      expect((error as LockTimeoutError).retryAfterMs).toBeGreaterThan(0);
      await finish();
    });

    it("or for waitMs, and leave nothing started", async () => {
      const { name, finish } = await busy(fixture);
      const waiting = thrownBy(fixture.rival.runOnce(name, { waitMs: 1000 }, () => expect.unreachable("another runs it")));
      expect(await fixture.backend.passing(waiting)).toBeInstanceOf(LockTimeoutError);
      await finish();
      expect(await fixture.rival.runs.get(name)).toMatchObject({ state: "succeeded", attempt: 1 });
    });

    it("or until their signal aborts, and leave nothing started", async () => {
      const { name, fail } = await busy(fixture);
      const giveUp = new AbortController();
      const waiting = thrownBy(fixture.rival.runOnce(name, { signal: giveUp.signal }, () => expect.unreachable("it was given up")));
      giveUp.abort();
      expect(await fixture.backend.passing(waiting)).toMatchObject({ name: "AbortError" });
      await fail();
      expect(await fixture.locks.runs.get(name)).toMatchObject({ state: "failed", retryable: true, attempt: 1 });
    });
  });

  describe("the same key with another payload is refused", () => {
    const order = { sku: "apple", count: 3, at: new Date(86_400_000), cents: 250n };
    const once = (name: string, payload: unknown, more: RunOptions = {}) =>
      fixture.backend.passing(fixture.rival.runOnce(name, { payload, ...more }, () => "again"));

    it("for good: it is neither run nor replayed", async () => {
      const name = fixture.fresh();
      await fixture.locks.runOnce(name, { payload: order }, () => "done");
      const error = await thrownBy(once(name, { ...order, count: 4 }));
      expect(error).toBeInstanceOf(LockError);
      expect(error).toMatchObject({ code: "fingerprint-mismatch", definite: true, retry: "never" });
    });

    it("and after a failure: the next attempt is about the same", async () => {
      const name = fixture.fresh();
      await thrownBy(fixture.locks.runOnce(name, { payload: order }, () => Promise.reject(new Error("no stock"))));
      await expect(once(name, "another")).rejects.toMatchObject({ code: "fingerprint-mismatch" });
      expect(await once(name, order)).toMatchObject({ attempt: 2 });
    });
  });

  describe("a client that is closed while a run works", () => {
    it("tells the work, which still records its outcome", async () => {
      const name = fixture.fresh();
      const closing = fixture.backend.client({ owner: "closing" });
      const gate = createGate();
      let signal: AbortSignal | undefined;
      const working = closing.runOnce(name, async (run) => {
        ({ signal } = run);
        await gate.pass();
        return { held: run.isHeld() };
      });
      await gate.reached;
      const closed = closing.close({ drainMs: 0 });
      expect(signal?.reason).toMatchObject({ name: "LockLostError", reason: "closed" });
      expect(await fixture.rival.runs.get(name)).toMatchObject({ state: "running", owner: "closing" });
      gate.open();
      expect(await working).toEqual({ value: { held: false }, replayed: false, attempt: 1 });
      await closed;
      expect(await fixture.rival.runOnce(name, () => "again")).toMatchObject({ value: { held: false }, replayed: true });
    });

    it("starts nothing any more, and its callers wait no longer", async () => {
      const { name, finish } = await busy(fixture);
      const closing = fixture.backend.client();
      const waiting = thrownBy(closing.runOnce(name, () => expect.unreachable("the client was closed")));
      await closing.close();
      expect(await fixture.backend.passing(waiting)).toMatchObject({ name: "LockError", code: "closed" });
      await expect(closing.runOnce(fixture.fresh(), () => "again")).rejects.toMatchObject({ code: "closed" });
      await finish();
    });
  });
}

/** A key with a run that works until the test ends it. */
async function busy({ fresh, locks }: Fixture, options: RunOptions = {}) {
  const name = fresh();
  const gate = createGate();
  let ending = (): string => "done";
  const working = thrownBy(locks.runOnce(name, options, () => gate.pass().then(() => ending())));
  await gate.reached;
  async function finish(): Promise<void> {
    gate.open();
    await working;
  }
  return {
    name,
    finish,
    fail(): Promise<void> {
      ending = () => {
        throw new Error("no stock");
      };
      return finish();
    },
  };
}
