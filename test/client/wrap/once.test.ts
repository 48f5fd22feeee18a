/** Functions and methods that run once for the key in their arguments. */
import { describe, expect, it } from "vitest";
import { type OnceOptions, currentRun, key, runOnce, LockError } from "../../../lib/index.js";
import { createHarness } from "../harness.js";

interface Refund {
  readonly order: number;
  readonly amount: number;
}

function refundsOn({ locks }: ReturnType<typeof createHarness>) {
  class Refunds {
    readonly locks = locks;
    readonly paid: (string | undefined)[] = [];
    fails: Error | undefined;

    @runOnce({ key: (refund: Refund) => key("REFUND", refund.order), payload: (refund: Refund) => refund })
    async pay(refund: Refund): Promise<{ readonly receipt: string }> {
      const run = currentRun();
      this.paid.push(run?.idempotencyKey);
      await Promise.resolve();
      if (this.fails) throw this.fails;
      return { receipt: `R-${refund.order}-${refund.amount}` };
    }
  }
  return new Refunds();
}

describe("a method that runs once", () => {
  it("does its work at the first call, and every other returns what that did", async () => {
    const harness = createHarness();
    const refunds = refundsOn(harness);
    const together = Promise.all([1, 2, 3].map(() => refunds.pay({ order: 7, amount: 5 })));
    await harness.clock.advance(10_000);
    const calls = await together;
    calls.push(await refunds.pay({ order: 7, amount: 5 }));
    expect(calls).toEqual(Array.from({ length: 4 }, () => ({ receipt: "R-7-5" })));
    expect(refunds.paid).toHaveLength(1);
    expect(await refunds.pay({ order: 8, amount: 5 })).toEqual({ receipt: "R-8-5" });
  });

  it("has its run, with the idempotency key to pass on, and none outside", async () => {
    const refunds = refundsOn(createHarness());
    await refunds.pay({ order: 7, amount: 5 });
    expect([refunds.paid.map((passed) => typeof passed), currentRun()]).toEqual([["string"], undefined]);
  });

  it("refuses the same key with another payload", async () => {
    const refunds = refundsOn(createHarness());
    await refunds.pay({ order: 7, amount: 5 });
    const refused = await refunds.pay({ order: 7, amount: 6 }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LockError);
    expect((refused as LockError).code).toBe("fingerprint-mismatch");
  });

  it.each<[options: object, message: string]>([
    [{}, "key: undefined given; it must be a function of the arguments"],
    [{ key: () => "k", payload: 7 }, "payload: 7 given; it must be a function of the arguments"],
    [{ key: () => "k", keepResultMs: 5 }, "keepResultMs: 5 given"],
    [{ key: () => "k", keepResultSec: 5 }, "keepResultSec: is not an option of runOnce"],
    [undefined as never, "options: undefined given; runOnce takes an object of options"],
  ])("refuses %j before any call", (options, message) => {
    expect(() => runOnce(options as OnceOptions<unknown, []>, async () => undefined)).toThrow(message);
  });

  it("keeps its type as a wrapper", async () => {
    const { locks } = createHarness();
    const pay: (refund: Refund, note: string) => Promise<number> = runOnce(
      { locks, key: (refund: Refund) => key("REFUND", refund.order) },
      async (refund: Refund, note: string) => refund.amount + note.length,
    );
    expect([await pay({ order: 1, amount: 5 }, "ab"), await pay({ order: 1, amount: 5 }, "abcd")]).toEqual([7, 7]);
  });
});
