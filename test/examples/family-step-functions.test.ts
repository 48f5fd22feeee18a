/** The transfer between two steps: no other caller gets in between, the handle works once, and nothing stays held for ever. */
import { describe, expect, it } from "vitest";
import { type OrderState, GAP_MS, reserveStep, shipStep, STEP_MS } from "../../examples/family/step-functions.js";
import type { Lease } from "../../lib/index.js";
import { createLockClient } from "../../lib/testing.js";

const KEY = "ORDER_1231";
type Reserved = OrderState & { readonly lock: string };

/** A workflow whose first step is complete. Its state went through JSON, as between all steps. */
async function reserved() {
  const first = createLockClient({ owner: "reserve" });
  const { clock, store } = first;
  const join = (owner = "other") => createLockClient({ clock, store, owner });
  const state = JSON.parse(JSON.stringify(await reserveStep(first)({ order: "1231" }))) as Reserved;
  return { first, clock, join, state };
}

describe("a lock that one step hands to the next", () => {
  it("is nobody else's between them, though the first step's process is gone and the second takes its time", async () => {
    const { first, clock, join, state } = await reserved();
    await first.close();
    await clock.advance(GAP_MS - 2000);
    expect(await join().tryAcquire(KEY)).toBeNull();
    let under: Lease | undefined;
    const next = await shipStep(join("ship"), async (order, lease) => {
      under = lease;
      expect(order).toBe("1231");
      await clock.advance(2 * STEP_MS);
      lease.assertHeld();
      expect(await join().tryAcquire(KEY)).toBeNull();
    })(state);
    expect(next).toEqual({ order: "1231" });
    const after = await join().tryAcquire(KEY);
    expect(after!.fencingToken).toBeGreaterThan(under!.fencingToken);
  });

  it("control: without the hand-over somebody gets in between", async () => {
    const locks = createLockClient();
    await (await locks.acquire(KEY)).release();
    expect(await locks.tryAcquire(KEY)).not.toBeNull();
  });
});
